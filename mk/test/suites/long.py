# SPDX-License-Identifier: Apache-2.0
"""Suites that run for hours, and continue where they were interrupted."""

import os

from cases import WHOLE, Case

from .base import DEFAULT_KERNEL, DRIVER, NATIVE, RIG, VERSIONS, build, make, suites_of
from .kernels import kernel

suite = suites_of("long")
WEEK = 7 * 24 * 3600


def repeated(name, scenario, form, counted, total, step, env=None, needs=()):
    """Defines a suite with one scenario, which mk/test/repeat runs until a count is reached."""
    command = ["mk/test/repeat", scenario, form, counted, total, str(step)]
    return Case(f"{name}/{scenario}", command, limit=WEEK, weight=2 * WHOLE, env=env or {},
                needs=(kernel(DEFAULT_KERNEL), *needs),
                inputs=RIG + ("mk/test/repeat", f"e2e/scenarios/{scenario}.sh"))


@suite("torture", "native", "tests", takes="hours",
       about="KILLS=1000 systems die at random moments while others continue")
def suite_torture():
    yield repeated("torture", "torture", "rig", "SG_KILLS", os.environ.get("KILLS") or "1000", 50)


@suite("node-cuts", "native", "tests", takes="1 h and more",
       about="CUTS=100 power cuts of a node whose memory keeps its bytes")
def suite_node_cuts():
    yield repeated("node-cuts", "node-cuts", "node", "SG_CUTS", os.environ.get("CUTS") or "100", 10)


@suite("csi-volumes", "native", "tests", "csi", takes="2 h and more",
       about="the driver creates and deletes VOLUMES=10000 volumes of LVM")
def suite_csi_volumes():
    yield repeated("csi-volumes", "csi-many", "rig", "SG_VOLUMES",
                   os.environ.get("VOLUMES") or "10000", 1000,
                   env={"SG_ONLY": "OverTime", "MAPS": "walk"},
                   needs=(build("build-csi", "csi", "csi-tests"),))


@suite("fresh", "roots", takes="up to 90 min each",
       about="GOALS=\"test-quick demo\" on empty machines, one for each release")
def suite_fresh():
    goals = (os.environ.get("GOALS") or "test-quick demo").split()
    for release in VERSIONS["FRESH_SUITES"].split(","):
        yield Case(f"fresh/{release}", ["mk/test/fresh", release, *goals], limit=5400,
                   weight=2 * WHOLE, inputs=(".",))


@suites_of("fuzzers", "fuzz")("fuzz", "native", "fuzz", "csi", takes="a minute each",
                              about="all fuzzers for a minute each, in `make test-all`")
def suite_fuzz():
    yield Case("fuzz/all", make("fuzz", "SECONDS=60"), limit=7200, weight=2 * WHOLE,
               inputs=NATIVE + DRIVER + ("mk/test/fuzz",))
