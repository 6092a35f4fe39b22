# SPDX-License-Identifier: Apache-2.0
"""Reads the results of the sections of e2e/bench/peers."""

import statistics
import sys

# Each section's results are lines of words. On each line, this many words identify the measurement.
# The others are figures.
SECTIONS = {"fio": 4, "fio-6.1": 4, "hand": 3, "tail": 2, "count": 2, "cpu": 3, "memory": 4, "programs": 2, "many": 4, "meta": 3, "engines": 4}
WORD = {"programs": "program", "fio-6.1": "fio", "engines": "engine"}


def parse(section, path, where):
    word, names = WORD.get(section, section), SECTIONS[section]
    rows, load, refused = {}, [], []
    for line in open(path, encoding="utf-8"):
        what, *rest = line.split() or [""]
        if what == word:
            rows.setdefault(tuple(rest[:names]), []).append([float(v) for v in rest[names:]])
        elif what == "load":
            load.append(float(rest[0]))
        elif what == "with":
            where = where + [f"- {' '.join(rest)}"]
        elif what == "not" and rest not in refused:
            refused.append(rest)
    if not rows or not load:
        sys.exit(f"peers-report: {path} has no line '{word}', or no line 'load'")
    return {"where": where, "load": load, "not": refused,
            "rows": [{"of": list(key), "rounds": rounds} for key, rounds in rows.items()]}


class Section:
    """The rounds of each measurement. Figures of one round are comparable: systems took turns."""

    def __init__(self, part):
        self.where, self.load, self.refused = part["where"], part["load"], part["not"]
        self.rows = {tuple(row["of"]): row["rounds"] for row in part["rows"]}

    def __contains__(self, key):
        return key in self.rows

    def values(self, key, figure=0):
        if key not in self.rows:
            sys.exit(f"peers-report: there is no measurement of {' '.join(key)}")
        return [r[figure] for r in self.rows[key]]

    def median(self, key, figure=0):
        return statistics.median(self.values(key, figure))

    def names(self, place):
        """Returns all words at that position of the lines, each once, in the order of the lines."""
        return list(dict.fromkeys(key[place] for key in self.rows))

    def rounds(self):
        return min(len(r) for r in self.rows.values())


def means(section, pairs):
    """Returns, for each round, the mean of this / other over all pairs (this, other)."""
    return [statistics.mean(section.values(this)[i] / section.values(other)[i] for this, other in pairs)
            for i in range(section.rounds())]


def grouped(number):
    return f"{int(number + 0.5):,}".replace(",", " ")


def short(number):
    if number >= 1000:
        return grouped(number)
    return f"{number:.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def spread(values):
    """Formats the median, the minimum and the maximum."""
    if len(values) == 1:
        return short(values[0])
    return f"{short(statistics.median(values))} ({short(min(values))}-{short(max(values))})"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def size(text):
    n = int(text)
    return f"{n >> 20} MiB" if n >= 1 << 20 else f"{n >> 10} KiB"
