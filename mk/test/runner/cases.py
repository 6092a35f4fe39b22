# SPDX-License-Identifier: Apache-2.0
"""The parts of a test run: suites of cases, and the setups that they need first."""

import dataclasses
import fnmatch
import os
import re

# Weights are quarters of a processor: a case that only waits for a cluster has one.
WHOLE = 4


@dataclasses.dataclass
class Setup:
    """A step that several cases need, such as a build. It fails them all if it fails."""

    name: str
    command: list
    limit: int = 3600
    weight: int = 2 * WHOLE
    needs: tuple = ()
    undo: list = None  # runs after the last case that needs the setup
    env: dict = dataclasses.field(default_factory=dict)
    lock: str = ""


@dataclasses.dataclass
class Case:
    """A command with a name, SUITE/CASE. It passes when it exits with 0 and has checked something."""

    name: str
    command: list
    limit: int = 1200
    weight: int = WHOLE
    cost: int = 10  # seconds, roughly: the longest case starts first
    needs: tuple = ()
    after: tuple = ()  # cases that end before this one starts
    env: dict = dataclasses.field(default_factory=dict)
    inputs: tuple = ()  # paths that decide its result
    parts: tuple = ()  # cases that its command runs and reports one by one

    @property
    def suite(self):
        return self.name.split("/", 1)[0]

    @property
    def names(self):
        """The cases that are counted."""
        return self.parts or (self.name,)


@dataclasses.dataclass
class Suite:
    """Cases that are chosen together, by `make GOAL SUITE=NAME`."""

    name: str
    cases: callable
    packages: tuple  # groups of versions.env
    about: str
    takes: str  # roughly, on two idle cores
    group: str
    goal: str


def wanted(name):
    """Whether one of the patterns in ONLY is for SUITE/CASE, or for the case alone."""
    return any(fnmatch.fnmatchcase(name, one) or fnmatch.fnmatchcase(name.split("/", 1)[1], one)
               for one in (os.environ.get("ONLY") or "*").split())


def versions():
    """The table of versions.env; lists stay strings with commas."""
    table = {}
    with open("versions.env", encoding="utf-8") as file:
        for line in file:
            key, sep, value = line.strip().partition("=")
            if sep and not key.startswith("#"):
                table[key] = value
    return table


def header(path):
    """The lines `# KEY: VALUE` in the comment at the top of a script."""
    keys = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if not line.startswith("#"):
                break
            match = re.match(r"# ([a-z-]+): *(.*)", line)
            if match:
                keys.setdefault(match[1], match[2].strip())
    return keys


def cache_dir():
    return os.environ.get("STARGATE_CACHE") or os.path.expanduser("~/.cache/stargate")
