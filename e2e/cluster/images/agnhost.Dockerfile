# SPDX-License-Identifier: Apache-2.0
#
# Kubernetes' agnhost, the program of pods in Kubernetes' own tests, with a shell.
FROM scratch
COPY bin /bin
COPY --chmod=0755 agnhost /agnhost
ENV PATH=/bin
ENTRYPOINT ["/agnhost"]
CMD ["pause"]
