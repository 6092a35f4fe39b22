# SPDX-License-Identifier: Apache-2.0
#
# A pod of the webhook refuses connections as soon as it ends.
# file: charts/stargate/templates/kubevirt-webhook.yaml
# test: test/chart/TestWebhookLeaves
s/sleep: {seconds: 5}/sleep: {seconds: 0}/
