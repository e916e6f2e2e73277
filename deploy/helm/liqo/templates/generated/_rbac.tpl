{{/* Placeholder until `cargo xtask generate` writes this file from the code. */}}
{{- define "liqo.rbac.controllerManager.cluster" -}}
- apiGroups: [config.liqo.io]
  resources: [clusterconfigs]
  verbs: [get, list, watch, create]
- apiGroups: [config.liqo.io]
  resources: [clusterconfigs/status]
  verbs: [update, patch]
{{- end }}
{{- define "liqo.rbac.controllerManager.namespace" -}}
- apiGroups: [""]
  resources: [configmaps, secrets]
  verbs: [get, create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update, patch]
{{- end }}
