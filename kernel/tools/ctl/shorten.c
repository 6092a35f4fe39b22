// SPDX-License-Identifier: Apache-2.0
/* A growth failed: LVM takes the new memory from the volume again. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
#include "volume.h"

/*
 * A mount here trusts the size of memory that it has seen, and another user of the volume can
 * direct it there (D10). Nothing makes that size smaller, so in that case the memory stays with the
 * volume. The device is held exclusively until LVM has cut it: otherwise a mount could see the
 * memory that the next volume gets. LVM cuts a device that is open, whichever process has it open.
 */
void volume_shorten(const struct volume *v)
{
	int fd = open(v->path, O_RDONLY | O_EXCL | O_CLOEXEC);	/* mounted anywhere: busy */
	struct sg_probe probe;
	char n[32];

	if (fd < 0) {
		tool_error("%s: the volume keeps its new memory, because a mount here has seen it; the next resize uses it",
			   v->lv);
		return;
	}
	snprintf(n, sizeof(n), "%llu", (unsigned long long)v->piece->extents);
	if (engine_look(v->path, &probe, true) && probe.valid && probe.sb.size <= v->piece->size)
		LVM("lvreduce", "-y", "-q", "-f", "-l", n, v->lv);
	close(fd);
}
