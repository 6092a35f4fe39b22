// SPDX-License-Identifier: Apache-2.0
/* Removes the new memory from a volume's logical volume after a failed growth. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
#include "volume.h"

/*
 * A mount on this host never uses a smaller size than the largest size that it has read, and a
 * hostile user of the volume can make this mount access the memory up to that size (D10). So if a
 * mount has read the new size, the volume keeps the memory. The command holds the device
 * exclusively until LVM has shortened it. Otherwise a mount could read the new size, and reach
 * memory that the next volume gets. LVM shortens a device even if a process has it open.
 */
void volume_shorten(const struct volume *v)
{
	/* EBUSY if it is mounted anywhere */
	int fd = open(v->path, O_RDONLY | O_EXCL | O_CLOEXEC);
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
