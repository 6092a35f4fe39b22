# SPDX-License-Identifier: Apache-2.0
"""The suites: which cases there are, what they need, and which run in `make test`."""

import glob
import os
import shlex
import subprocess

from cases import WHOLE, Case, Setup, header, versions, wanted

VERSIONS = versions()
DEFAULT_KERNEL = VERSIONS["KERNEL_DEFAULT"]
ALL_KERNELS = VERSIONS["KERNELS"].split(",")
KERNELS = (os.environ.get("KERNELS") or " ".join(ALL_KERNELS)).replace(",", " ").split()
MAPS = (os.environ.get("MAPS") or "walk splice shadow").split()

ENGINE = ("kernel/core", "kernel/tools", "kernel/lib", "mk/build/engine.mk", "mk/test", "versions.env")
NATIVE = ENGINE + ("kernel/tests",)
RIG = ("kernel", "kvm-patches", "e2e/cmd", "e2e/internal", "e2e/lib", "e2e/programs", "e2e/rig",
       "e2e/go.mod", "mk/test/scenario", "mk/test/shared", "mk/test", "mk/build/engine.mk", "versions.env")
DRIVER = ENGINE + ("csi-driver", "mk/tools/go", "mk/test/csi")
CLUSTER = ("kernel", "csi-driver", "charts", "kubevirt-manifests", "e2e", "mk", "Dockerfile",
           "versions.env")

QUICK = {"SG_TEST_SCALE": os.environ.get("SG_TEST_SCALE") or "quick"}
# Without use_sigaltstack=0 the runtime of GCC 12 takes the end of a cancelled thread for an error.
SANITIZED = {"ASAN_OPTIONS": "abort_on_error=1:use_sigaltstack=0",
             "TSAN_OPTIONS": "halt_on_error=1",
             "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1", **QUICK}

SUITES = {}
SETUPS = {}


def suite(name, *packages, about):
    """Registers a function that yields the suite's cases; packages are groups of versions.env."""
    def register(function):
        SUITES[name] = (function, packages, about)
        return function
    return register


def setup(name, command, **rest):
    SETUPS[name] = Setup(name, command, **rest)
    return name


def build(name, *goals, **rest):
    """A make of its own: the job server of the make that called us is not ours to use."""
    return setup(name, ["env", "-u", "MAKEFLAGS", "-u", "MFLAGS", "-u", "MAKELEVEL", "make",
                        "--no-print-directory", *goals], **rest)


# --- native -----------------------------------------------------------------------------------

# Threads are the subject of these, so ThreadSanitizer can find errors.
THREADED = """freeze lock payer reader seen sem sem_many systems systems_death systems_epoch
    systems_opens threads userlock_many""".split()


def programs(suite_name, san, env, only=None):
    """The test programs and the fuzzers' replays of one build."""
    build_name = build("build-" + (san or "native"), *([f"SAN={san}"] if san else []), *(
        [f"build/{san}/tests/{name}_test" for name in only] if only else
        ["test-programs"] if san else ["core", "test-programs", "tools", "lib"]), lock=san or "native")
    folder = f"build/{san}" if san else "build"
    # TSan's shadow memory collides with the address space randomisation of newer kernels.
    wrapper = ["setarch", "-R"] if san == "tsan" else []
    for source in sorted(glob.glob("kernel/tests/native/*_test.c")):
        name = os.path.basename(source)[:-len("_test.c")]
        if name.startswith("crash") != (san == "rec") or only and name not in only:
            continue
        yield Case(f"{suite_name}/{name}", [*wrapper, f"{folder}/tests/{name}_test"], env=env,
                   cost=COSTS.get(name, 10), weight=1 if name in WAITING else BUSY,
                   needs=(build_name,), inputs=NATIVE)
    for source in sorted(glob.glob("kernel/tests/fuzz/*_fuzz.c")):
        name = os.path.basename(source)[:-len("_fuzz.c")]
        if san == "rec" or only:
            continue
        yield Case(f"{suite_name}/replay-{name}",
                   [*wrapper, f"{folder}/replay/{name}", f"kernel/tests/fuzz/crashes/{name}",
                    f"kernel/tests/fuzz/corpus/{name}"], env=env, weight=BUSY,
                   needs=(build_name,), inputs=NATIVE)


# Programs that take longest; the order matters, the figures need not be exact.
COSTS = {"crash_fsck": 60, "check": 60, "guard": 55, "guard_tool": 55, "stargatectl": 50,
         "relocate": 40, "tools": 35, "clone_tool": 30, "relocate_tool": 30, "fsck": 30, "crash": 30,
         "crash_grow": 25, "names": 20, "systems_epoch": 15, "systems": 15}
# Two of these have two processors to themselves, except for two waiting cases.
BUSY = WHOLE - 1
# These mostly wait, for heartbeats and time limits.
WAITING = """guard guard_tool grow_tool snapshot_tool clone_tool relocate_tool tune_tool fsck freeze lock payer reader
    sem_names systems systems_epoch systems_opens""".split()


def native(name, env):
    yield from programs(name, "", env)
    yield from programs(name, "rec", env)
    # Earlier finds of attacks on a volume in use, and some seconds more (make hostile: hours).
    hostile = build("build-hostile", "SAN=hostile", "hostile-program", lock="hostile")
    for mode in ("cases", "step", "sweep", "race"):
        yield Case(f"{name}/hostile-{mode}", ["build/hostile/tests/hostile", mode], env=env,
                   weight=BUSY, needs=(hostile,), inputs=NATIVE)
    for script in sorted(glob.glob("kernel/tests/native/*_test.sh")):
        case = os.path.basename(script)[:-len("_test.sh")]
        yield Case(f"{name}/{case}", [script], env=env,
                   cost=COSTS.get(case, 20), weight=1 if case in WAITING else WHOLE // 2,
                   needs=("build-native",), inputs=NATIVE)


@suite("quick", "native", "tests", about="engine and tools natively, quick amounts")
def suite_quick():
    return native("quick", QUICK)


@suite("native", "native", "tests", about="the same, normal amounts")
def suite_native():
    return native("native", {})


@suite("asan", "native", about="test programs under AddressSanitizer and UBSan, quick amounts")
def suite_asan():
    return programs("asan", "asan", SANITIZED)


@suite("threads", "native", about="programs whose subject is threads, under ThreadSanitizer")
def suite_threads():
    return programs("threads", "tsan", SANITIZED, THREADED)


@suite("tsan", "native", about="all test programs under ThreadSanitizer")
def suite_tsan():
    return programs("tsan", "tsan", SANITIZED)


def models(suite_name, env):
    for path in sorted(glob.glob("kernel/tests/models/*.pml")):
        name = os.path.basename(path)[:-len(".pml")]
        yield Case(f"{suite_name}/{name}", ["kernel/tests/models/run", name], cost=30, env=env,
                   inputs=(path, "kernel/tests/models/run", "mk/test"))


@suite("models", "models", about="the protocol between systems: the states of its models")
def suite_models():
    return models("models", QUICK)


@suite("models-long", "models", about="the same, with the longest searches and mutants")
def suite_models_long():
    return models("models-long", {})


@suite("mutants", "native", "tests", about="the engine broken on purpose; a test must fail")
def suite_mutants():
    yield Case("mutants/engine", ["kernel/tests/mutants/run"], limit=7200, weight=2 * WHOLE,
               inputs=NATIVE + ("mk/test/mutants.sh",))


@suite("lint", "lint", "native", about="shellcheck, gofmt, go vet, sparse, links, SPDX, text")
def suite_lint():
    for path in sorted(glob.glob("mk/lint/*")):
        yield Case(f"lint/{os.path.basename(path)}", [path], limit=900, cost=30, inputs=(".",))


# --- Go and the chart ---------------------------------------------------------------------------

@suite("units", "native", "csi", about="Go units: the driver with csi-sanity in process, the rig")
def suite_units():
    tools = build("build-native", "core", "test-programs", "tools", "lib", lock="native")
    yield Case("units/driver", ["mk/test/csi", "units"], cost=60, needs=(tools,), inputs=DRIVER)
    yield Case("units/rig", ["mk/test/rig"], cost=20, needs=(tools,), inputs=RIG)


@suite("csi", "native", "csi", about="the CSI driver on a zone of files: csi-sanity, deaths")
def suite_csi():
    tools = build("build-tools", "tools", "build/tests/machine", lock="native")
    yield Case("csi/driver", ["mk/test/csi", "all"], limit=1800, needs=(tools,), inputs=DRIVER)


@suite("chart", "csi", about="charts/stargate, linted and rendered by Helm's library")
def suite_chart():
    csi = build("build-csi", "csi")
    yield Case("chart/stargate", ["mk/test/chart"], limit=1800, cost=20, needs=(csi,), inputs=CLUSTER)


@suite("image", "native", "csi", "image", "cluster", about="the image twice: the same bytes")
def suite_image():
    yield Case("image/recipe", ["mk/test/image", "recipe"], limit=600, inputs=CLUSTER)
    yield Case("image/imported", ["mk/test/image", "imported"], limit=1800,
               after=("image/recipe",), inputs=CLUSTER)
    yield Case("image/twice", ["mk/test/image", "twice"], limit=3600, after=("image/imported",),
               inputs=CLUSTER)


# --- real kernels -------------------------------------------------------------------------------

def kernel(name):
    """The kernel, its module, and a guest root are there before scenarios start side by side."""
    return setup(f"kernel-{name}", ["bash", "-c", 'e2e/rig fetch "$1" && mk/build/module "$1"', "-",
                                    name], limit=3600, weight=WHOLE, needs=(
        build("build-tools", "tools", "build/tests/machine", lock="native"),))


def scenarios():
    for path in sorted(glob.glob("e2e/scenarios/*.sh")):
        yield path, os.path.basename(path)[:-len(".sh")], header(path)


def small(keys):
    """One system with one processor, and no instructions are counted: others may run beside it."""
    flags = shlex.split(keys.get("rig", ""))
    return not {"--guests", "--cpus", "--icount", "--node"} & set(flags)


def runs(suite_name, path, keys, kernels, maps, scale=1, env=None, needs=()):
    """A scenario's cases: one for each kernel and map mode, or for all map modes at once."""
    name = os.path.basename(path)[:-len(".sh")]
    inputs = RIG + (path,)
    env = env or {}
    limit = int(keys.get("limit", 900)) * scale
    if "build/csi" in keys.get("rig", ""):
        inputs += CLUSTER
    for one in kernels:
        mixed = keys.get("mixed", "").split(",") if "mixed" in keys and not env.get("ONE_KERNEL") else []
        all_needs = (*(kernel(name) for name in sorted({one, *mixed})), *needs)
        combined = [" ".join(MAPS)] if maps == ["inside"] else [m for m in maps if m in MAPS]
        for modes in combined:
            tail = "" if maps == ["inside"] else f"/{modes}"
            yield Case(f"{suite_name}/{name}@{one}{tail}", ["mk/test/scenario", path, one, modes],
                       limit=limit, weight=WHOLE if small(keys) else 2 * WHOLE, cost=60,
                       needs=all_needs, env=env, inputs=inputs)


def chosen(kernels):
    return [one for one in kernels if one in KERNELS]


@suite("scenarios", "native", "tests", about="one scenario of each subject on one kernel")
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


@suite("vm", "native", "tests", about="all scenarios, on all the kernels and maps they are for")
def suite_vm():
    for path, _, keys in scenarios():
        if "suite" in keys or "rig" not in keys and "node" in keys:
            continue
        maps = keys.get("maps", "walk splice shadow").split()
        yield from runs("vm", path, keys, chosen(keys.get("kernels", "").split() or ALL_KERNELS),
                        maps)


@suite("node", "native", "tests", about="scenarios in a node: a host with KVM and guests in it")
def suite_node():
    for path, name, keys in scenarios():
        if "node" not in keys or "suite" in keys:
            continue
        for one in chosen(keys.get("node-kernels", DEFAULT_KERNEL).split()):
            yield node_case("node", path, name, keys, one)


def node_case(suite_name, path, name, keys, one):
    limit = int(keys.get("node-limit") or keys.get("limit", 900))
    return Case(f"{suite_name}/{name}@{one}", ["mk/test/scenario", path, one, " ".join(MAPS), "node"],
                limit=limit, weight=2 * WHOLE, needs=(kernel(one),), inputs=RIG + (path,))


@suite("modules", "native", about="the module for each kernel, without a warning")
def suite_modules():
    before = ()
    for one in KERNELS:
        for name, command in ((f"modules/module-{one}", ["mk/build/module", one]),
                              (f"modules/sem-user-{one}", ["kernel/tests/sem_user/build", one])):
            yield Case(name, command, limit=1800, weight=2 * WHOLE, after=before, inputs=RIG)
            before = (name,)


@suite("debug", "native", "tests", about="scenarios on a kernel with KASAN, lockdep, kmemleak")
def suite_debug():
    built = setup("kernel-debug", ["e2e/rig", "debug-kernel"], limit=7200, needs=(
        build("build-tools", "tools", "build/tests/machine", lock="native"),))
    for name in "posix fsx stress locks many coherence hostile".split():
        path = f"e2e/scenarios/{name}.sh"
        keys = header(path)
        for case in runs("debug", path, keys, ["debug"],
                         keys.get("maps", "walk splice shadow").split(), scale=4):
            case.needs = (built,)
            yield case


@suite("mutants-vm", "native", "tests", about="the module broken on purpose; a scenario must fail")
def suite_mutants_vm():
    yield Case("mutants-vm/module", ["e2e/mutants/run"], limit=7200, weight=2 * WHOLE,
               needs=(kernel(DEFAULT_KERNEL),), inputs=RIG + ("e2e/mutants", "e2e/scenarios"))


@suite("sem-long", "native", "tests", about="shared semaphores: 2 GiB, 10^7 acquisitions")
def suite_sem_long():
    scale = {"SG_TEST_SCALE": os.environ.get("SG_TEST_SCALE") or "long"}
    for name in ("sem-stream", "sem-count"):
        path = f"e2e/scenarios/{name}.sh"
        keys = header(path)
        yield from runs("sem-long", path, keys, [DEFAULT_KERNEL], keys["maps"].split(), env=scale)


@suite("csi-vm", "native", "tests", "csi", "image", about="the driver on reserved memory, in a VM")
def suite_csi_vm():
    csi = build("build-csi", "csi", "csi-tests")
    modules = setup("image-modules", ["mk/image/modules", "build/image/modules"])
    for path, _, keys in scenarios():
        if keys.get("suite") == "csi-vm":
            yield from runs("csi-vm", path, keys, chosen(keys["kernels"].split()),
                            keys["maps"].split(), needs=(csi, modules))


# --- clusters -----------------------------------------------------------------------------------

# suite: its list in e2e/cluster/case, options of e2e/cluster/up, its dependencies, environment
CLUSTERS = {
    "k8s": ("", "", ("images",), {}),
    "k8s-dax": ("--dax", "--dax", ("images", "node"), {}),
    "k8s-module": ("--module", "--dax", ("images", "node"),
                   {"NODE_BUILDS": "1", "CLUSTER_LIMIT": "3600"}),
    "k8s-external": ("--external", "--dax", ("images-external", "node"),
                     {"ZONE_MIB": "5120", "CLUSTER_LIMIT": "10800"}),
    "k8s-kubevirt": ("--kubevirt", "", ("kubevirt", "cdi", "next"), {}),
    "k8s-kubevirt-kvm": ("--kvm", "--kvm", ("kubevirt", "node"), {}),
    "k8s-kubevirt-failures": ("--failures", "--kvm", ("kubevirt", "node"), {}),
}
ABOUT = {
    "k8s": "a Kubernetes cluster here: the chart, from install to uninstall",
    "k8s-dax": "the same with a second node that has reserved memory, LVM and the module",
    "k8s-module": "one whose second node builds the module by DKMS",
    "k8s-external": "Kubernetes' own tests of storage drivers",
    "k8s-kubevirt": "machines of KubeVirt, translated, on a zone of files",
    "k8s-kubevirt-kvm": "machines of KubeVirt by KVM, on reserved memory",
    "k8s-kubevirt-failures": "what fails, or changes, under those machines",
}


def cluster_setups(suite_name, waits, env):
    kubevirt = os.environ.get("KUBEVIRT") or "1.8"
    parts = "kubernetes sidecars kubevirt-" + kubevirt if "kubevirt" in waits else ""
    external = "images-external" in waits
    built = setup(f"{suite_name}-compiled", ["bash", "-c", " && ".join(
        [f"e2e/cluster/build {parts} >/dev/null"] +
        (["e2e/cluster/build cdi >/dev/null"] if "cdi" in waits else []) +
        (["e2e/cluster/build-tests >/dev/null"] if external else []))], limit=10800, env=env)
    last = setup(f"{suite_name}-images", ["e2e/cluster/make-images"] +
                 (["--external"] if external else []), needs=(built,), env=env)
    if "kubevirt" in waits:
        guest = ["--guest"] if "cdi" in waits else []
        last = setup(f"{suite_name}-machines", ["e2e/cluster/kubevirt-images", *guest],
                     needs=(last,), env=env)
    if "cdi" in waits:
        last = setup(f"{suite_name}-disks", ["e2e/cluster/cdi-images"], needs=(last,), env=env)
    if "next" in waits and kubevirt == "1.8":
        last = setup(f"{suite_name}-next", ["e2e/cluster/next-images"], needs=(last,), env=env)
    if "node" in waits:
        last = setup(f"{suite_name}-node", ["bash", "-c", 'e2e/rig fetch --pkgs "$(' +
                     'e2e/cluster/vm packages)" ' + DEFAULT_KERNEL], needs=(last,), env=env)
    return last


def cluster(suite_name):
    listed, options, waits, env = CLUSTERS[suite_name]
    last = cluster_setups(suite_name, waits, env)
    up = setup(f"{suite_name}-up", ["e2e/cluster/up", *options.split()], limit=1800, needs=(last,),
               undo=["e2e/cluster/down"], env={**env, "OWNER": str(os.getpid())})
    listing = subprocess.run(["e2e/cluster/case", *listed.split()], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    limit = int(env.get("CLUSTER_LIMIT") or os.environ.get("CLUSTER_LIMIT") or 2400)
    before = ()
    for joined in listing.split():
        names = joined.split("+")  # these wait for Kubernetes at the same time
        group = []
        for name in names:
            beside = {"BESIDE": " ".join(names[1:])}
            group.append(Case(f"{suite_name}/{name}", ["e2e/cluster/case", name], limit=limit,
                              weight=1 if len(names) > 1 else 2 * WHOLE, needs=(up,),
                              after=before, env={**env, **beside}, inputs=CLUSTER))
        yield from group
        before = tuple(case.name for case in group)


for cluster_suite in CLUSTERS:
    groups = ["native", "csi", "image", "cluster", "tests"]
    if "kubevirt" in cluster_suite:
        groups += ["kubevirt", "machine"]
    suite(cluster_suite, *groups, about=ABOUT[cluster_suite])(
        lambda name=cluster_suite: cluster(name))


@suite("kubevirt", "native", "csi", "machine", "tests",
       about="KubeVirt's own code, the hook, libvirt and QEMU")
def suite_kubevirt():
    path = "e2e/scenarios/kubevirt-domains.sh"
    yield Case("kubevirt/hook", ["mk/test/kubevirt"], limit=3600, weight=2 * WHOLE, inputs=CLUSTER)
    domains = node_case("kubevirt", path, "kubevirt-domains", header(path), DEFAULT_KERNEL)
    domains.after = ("kubevirt/hook",)
    yield domains


@suite("guest", "native", "seed", "guest", about="a stock Debian that installs the package; the disk")
def suite_guest():
    tools = build("build-tools", "tools", "build/tests/machine", lock="native")
    yield Case("guest/stock", ["mk/test/guest", "stock"], limit=7200, weight=2 * WHOLE,
               needs=(tools,), inputs=CLUSTER)
    yield Case("guest/disk", ["mk/test/guest", "disk"], limit=7200, weight=2 * WHOLE,
               needs=(tools,), after=("guest/stock",), inputs=CLUSTER)


# --- further parts of `make test-all` -------------------------------------------------------------

@suite("fuzz", "native", "fuzz", "csi", about="each fuzzer for a minute, in C and in Go")
def suite_fuzz():
    yield Case("fuzz/all", ["env", "-u", "MAKEFLAGS", "-u", "MAKELEVEL", "make",
                            "--no-print-directory", "fuzz-quick"], limit=7200, weight=2 * WHOLE,
               inputs=NATIVE + DRIVER + ("mk/test/fuzz",))


@suite("coverage", "native", about="lines of kernel/core that native tests reach")
def suite_coverage():
    clean = setup("coverage-clean", ["mk/test/coverage", "clean"])
    cases = list(programs("coverage", "cov", QUICK))
    SETUPS["build-cov"].needs = (clean,)
    yield from cases
    yield Case("coverage/report", ["mk/test/coverage", "report"], inputs=NATIVE,
               after=tuple(case.name for case in cases), needs=("build-cov",))


@suite("fresh", "roots", about="what a stranger sees on each empty machine")
def suite_fresh():
    for release in VERSIONS["FRESH_SUITES"].split(","):
        yield Case(f"fresh/{release}", ["mk/test/fresh", release, "test-quick", "demo"], limit=5400,
                   weight=2 * WHOLE, inputs=(".",))


# Suites that run at once, on one list of cases. `make test-all` runs one list after the other.
TEST = ["lint", "models", "quick", "asan", "threads", "units", "chart", "scenarios"]
PIECES = [TEST, ["native", "tsan", "models-long", "mutants", "csi", "modules", "coverage"], ["vm"], ["node"],
          ["mutants-vm"], ["debug"], ["image"], ["csi-vm"], ["k8s"], ["k8s-dax"], ["k8s-module"],
          ["k8s-external"], ["kubevirt"], ["k8s-kubevirt-kvm"], ["k8s-kubevirt-failures"],
          ["k8s-kubevirt"], ["guest"], ["fuzz"], ["fresh"]]
TIERS = {"test-quick": [["quick"]], "test": [TEST], "test-all": PIECES}

# The tier of KubeVirt that a whole suite covers.
REACHED = {"kubevirt": "tier 1", "k8s-kubevirt-kvm": "tier 2", "k8s-kubevirt": "tier 3"}
