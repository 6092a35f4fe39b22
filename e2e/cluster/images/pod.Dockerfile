# SPDX-License-Identifier: Apache-2.0
#
# For the tests' pods and, because it sleeps by default, for the sandbox: busybox, the tools, and
# flock.
FROM scratch
COPY flock /
COPY bin /bin
ENV PATH=/bin:/usr/bin
ENTRYPOINT ["/bin/sleep", "2147483647"]
