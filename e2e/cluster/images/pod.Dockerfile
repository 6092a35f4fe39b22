# SPDX-License-Identifier: Apache-2.0
#
# The image of the tests' pods, with busybox, the tools and flock. It sleeps by default, so the
# cluster also uses it as the sandbox of pods.
FROM scratch
COPY flock /
COPY bin /bin
ENV PATH=/bin:/usr/bin
ENTRYPOINT ["/bin/sleep", "2147483647"]
