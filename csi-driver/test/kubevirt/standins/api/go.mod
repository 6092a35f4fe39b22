// SPDX-License-Identifier: Apache-2.0

module kubevirt.io/virt-template-api

go 1.26.0

require k8s.io/apimachinery v0.34.3
