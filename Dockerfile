# SPDX-License-Identifier: Apache-2.0
#
# The native part on a fresh Debian: the tools, static, in the last stage, the proof in the one
# before. `make image` builds both and tries the tools. The base and the packages come from
# versions.env, like everywhere else: the former as an argument, the latter through mk/deps.
ARG BASE
FROM ${BASE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends make && \
    rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY versions.env Makefile ./
COPY mk mk
RUN mk/deps native tests
COPY kernel kernel
RUN make tools STATIC=1

FROM build AS test
RUN make test-quick

FROM scratch
COPY --from=build /src/build/tools/mkfs.stargatefs /src/build/tools/fsck.stargatefs \
    /src/build/tools/stargatectl /usr/local/sbin/
