# SPDX-License-Identifier: Apache-2.0
#
# A program of CDI, run as nobody, in a root that was made elsewhere.
FROM scratch
ADD root.tar /
COPY bin /usr/bin
USER 1001
ENTRYPOINT ["/usr/bin/program"]
