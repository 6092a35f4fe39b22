# SPDX-License-Identifier: Apache-2.0
#
# A volume of another zone keeps this one.
# file: csi-driver/internal/cluster/names.go
# test: internal/cluster/TestKeeps
s/ && !id\.Elsewhere(volume\.Zone) &&/ \&\&/
