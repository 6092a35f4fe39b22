#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The bindings of libstargate, without a mounted volume. Two builds of the wheel for Python have the
# same bytes. Its functions return the same results as in C. The package for Go (if Go is installed)
# has the numbers of the kernel's header. e2e/scenarios/sem.sh tests the bindings on mounts.
# shellcheck source=kernel/tests/lib/tools.sh
source "$(dirname "$0")/../lib/tools.sh"

lib=$(cd "$tools/../lib" && pwd)
top=$(cd "$src/../lib" && pwd)

# --- Python -----------------------------------------------------------------------------------

expect 0 "$top/python/build-wheel" 1.0.0 one
expect 0 "$top/python/build-wheel" 1.0.0 two
wheel=stargate-1.0.0-py3-none-any.whl
cmp "one/$wheel" "two/$wheel" || fail "the wheel is not reproducible"
unzip=(python3 -m zipfile -l "one/$wheel")
expect 0 "${unzip[@]}"
says 'stargate/py.typed'
says 'stargate-1.0.0.dist-info/RECORD'

cat >sizes.c <<'END'
#include <stddef.h>
#include <stdio.h>
#include "stargate.h"
int main(void)
{
	printf("%zu %zu %zu %zu %zu %d %zu %zu %u", sizeof(struct stargate_stat),
	       sizeof(struct stargate_new), offsetof(struct stargate_stat, since),
	       offsetof(struct stargate_stat, system), sizeof(struct stargate_ring_stat), STARGATE_RING,
	       sizeof(struct stargate_record), offsetof(struct stargate_record, tag), STARGATE_BATCH);
	return 0;
}
END
gcc -I"$top" -o sizes sizes.c || fail "sizes.c cannot be compiled"
cat >check.py <<'END'
import errno, sys
sys.path.insert(0, sys.argv[1])
import stargate
sizes = [stargate.ctypes.sizeof(stargate._Stat), stargate.ctypes.sizeof(stargate._New),
         stargate._Stat.since.offset, stargate._Stat.system.offset,
         stargate.ctypes.sizeof(stargate._RingStat), stargate._TYPES.index("ring"),
         stargate.ctypes.sizeof(stargate._Record), stargate._Record.tag.offset, stargate._BATCH]
assert " ".join(map(str, sizes)) == sys.argv[2], sizes
for kind in (stargate.Mutex, stargate.Semaphore, stargate.RWLock, stargate.Condition, stargate.Barrier,
             stargate.Event, stargate.Ring):
    try:
        kind("/nowhere", "name", create=kind is not stargate.Event)
    except stargate.Error as error:
        assert error.errno == errno.ENODEV, error
        assert error.strerror == "the path is not on a mounted StargateFS volume", error
        assert error.filename == "name"
    else:
        raise AssertionError(kind)
for call in (lambda: stargate.remove("/", "name"), lambda: stargate.reset("/", "name"),
             lambda: stargate.list_objects("/")):
    try:
        call()
    except stargate.Error as error:
        assert error.errno == errno.ENODEV, error
    else:
        raise AssertionError("no error")
assert stargate._until(None).value == 2**64 - 1 and stargate._until(0).value == 0
assert 0.9e9 < stargate._until(2).value - stargate._until(1).value < 1.5e9
assert issubclass(stargate._kinds[errno.EOWNERDEAD], stargate.Error)
END
STARGATE_LIBRARY=$lib/libstargate.so.1 expect 0 python3 -W error check.py "one/$wheel" "$(./sizes)"

# The Python binding, on a library with prescribed results: a wait continues after a signal; a lock
# whose repair fails is released; calls on a closed object fail; a name with NUL is refused.
cat >fake.c <<'END'
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
int asked, held, consistent, interrupts, answer, opens;
static int wait_for(void)
{
	asked++;
	return interrupts-- > 0 ? EINTR : answer;
}
const char *stargate_why(int err) { return strerror(err); }
uint64_t stargate_in(uint64_t ns) { return ns; }
int stargate_create(void **out) { opens++; *out = malloc(1); return 0; }
int stargate_open(void **out) { return stargate_create(out); }
void stargate_close(void *s) { free(s); }
int stargate_remove(void) { opens++; return 0; }
int stargate_reset(void) { opens++; return 0; }
int stargate_mutex_lock(void *s) { int err = wait_for(); held += !err || err == EOWNERDEAD; return err; }
int stargate_mutex_unlock(void *s) { held--; return 0; }
int stargate_write_lock(void *s) { return stargate_mutex_lock(s); }
int stargate_write_unlock(void *s) { return stargate_mutex_unlock(s); }
int stargate_consistent(void *s) { consistent++; return 0; }
int stargate_sem_wait(void *s) { return wait_for(); }
int stargate_event_await(void *s, uint64_t n, uint64_t until) { return wait_for(); }
int stargate_barrier_wait(void *s, uint64_t until, int *last) { return wait_for(); }
int stargate_cond_wait(void *s, void *m, uint64_t until) { return wait_for(); }
int stargate_ring_create(void **out) { return stargate_create(out); }
int stargate_ring_open(void **out) { return stargate_create(out); }
void stargate_ring_close(void *r) { free(r); }
int stargate_ring_send(void *r, uint32_t tag, const char *from, size_t len, uint64_t until)
{
	return len == 2 && from[0] == 'h' && tag == 7 ? wait_for() : EIO;
}
struct record { const char *data; size_t len; uint32_t tag, reserved; };
static const struct record known = { "a record", 8, 9, 0 };
int stargate_ring_peek(void *r, uint32_t *tag, const char **at, size_t *len, uint64_t until)
{
	*tag = known.tag;
	*at = known.data;
	*len = known.len;
	held++;
	return wait_for();
}
int stargate_ring_peek_many(void *r, struct record *out, size_t most, size_t *n, uint64_t until)
{
	for (*n = 0; *n < most && *n < 3; ++*n)
		out[*n] = known;
	held += *n != 0;
	return *n ? wait_for() : EINVAL;
}
int stargate_ring_send_many(void *r, const struct record *rec, size_t n, size_t *sent, uint64_t until)
{
	for (*sent = 0; *sent < n && *sent < 2; ++*sent)
		if (rec[*sent].len != 2 || memcmp(rec[*sent].data, "hi", 2) || rec[*sent].tag != 5)
			return EIO;
	return *sent < n ? wait_for() : 0;
}
static char room[8];
int stargate_ring_reserve(void *r, size_t len, void **at, uint64_t until)
{
	*at = room;
	return len == 8 ? wait_for() : EIO;
}
int stargate_ring_commit(void *r, uint32_t tag, size_t len)
{
	return tag == 3 && len == 4 && !memcmp(room, "data", 4) ? 0 : EIO;
}
int stargate_ring_cancel(void *r) { return EPERM; }
int stargate_ring_release(void *r) { return held = 0; }
int stargate_listen(void **out) { return stargate_create(out); }
int stargate_accept(void *l, void **out, uint64_t until) { *out = malloc(1); return wait_for(); }
void stargate_listener_close(void *l) { free(l); }
int stargate_dial(void **out, const char *v, const char *name, uint64_t until)
{
	*out = malloc(1);
	return name[0] == 'n' ? ECONNREFUSED : wait_for();
}
int stargate_join(void **out) { return stargate_create(out); }
void stargate_stream_close(void *s) { free(s); }
static int ends;
int stargate_read(void *s, char *to, size_t room, size_t *got, uint64_t until)
{
	const char *text = ends ? "" : "some text";
	int err = wait_for();

	*got = err ? 0 : strlen(text) < room ? strlen(text) : room;
	memcpy(to, text, *got);
	ends += !err;
	return err;
}
/* One byte before each signal. */
int stargate_write(void *s, const char *from, size_t len, size_t *done, uint64_t until)
{
	int err = wait_for();

	*done = err == EINTR ? 1 : err ? 0 : len;
	return err || !memcmp(from, "cd", len) ? err : EIO;
}
int stargate_shut(void *s, uint64_t until) { return wait_for(); }
int stargate_cursor_open(void **out) { return stargate_create(out); }
void stargate_cursor_close(void *c) { free(c); }
int stargate_publish_at(char *c, uint64_t *at, uint64_t *n, uint64_t until)
{
	c[0] = *at = *n = 0;
	return wait_for();
}
int stargate_consume_at(char *c, uint64_t *at, uint64_t *n, uint64_t until)
{
	return stargate_publish_at(c, at, n, until);
}
int stargate_publish(char *c, uint64_t n) { return c[0] = 0; }
int stargate_consume(char *c, uint64_t n) { return c[0] = 0; }
END
gcc -shared -fPIC -o fake.so fake.c || fail "fake.c"
cat >behaviour.py <<'END'
import ctypes, errno, sys
sys.path.insert(0, sys.argv[1])
import stargate
var = lambda name: ctypes.c_int.in_dll(stargate._lib, name)

def waits(call, want=3):
    var("interrupts").value, var("asked").value = 2, 0
    call()
    assert var("asked").value == want, (call, var("asked").value)

mutex = stargate.Mutex(None, "m")
waits(lambda: mutex.acquire(5))
mutex.release()
waits(stargate.Semaphore(None, "s").acquire)
waits(lambda: stargate.Event(None, "e").wait(3))
waits(stargate.Barrier(None, "b", 2).wait)
# the condition's signal may have come during the interruption
waits(lambda: stargate.Condition(None, "c").wait(mutex), 1)
cursor = stargate.Cursor(None, "r", 100)
waits(cursor.publish_at)
waits(cursor.consume_at)
ring = stargate.Ring(None, "ring", 65536)
waits(lambda: ring.send(b"hi", 7))
waits(ring.recv)
assert var("held").value == 0, "the record is kept"
var("interrupts").value = 0
assert ring.recv() == (9, b"a record")
assert ring.recv_many(2) == [(9, b"a record")] * 2 and len(ring.recv_many()) == 3
assert var("held").value == 0, "the ring still has its records claimed"
var("interrupts").value = 2
assert ring.send_many([(5, b"hi")] * 5) == 5, "send_many does not send the remaining records"
var("interrupts").value, var("answer").value = 0, errno.ETIMEDOUT
assert ring.send_many([(5, b"hi")] * 3) == 2, "send_many returns a wrong number"
var("answer").value = 0
memory = ring.reserve(8)
memory[:4] = b"data"
ring.commit(4, tag=3)
tag, memory = ring.peek()
assert (tag, bytes(memory)) == (9, b"a record") and memory.readonly
ring.release()
for call in (lambda: ring.recv_many(0), ring.cancel):
    try:
        call()
    except stargate.Error as error:
        assert error.errno in (errno.EINVAL, errno.EPERM)
    else:
        raise AssertionError("no error")

import io
waits(lambda: stargate.Listener(None, "l").accept(1))
waits(lambda: stargate.Stream.dial(None, "d", timeout=2))
stream = stargate.Stream.join(None, "j")
waits(lambda: stream.write(b"abcd"))
waits(stream.shut)
var("interrupts").value = 0
assert stream.read(4) == b"some" and stream.read() == b"", "the stream does not end after its bytes"
lines = io.BufferedReader(stargate.Stream.join(None, "j"))
assert lines.read(1) == b"", "the end of a joined stream is not an end of file for io"
for code, kind in ((errno.ECONNRESET, ConnectionResetError), (errno.EPIPE, BrokenPipeError),
                   (errno.ETIMEDOUT, stargate.TimedOut)):
    var("answer").value = code
    try:
        stream.read()
    except kind as error:
        assert isinstance(error, stargate.Error) and error.errno == code
    else:
        raise AssertionError(kind)
var("answer").value = 0
try:
    stargate.Stream.dial(None, "nobody")
except ConnectionRefusedError:
    pass
else:
    raise AssertionError("nobody listens")
with stream:
    pass
try:
    stream.read()
except ValueError:
    pass
else:
    raise AssertionError("a call on a closed stream raises no error")

class Broken(Exception):
    pass

def repair():
    assert var("held").value == 1
    raise Broken

var("answer").value = errno.EOWNERDEAD
for lock in (stargate.Mutex(None, "m", repair=repair), stargate.RWLock(None, "l", repair=repair).write):
    try:
        with lock:
            raise AssertionError("a lock was returned without a successful repair")
    except Broken:
        pass
    assert var("held").value == 0, "the lock is still held"
    assert var("consistent").value == 0
mended = stargate.Mutex(None, "m", repair=lambda: None)
with mended:
    assert var("held").value == 1 and var("consistent").value == 1
assert var("held").value == 0
# The fake wait releases the mutex and takes it again: an owner died meanwhile.
condition = stargate.Condition(None, "c")
condition.wait(mended)
assert var("consistent").value == 2, "the mutex was not repaired"
try:
    condition.wait(stargate.Mutex(None, "m"))
    raise AssertionError("wait() does not raise OwnerDied for a mutex without a repair function")
except stargate.OwnerDied:
    pass
var("answer").value = 0

cursor.close()
ring.close()
for call in (cursor.publish_at, cursor.consume_at, lambda: cursor.publish(1), lambda: cursor.consume(1),
             ring.recv, lambda: ring.send(b"hi", 7)):
    try:
        call()
    except ValueError as error:
        assert "has been closed" in str(error)
    else:
        raise AssertionError("a call on a closed object raises no error")

before = var("opens").value
for call in (lambda name: stargate.Mutex(None, name), lambda name: stargate.Mutex(None, name, create=False),
             lambda name: stargate.Cursor(None, name, 9), lambda name: stargate.remove(None, name),
             lambda name: stargate.reset(None, name), lambda name: stargate.Mutex(name, "m")):
    try:
        call("a\0b")
    except ValueError:
        pass
    else:
        raise AssertionError("a NUL")
assert var("opens").value == before
END
STARGATE_LIBRARY=$dir/fake.so expect 0 python3 -W error behaviour.py "one/$wheel"

# --- Go ---------------------------------------------------------------------------------------

if command -v go >/dev/null; then
	expect 0 env -C "$top/go" HOME="${HOME:-$dir}" CGO_ENABLED=0 GOTOOLCHAIN=local go test -count=1 ./...
else
	echo "Go is not installed: its package is not tested"
fi
echo "$checks checks"
