# SPDX-License-Identifier: Apache-2.0
"""Suites of the CSI driver, its chart and its image."""

from cases import Case

from .base import CLUSTER, DRIVER, RIG, RUNNER, build, suites_of, tools

suite = suites_of("Go, chart, image")


@suite("units", "native", "csi", takes="1 min",
       about="driver in one process, csi-sanity; stargate-tune; the rig's tests")
def suite_units():
    native = build("build-native", "core", "test-programs", "tools", "lib", lock="native")
    yield Case("units/driver", ["mk/test/csi", "units"], cost=60, needs=(native,), inputs=DRIVER)
    yield Case("units/tune", ["mk/test/tune"], cost=10,
               inputs=("kernel/tools/tune", "mk/tools/go", "mk/test/tune", *RUNNER))
    yield Case("units/rig", ["mk/test/rig"], cost=20, needs=(native,), inputs=RIG)


@suite("csi", "native", "csi", takes="10 min",
       about="the driver on a zone of files: csi-sanity, deaths, real servers")
def suite_csi():
    yield Case("csi/driver", ["mk/test/csi", "all"], limit=1800, needs=(tools(),), inputs=DRIVER)
    yield Case("csi/servers", ["mk/test/csi", "servers"], limit=1800, cost=180, needs=(tools(),),
               inputs=DRIVER)


@suite("chart", "csi", takes="15 s",
       about="charts/stargate and kubevirt-manifests, linted and rendered")
def suite_chart():
    csi = build("build-csi", "csi")
    yield Case("chart/stargate", ["mk/test/chart"], limit=1800, cost=20, needs=(csi,),
               inputs=CLUSTER)


@suite("image", "native", "csi", "image", "cluster", takes="minutes",
       about="the driver's image: its content, and the same bytes if made twice")
def suite_image():
    yield Case("image/recipe", ["mk/test/image", "recipe"], limit=600, inputs=CLUSTER)
    yield Case("image/imported", ["mk/test/image", "imported"], limit=1800,
               after=("image/recipe",), inputs=CLUSTER)
    yield Case("image/twice", ["mk/test/image", "twice"], limit=3600, after=("image/imported",),
               inputs=CLUSTER)
