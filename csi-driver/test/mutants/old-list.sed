# SPDX-License-Identifier: Apache-2.0
#
# A deletion uses a list that began before the deletion.
# file: csi-driver/internal/cluster/names.go
# test: internal/cluster/TestManyDeletionsListOnce
s/n\.known\.began\.Before(asked) {/asked.Sub(n.known.began) > time.Minute {/
