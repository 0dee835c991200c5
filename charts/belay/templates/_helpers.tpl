{{/* Name of the Deployment, the roles, the Lease. */}}
{{- define "belay.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains "belay" .Release.Name -}}
{{- printf "%s-operator" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-belay-operator" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/*
Name of what has no namespace. Two releases may have the same name in two namespaces; a colon can stand in
neither, so no two of these are the same.
*/}}
{{- define "belay.clusterWideName" -}}
{{- printf "%s:%s" .Release.Namespace (include "belay.fullname" .) -}}
{{- end -}}

{{- define "belay.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "belay.fullname" .) -}}
{{- end -}}

{{/* Labels that never change; a Deployment's selector cannot. */}}
{{- define "belay.selectorLabels" -}}
app.kubernetes.io/name: belay
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "belay.labels" -}}
{{ include "belay.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: belay
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Name of what exists only while the release is being uninstalled. A Job's name may have 63 characters. */}}
{{- define "belay.releaseName" -}}
{{- printf "%s-release-pauses" (include "belay.fullname" . | trunc 48 | trimSuffix "-") -}}
{{- end -}}

{{- define "belay.releaseAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- include "belay.releaseName" . -}}
{{- else -}}
{{- .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Another component than the operator's: its Deployment must not take the Job's pod for its own. */}}
{{- define "belay.releaseLabels" -}}
app.kubernetes.io/name: belay
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: release-pauses
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: belay
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Of weight `.`: what has a lower one is there before. */}}
{{- define "belay.releaseHook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{- define "belay.image" -}}
{{- $image := printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $image .Values.image.digest -}}
{{- else -}}
{{- $image -}}
{{- end -}}
{{- end -}}

{{/* "true" or nothing. */}}
{{- define "belay.readPullSecrets" -}}
{{- if kindIs "bool" .Values.registry.readPullSecrets -}}
{{- if .Values.registry.readPullSecrets -}}true{{- end -}}
{{- else if eq .Values.scope "namespace" -}}true{{- end -}}
{{- end -}}

{{/* Refuses values that are each valid and make no sense together; the schema refuses the rest. */}}
{{- define "belay.validate" -}}
{{- if and (eq .Values.scope "cluster") (not .Values.rbac.clusterWide) -}}
{{- fail "scope=cluster needs rbac.clusterWide=true: without a ClusterRole the operator sees no workload; use scope=namespace where only one namespace may be written" -}}
{{- end -}}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) -}}
{{- fail "serviceAccount.create=false needs serviceAccount.name: the rights would otherwise go to an account that nobody makes" -}}
{{- end -}}
{{- if eq (include "belay.serviceAccountName" .) "default" -}}
{{- fail "serviceAccount.name may not be default: every pod of the namespace that names no account would get the operator's rights" -}}
{{- end -}}
{{- if and .Values.github.caSecret.name (hasPrefix "http:" .Values.github.url) -}}
{{- fail (printf "github.caSecret needs an https address: github.url=%s uses no certificate" .Values.github.url) -}}
{{- end -}}
{{- if and (hasPrefix "http:" .Values.github.url) (not (regexMatch "^http://(127\\.[0-9.]+|localhost|\\[::1\\])(:[0-9]+)?(/|$)" .Values.github.url)) -}}
{{- $origin := regexFind "^http://[^/]+" .Values.github.url -}}
{{- if not (or (has $origin .Values.allowHosts) (has (printf "%s:80" $origin) .Values.allowHosts)) -}}
{{- fail (printf "github.url=%s is without TLS, and a token would be sent in clear text: use https, or name %s in allowHosts" .Values.github.url $origin) -}}
{{- end -}}
{{- end -}}
{{- if eq .Values.migrateFrom.fieldManager .Values.fieldManager -}}
{{- fail (printf "migrateFrom.fieldManager=%s is the operator's own fieldManager: name that of the operator which Belay replaces" .Values.fieldManager) -}}
{{- end -}}
{{- if eq .Values.scope "namespace" -}}
{{- range .Values.allowRepos -}}
{{- $namespace := index (splitList "=" .) 0 -}}
{{- if and (not (contains "*" $namespace)) (not (contains "?" $namespace)) (ne $namespace $.Release.Namespace) -}}
{{- fail (printf "allowRepos: %s is for namespace %s, and with scope=namespace only %s is watched" . $namespace $.Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
