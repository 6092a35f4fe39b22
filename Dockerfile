# SPDX-License-Identifier: Apache-2.0
#
# The image of the CSI driver. The driver's container and the container that loads the module use
# it, and users can run the tools from it. `make image` executes this file without a daemon
# (mk/image/builder); Docker and podman can build it, too: docker build --build-arg
# BASE=debian:bookworm --build-arg VERSION=0.2.0 . mk/image/root defines the content and its
# sources; mk/tools/deps installs the packages that it needs. mk/image/modules compiles the modules
# in roots of their own, for which it needs only chroot and mknod.
ARG BASE
FROM ${BASE} AS build
WORKDIR /src
COPY versions.env Makefile LICENSE ./
COPY LICENSES LICENSES
COPY mk mk
RUN mk/tools/deps native csi image
COPY kernel kernel
COPY csi-driver csi-driver
ARG VERSION=unversioned
ARG SOURCE_DATE_EPOCH=0
RUN mk/image/root root "$VERSION"

FROM scratch
ARG VERSION=unversioned
COPY --from=build /src/root/ /
LABEL org.opencontainers.image.title="stargate-csi" \
      org.opencontainers.image.description="CSI driver, tools and module of StargateFS" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0 AND GPL-2.0-only"
# The driver needs root, because it mounts volumes and calls LVM.
USER 0
ENTRYPOINT ["/usr/local/bin/stargate-csi"]
