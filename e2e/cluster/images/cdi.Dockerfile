# SPDX-License-Identifier: Apache-2.0
#
# A program of CDI that runs without root's rights, in a root that e2e/cluster/cdi-images has made.
FROM scratch
ADD root.tar /
COPY bin /usr/bin
USER 1001
ENTRYPOINT ["/usr/bin/program"]
