// SPDX-License-Identifier: Apache-2.0
/* mkfs.stargatefs: makes a StargateFS. It makes all checks before the first change. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
#include "mkfs.h"

/* --- output -------------------------------------------------------------------------------- */

static void describe(const struct request *r, const struct sg_super *sb, struct json *j)
{
	char id[37];

	json_str(j, "path", r->path);
	json_str(j, "uuid", show_uuid(sb->uuid, id));
	json_str(j, "label", sb->label);
	json_u64(j, "phys", sb->phys);
	json_u64(j, "size", sb->size);
	json_u64(j, "max_size", sb->chunk_cap * SG_CHUNK);
	json_u64(j, "areas", sb->areas);
	json_u64(j, "metadata", sb->data_off);
	json_u64(j, "free", sb->free_base * SG_PAGE);
	json_u64(j, "lease_ms", r->opts.lease_ms);
	json_str(j, "data", sb->params & SG_PARAM_DATA_ATOMIC ? "atomic" : "inplace");
	json_bool(j, "host_splice", sb->params & SG_PARAM_HOST_SPLICE);
	json_bool(j, "made", !r->dry);
}

static void summary(const struct request *r, const struct sg_super *sb)
{
	char a[32], b[32], c[32], id[37];
	struct json j;

	if (r->json) {
		json_begin(&j, stdout, false);
		describe(r, sb, &j);
		json_end(&j);
		return;
	}
	if (r->quiet)
		return;
	put_text(stdout, r->path, strlen(r->path));
	printf(": StargateFS %s%s\n", r->dry ? "as it would be made" : "made",
	       sb->label[0] ? "" : " (no label)");
	if (sb->label[0]) {
		fputs("  label     ", stdout);
		print_text(sb->label);
		putchar('\n');
	}
	printf("  uuid      %s\n", show_uuid(sb->uuid, id));
	printf("  base      0x%llx\n", (unsigned long long)sb->phys);
	printf("  size      %s, room to grow to %s\n", show_size(sb->size, a),
	       show_size(sb->chunk_cap * SG_CHUNK, b));
	printf("  free      %s; %s for metadata, %u areas for each of %u systems\n",
	       show_size(sb->free_base * SG_PAGE, a), show_size(sb->data_off, c), sb->areas,
	       sb->slots);
}

/* --- the format ---------------------------------------------------------------------------- */

static int plan(struct request *r, u64 size, struct sg_super *sb)
{
	char why[200] = "";
	int err = sg_format_plan(size, &r->opts, sb, why);

	if (err)
		tool_error("%s: %s", r->path, why);
	else
		memcpy(r->uuid, sb->uuid, sizeof(r->uuid));
	r->opts.uuid = r->uuid;	/* the planned volume is complete */
	return err;
}

/* Closes the target, which then has a volume or is unchanged. */
static int make(const struct request *r, struct target *t)
{
	char why[200] = "";
	u64 end = t->size & ~(SG_VOLUME_ALIGN - 1);
	int err = 0;

	if (r->size && r->size < end) {	/* clear a superblock of a former, larger volume */
		sg_os_zero((u8 *)t->base + end - SG_PAGE, SG_PAGE);
		sg_wb((u8 *)t->base + end - SG_PAGE, SG_PAGE);
	}
	err = sg_format(t->base, r->size ? r->size : t->size, &r->opts, why);
	if (!err)
		return target_close(t);
	tool_error("%s: %s", r->path, why);
	target_undo(t);
	return err;
}

static int make_in_file(struct request *r, const struct stat *st, struct sg_super *sb)
{
	struct target t;
	u64 size;
	int err = check_file(r, st, &size);

	if (!err)
		err = plan(r, size, sb);
	if (err || r->dry)
		return err;
	err = r->size ? target_create(&t, r->path, sb, r->sparse) :
		target_open(&t, r->path, TARGET_CHANGE);
	return err ? err : make(r, &t);
}

/* mkfs writes to the opened and checked file, even if the name then belongs to another file. */
static int pin_file(const struct request *r, struct stat *st)
{
	int flags = (r->dry ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, err;
	int fd = open(r->path, flags);

	if (fd < 0) {
		err = -errno;
		tool_error("%s: cannot be %s: %s", r->path, r->dry ? "opened" : "written",
			   strerror(-err));
		return err;
	}
	if (fstat(fd, st) || !S_ISREG(st->st_mode)) {
		tool_error("%s: was replaced meanwhile", r->path);
		close(fd);
		return -ESTALE;
	}
	target_pin(r->path, fd);
	return 0;
}

static int make_on_device(struct request *r, struct sg_super *sb)
{
	struct target t;
	int err;

	err = target_open(&t, r->path, r->dry ? TARGET_READ : TARGET_CHANGE);
	if (err)
		return err;
	if (r->size > t.size) {
		tool_error("%s: has %llu MiB, and not %llu", r->path,
			   (unsigned long long)t.size >> 20, (unsigned long long)r->size >> 20);
		err = -EINVAL;
	} else {
		err = check_device(r, &t);
	}
	if (!err)
		err = plan(r, r->size ? r->size : t.size, sb);
	if (!err && !r->dry)
		return make(r, &t);
	target_undo(&t);
	return err;
}

int main(int argc, char **argv)
{
	struct request r = { .path = NULL };
	struct sg_super sb;
	struct stat st;
	bool there;
	int err;

	tool_begin("mkfs.stargatefs", argv);
	if (!read_options(&r, argc, argv, &err))
		return err;
	there = !stat(r.path, &st);
	if (!there && errno != ENOENT) {
		tool_error("%s: %s", r.path, strerror(errno));
		return 1;
	}
	if (there && S_ISDIR(st.st_mode)) {
		tool_error("%s: is a directory; name a device, or a file in it", r.path);
		return 1;
	}
	if (there && !S_ISREG(st.st_mode))
		err = make_on_device(&r, &sb);
	else
		err = (there ? pin_file(&r, &st) : 0) ?: make_in_file(&r, there ? &st : NULL, &sb);
	if (!err)
		summary(&r, &sb);
	return tool_end(err ? 1 : 0);
}
