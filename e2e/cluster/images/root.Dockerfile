# SPDX-License-Identifier: Apache-2.0
#
# A root that was made elsewhere.
FROM scratch
ADD root.tar /
