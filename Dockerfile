# SPDX-License-Identifier: Apache-2.0
#
# The image of the CSI driver: one for the driver's container, the one that sees to the module, and
# whoever wants the tools. `make image` executes this file without a daemon (mk/image); Docker and
# podman do as well: docker build --build-arg BASE=debian:bookworm --build-arg VERSION=0.1.0 .
# What is put into it and from where, mk/image-root says; what that needs comes by mk/deps. Modules
# are compiled in roots of their own (mk/image-modules), which wants no more than chroot and mknod.
ARG BASE
FROM ${BASE} AS build
WORKDIR /src
COPY versions.env Makefile LICENSE ./
COPY LICENSES LICENSES
COPY mk mk
RUN mk/deps native csi image
COPY kernel kernel
COPY csi-driver csi-driver
ARG VERSION=unversioned
ARG SOURCE_DATE_EPOCH=0
RUN mk/image-root root "$VERSION"

FROM scratch
ARG VERSION=unversioned
COPY --from=build /src/root/ /
LABEL org.opencontainers.image.title="stargate-csi" \
      org.opencontainers.image.description="CSI driver, tools and module of StargateFS" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0 AND GPL-2.0-only"
# Without: the driver mounts, and speaks to LVM.
USER 0
ENTRYPOINT ["/usr/local/bin/stargate-csi"]
