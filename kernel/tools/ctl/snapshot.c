// SPDX-License-Identifier: Apache-2.0
/* snapshot: copies a volume's state at one moment to a file, while systems use the volume. */
#define _GNU_SOURCE
#include "copy.h"

static void show(struct call *c, const struct copy *s, int fd, const char *path)
{
	struct stat st;
	char a[32];

	if (!c->json) {
		print_text(c->volume);
		fputs(": copied to ", stdout);
		print_text(path);
		printf(", %s", show_size(s->size, a));
		printf(s->freeze ? "; all systems paused for %.1f ms\n" : "\n", (double)s->stalled / 1e6);
		return;
	}
	json_begin(&c->j, stdout, false);
	json_str(&c->j, "file", path);
	json_size(&c->j, "size", s->size);
	if (!fstat(fd, &st))
		json_size(&c->j, "stored", (u64)st.st_blocks * 512);
	json_u64(&c->j, "stall_us", s->stalled / 1000);
	json_u64(&c->j, "tries", s->freeze ? s->tries : 0);
	json_end(&c->j);
}

int copy_to_file(struct call *c, struct copy *s, const char *path)
{
	struct part part;
	int err = copy_refuse_own(s, path) ?: part_open(&part, path, s->size, false);

	if (err)
		return err;
	s->fd = part.fd;
	s->name = part.path;
	err = copy_run(s) ?: part_finish(&part);
	if (!err)
		show(c, s, part.fd, path);
	part_close(&part);
	return err;
}

int cmd_snapshot(struct call *c)
{
	static struct copy s;
	int err = copy_open(&s, c->volume, c->stall, false);

	if (!err) {
		err = copy_to_file(c, &s, c->argv[0]);
		err = copy_close(&s) ?: err;
	}
	return refused_now(c, err);
}
