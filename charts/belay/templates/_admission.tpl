{{/* "true" or nothing: whether the policies are installed. Where nobody says, wherever the server has them. */}}
{{- define "belay.admissionPolicy" -}}
{{- $has := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy" -}}
{{- if kindIs "bool" .Values.admissionPolicy.install -}}
{{- if .Values.admissionPolicy.install -}}true{{- end -}}
{{- else if and $has .Values.rbac.clusterWide -}}true{{- end -}}
{{- end -}}

{{/* That a map is as it was, but for some keys. */}}
{{- define "belay.equalBut" -}}
{{- $keys := list -}}
{{- range .keys -}}{{- $keys = append $keys (squote .) -}}{{- end -}}
{{- $but := printf ".transformMap(k, v, !(k in [%s]), v)" (join ", " $keys) -}}
{{- printf "variables.after%s%s == variables.before%s%s" .of $but .of $but -}}
{{- end -}}

{{/* That all annotations are as they were, but for those that are allowed. */}}
{{- define "belay.equalAnnotations" -}}
{{- $but := printf ".metadata.?annotations.orValue({}).transformMap(k, v, !(%s), v)" .allowed -}}
{{- printf "variables.after%s == variables.before%s" $but $but -}}
{{- end -}}

{{/* That the same containers stand in the same order, each as it was but for its image. */}}
{{- define "belay.equalContainers" -}}
{{- $but := printf ".spec.template.spec.?%s.orValue([]).map(c, c.transformMap(k, v, k != 'image', v))" . -}}
{{- printf "variables.after%s == variables.before%s" $but $but -}}
{{- end -}}

{{/* Which annotations of a ScaledObject may change; those of an earlier operator's pauses may only go. */}}
{{- define "belay.pauseAnnotations" -}}
{{- $own := printf "k.startsWith('%s/') || k in ['autoscaling.keda.sh/paused', 'autoscaling.keda.sh/paused-scale-in']" .Values.annotationPrefix -}}
{{- if .Values.migrateFrom.pauseMarks -}}
{{- $keys := list (squote "autoscaling.keda.sh/paused-replicas") -}}
{{- range .Values.migrateFrom.pauseMarks -}}{{- $keys = append $keys (squote .) -}}{{- end -}}
{{- $own = printf "%s || (k in [%s] && !(k in variables.after.metadata.?annotations.orValue({})))" $own (join ", " $keys) -}}
{{- end -}}
{{- $own -}}
{{- end -}}
