# SPDX-License-Identifier: Apache-2.0
"""Code for all suites: the tables of suites and setups, and the dependencies of cases."""

import os

from cases import Setup, Suite, versions

VERSIONS = versions()
DEFAULT_KERNEL = VERSIONS["KERNEL_DEFAULT"]
ALL_KERNELS = VERSIONS["KERNELS"].split(",")
KERNELS = (os.environ.get("KERNELS") or " ".join(ALL_KERNELS)).replace(",", " ").split()
MAPS = (os.environ.get("MAPS") or "walk splice shadow").split()

# Paths that decide the result of a case.
RUNNER = ("mk/test/run", "mk/test/runner", "mk/test/suites")
ENGINE = ("kernel/core", "kernel/tools", "kernel/lib", "mk/build/engine.mk", *RUNNER,
          "versions.env")
NATIVE = ENGINE + ("kernel/tests",)
RIG = ("kernel", "kvm-patches", "e2e/cmd", "e2e/internal", "e2e/lib", "e2e/programs", "e2e/rig",
       "e2e/go.mod", "mk/test/scenario", "mk/test/shared", "mk/test/header.sh", *RUNNER,
       "mk/build/engine.mk", "versions.env")
DRIVER = ENGINE + ("csi-driver", "mk/tools/go", "mk/test/csi")
CLUSTER = ("kernel", "csi-driver", "charts", "kubevirt-manifests", "e2e", "mk", "Dockerfile",
           "versions.env")

QUICK = {"SG_TEST_SCALE": os.environ.get("SG_TEST_SCALE") or "quick"}

SUITES = {}
SETUPS = {}


def suites_of(group, goal="test"):
    """Decorates a function that yields a suite's cases; packages are groups of versions.env."""
    def suite(name, *packages, about, takes):
        def register(function):
            SUITES[name] = Suite(name, function, packages, about, takes, group, goal)
            return function
        return register
    return suite


def setup(name, command, **rest):
    SETUPS[name] = Setup(name, command, **rest)
    return name


def make(*goals):
    """Starts a make without the job server of the calling make, which this make must not use."""
    return ["env", "-u", "MAKEFLAGS", "-u", "MFLAGS", "-u", "MAKELEVEL", "make",
            "--no-print-directory", *goals]


def build(name, *goals, **rest):
    return setup(name, make(*goals), **rest)


def tools():
    """Builds the tools, and the program that emulates a system in their tests."""
    return build("build-tools", "tools", "build/tests/machine", lock="native")
