{{- define "hooks.pod" -}}
containers:
- name: store
  image: {{ .Values.image }}
{{- end -}}
