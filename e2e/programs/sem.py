#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sem.py ROLE ...: uses shared semaphores of /mnt/sg by the Python binding.

  all                    checks the classes of all kinds of objects
  count NAME FILE N      adds 1 to two words of FILE under a mutex, N times, as `sem count` does
  hold NAME              acquires a mutex, prints "held", and waits for a signal
  meet NAME N            waits at a barrier N times, and prints how often wait() returned True
"""

import errno
import mmap
import os
import signal
import struct
import sys
import threading
import time
from typing import Callable, Type

import stargate

VOLUME = "/mnt/sg"


def raises(kind: Type[BaseException], call: Callable[[], object], number: int = 0) -> None:
    try:
        call()
    except kind as error:
        if number and getattr(error, "errno", 0) != number:
            raise
        return
    raise AssertionError(f"no {kind.__name__}")


def in_child(work: Callable[[], object]) -> int:
    """Runs work in a child process. Returns its exit status, or -N if signal N ended it."""
    pid = os.fork()
    if not pid:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def dies_with(name: str) -> None:
    def work() -> None:
        stargate.Mutex(VOLUME, name).acquire(0)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(work) == -signal.SIGKILL


def mutexes(by_kernel: bool) -> None:
    name = "py-mutex"
    m = stargate.Mutex(VOLUME, name, exclusive=True, by_kernel=by_kernel)
    with m:
        assert m.stat().owner_pid == os.getpid()
        assert m.stat().owner_system == os.uname().nodename
        raises(stargate.Error, lambda: m.acquire(0), errno.EDEADLK)
        assert in_child(lambda: raises(stargate.Busy, lambda: stargate.Mutex(VOLUME, name).acquire(0))) == 0
        start = time.monotonic()
        assert in_child(
            lambda: raises(stargate.TimedOut, lambda: stargate.Mutex(VOLUME, name).acquire(0.2))) == 0
        assert time.monotonic() - start >= 0.2
    assert m.stat().owner_pid is None
    raises(stargate.Error, m.release, errno.EPERM)
    raises(stargate.Error, lambda: stargate.Mutex(VOLUME, name, exclusive=True), errno.EEXIST)
    raises(stargate.Error, lambda: stargate.Semaphore(VOLUME, name), errno.EPROTOTYPE)

    dies_with(name)
    raises(stargate.OwnerDied, lambda: m.acquire(5))
    assert m.stat().died
    m.consistent()
    m.release()
    repaired = []
    dies_with(name)
    with stargate.Mutex(VOLUME, name, repair=lambda: repaired.append(1)):
        assert repaired == [1]
    dies_with(name)
    raises(stargate.OwnerDied, lambda: m.acquire(5))
    m.release()
    raises(stargate.Lost, lambda: m.acquire(0))
    assert m.stat().lost
    stargate.reset(VOLUME, name)
    m.acquire(0)
    m.release()
    stargate.remove(VOLUME, name)
    raises(stargate.Error, lambda: stargate.Mutex(VOLUME, name, create=False), errno.ENOENT)
    m.close()
    raises(ValueError, m.release)

    with stargate.Mutex(VOLUME, name, recursive=True, last_user=True, by_kernel=by_kernel) as m:
        with m:
            pass
        assert m.stat().value == 1
    m.close()
    raises(stargate.Error, lambda: stargate.remove(VOLUME, name), errno.ENOENT)


def semaphores() -> None:
    s = stargate.Semaphore(VOLUME, "py-sem", 2)
    with s:
        s.acquire(0)
        raises(stargate.Busy, lambda: s.acquire(0))
        # While one thread waits, other threads of the interpreter run.
        waiter = threading.Thread(target=s.acquire, args=(20,))
        waiter.start()
        while not s.stat().value == 0:
            time.sleep(0.01)
        s.release()
        waiter.join(20)
        assert not waiter.is_alive()
        s.release()
    assert s.stat().value == 2 and s.stat().type == "semaphore"
    raises(ValueError, lambda: s.acquire(-1))
    stargate.remove(VOLUME, "py-sem")


def rwlocks() -> None:
    rw = stargate.RWLock(VOLUME, "py-rw")
    other = stargate.RWLock(VOLUME, "py-rw", by_kernel=True)
    with rw.read, other.read:
        assert rw.stat().value == 2
        raises(stargate.Busy, lambda: rw.write.acquire(0))
    with rw.write:
        raises(stargate.Error, lambda: other.read.acquire(0), errno.EDEADLK)
    raises(stargate.Error, rw.write.release, errno.EPERM)

    def work() -> None:
        stargate.RWLock(VOLUME, "py-rw").write.acquire(0)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(work) == -signal.SIGKILL
    rw.read.acquire(5)
    assert rw.writer_died
    rw.read.release()
    repaired = []
    with stargate.RWLock(VOLUME, "py-rw", repair=lambda: repaired.append(1)).write:
        assert repaired == [1]
    stargate.remove(VOLUME, "py-rw")


def others() -> None:
    m, c = stargate.Mutex(VOLUME, "py-m"), stargate.Condition(VOLUME, "py-c")
    came = []

    def comes() -> None:
        with m:
            came.append(1)
            c.broadcast()

    with m:
        raises(stargate.TimedOut, lambda: c.wait(m, 0.05))
        thread = threading.Thread(target=comes)
        thread.start()
        while not came:
            c.wait(m, 20)
    thread.join()
    c.signal()
    b = stargate.Barrier(VOLUME, "py-b", 2)
    last = []
    thread = threading.Thread(target=lambda: last.append(b.wait(20)))
    thread.start()
    last.append(b.wait(20))
    thread.join()
    assert sorted(last) == [False, True]
    e = stargate.Event(VOLUME, "py-e", guarded=True)
    thread = threading.Thread(target=lambda: (time.sleep(0.1), e.advance(), e.advance(2)))
    thread.start()
    e.wait(3, 20)
    thread.join()
    assert e.read() == 3
    raises(stargate.Busy, lambda: e.wait(4, 0))
    assert {"py-m", "py-c", "py-b", "py-e"} <= {st.name for st in stargate.list_objects(VOLUME)}
    assert {"py-e"} <= {st.name for st in stargate.list_objects()}  # of the first volume
    for name in ("py-m", "py-c", "py-b", "py-e"):
        stargate.remove(VOLUME, name)
    raises(stargate.Error, lambda: stargate.Mutex(VOLUME, "x" * 256), errno.ENAMETOOLONG)
    raises(stargate.Error, lambda: stargate.Mutex(VOLUME, "a/b"), errno.EINVAL)


def words(path: str) -> mmap.mmap:
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    if os.fstat(fd).st_size < 65536:
        os.posix_fallocate(fd, 0, 65536)
    return mmap.mmap(fd, 65536)


def count(name: str, path: str, times: int) -> None:
    m, w = stargate.Mutex(VOLUME, name, create=False), words(path)
    for _ in range(times):
        with m:
            a, b = struct.unpack_from("<QQ", w)
            assert a == b, "the words differ, so another process has the mutex too"
            struct.pack_into("<Q", w, 0, a + 1)
            struct.pack_into("<Q", w, 8, b + 1)


def main() -> None:
    role, *rest = sys.argv[1:]
    if role == "all":
        for by_kernel in (False, True):
            mutexes(by_kernel)
        semaphores()
        rwlocks()
        others()
        print("all of it")
    elif role == "count":
        count(rest[0], rest[1], int(rest[2]))
    elif role == "hold":
        stargate.Mutex(VOLUME, rest[0], create=False).acquire(20)
        print("held", flush=True)
        signal.pause()
    elif role == "meet":
        barrier = stargate.Barrier(VOLUME, rest[0], create=False)
        print(sum(barrier.wait(60) for _ in range(int(rest[1]))))


main()
