{{- define "workloads.default" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-{{ .Chart.Name }}
spec:
  replicas: 1
  selector:
    matchLabels:
      release: {{ .Release.Name }}
  template:
    metadata:
      labels:
        release: {{ .Release.Name }}
    spec:
      automountServiceAccountToken: false
      containers: []
{{- end -}}

{{- define "workloads.deployment" -}}
{{- $top := first . -}}
{{- $default := include "workloads.default" $top | fromYaml -}}
{{- $own := include (index . 1) $top | fromYaml -}}
{{- mergeOverwrite $default $own | toYaml -}}
{{- end -}}
