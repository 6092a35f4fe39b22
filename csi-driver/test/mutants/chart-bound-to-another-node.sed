# SPDX-License-Identifier: Apache-2.0
#
# A claim is bound to a volume of a node that the scheduler has not chosen.
# file: charts/stargate/templates/node-policy.yaml
# test: test/chart/TestBound
s/"object\.spec\.volumeName == %s + variables\.chosen + '-' + object\.metadata\.uid"/"object.spec.volumeName.startsWith(%s)"/
