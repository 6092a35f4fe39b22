# SPDX-License-Identifier: Apache-2.0
#
# The native part on a fresh Debian: tools in the last stage, the proof in the one before.
#   docker build --target test .     builds and tests
#   docker build -t stargate-tools . the tools alone, static
# Packages come from versions.env through mk/deps, like everywhere else.
ARG DEBIAN_SUITE=bookworm
FROM debian:${DEBIAN_SUITE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends make && \
    rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY versions.env Makefile ./
COPY mk mk
RUN mk/deps native
COPY kernel kernel
RUN make tools STATIC=1

FROM build AS test
RUN make test-quick

FROM scratch
COPY --from=build /src/build/tools/mkfs.stargatefs /src/build/tools/fsck.stargatefs \
    /src/build/tools/stargatectl /usr/local/sbin/
