# SPDX-License-Identifier: Apache-2.0
#
# A volume of a zone that this node has counts as gone.
# file: csi-driver/internal/csi/controller/controller.go
# test: internal/csi/driver/TestGoneZoneThatIsHere
s/return err == nil && here != of\.Zone, err/return err == nil || here != of.Zone, err/
