# SPDX-License-Identifier: Apache-2.0
#
# What the tests' pods run, and, as it sleeps when nobody says otherwise, the sandbox: busybox,
# the tools, and flock.
FROM scratch
COPY flock /
COPY bin /bin
ENV PATH=/bin:/usr/bin
ENTRYPOINT ["/bin/sleep", "2147483647"]
