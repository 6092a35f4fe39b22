# SPDX-License-Identifier: Apache-2.0
#
# VMs start without the webhook, and without their volumes.
# file: charts/stargate/templates/kubevirt-webhook.yaml
# test: test/chart/TestConditions
s/failurePolicy: Fail/failurePolicy: Ignore/
