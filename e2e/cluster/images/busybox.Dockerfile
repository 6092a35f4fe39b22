# SPDX-License-Identifier: Apache-2.0
#
# The image of pods in Kubernetes' own tests that need a shell.
FROM scratch
COPY bin /bin
ENV PATH=/bin
CMD ["/bin/sh"]
