# SPDX-License-Identifier: Apache-2.0
"""Benchmarks and fuzzers of `make bench` and `make fuzz`: the time each takes, and its subject."""

BENCHES = {
    "gate": ("30 s", "instruction counts beside e2e/bench/baseline (UPDATE=1 writes it)"),
    "lines": ("a minute", "cache lines that systems take from each other, by object"),
    "peers": ("hours", "times beside 9p, virtiofs, NFS, Samba (SECTIONS=)"),
    "targets": ("minutes", "instruction counts beside ext4-dax, xfs-dax, tmpfs, memcpy"),
    "quick": ("minutes", "a read of 4 KiB taken apart, beside ext4-dax and tmpfs"),
    "profile": ("minutes", "instructions by function, from samples"),
    "flushes": ("minutes", "fences and lines written back, for each operation"),
    "copy": ("minutes", "copies past this processor's caches and through them"),
    "scale": ("minutes", "volumes of 1 TiB, 10^7 files, 64 systems in one process"),
    "fuse": ("1 min", "calls by stargatefs-fuse beside a pass-through by FUSE, and tmpfs"),
    "sem": ("minutes", "shared semaphores beside pthreads, System V, flock, NFS, a server"),
    "ring": ("30 s", "instructions of a record in a ring, beside two copies"),
    "together": ("minutes", "several systems at once, beside 9p and virtiofs"),
    "overhead": ("minutes", "the cost of coherence for a single system"),
    "all": ("hours", "the figures of docs/performance, one after the other"),
}
# The parts of `all`, in this order.
ALL = ["targets", "quick", "profile", "flushes", "copy", "scale", "sem", "ring", "peers"]

FUZZERS = {
    "engine": ("SECONDS=60 each", "libFuzzer's targets in kernel/tests/fuzz (ONLY=)"),
    "driver": ("SECONDS=60 each", "Go's fuzzers in csi-driver (ONLY=)"),
    "hostile": ("HOURS=6 in all", "attacks on volumes in use; resumable (FORMS=)"),
}
