# SPDX-License-Identifier: Apache-2.0
"""Writes docs/test-results.md: which cases have passed, when, on which commit and inputs.

The page is the record: `make test-all` reads it, and skips cases that passed on the same inputs.
"""

import fcntl
import functools
import glob
import hashlib
import os
import re
import subprocess
import time

from cases import cache_dir

PAGE = "docs/test-results.md"
HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
# What has passed, and when

`make test-all` writes this page. It has a row for each case that passed, with the commit and a hash
of the case's inputs: sources, script, kernels and compiler. A case whose inputs are the same today
does not run again; `FORCE=1 make test-all` runs all of them.

| case | checks | seconds | day | commit | inputs |
|---|---|---|---|---|---|
"""
ROW = re.compile(r"\| (\S+) \| (\d+) \| ([\d.]+) \| (\S+) \| (\S+) \| (\S+) \|$")


def output(*command):
    return subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.strip()


@functools.lru_cache(None)
def files(path):
    listed = output("git", "ls-files", "-z", "-co", "--exclude-standard", "--", path)
    return [name for name in listed.split("\0")
            if name and not name.endswith(".md") and os.path.isfile(name)]


@functools.lru_cache(None)
def content(name):
    with open(name, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


@functools.lru_cache(None)
def tools():
    """Returns versions of packages that the archive may replace: the compiler, the stock kernels."""
    releases = []
    for path in sorted(glob.glob(os.path.join(cache_dir(), "kernel-*/release"))):
        with open(path, encoding="utf-8") as file:
            releases.append(file.read().strip())
    return output("gcc", "-dumpfullversion"), tuple(sorted(set(releases)))


@functools.lru_cache(None)
def digest(paths, settings):
    names = sorted({name for path in paths for name in files(path)})
    text = "".join(f"{name} {content(name)}\n" for name in names) + repr(settings)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def inputs_of(case):
    compiler, releases = tools()
    uses_kernels = any(path.startswith("e2e") for path in case.inputs)
    env = tuple(sorted((k, v) for k, v in case.env.items() if k != "OWNER"))
    command = () if case.parts else tuple(case.command)
    settings = (compiler, releases if uses_kernels else (), env, command)
    return digest(case.inputs, settings)


def rows():
    table = {}
    try:
        with open(PAGE, encoding="utf-8") as file:
            for line in file:
                match = ROW.match(line)
                if match:
                    table[match[1]] = match.groups()
    except FileNotFoundError:
        pass
    return table


def has(case):
    table = rows()
    return all(name in table and table[name][5] == inputs_of(case) for name in case.names)


def add(name, case, checks, took):
    """Writes a row for a case, or for a part of it. Two runs may do this at the same time."""
    changed = output("git", "status", "--porcelain", "--", ".", f":!{PAGE}")
    commit = output("git", "rev-parse", "--short", "HEAD") + ("+" if changed else "")
    row = (name, str(checks), f"{took:.0f}", time.strftime("%Y-%m-%d"), commit, inputs_of(case))
    os.makedirs("build", exist_ok=True)
    with open("build/test-results.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        table = rows()
        table[name] = row
        with open(PAGE + ".new", "w", encoding="utf-8") as file:
            file.write(HEAD)
            for one in sorted(table):
                file.write("| " + " | ".join(table[one]) + " |\n")
        os.rename(PAGE + ".new", PAGE)
