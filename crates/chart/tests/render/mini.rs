//! The files of a small chart that uses what charts use.

/// Values with all that is easily taken for something else.
pub(crate) const VALUES: &str = r#"
name: ""
replicas: 2
port: 8080
bigNumber: 12345678
labels: {team: "yes", tier: "1e3"}
args: ["--flag=a b", "--quoted='x'", "0x1"]
config:
  log.level: info
  script: |
    #!/bin/sh
    echo "{{ not a template }}"
greeting: "Hello {{ .Release.Name }} in {{ .Release.Namespace }}"
features: {beta: true, alpha: false, gamma: true}
removable: {keep: 1, drop: 2}
"#;

/// Named templates, as every chart has them.
pub(crate) const HELPERS: &str = r#"
{{/* The name of all objects. */}}
{{- define "mini.name" -}}
{{- default (printf "%s-%s" .Release.Name .Chart.Name) .Values.name | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "mini.labels" -}}
app.kubernetes.io/name: {{ include "mini.name" . | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}
"#;

/// Conditions, loops, checksums and lists.
pub(crate) const DEPLOYMENT: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "mini.name" . }}
  labels: {{- include "mini.labels" . | nindent 4 }}
spec:
  {{- if not .Values.autoscaled }}
  replicas: {{ .Values.replicas }}
  {{- end }}
  template:
    metadata:
      annotations:
        checksum/config: {{ include (print $.Template.BasePath "/config.yaml") . | sha256sum }}
        checksum/values: {{ .Values | toYaml | sha256sum | trunc 8 | quote }}
    spec:
      containers:
        - name: main
          args:
            {{- range .Values.args }}
            - {{ . | quote }}
            {{- end }}
            - --number={{ .Values.port }}
          ports: [{containerPort: {{ .Values.port }}}]
          env:
            {{- range $name, $on := .Values.features }}
            {{- if $on }}
            - {name: FEATURE_{{ upper $name }}, value: {{ $on | quote }}}
            {{- end }}
            {{- else }}
            - {name: NONE, value: "1"}
            {{- end }}
"#;

/// Several documents, values that are templates, files, and what a chart is told about its release.
pub(crate) const CONFIG: &str = r#"
{{- /* Two documents, one of them empty. */ -}}
---
{{ if .Values.never }}
kind: Never
{{ end }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "mini.name" . }}
data:
  {{- toYaml .Values.config | nindent 2 }}
  greeting: {{ tpl .Values.greeting . | quote }}
  big: {{ .Values.bigNumber | int64 | quote }}
  removable: {{ .Values.removable | toJson | squote }}
  files: |
    {{- (.Files.Glob "files/*.txt").AsConfig | nindent 4 }}
  has: {{ .Capabilities.APIVersions.Has "policy/v1" | quote }}
  has-not: {{ .Capabilities.APIVersions.Has "policy/v2" | quote }}
  semver: {{ semverCompare ">=1.33-0" .Capabilities.KubeVersion.Version | ternary "new" "old" }}
  about: {{ printf "%s/%v/%v/%d" .Release.Service .Release.IsInstall .Release.IsUpgrade .Release.Revision }}
  template: {{ .Template.Name }}
  maintainer: {{ (first .Chart.Maintainers).Name }}
"#;

/// Kinds in an order that must be changed, one of which depends on the cluster.
pub(crate) const POLICY: &str = r#"{{- if .Capabilities.APIVersions.Has "policy/v1/PodDisruptionBudget" }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: "{{ include "mini.name" . }}"}
{{- end }}
---
apiVersion: example.com/v1
kind: Zebra
metadata: {name: z}
---
apiVersion: v1
kind: Namespace
metadata: {name: {{ .Release.Namespace }}}
"#;

/// A hook that only `helm test` makes.
pub(crate) const TEST_POD: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: test, annotations: {"helm.sh/hook": test}}
"#;
