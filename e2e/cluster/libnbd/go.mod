// SPDX-License-Identifier: Apache-2.0

module libguestfs.org/libnbd

go 1.24
