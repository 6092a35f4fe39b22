{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/*
Returns YAML with the fields data, made and expires: the data of the Secret with the webhook's
certificate, and the times of that certificate in seconds since 1970. Helm creates the certificate.
Its authority signs nothing else, because Helm does not keep the authority's key. The webhook only
reads the certificate. So the webhook needs no right to write Secrets or its own configuration. With
the latter right, it could get every object of the cluster.

An upgrade creates another certificate when less than a third of the validity of the first
certificate remains. The Secret then has both certificates, and API servers trust the authorities of
both. The webhook uses the earlier certificate for another hour
(internal/kubevirt/webhook/folder.go), because a new certificate begins at the time of the machine
on which Helm runs. So an API server trusts the webhook's certificate at every moment. An upgrade on
the next day or later removes the earlier certificate. Until then, Helm creates no third
certificate, because pods may still use the first one. An upgrade replaces the certificate of a chart
whose webhook created its own certificate in the same way.
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
{{- /*
The first charts with such a certificate set no annotations. Their certificate is valid for ten
years.
*/ -}}
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
Returns YAML with the data of the Secret of cert-manager, or of a chart whose webhook created its
own certificate. The Secret has no labels, and a user may have a Secret of that name for another
purpose. So the Secret counts only if API servers trust its authority for the webhook, or if it has
an annotation of cert-manager.
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
