# SPDX-License-Identifier: Apache-2.0
#
# A change of the status can turn a pod into the pod of a VM.
# file: charts/stargate/templates/kubevirt-webhook.yaml
# test: test/chart/TestRules
s/resources: \[pods, pods\/status\]}/resources: [pods]}/
