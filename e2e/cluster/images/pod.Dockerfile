# SPDX-License-Identifier: Apache-2.0
#
# What the tests' pods run, and, as it sleeps when nobody says otherwise, the sandbox: busybox and
# the tools.
FROM scratch
COPY bin /bin
ENV PATH=/bin
ENTRYPOINT ["/bin/sleep", "2147483647"]
