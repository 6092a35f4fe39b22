# SPDX-License-Identifier: Apache-2.0
#
# A busy webhook denies the migration of VMs without volumes.
# file: csi-driver/internal/kubevirt/webhook/serve.go
# test: internal/kubevirt/webhook/TestMigrationWithoutAnswer
s/in\.Request\.Resource\.Resource == migrations &&/in.Request.Resource.Resource == "" \&\&/
