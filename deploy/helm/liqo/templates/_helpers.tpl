{{/* The names here are fixed, whatever the release is called: a cluster has one Liqo, and documents, dashboards and
people refer to these names. A second release fails on the first of them. */}}
{{- define "liqo.controllerManager.name" -}}
liqo-controller-manager
{{- end }}

{{/* What tells the pods of a component apart from all others. Part of Deployments' selectors, which can never change:
nothing may be added. Arguments: root and component. */}}
{{- define "liqo.selectorLabels" -}}
app.kubernetes.io/name: liqo
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Labels of every object. Arguments: root and component. */}}
{{- define "liqo.labels" -}}
{{ include "liqo.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: liqo-rs
app.kubernetes.io/managed-by: {{ .root.Release.Service | quote }}
{{- end }}

{{/* The image of all roles. */}}
{{- define "liqo.image" -}}
{{- if .Values.image.digest -}}
{{ printf "%s@%s" .Values.image.name .Values.image.digest }}
{{- else -}}
{{ printf "%s:%s" .Values.image.name (default .Chart.AppVersion .Values.image.tag) }}
{{- end -}}
{{- end }}

{{/* A map as key=value,key=value, in the order of its keys. */}}
{{- define "liqo.keyValues" -}}
{{- $pairs := list -}}
{{- range $key, $value := . -}}
{{- $pairs = append $pairs (printf "%s=%s" $key $value) -}}
{{- end -}}
{{- join "," $pairs -}}
{{- end }}

{{/* Labels that the user adds to an object. Those of the chart are refused among them: an object has each label once, and
ours decide whose selectors find it. Arguments: labels, and at: the value they come from. */}}
{{- define "liqo.moreLabels" -}}
{{- $labels := default (dict) .labels -}}
{{- $at := .at -}}
{{- range list "name" "instance" "component" "version" "part-of" "managed-by" -}}
{{- $key := printf "app.kubernetes.io/%s" . -}}
{{- if hasKey $labels $key -}}
{{- fail (printf "%s: the label %s is the chart's own; remove it" $at $key) -}}
{{- end -}}
{{- end -}}
{{- if $labels -}}
{{ toYaml $labels }}
{{- end -}}
{{- end }}
