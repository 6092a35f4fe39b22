# SPDX-License-Identifier: Apache-2.0
"""Suites that test the engine and the tools without a kernel, or that check the sources."""

import glob
import os

from cases import WHOLE, Case

from .base import NATIVE, QUICK, RUNNER, SETUPS, build, setup, suites_of

suite = suites_of("native")

# Without use_sigaltstack=0 the runtime of GCC 12 reports the end of a cancelled thread as an error.
SANITIZED = {"ASAN_OPTIONS": "abort_on_error=1:use_sigaltstack=0",
             "TSAN_OPTIONS": "halt_on_error=1",
             "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1", **QUICK}

# These programs test threads, so ThreadSanitizer can find errors in them.
THREADED = """freeze lock reclaimer reader seen sem sem_many systems systems_death systems_epoch
    systems_opens threads userlock_many""".split()


def programs(suite_name, san, env, only=None):
    """Yields the cases of one build: its test programs, and its replays of fuzzers' inputs."""
    goals = ["core", "test-programs", "tools", "lib"]
    if san:
        goals = [f"build/{san}/tests/{name}_test" for name in only or ()] or ["test-programs"]
        goals.insert(0, f"SAN={san}")
    build_name = build("build-" + (san or "native"), *goals, lock=san or "native")
    folder = f"build/{san}" if san else "build"
    # The address space randomisation of newer kernels may place mappings in TSan's shadow memory.
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


# Seconds of the longest programs. Only their order matters, so the figures need not be exact.
COSTS = {"crash_fsck": 60, "check": 60, "guard": 55, "guard_tool": 55, "stargatectl": 50,
         "relocate": 40, "tools": 35, "clone_tool": 30, "relocate_tool": 30, "fsck": 30,
         "fuse_load": 40, "fuse": 30, "fuse_pair": 30, "crash": 30, "crash_grow": 25, "names": 20,
         "systems_epoch": 15, "systems": 15}
# Two of these cases use two processors; next to them, only two waiting cases run.
BUSY = WHOLE - 1
# These cases mostly wait for heartbeats and time limits.
WAITING = """guard guard_tool grow_tool snapshot_tool clone_tool relocate_tool tune_tool fsck freeze
    lock reclaimer reader sem_names systems systems_epoch systems_opens""".split()


def native(name, env):
    yield from programs(name, "", env)
    yield from programs(name, "rec", env)
    # Yields the attacks on a volume in use that once found a bug, and some seconds of new attacks.
    # `make fuzz` attacks for hours.
    hostile = build("build-hostile", "SAN=hostile", "hostile-program", lock="hostile")
    for mode in ("cases", "step", "sweep", "race"):
        yield Case(f"{name}/hostile-{mode}", ["build/hostile/tests/hostile", mode], env=env,
                   weight=BUSY, needs=(hostile,), inputs=NATIVE)
    for script in sorted(glob.glob("kernel/tests/native/*_test.sh")):
        case = os.path.basename(script)[:-len("_test.sh")]
        yield Case(f"{name}/{case}", [script], env=env,
                   cost=COSTS.get(case, 20), weight=1 if case in WAITING else WHOLE // 2,
                   needs=("build-native",), inputs=NATIVE)


@suite("quick", "native", "tests", takes="2-3 min",
       about="engine and tools, with small amounts of work: `make test-quick`")
def suite_quick():
    return native("quick", QUICK)


@suite("native", "native", "tests", takes="minutes",
       about="the same with more work; fuzzers' seeds and past crashes")
def suite_native():
    return native("native", {})


@suite("asan", "native", takes="minutes",
       about="test programs under AddressSanitizer and UBSan, with little work")
def suite_asan():
    return programs("asan", "asan", SANITIZED)


@suite("threads", "native", takes="minutes",
       about="the programs that test threads, under ThreadSanitizer")
def suite_threads():
    return programs("threads", "tsan", SANITIZED, THREADED)


@suite("tsan", "native", takes="minutes", about="all test programs under ThreadSanitizer")
def suite_tsan():
    return programs("tsan", "tsan", SANITIZED)


@suite("lines", "native", takes="a minute",
       about="cache lines that systems take from each other (UPDATE=1)")
def suite_lines():
    lines = build("build-lines", "SAN=lines", "lines-program", lock="lines")
    yield Case("lines/engine", ["build/lines/tests/lines"], weight=BUSY, needs=(lines,),
               inputs=NATIVE)


def models(suite_name, env):
    for path in sorted(glob.glob("kernel/tests/models/*.pml")):
        name = os.path.basename(path)[:-len(".pml")]
        yield Case(f"{suite_name}/{name}", ["kernel/tests/models/run", name], cost=30, env=env,
                   inputs=(path, "kernel/tests/models/run", "mk/test"))


@suite("models", "models", takes="1 min",
       about="the protocol between systems: searches all states of its models")
def suite_models():
    return models("models", QUICK)


@suite("models-long", "models", takes="4 min",
       about="the same, with the longest searches and the models' mutants")
def suite_models_long():
    return models("models-long", {})


@suite("mutants", "native", "csi", "tests", takes="30 min",
       about="engine, driver and chart broken on purpose; a test must fail")
def suite_mutants():
    yield Case("mutants/engine", ["kernel/tests/mutants/run"], limit=7200, weight=2 * WHOLE,
               inputs=NATIVE + ("mk/test/mutants.sh",))
    yield Case("mutants/csi", ["csi-driver/test/mutants/run"], limit=7200, weight=2 * WHOLE,
               inputs=("csi-driver", "charts", "kubevirt-manifests", "mk/tools/go",
                       "mk/test/mutants.sh", *RUNNER, "versions.env"))


@suite("lint", "lint", "native", takes="1 min",
       about="shell, Go, sparse, links, SPDX lines, versions, text, prose")
def suite_lint():
    for path in sorted(glob.glob("mk/lint/*")):
        yield Case(f"lint/{os.path.basename(path)}", [path], limit=900, cost=30, inputs=(".",))


@suite("coverage", "native", takes="minutes",
       about="lines of kernel/core that native tests reach: build/coverage")
def suite_coverage():
    clean = setup("coverage-clean", ["mk/test/coverage", "clean"])
    cases = list(programs("coverage", "cov", QUICK))
    SETUPS["build-cov"].needs = (clean,)
    yield from cases
    yield Case("coverage/report", ["mk/test/coverage", "report"], inputs=NATIVE,
               after=tuple(case.name for case in cases), needs=("build-cov",))
