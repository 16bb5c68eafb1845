{{- define "stint.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "stint.selector" -}}
app.kubernetes.io/name: stint
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "stint.labels" -}}
{{ include "stint.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* The configuration as the service reads it. What the chart decides comes last. */}}
{{- define "stint.config" -}}
{{- if not .Values.config.tokens }}{{ fail "config.tokens: must not be empty: whoever reaches the service may do everything without" }}{{ end }}
{{- if and (gt (int .Values.replicas) 1) (not (and .Values.config.cluster .Values.config.cluster.bucket)) }}{{ fail "replicas: more than 1 needs config.cluster.bucket: processes do not share a folder" }}{{ end }}
{{- if not (or .Values.config.insecure (and .Values.config.tls .Values.config.tls.certificate)) }}{{ fail "config.tls: must name a certificate and a key, or config.insecure must be true: tokens would be sent in the clear" }}{{ end }}
{{- range $key, $value := .Values.config }}
{{- if or (eq $key "data") (eq $key "listen") (eq $key "plan") }}{{ fail (printf "config.%s: is the chart's to say" $key) }}{{ end }}
{{ toYaml (dict $key $value) }}
{{- end }}
data: /var/lib/stint
{{- if .Values.plan }}
plan: /etc/stint/plan.yaml
{{- end }}
{{- end }}

{{- define "stint.scheme" -}}
{{ if and .Values.config.tls .Values.config.tls.certificate }}HTTPS{{ else }}HTTP{{ end }}
{{- end }}
