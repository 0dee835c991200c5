{{/*
What the operator may do where it follows workloads: in one namespace by a Role, in all by the ClusterRole.
Workloads are never created, updated or deleted: without `create`, server-side apply cannot bring back a Deployment
that somebody deleted.
*/}}
{{- define "belay.targetRules" -}}
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, patch]
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
# KEDA's ScaledObjects are paused by annotations; the HPAs that it makes of them show that a pause took hold.
- apiGroups: [keda.sh]
  resources: [scaledobjects]
  verbs: [get, list, watch, patch]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get]
- apiGroups: [belay.dev]
  resources: [releases, rollbacks, releasetargets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [belay.dev]
  resources: [releases/status, rollbacks/status, releasetargets/status]
  verbs: [patch, update]
- apiGroups: [belay.dev]
  resources: [automatedrollbackpolicies]
  verbs: [get, list, watch]
- apiGroups: ["", events.k8s.io]
  resources: [events]
  verbs: [create, patch]
# The annotation of a namespace says how many Releases are kept.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
# Whether another operator, which a workload's status names, still lives.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get]
{{- end -}}

{{/* What ends the pauses of ScaledObjects when the release is uninstalled. */}}
{{- define "belay.releaseRules" -}}
- apiGroups: [keda.sh]
  resources: [scaledobjects]
  verbs: [list, patch]
{{- end -}}

{{/* Pull secrets are read by name, as the kubelet does, and never listed. */}}
{{- define "belay.pullSecretRules" -}}
- apiGroups: [""]
  resources: [secrets, serviceaccounts]
  verbs: [get]
{{- end -}}
