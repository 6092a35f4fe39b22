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

{{/* image: dict image, default */}}
{{- define "stargate.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .default }}
{{- end -}}
{{- end -}}

{{/* Where the image can run: what it has is for one kind of processor. */}}
{{- define "stargate.platform" -}}
kubernetes.io/os: linux
kubernetes.io/arch: amd64
{{- end -}}

{{/* And where it is wanted: who names these labels, too, has them once. */}}
{{- define "stargate.nodeSelector" -}}
{{- merge (include "stargate.platform" . | fromYaml) .Values.nodeSelector | toYaml -}}
{{- end -}}

{{/*
Of what runs once, and is to end: with the driver's own tolerations it would be put on nodes that are dead. A
cluster may have none but control planes, or nodes which still wait for the driver.
*/}}
{{- define "stargate.onceTolerations" -}}
- {key: node-role.kubernetes.io/control-plane, operator: Exists}
- {key: {{ .Values.driverName }}/not-ready, operator: Exists}
{{- with .Values.onceTolerations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The driver's socket is root's; a sidecar asks for nothing else. */}}
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

{{/* What a machine's annotation is called, and in CEL: that an object has it. */}}
{{- define "stargate.volumesKey" -}}
{{ .Values.driverName }}/volumes
{{- end -}}

{{/* Where pods go: to the API server, and to DNS for its name. */}}
{{- define "stargate.egress" -}}
{{- range .Values.apiServerPorts -}}
- {protocol: TCP, port: {{ . }}}
{{ end -}}
- {protocol: TCP, port: 53}
- {protocol: UDP, port: 53}
{{- end -}}
