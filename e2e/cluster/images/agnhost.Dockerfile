# SPDX-License-Identifier: Apache-2.0
#
# Kubernetes' agnhost, which does the work of pods in its tests, with a shell.
FROM scratch
COPY bin /bin
COPY --chmod=0755 agnhost /agnhost
ENV PATH=/bin
ENTRYPOINT ["/agnhost"]
CMD ["pause"]
