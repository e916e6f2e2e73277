{{/* Says true if the local network is looked at or told. */}}
{{- define "liqo.lan" -}}
{{- if or .Values.discovery.config.enableDiscovery .Values.discovery.config.enableAdvertisement -}}
true
{{- end -}}
{{- end }}

{{- define "liqo.discovery.name" -}}
liqo-discovery
{{- end }}

{{/* Where others reach the authentication service, if it is not where the Service says. */}}
{{- define "liqo.auth.overrides" -}}
{{- with .Values.auth.config.addressOverride }}
- {{ printf "--auth-service-address-override=%s" . | quote }}
{{- end }}
{{- with int .Values.auth.config.portOverride }}
- {{ printf "--auth-service-port-override=%d" . | quote }}
{{- end }}
{{- end }}

{{/* Arguments of `liqo discovery`. Its ports are on a node, where others have theirs. */}}
{{- define "liqo.discovery.args" -}}
{{- $config := .Values.discovery.config -}}
{{- $network := .Values.networkManager.config -}}
- discovery
- {{ printf "--liqo-namespace=%s" .Release.Namespace | quote }}
- {{ printf "--mdns-enable-discovery=%t" $config.enableDiscovery | quote }}
- {{ printf "--mdns-enable-advertisement=%t" $config.enableAdvertisement | quote }}
- {{ printf "--mdns-ttl=%ds" (int $config.ttl) | quote }}
{{- with $config.interfaces }}
- {{ printf "--mdns-interfaces=%s" (join "," .) | quote }}
{{- end }}
{{- with $config.excludeInterfaces }}
- {{ printf "--mdns-exclude-interfaces=%s" (join "," .) | quote }}
{{- end }}
{{- with $config.ipFamilies }}
- {{ printf "--mdns-ip-families=%s" (join "," .) | quote }}
{{- end }}
{{- with compact (list $network.podCIDR $network.serviceCIDR) }}
- {{ printf "--cluster-networks=%s" (join "," .) | quote }}
{{- end }}
{{- include "liqo.auth.overrides" . }}
- {{ printf "--metrics-address=:%d" (int .Values.discovery.metricsPort) | quote }}
- {{ printf "--health-probe-address=127.0.0.1:%d" (int .Values.discovery.probesPort) | quote }}
- {{ printf "--log-format=%s" .Values.controllerManager.logFormat | quote }}
- {{ printf "--log-filter=%s" .Values.controllerManager.logFilter | quote }}
{{- range .Values.discovery.pod.extraArgs }}
- {{ quote . }}
{{- end }}
{{- end }}

{{/* Where the pod may run: never on a virtual node. It tells others the addresses of its own node, so it is best where a
manager is, and must be there if the Service answers on the nodes of managers alone. */}}
{{- define "liqo.discovery.affinity" -}}
{{- if .Values.discovery.pod.affinity -}}
{{ toYaml .Values.discovery.pod.affinity }}
{{- else -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - key: liqo.io/type
            operator: NotIn
            values: [virtual-node]
podAffinity:
  {{- if eq .Values.auth.service.externalTrafficPolicy "Local" }}
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels:
          {{- include "liqo.selectorLabels" (dict "root" . "component" "controller-manager") | nindent 10 }}
  {{- else }}
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "liqo.selectorLabels" (dict "root" . "component" "controller-manager") | nindent 12 }}
  {{- end }}
{{- end }}
{{- end }}
