# SPDX-License-Identifier: Apache-2.0
#
# The webhook runs with capabilities.
# file: charts/stargate/templates/kubevirt-webhook.yaml
# test: test/chart/TestPrivileges
s/drop: \[ALL\]/drop: [KILL]/
