/* SPDX-License-Identifier: GPL-2.0 */
/* Moving a volume to another base address (docs/relocation.md). */
#ifndef SG_ENGINE_RELOCATE_H
#define SG_ENGINE_RELOCATE_H

#include "engine/volume.h"

/**
 * struct sg_relocate_opts - how a volume comes to another base (docs/relocation.md).
 * @phys: the new base; SG_BASE_BEGUN: the target of a move that has begun, else the present base.
 * @id, @wait_ms, @force, @holding: as struct sg_check_opts has them.
 * @flush: makes all stores durable, for a caller that stores through a page cache, which writes in
 * an order of its own. NULL: fences are enough.
 * @relieve: so many bytes more may have been changed. A caller that keeps changes in private memory
 * can store them now: addresses may become durable in any order between two calls of @flush.
 */
struct sg_relocate_opts {
	u64 phys;
	const struct sg_identity *id;
	unsigned int wait_ms;
	bool force;
	void *owner;		/* for sg_log() */
	int (*holding)(void *ctx, struct sg_vol *vol);
	int (*flush)(void *ctx);
	int (*relieve)(void *ctx, u64 bytes);
	void (*progress)(void *ctx, const char *phase, u64 done, u64 total);
	void *ctx;
};
#define SG_BASE_BEGUN	(~0ULL)
struct sg_relocate_result {
	u64 from, to;		/* bases; if @resumed, @from is that of the interrupted move */
	u64 tables, entries;	/* numbers of rewritten ones; 0: there was nothing to do */
	bool resumed;		/* an earlier move had begun and was interrupted */
	char why[200];		/* reason of an error */
};
/*
 * Rewrites all physical addresses in a volume that no system uses. If interrupted at any point, it
 * leaves a volume that can only be relocated; the next relocation continues. -EBUSY, with res->why:
 * a system is live. -EUCLEAN: damage has to be repaired first; nothing has changed.
 */
int sg_relocate(void *base, u64 size, const struct sg_relocate_opts *opts,
		struct sg_relocate_result *res);

#endif
