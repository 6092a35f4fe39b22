# SPDX-License-Identifier: Apache-2.0
#
# What pods of Kubernetes' own tests run that want a shell.
FROM scratch
COPY bin /bin
ENV PATH=/bin
CMD ["/bin/sh"]
