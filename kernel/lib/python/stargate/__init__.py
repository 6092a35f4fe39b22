# SPDX-License-Identifier: Apache-2.0
"""Semaphores, locks and rings for all systems that use a StargateFS volume.

Objects are in the volume, by name; programs in C, Go, Python or a shell use the same ones
(libstargate(3), stargate-sem(1)). Threads own locks. A time-out is in seconds. None waits forever;
0 does not wait, and raises Busy. TimedOut is raised when the time has passed.

    with stargate.Mutex("/mnt/sg", "backup", repair=check_files):
        ...
"""

from __future__ import annotations

import ctypes
import errno
import os
from types import TracebackType
from typing import Callable, Iterable, Iterator, NamedTuple, Optional, Type, TypeVar, Union

__all__ = [
    "Barrier", "Broken", "Busy", "Condition", "Cursor", "Error", "Event", "Listener", "Lost",
    "Mutex", "OwnerDied", "RWLock", "Record", "Refused", "Reset", "Ring", "RingStat", "Semaphore",
    "Stat", "Stream", "TimedOut", "list_objects", "remove", "reset",
]

_lib = ctypes.CDLL(os.environ.get("STARGATE_LIBRARY", "libstargate.so.1"))
_lib.stargate_why.restype = ctypes.c_char_p
_lib.stargate_in.restype = ctypes.c_uint64
_lib.stargate_close.restype = None
_lib.stargate_cursor_close.restype = None
_lib.stargate_ring_close.restype = None
_lib.stargate_stream_close.restype = None
_lib.stargate_listener_close.restype = None
_lib.stargate_in.argtypes = [ctypes.c_uint64]

_FOREVER = 2**64 - 1
_TYPES = ("any", "mutex", "semaphore", "rwlock", "condition", "barrier", "event", "ring")
_RECURSIVE, _GUARDED, _LAST_USER, _SINGLE = 1, 2, 4, 8
_EXCLUSIVE, _LOOK, _BY_KERNEL = 1, 2, 4


class Error(OSError):
    """An operation on an object failed. Contains errno and a message."""


class Busy(Error):
    """The operation is not possible without a wait."""


class TimedOut(Error):
    """The time limit has passed."""


class OwnerDied(Error):
    """The caller has the lock, but the last owner died while it had the lock. Repair the data,
    call consistent(), then release()."""


class Lost(Error):
    """An owner of the mutex died, and a later owner released the mutex without consistent()."""


class Reset(Error, ConnectionResetError):
    """The other end of a stream has died; its last bytes may be missing."""


class Broken(Error, BrokenPipeError):
    """The other end of a stream does not read any more."""


class Refused(Error, ConnectionRefusedError):
    """No process listens on that name."""


_kinds = {
    errno.EAGAIN: Busy,
    errno.ECONNREFUSED: Refused,
    errno.ECONNRESET: Reset,
    errno.EPIPE: Broken,
    errno.ETIMEDOUT: TimedOut,
    errno.EOWNERDEAD: OwnerDied,
    errno.ENOTRECOVERABLE: Lost,
}


def _name(name: str) -> bytes:
    raw = os.fsencode(name)
    if b"\0" in raw:
        raise ValueError("a name cannot contain NUL")  # C would end the name there
    return raw


def _retried(call: Callable[..., int], *args: object) -> int:
    """Repeats a wait that a signal has ended, after the signal's handler has run (PEP 475)."""
    while True:
        err = call(*args)
        if err != errno.EINTR:
            return err


def _check(err: int, name: str) -> None:
    if err:
        why = _lib.stargate_why(err).decode()
        raise _kinds.get(err, Error)(err, why, name)


def _until(timeout: Optional[float]) -> ctypes.c_uint64:
    if timeout is None:
        return ctypes.c_uint64(_FOREVER)
    if timeout < 0:
        raise ValueError("a time-out cannot be negative")
    return ctypes.c_uint64(_lib.stargate_in(int(timeout * 1e9)) if timeout else 0)


class _New(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("mode", ctypes.c_uint),
        ("initial", ctypes.c_uint64),
    ]


class _Stat(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * 256),
        ("type", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("mode", ctypes.c_uint),
        ("uid", ctypes.c_uint32),
        ("gid", ctypes.c_uint32),
        ("slot", ctypes.c_int),
        ("died", ctypes.c_int),
        ("lost", ctypes.c_int),
        ("created", ctypes.c_uint64),
        ("users", ctypes.c_uint64),
        ("waiters", ctypes.c_uint64),
        ("initial", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
        ("since", ctypes.c_uint64),
        ("pid", ctypes.c_int),
        ("tid", ctypes.c_int),
        ("comm", ctypes.c_char * 16),
        ("system", ctypes.c_char * 64),
    ]


class Stat(NamedTuple):
    """The state of an object at this moment. owner_pid is None if no process has locked it."""

    name: str
    type: str
    mode: int
    value: int
    died: bool
    lost: bool
    owner_pid: Optional[int]
    owner_command: Optional[str]
    owner_system: Optional[str]


def _stat(st: _Stat) -> Stat:
    owned = st.slot >= 0
    return Stat(
        os.fsdecode(st.name), _TYPES[st.type], st.mode, st.value, bool(st.died), bool(st.lost),
        st.pid if owned else None,
        os.fsdecode(st.comm) if owned else None,
        os.fsdecode(st.system) if owned else None,
    )


def _path(volume: Optional[str]) -> Optional[bytes]:
    return None if volume is None else _name(volume)


class _Handle:
    """An object that the library has opened for this process, until close()."""

    name: str
    _handle: ctypes.c_void_p
    _end = "stargate_close"

    def close(self) -> None:
        """Ends this process's use of the object."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        getattr(_lib, self._end)(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def _open(self) -> ctypes.c_void_p:
        if not self._handle:
            raise ValueError(f"{self.name}: the object has been closed")
        return self._handle

    def _call(self, what: str, *args: object) -> None:
        """Calls the library, repeats the call after a signal, and raises a returned error."""
        _check(_retried(getattr(_lib, what), self._open(), *args), self.name)

    def _wait(self, what: str, timeout: Optional[float]) -> None:
        self._call(what, _until(timeout))

    def _do(self, what: str) -> None:
        _check(getattr(_lib, what)(self._open()), self.name)


_T = TypeVar("_T", bound="_Object")


class _Object(_Handle):
    _type = 0

    def __init__(self, volume: Optional[str], name: str, *, create: bool = True,
                 exclusive: bool = False, mode: int = 0o600, guarded: bool = False,
                 last_user: bool = False, by_kernel: bool = False, _flags: int = 0,
                 _initial: int = 0) -> None:
        self.name = name
        self._handle = ctypes.c_void_p()
        how = (_EXCLUSIVE if exclusive else 0) | (_BY_KERNEL if by_kernel else 0)
        if create:
            new = _New(self._type, _flags | (_GUARDED if guarded else 0) |
                       (_LAST_USER if last_user else 0), mode, _initial)
            err = _lib.stargate_create(ctypes.byref(self._handle), _path(volume),
                                       _name(name), ctypes.byref(new), how)
        else:
            err = _lib.stargate_open(ctypes.byref(self._handle), _path(volume),
                                     _name(name), self._type, how)
        _check(err, name)

    def stat(self) -> Stat:
        st = _Stat()
        _check(_lib.stargate_fstat(self._open(), ctypes.byref(st)), self.name)
        return _stat(st)


class _Lock(_Object):
    """An object that callers acquire and release, also by `with`."""

    repair: Optional[Callable[[], None]] = None

    def acquire(self, timeout: Optional[float] = None) -> None:
        raise NotImplementedError

    def release(self) -> None:
        raise NotImplementedError

    def consistent(self) -> None:
        """Declares that the protected data has been repaired."""
        self._do("stargate_consistent")

    def _acquire(self, what: str, timeout: Optional[float]) -> None:
        try:
            self._wait(what, timeout)
        except OwnerDied:
            self._inherit()

    def _inherit(self) -> None:
        """Handles OwnerDied: calls repair, or raises the error again. The caller then has the lock."""
        if self.repair is None:
            raise
        try:
            self.repair()
            self.consistent()
        except BaseException:
            self.release()  # not consistent, so the lock is unusable until a reset
            raise

    def __enter__(self: _T) -> _T:
        self.acquire()  # type: ignore[attr-defined]
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.release()


class Mutex(_Lock):
    """A robust mutex. If its owner dies, the next owner calls repair. Without a repair function
    OwnerDied is raised, and the caller has the mutex."""

    _type = 1

    def __init__(self, volume: Optional[str], name: str, *, recursive: bool = False,
                 repair: Optional[Callable[[], None]] = None, **options: object) -> None:
        self.repair = repair
        super().__init__(volume, name, _flags=_RECURSIVE if recursive else 0,
                         **options)  # type: ignore[arg-type]

    def acquire(self, timeout: Optional[float] = None) -> None:
        self._acquire("stargate_mutex_lock", timeout)

    def release(self) -> None:
        self._do("stargate_mutex_unlock")


class Semaphore(_Object):
    _type = 2

    def __init__(self, volume: Optional[str], name: str, value: int = 0, **options: object) -> None:
        super().__init__(volume, name, _initial=value, **options)  # type: ignore[arg-type]

    def acquire(self, timeout: Optional[float] = None) -> None:
        self._wait("stargate_sem_wait", timeout)

    def release(self) -> None:
        self._do("stargate_sem_post")

    def __enter__(self) -> "Semaphore":
        self.acquire()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


class _Side(_Lock):
    """The read lock or the write lock of a reader-writer lock."""

    def __init__(self, lock: "RWLock", what: str) -> None:
        self.name, self._lock, self._what = lock.name, lock, what
        self.repair = lock.repair if what == "write" else lambda: None

    def __del__(self) -> None:
        pass

    def _open(self) -> ctypes.c_void_p:
        return self._lock._open()

    def acquire(self, timeout: Optional[float] = None) -> None:
        if self._what == "write":
            self._acquire("stargate_write_lock", timeout)
            return
        try:
            self._wait("stargate_read_lock", timeout)
        except OwnerDied:
            self._lock.writer_died = True

    def release(self) -> None:
        self._do(f"stargate_{self._what}_unlock")


class RWLock(_Object):
    """Many readers, or one writer: `with lock.read:`, `with lock.write:`. writer_died becomes True
    if a reader gets the lock after a writer has died. The next writer repairs the data, as with a
    mutex."""

    _type = 3

    def __init__(self, volume: Optional[str], name: str, *,
                 repair: Optional[Callable[[], None]] = None, **options: object) -> None:
        self.repair = repair
        self.writer_died = False
        super().__init__(volume, name, **options)  # type: ignore[arg-type]

    @property
    def read(self) -> _Lock:
        return _Side(self, "read")

    @property
    def write(self) -> _Lock:
        return _Side(self, "write")


class Condition(_Object):
    _type = 4

    def wait(self, mutex: Mutex, timeout: Optional[float] = None) -> None:
        """Releases the mutex, waits for a signal, and acquires the mutex again in any case. It may
        return early, after a handler of a UNIX signal: test the condition again."""
        err = _lib.stargate_cond_wait(self._open(), mutex._open(), _until(timeout))
        try:
            _check(0 if err == errno.EINTR else err, self.name)
        except OwnerDied:
            mutex._inherit()

    def signal(self) -> None:
        self._do("stargate_cond_signal")

    def broadcast(self) -> None:
        self._do("stargate_cond_broadcast")


class Barrier(_Object):
    _type = 5

    def __init__(self, volume: Optional[str], name: str, parties: int = 0,
                 **options: object) -> None:
        super().__init__(volume, name, _initial=parties, **options)  # type: ignore[arg-type]

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits for the other parties. Returns True to exactly one of them."""
        last = ctypes.c_int()
        self._call("stargate_barrier_wait", _until(timeout), ctypes.byref(last))
        return bool(last)


class Event(_Object):
    """A count that only grows."""

    _type = 6

    def advance(self, by: int = 1) -> None:
        _check(_lib.stargate_event_advance(self._open(), ctypes.c_uint64(by)), self.name)

    def read(self) -> int:
        count = ctypes.c_uint64()
        _check(_lib.stargate_event_read(self._open(), ctypes.byref(count)), self.name)
        return count.value

    def wait(self, count: int, timeout: Optional[float] = None) -> None:
        """Waits until the event has reached count."""
        self._call("stargate_event_await", ctypes.c_uint64(count), _until(timeout))


class _RingStat(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("used", ctypes.c_uint64),
        ("sent", ctypes.c_uint64),
        ("claims_lost", ctypes.c_uint64),
        ("single", ctypes.c_int),
        ("receivers", ctypes.c_uint64),
        ("reserved", ctypes.c_uint64 * 7),
    ]


class RingStat(NamedTuple):
    """The state of a ring at this moment. claims_lost: claims that ended with their receivers.
    receivers: live handles that receive."""

    size: int
    used: int
    sent: int
    claims_lost: int
    single: bool
    receivers: int


class _Record(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("len", ctypes.c_size_t),
        ("tag", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class Record(NamedTuple):
    """A record and its tag."""

    tag: int
    data: bytes


_BATCH = 64


def _view(at: Optional[int], length: int) -> memoryview:
    return memoryview((ctypes.c_ubyte * length).from_address(at or 0)).cast("B")


class Ring(_Handle):
    """Records from any senders to any receivers; each record goes to one of them. With single, one
    handle at a time receives, and gets all records in order. One thread at a time receives with a
    handle."""

    _end = "stargate_ring_close"

    def __init__(self, volume: Optional[str], name: str, size: int = 1 << 20, *,
                 create: bool = True, exclusive: bool = False, mode: int = 0o600,
                 single: bool = False, last_user: bool = False) -> None:
        self.name = name
        self._handle = ctypes.c_void_p()
        if create:
            new = _New(_TYPES.index("ring"), (_SINGLE if single else 0) |
                       (_LAST_USER if last_user else 0), mode, size)
            err = _lib.stargate_ring_create(ctypes.byref(self._handle), _path(volume), _name(name),
                                            ctypes.byref(new), _EXCLUSIVE if exclusive else 0)
        else:
            err = _lib.stargate_ring_open(ctypes.byref(self._handle), _path(volume), _name(name))
        _check(err, name)

    def send(self, data: bytes, tag: int = 0, timeout: Optional[float] = None) -> None:
        self._call("stargate_ring_send", ctypes.c_uint32(tag), data, ctypes.c_size_t(len(data)),
                   _until(timeout))

    def send_many(self, records: Iterable[tuple[int, bytes]],
                  timeout: Optional[float] = None) -> int:
        """Sends pairs of a tag and bytes in one turn. If not all of them had room in time, returns
        how many it has sent, or raises if that is none."""
        held = [(tag, ctypes.c_char_p(data), len(data)) for tag, data in records]
        array = (_Record * len(held))(*[
            _Record(ctypes.cast(data, ctypes.c_void_p), length, tag) for tag, data, length in held])
        sent, done, until = ctypes.c_size_t(), 0, _until(timeout)
        while True:
            rest = ctypes.byref(array, done * ctypes.sizeof(_Record))
            err = _lib.stargate_ring_send_many(self._open(), rest, ctypes.c_size_t(len(held) - done),
                                               ctypes.byref(sent), until)
            done += sent.value
            if err != errno.EINTR:
                break
        if not done or err not in (errno.EAGAIN, errno.ETIMEDOUT):
            _check(err, self.name)
        return done

    def recv(self, timeout: Optional[float] = None) -> tuple[int, bytes]:
        """Returns the tag and the bytes of the next record."""
        return self.recv_many(1, timeout)[0]

    def recv_many(self, most: int = _BATCH, timeout: Optional[float] = None) -> list[Record]:
        """Returns the available records, at most 64. Waits for the first record."""
        most = max(0, min(most, _BATCH))
        array, count = (_Record * most)(), ctypes.c_size_t()
        self._call("stargate_ring_peek_many", array, ctypes.c_size_t(most), ctypes.byref(count),
                   _until(timeout))
        try:
            return [Record(array[i].tag, ctypes.string_at(array[i].data, array[i].len))
                    for i in range(count.value)]
        finally:
            _lib.stargate_ring_release(self._open())

    def reserve(self, length: int, timeout: Optional[float] = None) -> memoryview:
        """Returns memory of the ring for a record. Other senders wait until this thread calls
        commit() or cancel(). After that, no thread may use the memory."""
        at = ctypes.c_void_p()
        self._call("stargate_ring_reserve", ctypes.c_size_t(length), ctypes.byref(at),
                   _until(timeout))
        return _view(at.value, length)

    def commit(self, length: int, tag: int = 0) -> None:
        """Sends the first bytes of the reserved memory."""
        self._call("stargate_ring_commit", ctypes.c_uint32(tag), ctypes.c_size_t(length))

    def cancel(self) -> None:
        self._do("stargate_ring_cancel")

    def peek(self, timeout: Optional[float] = None) -> tuple[int, memoryview]:
        """Returns the next record in the ring's memory, where it stays until release()."""
        tag, at, length = ctypes.c_uint32(), ctypes.c_void_p(), ctypes.c_size_t()
        self._call("stargate_ring_peek", ctypes.byref(tag), ctypes.byref(at), ctypes.byref(length),
                   _until(timeout))
        return tag.value, _view(at.value, length.value).toreadonly()

    def release(self) -> None:
        self._do("stargate_ring_release")

    def fileno(self) -> int:
        """For select and asyncio: readable while there is a record, writable while half of the ring
        is free. Another receiver may be first, so receive with timeout=0."""
        return int(_lib.stargate_ring_fd(self._open()))

    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield self.recv()[1]

    def stat(self) -> RingStat:
        st = _RingStat()
        _check(_lib.stargate_ring_fstat(self._open(), ctypes.byref(st)), self.name)
        return RingStat(st.size, st.used, st.sent, st.claims_lost, bool(st.single),
                        st.receivers)


class _Streams(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("mode", ctypes.c_uint),
        ("reserved", ctypes.c_uint),
    ]


class Stream(_Handle):
    """Bytes in order, both ways, to one process of any system. read() and write() are those of a raw
    file: io.BufferedRWPair(stream, stream) gives lines and buffers. One thread may read while
    another one writes. If the other end dies, ConnectionResetError or BrokenPipeError is raised."""

    _end = "stargate_stream_close"

    def __init__(self, name: str, handle: ctypes.c_void_p) -> None:
        self.name, self._handle, self.timeout = name, handle, None
        self.closed = False

    timeout: Optional[float]  # of each read and write, in seconds

    @classmethod
    def dial(cls, volume: Optional[str], name: str, timeout: Optional[float] = None) -> "Stream":
        """Returns a stream to the process that listens on that name."""
        handle = ctypes.c_void_p()
        _check(_retried(_lib.stargate_dial, ctypes.byref(handle), _path(volume), _name(name),
                        _until(timeout)), name)
        return cls(name, handle)

    @classmethod
    def join(cls, volume: Optional[str], name: str, *, size: int = 0,
             mode: int = 0o600) -> "Stream":
        """Returns a stream to the other process that joins with that name."""
        handle = ctypes.c_void_p()
        _check(_lib.stargate_join(ctypes.byref(handle), _path(volume), _name(name),
                                  ctypes.byref(_Streams(size, mode))), name)
        return cls(name, handle)

    def readinto(self, buffer: Union[bytearray, memoryview]) -> int:
        room, got = memoryview(buffer).cast("B"), ctypes.c_size_t()
        if not len(room):
            return 0
        self._call("stargate_read", (ctypes.c_ubyte * len(room)).from_buffer(room),
                   ctypes.c_size_t(len(room)), ctypes.byref(got), _until(self.timeout))
        return got.value

    def read(self, size: int = 65536) -> bytes:
        """Waits for the first byte, and returns the available bytes. After the end, there are none."""
        buffer = bytearray(size)
        return bytes(buffer[:self.readinto(buffer)])

    def write(self, data: Union[bytes, bytearray, memoryview]) -> int:
        """Writes all bytes."""
        raw, done, at, until = bytes(data), ctypes.c_size_t(), 0, _until(self.timeout)
        while True:
            err = _lib.stargate_write(self._open(), raw[at:] if at else raw,
                                      ctypes.c_size_t(len(raw) - at), ctypes.byref(done), until)
            at += done.value
            if err != errno.EINTR:
                break
        _check(err, self.name)
        return at

    def shut(self) -> None:
        """Ends this direction: the other end reads the written bytes, then the end. Reads still work."""
        self._call("stargate_shut", _until(self.timeout))

    def close(self) -> None:
        self.closed = True
        super().close()

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        """Does nothing. The buffers of the module io call it."""

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Listener(_Handle):
    """Listens on a name that clients dial. mode: permissions, also of the clients' rings."""

    _end = "stargate_listener_close"

    def __init__(self, volume: Optional[str], name: str, *, mode: int = 0o600) -> None:
        self.name = name
        self._handle = ctypes.c_void_p()
        _check(_lib.stargate_listen(ctypes.byref(self._handle), _path(volume), _name(name),
                                    ctypes.byref(_Streams(0, mode))), name)

    def accept(self, timeout: Optional[float] = None) -> Stream:
        """Waits for the next client, and returns its stream."""
        handle = ctypes.c_void_p()
        self._call("stargate_accept", ctypes.byref(handle), _until(timeout))
        return Stream(self.name, handle)


class Cursor(_Handle):
    """One producer and one consumer, on any systems, of a ring of bytes that both have mapped; room
    is the size of the ring. (at, how many) says where the next bytes go, or are, and how many are
    contiguous."""

    _end = "stargate_cursor_close"

    def __init__(self, volume: Optional[str], name: str, room: int) -> None:
        self.name = name
        self._handle = ctypes.c_void_p()
        _check(_lib.stargate_cursor_open(ctypes.byref(self._handle), _path(volume),
                                         _name(name), ctypes.c_uint64(room)), name)

    def _at(self, what: str, timeout: Optional[float]) -> tuple[int, int]:
        at, count = ctypes.c_uint64(), ctypes.c_uint64()
        self._call(what, ctypes.byref(at), ctypes.byref(count), _until(timeout))
        return at.value, count.value

    def publish_at(self, timeout: Optional[float] = None) -> tuple[int, int]:
        return self._at("stargate_publish_at", timeout)

    def consume_at(self, timeout: Optional[float] = None) -> tuple[int, int]:
        return self._at("stargate_consume_at", timeout)

    def publish(self, count: int) -> None:
        _check(_lib.stargate_publish(self._open(), ctypes.c_uint64(count)), self.name)

    def consume(self, count: int) -> None:
        _check(_lib.stargate_consume(self._open(), ctypes.c_uint64(count)), self.name)


def remove(volume: Optional[str], name: str) -> None:
    """Removes the name. Processes that have the object open keep it."""
    _check(_lib.stargate_remove(_path(volume), _name(name)), name)


def reset(volume: Optional[str], name: str) -> None:
    """Restores the object's state from its creation, even if an owner has locked it."""
    _check(_lib.stargate_reset(_path(volume), _name(name)), name)


_EACH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Stat))


def list_objects(volume: Optional[str] = None) -> Iterator[Stat]:
    """All objects, in no order."""
    found: list[Stat] = []

    def keep(_ctx: object, st: "ctypes._Pointer[_Stat]") -> int:
        found.append(_stat(st.contents))
        return 0

    _check(_lib.stargate_list(_path(volume), _EACH(keep), None), volume or "volume")
    return iter(found)
