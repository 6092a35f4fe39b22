# SPDX-License-Identifier: Apache-2.0
#
# A Secret's content goes to a host that the Secret does not name.
# file: csi-driver/internal/dataset/source/credentials.go
# test: internal/dataset/source/TestHostsOfASecret
s/if port == u\.Port() \&\& (Access/if port == u.Port() || (Access/
