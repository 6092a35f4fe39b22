# SPDX-License-Identifier: Apache-2.0
#
# A VM cannot go while the webhook is away.
# file: charts/stargate/templates/kubevirt-webhook.yaml
# test: test/chart/TestWebhooks
s/"!has(object\.metadata\.deletionTimestamp)"/"true"/
