# SPDX-License-Identifier: Apache-2.0
#
# A volume in the zone of this node counts as lost.
# file: csi-driver/internal/csi/controller/controller.go
# test: internal/csi/driver/TestGoneZoneThatIsHere
s/return err == nil && here != of\.Zone, err/return err == nil || here != of.Zone, err/
