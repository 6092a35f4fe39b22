#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The bindings of libstargate where no volume is mounted: the wheel for Python, built twice with the same
# bytes, says what C says; the package for Go (where there is a Go) has the numbers of the kernel's header.
# With mounts: e2e/scenarios/sem.sh.
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
	printf("%zu %zu %zu %zu", sizeof(struct stargate_stat), sizeof(struct stargate_new),
	       offsetof(struct stargate_stat, since), offsetof(struct stargate_stat, system));
	return 0;
}
END
gcc -I"$top" -o sizes sizes.c || fail "sizes.c"
cat >check.py <<'END'
import errno, sys
sys.path.insert(0, sys.argv[1])
import stargate
sizes = [stargate.ctypes.sizeof(stargate._Stat), stargate.ctypes.sizeof(stargate._New),
         stargate._Stat.since.offset, stargate._Stat.system.offset]
assert " ".join(map(str, sizes)) == sys.argv[2], sizes
for kind in (stargate.Mutex, stargate.Semaphore, stargate.RWLock, stargate.Condition, stargate.Barrier,
             stargate.Event):
    try:
        kind("/nowhere", "name", create=kind is not stargate.Event)
    except stargate.Error as error:
        assert error.errno == errno.ENODEV, error
        assert error.strerror == "that is not on a mounted StargateFS volume", error
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

# --- Go ---------------------------------------------------------------------------------------

if command -v go >/dev/null; then
	expect 0 env -C "$top/go" HOME="${HOME:-$dir}" CGO_ENABLED=0 GOTOOLCHAIN=local go test -count=1 ./...
else
	echo "no go here: its binding is not tried"
fi
echo "$checks checks"
