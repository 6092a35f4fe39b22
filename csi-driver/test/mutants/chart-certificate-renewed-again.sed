# SPDX-License-Identifier: Apache-2.0
#
# Pods use a certificate whose authority is no longer trusted.
# file: charts/stargate/templates/_certificate.tpl
# test: test/chart/TestOwnCertificate
s/\$recent (get \$data "previous\.crt")/$recent (get $data "next.crt")/
