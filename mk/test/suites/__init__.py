# SPDX-License-Identifier: Apache-2.0
"""All suites, and the lists of suites that `make test`, `test-quick` and `test-all` run."""

from . import native, driver, kernels, long, clusters  # noqa: F401: in the order of `make help`
from .base import ALL_KERNELS, KERNELS, SETUPS, SUITES  # noqa: F401: for mk/test/run

# Lists of suites: the cases of one list run at the same time. `make test-all` runs one list after
# the other.
TEST = ["lint", "models", "quick", "lines", "asan", "threads", "units", "chart", "scenarios"]
PIECES = [TEST, ["native", "tsan", "models-long", "mutants", "csi", "modules", "coverage"],
          ["vm"], ["vm-atomic"], ["node"], ["mutants-vm"], ["debug"], ["image"], ["csi-vm"], ["k8s"], ["k8s-dax"],
          ["k8s-module"], ["k8s-external"], ["kubevirt"], ["k8s-kubevirt-kvm"],
          ["k8s-kubevirt-failures"], ["k8s-kubevirt"], ["guest"], ["fuzz"], ["fresh"]]
TIERS = {"test-quick": [["quick"]], "test": [TEST], "test-all": PIECES}

# The tier of KubeVirt that a complete run of the suite covers.
REACHED = {"kubevirt": "tier 1", "k8s-kubevirt-kvm": "tier 2", "k8s-kubevirt": "tier 3"}
