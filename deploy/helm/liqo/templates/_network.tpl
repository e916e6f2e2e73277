{{/* What the network parts are told. The pods carry a checksum of it, so that a change reaches them. */}}
{{- define "liqo.network.data" -}}
apiServerAddress: {{ quote .Values.apiServer.address }}
podCIDR: {{ quote .Values.networkManager.config.podCIDR }}
serviceCIDR: {{ quote .Values.networkManager.config.serviceCIDR }}
reservedSubnets: {{ join "," .Values.networkManager.config.reservedSubnets | quote }}
mtu: {{ int .Values.networkConfig.mtu | quote }}
listeningPort: {{ int .Values.gateway.config.listeningPort | quote }}
{{- end }}
