{{/* The Deployment `web`; `namespace` may be empty. */}}
{{- define "matrix.web" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  {{- if .values.follow }}
  annotations:
    belay.dev/repo: acme/web
    belay.dev/image: registry.example/web
    belay.dev/container: app
  {{- end }}
spec:
  {{- include "matrix.spec" (dict "name" "web" "values" .values "chart" .chart) | nindent 2 }}
{{- end }}

{{/* The spec of a Deployment, whose pods carry its name as a label. */}}
{{- define "matrix.spec" -}}
replicas: {{ .values.replicas }}
selector:
  matchLabels:
    app: {{ .name }}
template:
  metadata:
    labels:
      app: {{ .name }}
  spec:
    nodeName: kwok-0
    initContainers:
    - name: init
      image: registry.example/init:1.0.0
    containers:
    - name: app
      image: "{{ .values.image.repository }}:{{ .values.image.tag | default .chart.AppVersion }}"
    - name: sidecar
      image: registry.example/sidecar:1.0.0
{{- end }}
