# SPDX-License-Identifier: Apache-2.0
"""Defines the parts of a test run: suites of cases, and the setups that the cases need."""

import dataclasses
import fnmatch
import os
import re

# Weights are quarters of a processor: a case that only waits for a cluster has one.
WHOLE = 4


@dataclasses.dataclass
class Setup:
    """A step that several cases need, such as a build. If it fails, all these cases fail."""

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
    """A command with a name, SUITE/CASE. It passes if it exits with 0 and has checked something."""

    name: str
    command: list
    limit: int = 1200
    weight: int = WHOLE
    cost: int = 10  # the expected seconds: the longest case starts first
    needs: tuple = ()
    after: tuple = ()  # cases that end before this one starts
    brings: tuple = ()  # cases without which this one cannot run: chosen together with it
    env: dict = dataclasses.field(default_factory=dict)
    inputs: tuple = ()  # paths whose content decides its result
    parts: tuple = ()  # cases that its command runs and reports one by one

    @property
    def suite(self):
        return self.name.split("/", 1)[0]

    @property
    def names(self):
        """The names of the cases that the run counts."""
        return self.parts or (self.name,)


@dataclasses.dataclass
class Suite:
    """Cases that `make GOAL SUITE=NAME` chooses together."""

    name: str
    cases: callable
    packages: tuple  # groups of versions.env
    about: str
    takes: str  # about this time, on two idle cores
    group: str
    goal: str


def wanted(name):
    """Returns whether a pattern in ONLY matches SUITE/CASE, or CASE alone."""
    return any(fnmatch.fnmatchcase(name, one) or fnmatch.fnmatchcase(name.split("/", 1)[1], one)
               for one in (os.environ.get("ONLY") or "*").split())


def versions():
    """Returns the keys and values of versions.env; a list remains a string with commas."""
    table = {}
    with open("versions.env", encoding="utf-8") as file:
        for line in file:
            key, sep, value = line.strip().partition("=")
            if sep and not key.startswith("#"):
                table[key] = value
    return table


def header(path):
    """Returns the lines `# KEY: VALUE` in the comment at the top of a script."""
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
