{{/* With high availability one replica is too few, whatever the number says. */}}
{{- define "liqo.controllerManager.replicas" -}}
{{- $replicas := int .Values.controllerManager.replicas -}}
{{- if and .Values.enableHA (lt $replicas 2) -}}
2
{{- else -}}
{{ $replicas }}
{{- end -}}
{{- end }}

{{/* Arguments of the manager. What was not set is not passed, so that the manager's own default holds. */}}
{{- define "liqo.controllerManager.args" -}}
{{- $discovery := .Values.discovery.config -}}
{{- $config := .Values.controllerManager.config -}}
- manager
- {{ printf "--liqo-namespace=%s" .Release.Namespace | quote }}
{{- with $discovery.clusterName }}
- {{ printf "--cluster-name=%s" . | quote }}
{{- end }}
{{- with $discovery.clusterIDOverride }}
- {{ printf "--cluster-id=%s" . | quote }}
{{- end }}
{{- with $discovery.clusterLabels }}
- {{ printf "--cluster-labels=%s" (include "liqo.keyValues" .) | quote }}
{{- end }}
- {{ printf "--auto-join-discovered-clusters=%t" $discovery.autojoin | quote }}
- {{ printf "--enable-authentication=%t" .Values.auth.config.enableAuthentication | quote }}
{{- with $discovery.nameServers }}
- {{ printf "--name-servers=%s" (join "," .) | quote }}
{{- end }}
- {{ printf "--resource-sharing-percentage=%d" (int $config.resourceSharingPercentage) | quote }}
- {{ printf "--enable-incoming-peering=%t" $config.incomingPeeringEnabled | quote }}
- {{ printf "--offer-disable-auto-accept=%t" $config.offerDisableAutoAccept | quote }}
- {{ printf "--offer-update-threshold-percentage=%d" (int $config.offerUpdateThresholdPercentage) | quote }}
{{- if $config.brokerMode }}
- "--broker-mode=true"
{{- end }}
{{- with $config.externalMonitor }}
- {{ printf "--external-monitor=%s" . | quote }}
{{- end }}
{{- with .Values.virtualKubelet.imageName }}
- {{ printf "--kubelet-image=%s" . | quote }}
{{- end }}
{{- with .Values.reflection }}
- {{ printf "--reflection=%s" (include "liqo.keyValues" .) | quote }}
{{- end }}
{{- with .Values.storage }}
{{- if .enable }}
- "--enable-storage=true"
- {{ printf "--virtual-storage-class-name=%s" .virtualStorageClassName | quote }}
{{- with .realStorageClassName }}
- {{ printf "--real-storage-class-name=%s" . | quote }}
{{- end }}
- {{ printf "--storage-namespace=%s" .storageNamespace | quote }}
{{- end }}
{{- end }}
{{- if .Values.apiServer.trustedCA }}
- "--api-server-trusted-ca=true"
{{- end }}
{{- include "liqo.auth.overrides" . }}
- "--auth-address=:5000"
- "--kubelet-address=:10250"
- "--webhook-address=:9443"
- "--metrics-address=:8080"
- "--health-probe-address=:8081"
- {{ printf "--log-format=%s" .Values.controllerManager.logFormat | quote }}
- {{ printf "--log-filter=%s" .Values.controllerManager.logFilter | quote }}
{{- range .Values.controllerManager.pod.extraArgs }}
- {{ quote . }}
{{- end }}
{{- end }}

{{/* Where the pods may run: never on a virtual node, which would send the manager to a peer of its own making; with
high availability, better on different nodes. Only better: a cluster with one node gets two replicas as well. */}}
{{- define "liqo.controllerManager.affinity" -}}
{{- if .Values.controllerManager.pod.affinity -}}
{{ toYaml .Values.controllerManager.pod.affinity }}
{{- else -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - key: liqo.io/type
            operator: NotIn
            values: [virtual-node]
{{- if .Values.enableHA }}
podAntiAffinity:
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
