# SPDX-License-Identifier: Apache-2.0
"""Suites on real kernels: scenarios of e2e in VMs."""

import glob
import os
import shlex

from cases import WHOLE, Case, header, wanted

from .base import (ALL_KERNELS, CLUSTER, DEFAULT_KERNEL, KERNELS, MAPS, QUICK, RIG, build, setup,
                   suites_of, tools)

suite = suites_of("real kernels")


def kernel(name):
    """Makes the kernel, its module and a guest root before several scenarios start together."""
    fetch = 'e2e/rig fetch "$1" && mk/build/module "$1"'
    return setup(f"kernel-{name}", ["bash", "-c", fetch, "-", name], limit=3600, weight=WHOLE,
                 needs=(tools(),))


def scenarios():
    for path in sorted(glob.glob("e2e/scenarios/*.sh")):
        yield path, os.path.basename(path)[:-len(".sh")], header(path)


def small(keys):
    """Returns whether other scenarios may run at the same time: a scenario of one system with one
    processor, which counts no instructions."""
    flags = shlex.split(keys.get("rig", ""))
    return not {"--guests", "--cpus", "--icount", "--node"} & set(flags)


def runs(suite_name, path, keys, kernels, maps, scale=1, env=None, needs=()):
    """Yields a scenario's cases: one for each kernel and map mode, or one for all map modes."""
    name = os.path.basename(path)[:-len(".sh")]
    inputs = RIG + (path,)
    env = env or {}
    limit = int(keys.get("limit", 900)) * scale
    if "build/csi" in keys.get("rig", ""):
        inputs += CLUSTER
    for one in kernels:
        mixed = [] if "mixed" not in keys or env.get("ONE_KERNEL") else keys["mixed"].split(",")
        all_needs = (*(kernel(name) for name in sorted({one, *mixed})), *needs)
        combined = [" ".join(MAPS)] if maps == ["inside"] else [m for m in maps if m in MAPS]
        for modes in combined:
            tail = "" if maps == ["inside"] else f"/{modes}"
            yield Case(f"{suite_name}/{name}@{one}{tail}", ["mk/test/scenario", path, one, modes],
                       limit=limit, weight=WHOLE if small(keys) else 2 * WHOLE, cost=60,
                       needs=all_needs, env=env, inputs=inputs)


def chosen(kernels):
    return [one for one in kernels if one in KERNELS]


@suite("scenarios", "native", "tests", takes="5 min",
       about="one scenario of each subject, on one kernel")
def suite_scenarios():
    groups = {}
    for path, name, keys in scenarios():
        if "test" in keys and wanted(f"scenarios/{name}"):
            flags = keys.get("test-rig") or keys["rig"]
            groups.setdefault((flags, keys["test"]), []).append(path)
    for (flags, maps), paths in groups.items():
        parts = tuple("scenarios/" + os.path.basename(path)[:-len(".sh")] for path in paths)
        limits = [int(header(path).get("limit", 900)) for path in paths]
        yield Case(parts[0] + "...", ["mk/test/shared", "build/logs/scenarios",
                                      DEFAULT_KERNEL, maps, *paths], parts=parts,
                   limit=sum(limits), cost=100 * len(paths), needs=(kernel(DEFAULT_KERNEL),),
                   env={**QUICK, "ONE_KERNEL": "1"}, inputs=RIG + tuple(paths))


@suite("vm", "native", "tests", takes="1 h and more",
       about="all scenarios, on all kernels and data paths (KERNELS=, MAPS=)")
def suite_vm():
    for path, _, keys in scenarios():
        if "suite" in keys or "rig" not in keys and "node" in keys:
            continue
        maps = keys.get("maps", "walk splice shadow").split()
        kernels = keys.get("kernels", "").split() or ALL_KERNELS
        for one in chosen(kernels):
            # The other kernels differ only in the module's adaptation to them. For that, the
            # amounts of work of SG_TEST_SCALE=quick are enough.
            again = one != DEFAULT_KERNEL and DEFAULT_KERNEL in kernels
            yield from runs("vm", path, keys, [one], maps, env=QUICK if again else None)


@suite("vm-atomic", "native", "tests", takes="20 min",
       about="scenarios with `# atomic:`, mounted with data=atomic")
def suite_vm_atomic():
    for path, _, keys in scenarios():
        if "atomic" not in keys:
            continue
        kernels = keys.get("kernels", "").split() or ALL_KERNELS
        yield from runs("vm-atomic", path, keys, chosen(kernels), keys["atomic"].split(),
                        env={"SG_DATA": "atomic"})


@suite("node", "native", "tests", takes="hours",
       about="scenarios in a node: a host with KVM, and guests in it")
def suite_node():
    for path, name, keys in scenarios():
        if "node" not in keys or "suite" in keys:
            continue
        for one in chosen(keys.get("node-kernels", DEFAULT_KERNEL).split()):
            yield node_case("node", path, name, keys, one)


def node_case(suite_name, path, name, keys, one):
    limit = int(keys.get("node-limit") or keys.get("limit", 900))
    command = ["mk/test/scenario", path, one, " ".join(MAPS), "node"]
    return Case(f"{suite_name}/{name}@{one}", command, limit=limit, weight=2 * WHOLE,
                needs=(kernel(one),), inputs=RIG + (path,))


@suite("modules", "native", takes="up to 30 min each",
       about="the module for each kernel of KERNELS, without a warning")
def suite_modules():
    before = ()
    for one in KERNELS:
        for name, command in ((f"modules/module-{one}", ["mk/build/module", one]),
                              (f"modules/sem-user-{one}", ["kernel/tests/sem_user/build", one])):
            yield Case(name, command, limit=1800, weight=2 * WHOLE, after=before, inputs=RIG)
            before = (name,)


@suite("debug", "native", "tests", takes="1 h",
       about="seven scenarios with KASAN, lockdep, kmemleak; builds the kernel")
def suite_debug():
    built = setup("kernel-debug", ["e2e/rig", "debug-kernel"], limit=7200, needs=(tools(),))
    for name in "posix fsx stress locks many coherence hostile".split():
        path = f"e2e/scenarios/{name}.sh"
        keys = header(path)
        for case in runs("debug", path, keys, ["debug"],
                         keys.get("maps", "walk splice shadow").split(), scale=4):
            case.needs = (built,)
            yield case


@suite("mutants-vm", "native", "tests", takes="10 min",
       about="the module broken on purpose; a scenario must fail for each mutant")
def suite_mutants_vm():
    yield Case("mutants-vm/module", ["e2e/mutants/run"], limit=7200, weight=2 * WHOLE,
               needs=(kernel(DEFAULT_KERNEL),),
               inputs=RIG + ("e2e/mutants", "e2e/scenarios", "mk/test/mutants.sh"))


@suite("sem-long", "native", "tests", takes="up to 2 h each",
       about="shared semaphores: 2 GiB through rings, 10^7 acquisitions")
def suite_sem_long():
    scale = {"SG_TEST_SCALE": os.environ.get("SG_TEST_SCALE") or "long"}
    for name in ("sem-stream", "sem-count"):
        path = f"e2e/scenarios/{name}.sh"
        keys = header(path)
        yield from runs("sem-long", path, keys, [DEFAULT_KERNEL], keys["maps"].split(), env=scale)


@suite("csi-vm", "native", "tests", "csi", "image", takes="1 h",
       about="the CSI driver on reserved memory, LVM and real mounts")
def suite_csi_vm():
    csi = build("build-csi", "csi", "csi-tests")
    modules = setup("image-modules", ["mk/image/modules", "build/image/modules"])
    for path, _, keys in scenarios():
        if keys.get("suite") == "csi-vm":
            yield from runs("csi-vm", path, keys, chosen(keys["kernels"].split()),
                            keys["maps"].split(), needs=(csi, modules))


@suite("guest", "native", "seed", "guest", takes="15 min and more",
       about="a stock Debian that installs the package; the disk that has it")
def suite_guest():
    yield Case("guest/stock", ["mk/test/guest", "stock"], limit=7200, weight=2 * WHOLE,
               needs=(tools(),), inputs=CLUSTER)
    yield Case("guest/disk", ["mk/test/guest", "disk"], limit=7200, weight=2 * WHOLE,
               needs=(tools(),), after=("guest/stock",), inputs=CLUSTER)
