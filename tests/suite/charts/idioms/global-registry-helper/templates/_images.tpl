{{/* The reference of an image; call with a dict of "image", "global" and "version". */}}
{{- define "images.reference" -}}
{{- $registry := .image.registry -}}
{{- if (.global).imageRegistry -}}
{{- $registry = .global.imageRegistry -}}
{{- end -}}
{{- $end := printf ":%s" (default .version .image.tag) -}}
{{- if .image.digest -}}
{{- $end = printf "@%s" .image.digest -}}
{{- end -}}
{{- if $registry -}}
{{- printf "%s/%s%s" $registry .image.repository $end -}}
{{- else -}}
{{- printf "%s%s" .image.repository $end -}}
{{- end -}}
{{- end -}}

{{- define "images.pullSecrets" -}}
{{- with (.Values.global).imagePullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}
