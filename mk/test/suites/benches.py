# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of `make bench` and the fuzzers of `make fuzz`, each with its time and subject."""

BENCHES = {
    "gate": ("30 s", "instruction counts against e2e/bench/baseline (UPDATE=1 writes it)"),
    "lines": ("a minute", "cache lines that systems take from each other, by object"),
    "peers": ("hours", "times against 9p, virtiofs, NFS, Samba (SECTIONS=)"),
    "targets": ("minutes", "instruction counts against ext4-dax, xfs-dax, tmpfs, memcpy"),
    "quick": ("minutes", "the parts of a read of 4 KiB against ext4-dax and tmpfs"),
    "profile": ("minutes", "instructions by function, from samples"),
    "flushes": ("minutes", "fences and lines written back, for each operation"),
    "copy": ("minutes", "copies that bypass this processor's caches, and copies through them"),
    "scale": ("minutes", "volumes of 1 TiB, 10^7 files, 64 systems in one process"),
    "fuse": ("1 min", "calls through stargatefs-fuse against a FUSE pass-through and tmpfs"),
    "net": ("minutes", "traffic through a volume against virtio-net and loopback"),
    "sem": ("minutes", "shared semaphores against pthreads, System V, flock, NFS, a server"),
    "ring": ("30 s", "instructions of a record in a ring against two copies"),
    "atomic": ("20 min", "atomic writes against writes in place, copies of pages, ext4"),
    "together": ("minutes", "several systems at the same time, against 9p and virtiofs"),
    "overhead": ("minutes", "the cost of coherence for a single system"),
    "all": ("hours", "the figures of docs/performance, one after the other"),
}
# The benchmarks of `all`, in their order.
ALL = ["targets", "quick", "profile", "flushes", "copy", "scale", "sem", "ring", "net", "peers"]

FUZZERS = {
    "engine": ("SECONDS=60 each", "libFuzzer's targets in kernel/tests/fuzz (ONLY=)"),
    "driver": ("SECONDS=60 each", "Go's fuzzers in csi-driver (ONLY=)"),
    "hostile": ("HOURS=6 in all", "attacks on volumes in use; resumable (FORMS=)"),
}
