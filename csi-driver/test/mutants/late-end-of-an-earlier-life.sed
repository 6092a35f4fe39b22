# SPDX-License-Identifier: Apache-2.0
#
# A late report ends the present life of a VM.
# file: csi-driver/internal/kubevirt/nodehook/given.go
# test: internal/kubevirt/nodehook/TestGiven
s/noted && l\.uid == m\.Metadata\.UID {/noted {/
