# SPDX-License-Identifier: Apache-2.0
#
# One static program, like the sidecars.
FROM scratch
ARG PROGRAM
COPY --chmod=0755 ${PROGRAM} /program
ENTRYPOINT ["/program"]
