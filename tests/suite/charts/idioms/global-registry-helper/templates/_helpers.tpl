{{- define "catalog.name" -}}
{{ .Release.Name }}-catalog
{{- end -}}

{{- define "catalog.labels" -}}
app.kubernetes.io/name: catalog
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "catalog.image" -}}
{{ include "images.reference" (dict "image" .Values.image "global" .Values.global "version" .Chart.AppVersion) }}
{{- end -}}
