# SPDX-License-Identifier: Apache-2.0
#
# Each process of the node may open a volume of a zone of files.
# file: csi-driver/internal/pool/file/change.go
# test: internal/pool/file/TestOwnerOfFiles
s/os\.Chmod(temporary, 0o660)/os.Chmod(temporary, 0o666)/
