{{- /*
The image of a container: the live one where an operator owns it, else the chart's.

    image: {{ include "belay-image.image" (dict
      "root" $ "name" (include "web.fullname" .) "container" "app"
      "image" (printf "%s:%s" .Values.image.repository .Values.image.tag)) }}

root              the root context ($): its release is the one that is rendered
name              name of the workload
container         name of the container; init:NAME for an init container
image             the chart's image
kind              of the workload; Deployment unless it is given, StatefulSet or DaemonSet
namespace         of the workload; that of the release unless it is given
fieldManager      who moves images; belay-operator unless it is given
annotationPrefix  belay.dev unless it is given
acceptRepository  true: the chart may change the image's repository

It answers with the live image if Belay follows the container (the workload carries the annotations `release` and `repo`,
and its annotation `container` names it, or it is the only one), or if the field manager owns the container's image. It fails where the chart's repository is neither the live one nor that of the
annotation `image`, and where the workload cannot be read. Without a cluster (helm template, helm lint, a dry run on the
client) it answers with the chart's image.
*/ -}}
{{- define "belay-image.image" -}}
{{- range $key := list "root" "name" "container" "image" -}}
{{- if not (get $ $key) -}}{{- fail (printf "belay-image.image: %s is missing" $key) -}}{{- end -}}
{{- end -}}
{{- $kind := .kind | default "Deployment" -}}
{{- if not (has $kind (list "Deployment" "StatefulSet" "DaemonSet")) -}}
{{- fail (printf "belay-image.image: kind %s is none of Deployment, StatefulSet and DaemonSet" $kind) -}}
{{- end -}}
{{- $namespace := .namespace | default .root.Release.Namespace -}}
{{- $live := lookup "apps/v1" $kind $namespace .name -}}
{{- $kept := include "belay-image.kept" (dict "live" $live "ask" .) -}}
{{- $kept | default .image -}}
{{- end -}}

{{- /* The live image if an operator owns it, else nothing. */ -}}
{{- define "belay-image.kept" -}}
{{- $ask := .ask -}}
{{- $list := ternary "initContainers" "containers" (hasPrefix "init:" $ask.container) -}}
{{- $name := trimPrefix "init:" $ask.container -}}
{{- $image := "" -}}
{{- range dig "spec" "template" "spec" $list (list) .live -}}
{{- if eq .name $name -}}{{- $image = .image -}}{{- end -}}
{{- end -}}
{{- $prefix := $ask.annotationPrefix | default "belay.dev" -}}
{{- $annotations := dig "metadata" "annotations" (dict) .live -}}
{{- $isFollowed := and (hasKey $annotations (printf "%s/release" $prefix)) (hasKey $annotations (printf "%s/repo" $prefix)) -}}
{{- with get $annotations (printf "%s/container" $prefix) -}}
{{- $isFollowed = and $isFollowed (has $ask.container (splitList "," (nospace .))) -}}
{{- else -}}
{{- $isFollowed = and $isFollowed (eq $list "containers") (eq 1 (len (dig "spec" "template" "spec" "containers" (list) .live))) -}}
{{- end -}}
{{- $isOwned := false -}}
{{- range dig "metadata" "managedFields" (list) .live -}}
{{- if and (eq .manager ($ask.fieldManager | default "belay-operator")) (not .subresource) -}}
{{- $container := printf `k:{"name":%s}` (toJson $name) -}}
{{- $fields := dig "fieldsV1" "f:spec" "f:template" "f:spec" (printf "f:%s" $list) $container (dict) . -}}
{{- if hasKey $fields "f:image" -}}{{- $isOwned = true -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $image (or $isFollowed $isOwned) -}}
{{- $annotated := get $annotations (printf "%s/image" $prefix) -}}
{{- $isSame := false -}}
{{- $wanted := include "belay-image.repository" $ask.image -}}
{{- range list $image $annotated -}}
{{- if and . (eq $wanted (include "belay-image.repository" .)) -}}{{- $isSame = true -}}{{- end -}}
{{- end -}}
{{- if $isSame -}}
{{- $image -}}
{{- else if not $ask.acceptRepository -}}
{{- $kind := $ask.kind | default "Deployment" -}}
{{- fail (printf "%s %s runs %s, and the chart wants %s, which is of another repository; acceptRepository true lets the chart change it" $kind $ask.name $image $ask.image) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The repository of an image: without tag and digest, Docker Hub's names written in full. */ -}}
{{- define "belay-image.repository" -}}
{{- $name := regexReplaceAll "@.*$" . "" -}}
{{- $name = regexReplaceAll ":[^:/]*$" $name "" -}}
{{- $first := splitList "/" $name | first -}}
{{- $hasHost := and (contains "/" $name) (or (contains "." $first) (contains ":" $first) (eq $first "localhost")) -}}
{{- if not $hasHost -}}{{- $name = printf "docker.io/%s" $name -}}{{- end -}}
{{- $name = regexReplaceAll "^index\\.docker\\.io/" $name "docker.io/" -}}
{{- regexReplaceAll "^docker\\.io/([^/]+)$" $name "docker.io/library/${1}" -}}
{{- end -}}
