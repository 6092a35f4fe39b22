{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/*
The data of the Secret with the webhook's certificate, and the times of that certificate in seconds
since 1970, as YAML: data, made, expires. Helm makes the certificate, and its authority signs nothing
else: no key of the authority is kept. The webhook only reads it. So it needs no right to write
Secrets, or its own configuration, with which it could be sent every object of the cluster.

An upgrade makes another certificate when less than a third of the life of the first one is left. The
Secret then has both, and API servers trust the authorities of both. The webhook serves the earlier
one for another hour (internal/kubevirt/webhook/folder.go), because Helm's certificates begin at the
time of the machine that makes them. So there is no moment at which an API server trusts another
certificate than the one that it is shown. An upgrade of the next day or later leaves the earlier one
out, and until then no further one is made: pods may still show the first of three. The same happens
with the Secret of charts whose webhook made its certificate itself.
*/}}
{{- define "stargate.certificate" -}}
{{- $name := include "stargate.webhook" . -}}
{{- $day := 86400 -}}
{{- $life := 1095 -}}
{{- $now := now | unixEpoch | int64 -}}
{{- $pem := "(?s)-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----" -}}
{{- $had := lookup "v1" "Secret" .Release.Namespace (printf "%s-tls" $name) | default dict -}}
{{- $data := $had.data | default dict -}}
{{- $whole := and (get $data "ca.crt") (get $data "tls.crt") (get $data "tls.key") -}}
{{- $made := $now -}}
{{- $expires := add $now (mul $life $day) -}}
{{- if $whole -}}
{{- /* The first charts that made a certificate gave it ten years, and no annotations. */ -}}
{{- $notes := $had.metadata.annotations | default dict -}}
{{- $born := $had.metadata.creationTimestamp | default "1970-01-01T00:00:00Z" | toDate "2006-01-02T15:04:05Z07:00" | unixEpoch -}}
{{- $made = get $notes (printf "%s/certificate-made" .Values.driverName) | default $born | int64 -}}
{{- $expires = get $notes (printf "%s/certificate-expires" .Values.driverName) | default (add $made (mul 3650 $day) | toString) | int64 -}}
{{- else -}}
{{- $data = include "stargate.oldCertificate" . | fromYaml -}}
{{- end -}}
{{- $authority := get $data "ca.crt" | b64dec | regexFind $pem -}}
{{- $recent := le (sub $now $made) (int64 $day) -}}
{{- $enough := ge (mul 3 (sub $expires $now)) (sub $expires $made) -}}
{{- if and $whole (or $enough (and $recent (get $data "previous.crt"))) -}}
{{- if not $recent -}}
{{- $data = dict "ca.crt" (printf "%s\n" $authority | b64enc) "tls.crt" (get $data "tls.crt") "tls.key" (get $data "tls.key") -}}
{{- end -}}
{{- else -}}
{{- $made = $now -}}
{{- $expires = add $now (mul $life $day) -}}
{{- $before := and $authority (get $data "tls.crt") (get $data "tls.key") -}}
{{- $ca := genCAWithKey $name $life (genPrivateKey "ecdsa") -}}
{{- $dns := list (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) -}}
{{- $pair := genSignedCertWithKey $name nil $dns $life $ca (genPrivateKey "ecdsa") -}}
{{- $new := dict "ca.crt" ($ca.Cert | b64enc) "tls.crt" ($pair.Cert | b64enc) "tls.key" ($pair.Key | b64enc) -}}
{{- if $before -}}
{{- $_ := set $new "ca.crt" (printf "%s\n%s\n" (trim $ca.Cert) $authority | b64enc) -}}
{{- $_ := set $new "previous.crt" (get $data "tls.crt") -}}
{{- $_ := set $new "previous.key" (get $data "tls.key") -}}
{{- end -}}
{{- $data = $new -}}
{{- end -}}
{{- dict "data" $data "made" ($made | toString) "expires" ($expires | toString) | toYaml -}}
{{- end -}}

{{/*
The data of the Secret of a chart whose webhook made its certificate itself, or of cert-manager, as
YAML. A person may have a Secret of that name for something else, so it counts only if the API server
trusts its authority for the webhook, or cert-manager says so. It has no labels.
*/}}
{{- define "stargate.oldCertificate" -}}
{{- $name := include "stargate.webhook" . -}}
{{- $had := lookup "v1" "Secret" .Release.Namespace $name | default dict -}}
{{- $data := $had.data | default dict -}}
{{- if and (eq ($had.type | default "") "kubernetes.io/tls") (get $data "ca.crt") (get $data "tls.crt") (get $data "tls.key") -}}
{{- $ours := eq (get ($had.metadata.annotations | default dict) "cert-manager.io/certificate-name") $name -}}
{{- $authority := get $data "ca.crt" | b64dec | trim -}}
{{- range (lookup "admissionregistration.k8s.io/v1" "ValidatingWebhookConfiguration" "" $name | default dict).webhooks -}}
{{- $ours = or $ours (contains $authority ((.clientConfig | default dict).caBundle | default "" | b64dec)) -}}
{{- end -}}
{{- if $ours -}}{{- toYaml $data -}}{{- end -}}
{{- end -}}
{{- end -}}
