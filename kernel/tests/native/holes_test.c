// SPDX-License-Identifier: Apache-2.0
/*
 * The search for a backup superblock in a large, sparse file in memory fills none of its holes. A
 * load through a mapping would fill one for each 2 MiB.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "internal.h"
#include "test.h"
#include "tool.h"

#define SIZE	SG_VOLUME_MIN
#define ROOM	(1ULL << 30)

static u64 bytes_of(int fd)
{
	struct stat st;

	CHECK_OK(fstat(fd, &st));
	return (u64)st.st_blocks * 512;
}

/*
 * Stores the last page of a volume without a first superblock, in a file that is now much longer.
 */
static void make(int fd)
{
	struct sg_format_opts opts = { .phys = TEST_PHYS };
	u8 *mem = test_map(SIZE);
	char why[200];

	CHECK_OK(sg_format(mem, SIZE, &opts, why));
	CHECK_OK(ftruncate(fd, (off_t)ROOM));
	CHECK_EQ(pwrite(fd, mem + SIZE - SG_PAGE, SG_PAGE, (off_t)(SIZE - SG_PAGE)), SG_PAGE);
	test_unmap(mem, SIZE);
}

int main(void)
{
	int fd = memfd_create("holes", MFD_CLOEXEC);
	struct sg_probe probe;
	struct target t;
	char path[40];

	CHECK(fd >= 0);
	make(fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK_OK(target_open(&t, path, TARGET_READ));
	CHECK_EQ(sg_search(t.base, t.size, &probe), SIZE);
	CHECK(probe.valid && probe.from_backup);
	/* any search reads the first pages and the last one */
	CHECK(bytes_of(fd) <= 8 * SG_PAGE);
	CHECK_OK(target_close(&t));
	/* anonymous memory is searched through the mapping */
	t.base = test_map(SIZE);
	CHECK_EQ(sg_search(t.base, SIZE, &probe), SIZE);
	CHECK(!probe.valid);
	test_unmap(t.base, SIZE);
	close(fd);
	return test_done();
}
