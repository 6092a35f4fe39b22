// SPDX-License-Identifier: Apache-2.0
/* relocate: corrects the addresses in a volume that is not at the base for which it was made. */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "ctl.h"

/**
 * struct job - a relocation. @beater: the thread that keeps the heartbeat while the tool has the
 * volume exclusively.
 */
struct job {
	const struct relocation *r;
	struct target target;
	struct beater beater;
	u64 base;
};

static int holding(void *ctx, struct sg_vol *vol)
{
	struct job *job = ctx;
	int err;

	if (!vol || job->r->dry) {
		if (!vol)
			/* the last call, which also reports errors */
			device_drain(&job->target);
		beater_stop(&job->beater);
		return 0;
	}
	err = device_hold(&job->target, vol, vol->why);
	if (!err)
		beater_start(&job->beater, vol, &job->target);
	return err;
}

static int flush(void *ctx)
{
	return target_drain(&((struct job *)ctx)->target);
}

static int relieve(void *ctx, u64 bytes)
{
	return device_relieve(&((struct job *)ctx)->target, bytes);
}

/*
 * Finds the base. For a device, the kernel reports it. A volume whose relocation was interrupted
 * stores the base of that relocation.
 */
static int find_base(struct job *job, const struct sg_probe *probe)
{
	const struct relocation *r = job->r;
	u64 phys;
	int err = target_phys(&job->target, &phys);

	if (!err && r->base_given && phys != r->base) {
		tool_error("%s: lies at 0x%llx, and not at 0x%llx; leave --base out", r->path,
			   (unsigned long long)phys, (unsigned long long)r->base);
		return -EINVAL;
	}
	if (err && !r->base_given && !(probe->valid && probe->sb.incompat & SG_INCOMPAT_MOVING)) {
		tool_error("%s: its address is unknown; give the address where VMs map it, e.g. --base 16G",
			   r->path);
		return -EINVAL;
	}
	job->base = !err ? phys : r->base_given ? r->base : SG_BASE_BEGUN;
	return 0;
}

/* Reads past the page cache of a block device, because heartbeats do not change in that cache. */
static int watch(struct job *job, const struct sg_probe *probe, bool *force)
{
	char why[200] = "";
	int err;

	if (job->r->dry || job->target.kind != TARGET_BLOCK || !probe->valid)
		return 0;
	err = member_watch(&job->target, &probe->sb, *force ? 0 : MEMBER_WAIT_MS, why);
	*force = true;
	if (err)
		tool_error("%s: %s", job->r->path, why);
	return err;
}

static int move(struct job *job, struct sg_relocate_result *out)
{
	bool force = job->r->force || job->r->dry;
	struct target *t = &job->target;
	struct sg_identity id;
	struct sg_probe probe;
	int err;

	sg_probe(t->base, t->size, &probe);
	err = find_base(job, &probe) ?: watch(job, &probe, &force);
	if (err)
		return err;
	member_identity(&id);
	err = sg_relocate(t->base, t->size, &(struct sg_relocate_opts){
		.phys = job->base, .id = &id, .wait_ms = MEMBER_WAIT_MS, .force = force,
		.holding = holding, .flush = flush, .relieve = relieve, .ctx = job }, out);
	if (err && !(err == -EBUSY && !out->why[0] && device_has_told(t)))
		tool_error("%s: %s", job->r->path, out->why[0] ? out->why : strerror(-err));
	return err;
}

int relocate_volume(const struct relocation *r, struct sg_relocate_result *out)
{
	struct job job = { .r = r };
	int err = target_open(&job.target, r->path, r->dry ? TARGET_LOOK : TARGET_HOLD);

	if (err)
		return err;
	err = move(&job, out);
	return target_close(&job.target) ?: err;
}

static void show(struct call *c, const struct sg_relocate_result *res)
{
	struct json *j = &c->j;

	if (c->json) {
		json_begin(j, stdout, false);
		json_str(j, "path", c->volume);
		json_hex(j, "from", res->from);
		json_hex(j, "to", res->to);
		json_bool(j, "resumed", res->resumed);
		json_bool(j, "dry_run", c->dry);
		json_u64(j, "tables", res->tables);
		json_u64(j, "entries", res->entries);
		json_end(j);
		return;
	}
	put_text(stdout, c->volume, strlen(c->volume));
	if (!res->entries)
		printf(": lies at 0x%llx, the address in its superblock: nothing to do\n",
		       (unsigned long long)res->to);
	else
		printf(": %s from 0x%llx to 0x%llx%s; %llu addresses in %llu tables\n",
		       c->dry ? "would be moved" : "moved", (unsigned long long)res->from,
		       (unsigned long long)res->to,
		       res->resumed ? " (an earlier run had begun this)" : "",
		       (unsigned long long)res->entries, (unsigned long long)res->tables);
}

/* The relocation can stop at any point, and the next run continues. */
static void interrupted(int sig)
{
	static const char text[] = "\nstargatectl: interrupted; run the command again to continue\n";

	(void)sig;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(2);
	_exit(1);
}

int cmd_relocate(struct call *c)
{
	const struct relocation r = {
		.path = c->volume, .base = c->base, .base_given = c->base_given, .dry = c->dry,
		.force = c->force,
	};
	struct sg_relocate_result res;

	tool_quiet = true;	/* reports damage in one line, with the action to take */
	if (!c->dry) {
		signal(SIGINT, interrupted);
		signal(SIGTERM, interrupted);
	}
	if (relocate_volume(&r, &res))
		return 1;
	show(c, &res);
	return 0;
}
