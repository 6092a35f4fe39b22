# SPDX-License-Identifier: Apache-2.0
"""Formats tables of the results of e2e/bench/peers, and of the targets."""

import math
import statistics

from peers_data import grouped, means, short, size, spread, table

OURS = "stargatefs"
SHARED = ("9p", "virtiofs", "nfs", "smb")
NAMES = {"outside": "stargatefs, written outside", "smb": "Samba", "nfs": "NFS", "words": "memcpy by words", "memcpy": "memcpy",
         "nfs-loop": "NFS, loopback", "smb-loop": "Samba, loopback", "9p-loose": "9p, cached", "virtiofs-auto": "virtiofs, cached"}
# Figures of P1: averages over its fio tests, by the number of threads, and figures of the
# hand-over.
PAPER = {"9p": {"all": 64, "1": 59.3, "2": 61.2, "4": 71.5},
         "nfs": {"all": 191, "1": 121.6, "2": 195.5, "4": 256.8},
         "smb": {"all": 172, "1": 117.7, "2": 178.3, "4": 222.5}}
PAPER_HAND = {"9p": {"1024": 239.94 / 9.632, "4096": 66.86 / 7.067, "1048576": 63.52 / 5.828},
              "smb": {"1024": 843.52 / 9.632, "4096": 457.33 / 7.067, "1048576": 117.73 / 5.828}}
PAPER_MANY = 330.8
PAPER_JOBS = ("1", "2", "4")
PAPER_BLOCK = 2 << 20
COPIES = ("words", "memcpy")
BOUND_SHARE = 0.8   # if the bound is below P1's factor, the target is this share of the bound
TAIL, MEMORY = 3, 1.02


def name(system):
    return NAMES.get(system, system)


def measured(section):
    load = f"before and after: {section.load[0]:.2f} and {section.load[-1]:.2f}"
    if len(section.load) == 1:
        load = f"before: {section.load[0]:.2f}; it was cut off"
    return "\n".join(section.where + [f"- load of the machine {load}; rounds: {section.rounds()}"])


def refusals(section):
    return "".join(f"\nNot on {name(s)}: {what} (`{' '.join(why)}`)." for s, what, *why in section.refused)


# --- fio ------------------------------------------------------------------------------------------

def blocks_of(text):
    """Converts a size in fio's notation to bytes."""
    return int(text[:-1]) << {"k": 10, "m": 20}[text[-1]]


def cells(fio, jobs=None, all_sizes=False):
    """Returns the loads of P1's sizes with that many threads, or all loads of P1 for None."""
    return [key[1:] for key in fio.rows if key[0] == OURS and (key[3] == jobs if jobs else key[3] in PAPER_JOBS) and
            (all_sizes or blocks_of(key[2]) <= PAPER_BLOCK)]


def factor(fio, this, other, jobs=None):
    """Returns, for each round, how many times as fast StargateFS is: the mean over all loads."""
    return means(fio, [((this, *cell), (other, *cell)) for cell in cells(fio, jobs)])


def bound(fio, system, jobs=None):
    """Returns the same factor for plain copies, by the faster of the two ways to copy."""
    return [statistics.mean(max(fio.values((how, *cell))[i] for how in COPIES) / fio.values((system, *cell))[i]
                            for cell in cells(fio, jobs)) for i in range(fio.rounds())]


def aim(fio, system):
    """Returns the target, or None, and a text that explains it."""
    most = statistics.median(bound(fio, system))
    paper = PAPER.get(system, {}).get("all")
    if not paper:
        return None, f"P1 has none; {short(most)} is the bound"
    if paper <= most:
        return paper, "P1"
    return BOUND_SHARE * most, f"{BOUND_SHARE:.0%} of the bound"


def factors(fio):
    rows = []
    for system in fio.names(0):
        if system == OURS or system in COPIES:
            continue
        each = [statistics.median(a / b for a, b in zip(fio.values((OURS, *c)), fio.values((system, *c))))
                for c in cells(fio)]
        rows.append([name(system)] +
                    [spread(factor(fio, OURS, system, jobs)) for jobs in fio.names(3)] +
                    [f"**{spread(factor(fio, OURS, system))}**",
                     short(math.exp(statistics.mean(map(math.log, each)))), short(min(each)),
                     short(max(each)), spread(bound(fio, system)),
                     PAPER.get(system, {}).get("all", "")])
    heads = ["times as fast as"] + [f"{jobs} thread{'s' * (jobs != '1')}" for jobs in fio.names(3)]
    return table(heads + ["all", "geometric", "least", "most", "bound", "P1"], rows)


def papers(fio):
    jobs = [j for j in PAPER_JOBS if j in fio.names(3)]
    rows = [[name(s)] + [f"{spread(factor(fio, OURS, s, j))}; P1 {PAPER[s][j]}; bound {short(statistics.median(bound(fio, s, j)))}"
                         for j in jobs] for s in PAPER if s in fio.names(0)]
    return table(["times as fast as"] + [j + " thread" + "s" * (j != "1") for j in jobs], rows)


def speeds(fio, jobs):
    systems, rows = fio.names(0), []
    for load, block, _ in cells(fio, jobs, all_sizes=True):
        rates = [fio.values((s, load, block, jobs)) for s in systems]
        wide = max(max(r) / max(min(r), 1) for r in rates)
        rows.append([f"{load} {block}"] + [short(statistics.median(r) / 1024) for r in rates] + [f"{wide:.1f}"])
    return table([f"MiB/s, {jobs} thread{'s' * (jobs != '1')}"] + [name(s) for s in systems] + ["spread"], rows)


def fio_tables(fio):
    parts = [factors(fio), papers(fio), "*Spread* is, for each row, the largest ratio of a system's highest round to its lowest."]
    return "\n\n".join(parts + [speeds(fio, jobs) for jobs in fio.names(3)])


def fio_text(fio):
    return f"""## Reading and writing (P1 5.1, 5.2)

{measured(fio)}

The first table says how many times as fast StargateFS is. Each round gives the mean over all loads
below that P1 has: up to 2 MiB, with one, two and four threads. The table has the median of the
rounds, with the least and the most.

*Bound* says how many times as fast the same fio is if its reads and writes only copy from and to
its own memory. It makes no system call and uses no file. It copies by words, as kernels do, or as
the C library does, whichever is faster. Where the bound is below P1's factor, the target is {BOUND_SHARE:.0%} of
the bound.

{fio_tables(fio)}"""


def fio_old_text(fio):
    return f"""## The same with kernel 6.1

{measured(fio)}

Without a cache, the 9p client of newer kernels requests each page of 4 KiB by itself, however much
a program reads. Counted on 6.12, each page causes an interrupt. This comes from netfs. The 9p
client of 6.1 is older than netfs.

{fio_tables(fio)}"""


# --- from one system to another -------------------------------------------------------------------

def of_a_block(hand, system, way, block):
    """Returns the microseconds of each round."""
    return [ns / 1000 / (total / int(block)) for total, ns in hand.rows[system, way, block]]


# The files of these systems are on the host, whose accesses need no second translation of
# addresses.
OUTSIDE = ("9p", "virtiofs")


def handed(hand, system, way, block):
    """Returns, for each round, the system's time / StargateFS's time with the same writer."""
    ours = "outside" if way == "local" and system in OUTSIDE and ("outside", way, block) in hand else OURS
    return [a / b for a, b in zip(of_a_block(hand, system, way, block), of_a_block(hand, ours, way, block))]


def hand_table(hand, way):
    rows, ours = [], [s for s in (OURS, "outside", "turns") + SHARED if (s, way, hand.names(2)[0]) in hand]
    for block in hand.names(2):
        row = [size(block)]
        for system in ours:
            row.append(spread(of_a_block(hand, system, way, block)))
        for system in SHARED:
            paper = PAPER_HAND.get(system, {}).get(block) if way == "local" else None
            row.append(spread(handed(hand, system, way, block)) + (f"; P1 {paper:.1f}" if paper else ""))
        rows.append(row)
    return table(["us for a block of"] + [name(s) for s in ours] +
                 [f"times {name(s)}" for s in SHARED], rows)


def hand_text(hand):
    return f"""## Hand-over between systems (P1 5.3)

{measured(hand)}

One system writes a block, another one reads it, in turns. As in P1, the writer is where the file
is. For 9p and virtiofs that is the machine outside, for NFS and Samba the server, on its ext4-dax.

With StargateFS the file is on both sides. NFS and Samba are compared with a writer in another
guest. 9p and virtiofs are compared with a writer *outside*: a program with the same engine. It
stands in for the module, which this machine's kernel does not load. Each side waits by looking at a
word of memory.

*Turns* is only the waiting of two guests, without a file. Where the machine's processors have other
work, most of the time is waiting for a processor.

{hand_table(hand, "local")}

In the next table both sides are guests that have mounted the file system. They wait by StargateFS's
semaphores, which spin for a while before they sleep. A turn does not depend on the block; with 1
MiB there are only 150 turns.

{hand_table(hand, "through")}"""


# --- latency --------------------------------------------------------------------------------------

def tail_text(tail):
    rows = []
    for system in tail.names(0):
        for other in tail.names(1):
            of = [tail.median((system, other), i) for i in range(5)]
            ratio = [r[2] / r[0] for r in tail.rows[system, other]]
            rows.append([f"{name(system)}, {OTHERS[other]}"] + [short(v / 1000) for v in of[:3]] +
                        [spread(ratio), grouped(of[3]), grouped(of[4])])
    return f"""## Latency of random 4 KiB reads while another system creates and removes files

{measured(tail)}

{table(["microseconds; the other system", "median", "99 %", "99.9 %", "99.9 % / median", "reads", "files created"], rows)}

In the rows *elsewhere* the other system creates files in a tmpfs of its own. The guests share two
processors. The difference between *elsewhere* and *idle* is the processor time that the other
system takes. The difference between *same file system* and *elsewhere* is the file system."""


OTHERS = {"alone": "idle", "apart": "elsewhere", "same": "same file system"}


def count_text(count):
    rows = []
    for system, other in count.rows:
        of = [count.median((system, other), i) for i in range(5)]
        ratio = [r[2] / r[0] for r in count.rows[system, other]]
        rows.append([f"{name(system)}, {OTHERS[other]}"] + [grouped(v) for v in of[:3]] +
                    [spread(ratio), grouped(of[3]), grouped(of[4])])
    return f"""## The same latency in instructions

{measured(count)}

The figures are the instructions of one guest for a read, with two looks at its clock. The other
system is a program outside with the same engine. So other work of the machine has no part in these
figures.

{table(["instructions; the other system", "median", "99 %", "99.9 %", "99.9 % / median", "reads", "files created"], rows)}"""


# --- memory and processor time --------------------------------------------------------------------

def memory_text(memory):
    rows = []
    for key, rounds in memory.rows.items():
        system, how, guests, kib = key
        cached, used = rounds[0]
        rows.append([f"{name(system)}, {how}", guests, f"{int(kib) >> 10} MiB", grouped(cached / 1024),
                     grouped(used / 1024), f"{1 + max(cached, 0) / int(kib):.2f}", f"{copies(memory, key):.3f}"])
    heads = ["all guests have read the file", "guests", "file size", "in page caches, MiB", "additional use, MiB",
             "copies, by page caches", "copies, by use"]
    return f"""## Memory

{measured(memory)}

The figures say how much more memory all guests use than before, the server's guest included. The
file itself counts once. *Use* is all memory that is not free. So it includes what else a kernel
does meanwhile.

{table(heads, rows)}
{refusals(memory)}"""


def copies(memory, key):
    return 1 + max(memory.median(key, 1), 0) / int(key[3])


def cpu_seconds(cpu, key, figure):
    """Returns the median of the processor seconds for a GiB, minus those of an idle machine."""
    idle = [sum(r[i] for r in cpu.rows["idle", "-", "0"]) for i in range(5)]
    rate = idle[figure] / idle[1]
    return statistics.median(max(r[figure] - rate * r[1], 0) / 1000 / (r[0] / 2**30) for r in cpu.rows[key])


def cpu_text(cpu):
    systems, rows = [s for s in cpu.names(0) if s != "idle"], []
    for _, kind, block in [k for k in cpu.rows if k[0] == OURS]:
        for figure, whose in ((2, "guest"), (3, "server guest"), (4, "outside")):
            rows.append([f"{kind} {size(block)}, {whose}"] +
                        [short(cpu_seconds(cpu, (s, kind, block), figure)) for s in systems])
    return f"""## Processor time

{measured(cpu)}

The figures are seconds of processor time for 1 GiB, less what the same guests use without load.
*Outside* counts all processes of the machine for these guests: QEMU, with everything that the
guests execute, and virtiofsd.

{table(["s"] + [name(s) for s in systems], rows)}"""


# --- programs, and many guests --------------------------------------------------------------------

def programs_text(programs):
    systems, rows = programs.names(0), []
    for what in programs.names(1):
        rows.append([what] + [spread(programs.values((s, what))) if (s, what) in programs else "fails"
                              for s in systems])
    return f"""## Programs

{measured(programs)}

The figures are milliseconds, median (least-most).

- `clone`, `status`: git clones a repository of some of Python's modules, and looks at it.
- `untar`, `tar`, `rsync`: the modules are unpacked, packed, and copied.
- `compile`: gcc compiles a C program of 500 lines.
- `sqlite`: a table of 2 000 rows is created and changed.
- `array`: Python writes 16 MiB of numbers, maps them, and reads and changes them at random.
- `gotest`: Go's own tests of its package `os` run (`-short`, without TestRootMulti, 100 s at most).
- `remove`: everything is removed.

Programs read and write through page caches, on systems that have them. 9p and virtiofs with
`cache=never` have none. NFS and Samba are mounted with their usual options.

{table(["ms"] + [name(s) for s in systems], rows)}
{refusals(programs)}"""


def together(many, system, guests):
    """Returns, for each round, how many times as fast StargateFS is: the mean over the loads."""
    return means(many, [((OURS, *k[1:]), (system, *k[1:])) for k in many.rows if k[0] == OURS and k[3] == guests])


def many_text(many):
    counts, rows = many.names(3), []
    for n in counts:
        for _, kind, block, _ in [k for k in many.rows if k[0] == OURS and k[3] == n]:
            rows.append([f"{kind} {size(block)}, {n} guest{'s' * (n != '1')}"] +
                        [short(many.median((s, kind, block, n)) / 1024) for s in (OURS,) + SHARED])
    means_rows = [[f"times as fast, {n} guest{'s' * (n != '1')}", ""] +
                  [spread(together(many, s, n)) for s in SHARED] for n in counts]
    return f"""## Eight guests at once

{measured(many)}

Each guest has one processor and a file of its own. So many guests on the machine's processors wait
for each other, and for their servers. P1 measured {PAPER_MANY} times VirtFS with eight guests.

{table(["MiB/s, all together"] + [name(s) for s in (OURS,) + SHARED], rows + means_rows)}"""


# --- names, and other ways to read and write ------------------------------------------------------

WAYS = {"one": "one directory", "many": "16 directories", "two": "two systems at once"}


def meta_text(meta):
    systems, rows = meta.names(0), []
    for way in meta.names(1):
        for what in meta.names(2):
            rows.append([f"{what}, {WAYS[way]}"] + [short(meta.median((s, way, what)) / 1000) if (s, way, what) in meta
                                                   else "" for s in systems])
    ratios = [[f"times as long, {WAYS[way]}"] +
              [spread(means(meta, [((s, way, what), (OURS, way, what)) for what in meta.names(2)]))
               if (s, way, meta.names(2)[0]) in meta else "" for s in systems] for way in meta.names(1)]
    return f"""## Names

{measured(meta)}

The figures are microseconds for one file: created, looked at (stat), opened and closed, listed with
its directory, renamed, removed. Two systems at once have a directory each, and the time is that of
the slower one. NFS and Samba keep nothing longer than the defaults of their protocol.

{table(["us"] + [name(s) for s in systems], rows + ratios)}"""


def engines_text(engines):
    systems, rows = engines.names(0), []
    for _, engine, load, block in [k for k in engines.rows if k[0] == OURS]:
        rows.append([f"{engine}, {load} {block}"] +
                    [short(engines.median((s, engine, load, block)) / 1024) if (s, engine, load, block) in engines
                     else "fails" for s in systems])
    return f"""## Mappings and eight operations at a time

{measured(engines)}

fio runs with one thread: through a mapping (`mmap`), and with eight reads or writes in progress
(`io_uring`). Mappings use page caches on all systems that have them. The other loads use O_DIRECT,
except on the two cached systems.

{table(["MiB/s"] + [name(s) for s in systems], rows)}
{refusals(engines)}"""


# --- targets --------------------------------------------------------------------------------------

def verdict(ok):
    return "met" if ok else "**missed**"


def targets(data):
    rows = []
    for part, also in (("fio", ""), ("fio-6.1", ", kernel 6.1")):
        for system in [s for s in SHARED if part in data and s in data[part].names(0)]:
            got, (wanted, whose) = statistics.median(factor(data[part], OURS, system)), aim(data[part], system)
            rows.append([f"read and write, mean: times {name(system)}{also}", spread(factor(data[part], OURS, system)),
                         f"at least {short(wanted)} ({whose})" if wanted else whose,
                         verdict(got >= wanted) if wanted else ""])
    if "hand" in data:
        for system, papers_ in PAPER_HAND.items():
            for block, wanted in papers_.items():
                got = statistics.median(handed(data["hand"], system, "local", block))
                rows.append([f"hand-over, {size(block)}: times {name(system)}",
                             spread(handed(data["hand"], system, "local", block)),
                             f"at least {wanted:.1f} (P1)", verdict(got >= wanted)])
            for block, wanted in papers_.items():
                got = handed(data["hand"], system, "through", block)
                rows.append([f"the same, two guests, StargateFS's semaphores, {size(block)}: times {name(system)}", spread(got),
                             f"P1's factor is {wanted:.1f}", verdict(statistics.median(got) >= wanted)])
    if "count" in data:
        got = statistics.median(r[2] / r[0] for r in data["count"].rows[OURS, "same"])
        rows.append(["read of 4 KiB while another system makes files: 99.9th percentile / median, instructions", short(got),
                     f"at most {TAIL}", verdict(got <= TAIL)])
    if "tail" in data:
        got, alone, apart = (statistics.median(r[2] / r[0] for r in data["tail"].rows[OURS, other])
                             for other in ("same", "alone", "apart"))
        rows.append(["the same in time, where guests wait for processors", short(got),
                     f"{short(alone)} while the other is idle, {short(apart)} while it makes files on its own tmpfs", "no target"])
    if "memory" in data:
        for key in [k for k in data["memory"].rows if k[0] == OURS]:
            got = copies(data["memory"], key)
            rows.append([f"memory, {key[2]} guests ({key[1]}), copies", f"{got:.3f}", f"at most {MEMORY}",
                         verdict(got <= MEMORY)])
    return table(["measure", "is", "", ""], rows)


TEXTS = {"fio": fio_text, "fio-6.1": fio_old_text, "engines": engines_text, "hand": hand_text, "meta": meta_text,
         "tail": tail_text, "count": count_text, "memory": memory_text, "cpu": cpu_text,
         "programs": programs_text, "many": many_text}


def page(data):
    head = """<!-- SPDX-License-Identifier: Apache-2.0 -->
# Comparison with other shared file systems

This page is for readers who want to see each figure behind [the summary](README.md), and how it was
measured. [README.md](README.md#how-the-systems-are-set-up) says how the systems are set up.
`make bench` measures, and writes all of this page; `make bench SECTIONS=fio` writes one section.

Times on real machines are not covered. Where QEMU translates, times compare rows and columns of one
table with each other, and nothing else."""
    return "\n\n".join([head] + [TEXTS[part](data[part]).strip() for part in TEXTS if part in data]) + "\n"


def summary(data):
    """Returns the section of README.md. The other tables are on their own page."""
    when = sorted({line.removeprefix("- ") for part in data.values() for line in part.where if ", commit " in line})
    machine = sorted({line for part in data.values() for line in part.where if line.startswith("- machine: ")
                      if "icount" not in line})
    parts = ["![how many times as fast](peers.svg)", "\n".join(machine + [f"- measured: {'; '.join(when)}"]),
             targets(data)]
    if "fio" in data:
        parts += ["The table shows how many times as fast StargateFS is, as the mean over all loads of fio (median of the "
                  "rounds, least and most).\n*all*: one, two and four threads, as in P1. *bound*: the factor of plain "
                  "copies. P1 has arithmetic means, which a few loads\nof small blocks dominate; the geometric mean "
                  "weights all loads equally.",
                  factors(data["fio"])]
    return "\n\n".join(parts)


def bars(data):
    lines = ["title\tHow many times as fast as each of these StargateFS is", "log\t0.5"]

    def draw(group, system, values):
        lines.append(f"{group}\t{name(system)}\t{statistics.median(values):.3f}")

    for system in SHARED:
        if "fio" in data:
            for jobs in data["fio"].names(3):
                draw(f"fio, {jobs} thread{'s' * (jobs != '1')}", system, factor(data["fio"], OURS, system, jobs))
        if "many" in data:
            draw("eight guests at once", system, together(data["many"], system, data["many"].names(3)[-1]))
        if "hand" in data:
            for block in data["hand"].names(2):
                draw(f"hand-over of {size(block)}", system, handed(data["hand"], system, "local", block))
        if "programs" in data:
            programs = data["programs"]
            for what in [n for n in programs.names(1) if (system, n) in programs]:
                draw(what, system, [a / b for a, b in zip(programs.values((system, what)),
                                                          programs.values((OURS, what)))])
    return "\n".join(lines) + "\n"
