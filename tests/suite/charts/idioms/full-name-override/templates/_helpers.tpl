{{- define "checkout.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "checkout.fullname" -}}
{{- with .Values.fullnameOverride -}}
{{- trunc 63 . | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "checkout.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
