# SPDX-License-Identifier: Apache-2.0
#
# Kubernetes' agnhost, which does what its tests want a pod to do, with a shell.
FROM scratch
COPY bin /bin
COPY --chmod=0755 agnhost /agnhost
ENV PATH=/bin
ENTRYPOINT ["/agnhost"]
CMD ["pause"]
