# SPDX-License-Identifier: Apache-2.0
#
# The driver changes a user's choice of a group.
# file: csi-driver/internal/publish/mounted.go
# test: internal/publish/TestGroup
s/if st\.Uid != 0 || st\.Gid != 0 ||/if st.Uid != 0 ||/
