# SPDX-License-Identifier: Apache-2.0
#
# A VM cannot be deleted while the webhook does not run.
# file: charts/stargate/templates/kubevirt-webhook.yaml
# test: test/chart/TestWebhooks
s/"!has(object\.metadata\.deletionTimestamp)"/"true"/
