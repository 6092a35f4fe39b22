{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{- define "stargate.name" -}}
{{- printf "%s-csi" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "stargate.selector" -}}
app.kubernetes.io/name: stargate-csi
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "stargate.labels" -}}
{{ include "stargate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
Volumes and VMs name the driver permanently. An upgrade whose values do not contain driverName would
remove the CSIDriver and the webhooks of these volumes and VMs. KubeVirt would then start VMs
without their volumes, and without an error. So the release's objects in the cluster must belong to
the same driver. helm template has no cluster, so it does not check this.
*/}}
{{- define "stargate.sameDriver" -}}
{{- $had := list -}}
{{- range (lookup "storage.k8s.io/v1" "CSIDriver" "" "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- $helm := .metadata.annotations | default dict -}}
{{- if and (eq (get $labels "app.kubernetes.io/name" | toString) "stargate-csi") (eq (get $labels "app.kubernetes.io/instance" | toString) $.Release.Name) (eq (get $helm "meta.helm.sh/release-namespace" | toString) $.Release.Namespace) -}}
{{- $had = append $had .metadata.name -}}
{{- end -}}
{{- end -}}
{{- $webhook := include "stargate.webhook" . -}}
{{- range list "ValidatingWebhookConfiguration" "MutatingWebhookConfiguration" -}}
{{- range (lookup "admissionregistration.k8s.io/v1" . "" $webhook).webhooks -}}
{{- $had = append $had (regexReplaceAll "^[^.]*[.]" .name "") -}}
{{- end -}}
{{- end -}}
{{- range $had | uniq -}}
{{- if ne . $.Values.driverName -}}
{{- fail (printf "this release has the driver %s, and driverName is %s: its volumes and VMs would have no driver. Set driverName=%s, or use --reuse-values; for another name uninstall the release first" . $.Values.driverName .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
A driver finds only the volumes of its kind of zone. An upgrade whose values do not contain
zone.kind can therefore leave the existing volumes without a driver, and their pods could not start
again. helm template has no cluster, so it does not check this.
*/}}
{{- define "stargate.sameZone" -}}
{{- $kind := .Values.zone.kind -}}
{{- $there := lookup "apps/v1" "DaemonSet" .Release.Namespace (include "stargate.name" .) -}}
{{- range $container := (dig "spec" "template" "spec" "containers" list $there) -}}
{{- range $argument := $container.args -}}
{{- $had := trimPrefix "--zone-kind=" $argument -}}
{{- if and (hasPrefix "--zone-kind=" $argument) (ne $had $kind) (ne $had "none") -}}
{{- $volumes := list -}}
{{- range (lookup "v1" "PersistentVolume" "" "").items -}}
{{- if eq (dig "spec" "csi" "driver" "" .) $.Values.driverName -}}
{{- $volumes = append $volumes .metadata.name -}}
{{- end -}}
{{- end -}}
{{- if $volumes -}}
{{- fail (printf "this upgrade changes zone.kind from %s to %s, and the driver would no longer find %d volumes (%s). Set zone.kind=%s, or use --reuse-values; to change the kind, delete the claims of these volumes first" $had $kind (len $volumes) (join ", " (first (chunk 3 $volumes))) $had) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Returns the prefix of the names of the driver's PersistentVolumes. The node's name, a dash, and the
UID of the claim follow. A bound claim has only the name of its volume, so the name must identify
driver and node (node-policy.yaml). No driver's name has two dashes in a row (values.schema.json),
so no other driver's volumes have this prefix.
*/}}
{{- define "stargate.volumePrefix" -}}
pvc-{{ .Values.driverName }}--
{{- end -}}

{{/*
Returns the number of bytes of a size like 16Gi. A longer number would overflow, but no volume is so
large.
*/}}
{{- define "stargate.bytes" -}}
{{- if regexMatch "^([0-9]{1,17}|[0-9]{1,14}Ki|[0-9]{1,11}Mi|[0-9]{1,8}Gi|[0-9]{1,5}Ti)$" . -}}
{{- $unit := get (dict "B" 1 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776) (regexFind "[KMGT]i$" . | default "B") -}}
{{- mul (regexFind "^[0-9]+" . | int64) $unit -}}
{{- else -}}
9223372036854775807
{{- end -}}
{{- end -}}

{{/*
Checks a size. Argument: dict with what; is: the size; least, most, step: bytes; allowed: the
allowed values, for the message. With another size, the driver would exit, or refuse each claim.
*/}}
{{- define "stargate.checkSize" -}}
{{- $n := include "stargate.bytes" .is | int64 -}}
{{- if or (lt $n (int64 .least)) (gt $n (int64 .most)) (ne (mod $n .step) 0) -}}
{{- fail (printf "%s is %s: must be %s" .what .is .allowed) -}}
{{- end -}}
{{- end -}}

{{/*
Returns the number in a string of digits. It removes leading zeros, which would make the number
octal.
*/}}
{{- define "stargate.number" -}}
{{- regexReplaceAll "^0+" . "" | default "0" -}}
{{- end -}}

{{/*
Checks the parameters of a class, or of all inline volumes. Argument: dict with what; is: the
parameters.
*/}}
{{- define "stargate.checkParameters" -}}
{{- $of := .is | default dict -}}
{{- with $of.lease -}}
{{- if ne . "never" -}}
{{- $n := include "stargate.number" . | int64 -}}
{{- if or (lt $n 2) (gt $n 86400) -}}
{{- fail (printf "%s: lease is %s: must be never, or 2 to 86400 (seconds)" $.what .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $of.rootOwner -}}
{{- range splitList ":" . -}}
{{- if gt (include "stargate.number" . | int64) 4294967294 -}}
{{- fail (printf "%s: rootOwner is %s: must be UID:GID in decimal, each at most 4294967294" $.what $of.rootOwner) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Makes the checks of numbers that a schema cannot express. internal/app/config.go, internal/pool/file
and internal/csi/request have the same checks.
*/}}
{{- define "stargate.checkNumbers" -}}
{{- $least := 16777216 -}}
{{- $most := 70368744177664 -}}
{{- $page := 2097152 -}}
{{- $top := 4502500115742720 -}}
{{- include "stargate.checkSize" (dict "what" "defaultSize" "is" .Values.defaultSize "least" $least "most" $most "step" 1 "allowed" "16Mi to 64Ti") -}}
{{- if eq .Values.zone.kind "file" -}}
{{- include "stargate.checkSize" (dict "what" "zone.base" "is" .Values.zone.base "least" 4294967296 "most" $top "step" $page "allowed" "4Gi to 4095Ti, a multiple of 2Mi") -}}
{{- $room := sub $top (include "stargate.bytes" .Values.zone.base | int64) -}}
{{- include "stargate.checkSize" (dict "what" "zone.size" "is" .Values.zone.size "least" $least "most" $room "step" $page "allowed" "16Mi or more, a multiple of 2Mi, and ending below 4095Ti with zone.base") -}}
{{- end -}}
{{- range $name := list "nodeQuota" "namespaceQuota" -}}
{{- with index ($.Values.datasets | default dict) $name -}}
{{- include "stargate.checkSize" (dict "what" (printf "datasets.%s" $name) "is" . "least" $least "most" $most "step" 1 "allowed" "16Mi to 64Ti") -}}
{{- end -}}
{{- end -}}
{{- include "stargate.checkParameters" (dict "what" "inlineVolumes.parameters" "is" .Values.inlineVolumes.parameters) -}}
{{- range .Values.storageClasses -}}
{{- $name := .name -}}
{{- include "stargate.checkParameters" (dict "what" (printf "storageClasses: %s" $name) "is" .parameters) -}}
{{- with (.parameters | default dict).maxSize -}}
{{- include "stargate.checkSize" (dict "what" (printf "storageClasses: maxSize of %s" $name) "is" . "least" $least "most" $most "step" $page "allowed" "16Mi to 64Ti, a multiple of 2Mi") -}}
{{- end -}}
{{- with (.parameters | default dict).reserve -}}
{{- include "stargate.checkSize" (dict "what" (printf "storageClasses: reserve of %s" $name) "is" . "least" $page "most" $most "step" $page "allowed" "2Mi to 64Ti, a multiple of 2Mi") -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* image: dict image, default */}}
{{- define "stargate.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .default }}
{{- end -}}
{{- end -}}

{{/* Returns the selector of nodes that can run the image, which is for one kind of processor. */}}
{{- define "stargate.platform" -}}
kubernetes.io/os: linux
kubernetes.io/arch: amd64
{{- end -}}

{{/*
Returns this selector with the user's labels. If both have the same label, it appears once.
*/}}
{{- define "stargate.nodeSelector" -}}
{{- merge (include "stargate.platform" . | fromYaml) .Values.nodeSelector | toYaml -}}
{{- end -}}

{{/*
Returns the tolerations of pods that run once and end. With the driver's tolerations, such pods
could be scheduled to dead nodes. But a cluster may have only control planes, or nodes that still
wait for the driver, so the pods tolerate the taints of these nodes.
*/}}
{{- define "stargate.onceTolerations" -}}
- {key: node-role.kubernetes.io/control-plane, operator: Exists}
- {key: {{ .Values.driverName }}/not-ready, operator: Exists}
{{- with .Values.onceTolerations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
Returns the security context of a sidecar. A sidecar runs as root, because the driver's socket
belongs to root. It needs no other right.
*/}}
{{- define "stargate.sidecarSecurity" -}}
runAsUser: 0
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "stargate.resizer" -}}
{{- printf "%s-resizer" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "stargate.resizerSelector" -}}
app.kubernetes.io/name: stargate-resizer
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "stargate.resizerLabels" -}}
{{ include "stargate.resizerSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "stargate.keeper" -}}
{{- printf "%s-keeper" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "stargate.keeperSelector" -}}
app.kubernetes.io/name: stargate-keeper
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "stargate.keeperLabels" -}}
{{ include "stargate.keeperSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
Returns the way in which pods get volumes. After `helm upgrade --reuse-values` from an older chart,
the value is missing.
*/}}
{{- define "stargate.mount" -}}
{{ .Values.mount | default "auto" }}
{{- end -}}

{{/* Returns a text that is not empty if pods get mounts by servers, which a keeper runs. */}}
{{- define "stargate.keeps" -}}
{{- if and (eq .Values.zone.kind "file") (ne (include "stargate.mount" .) "none") -}}yes{{- end -}}
{{- end -}}

{{/*
Refuses ways to mount that do not work with the kind of zone. internal/app/config.go has the same
check.
*/}}
{{- define "stargate.checkMount" -}}
{{- $mount := include "stargate.mount" . -}}
{{- if and (eq .Values.zone.kind "file") (eq $mount "module") -}}
{{- fail "mount is module, and zone.kind is file: the module mounts devices, and these volumes are files. Set mount to fuse or auto" -}}
{{- else if and (eq .Values.zone.kind "dax") (eq $mount "fuse") -}}
{{- fail "mount is fuse, and zone.kind is dax: these volumes are block devices, whose page cache hides what other systems store. Set mount to module or auto, or zone.kind to file with zone.dir on a DAX file system" -}}
{{- else if and (eq .Values.zone.kind "dax") (eq $mount "none") -}}
{{- fail "mount is none, and zone.kind is dax: such volumes are always mounted. Set mount to module or auto" -}}
{{- end -}}
{{- end -}}

{{/*
Returns a text that is not empty if nodes have data sets. After `helm upgrade --reuse-values` from
an older chart, the value is missing.
*/}}
{{- define "stargate.datasets" -}}
{{- if (.Values.datasets).enabled -}}yes{{- end -}}
{{- end -}}

{{/*
Refuses data sets where the driver cannot fill volumes, or cannot read the objects.
internal/app/config.go has the same checks.
*/}}
{{- define "stargate.checkDatasets" -}}
{{- if include "stargate.datasets" . -}}
{{- if not .Values.tellCluster -}}
{{- fail "datasets.enabled is true, and tellCluster is false: the driver could not read data sets. Set tellCluster to true" -}}
{{- else if and (eq .Values.zone.kind "file") (eq (include "stargate.mount" .) "none") -}}
{{- fail "datasets.enabled is true, and mount is none: the driver could not fill volumes. Set mount to fuse or auto" -}}
{{- end -}}
{{- $had := dict -}}
{{- range .Values.datasets.secrets -}}
{{- if hasKey $had .namespace -}}
{{- fail (printf "datasets.secrets has namespace %s twice: put all its names into one entry" .namespace) -}}
{{- end -}}
{{- $_ := set $had .namespace true -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Returns a text that is not empty if the cluster is OpenShift. */}}
{{- define "stargate.openshift" -}}
{{- if .Capabilities.APIVersions.Has "security.openshift.io/v1/SecurityContextConstraints" -}}yes{{- end -}}
{{- end -}}

{{/* The user of pods that need no root. OpenShift gives each namespace its own user IDs. */}}
{{- define "stargate.nobody" -}}
runAsNonRoot: true
{{- if not (include "stargate.openshift" .) }}
runAsUser: 65532
runAsGroup: 65532
{{- end }}
{{- end -}}

{{- define "stargate.webhook" -}}
{{- printf "%s-webhook" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "stargate.webhookSelector" -}}
app.kubernetes.io/name: stargate-webhook
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "stargate.webhookLabels" -}}
{{ include "stargate.webhookSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "stargate.hookImage" -}}
{{- if .Values.kubevirt.hookImage.repository -}}
{{ include "stargate.image" (dict "image" .Values.kubevirt.hookImage "default" .Chart.AppVersion) }}
{{- else -}}
{{ include "stargate.image" (dict "image" .Values.image "default" .Chart.AppVersion) }}
{{- end -}}
{{- end -}}

{{/*
Returns the key of a VM's annotation, or the CEL expression for an object that has this annotation.
*/}}
{{- define "stargate.volumesKey" -}}
{{ .Values.driverName }}/volumes
{{- end -}}

{{/*
Returns the targets that pods may reach: the API server, and DNS for the API server's name.
*/}}
{{- define "stargate.egress" -}}
{{- range .Values.apiServerPorts -}}
- {protocol: TCP, port: {{ . }}}
{{ end -}}
{{- /* 5353: DNS of OpenShift. The policy applies to the ports of its pods. */ -}}
{{- range list 53 5353 }}
- {protocol: TCP, port: {{ . }}}
- {protocol: UDP, port: {{ . }}}
{{- end -}}
{{- end -}}
