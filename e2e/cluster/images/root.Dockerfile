# SPDX-License-Identifier: Apache-2.0
#
# A root that another script has made.
FROM scratch
ADD root.tar /
