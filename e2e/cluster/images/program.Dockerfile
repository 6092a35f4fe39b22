# SPDX-License-Identifier: Apache-2.0
#
# One static program, for example a sidecar.
FROM scratch
ARG PROGRAM
COPY --chmod=0755 ${PROGRAM} /program
ENTRYPOINT ["/program"]
