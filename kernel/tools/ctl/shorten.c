// SPDX-License-Identifier: Apache-2.0
/* A logical volume gives back the memory that its file system has not followed to. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
#include "volume.h"

/*
 * A mount here believes in the memory that it has seen, whoever uses the volume with it can have it
 * go there (D10), and nothing makes it smaller: so that memory stays the volume's. The device is
 * held exclusively until LVM has cut it: a mount that came before that would have seen the memory,
 * and the next volume would get it. LVM cuts a device that is open, whoever has it.
 */
void volume_shorten(const struct volume *v)
{
	int fd = open(v->path, O_RDONLY | O_EXCL | O_CLOEXEC);	/* mounted wherever: busy */
	struct sg_probe probe;
	char n[32];

	if (fd < 0) {
		tool_error("%s: the memory behind it stays its own, as it is mounted here, where "
			   "that has been seen: the next resize has it", v->lv);
		return;
	}
	snprintf(n, sizeof(n), "%llu", (unsigned long long)v->piece->extents);
	if (engine_look(v->path, &probe, true) && probe.valid && probe.sb.size <= v->piece->size)
		LVM("lvreduce", "-y", "-q", "-f", "-l", n, v->lv);
	close(fd);
}
