/* SPDX-License-Identifier: GPL-2.0 */
/* Moving a volume to another base address (docs/relocation.md). */
#ifndef SG_ENGINE_RELOCATE_H
#define SG_ENGINE_RELOCATE_H

#include "engine/volume.h"

/**
 * struct sg_relocate_opts - options for moving a volume to another base (docs/relocation.md).
 * @phys: the new base; SG_BASE_BEGUN: the target of a relocation that has begun, otherwise the
 * current base.
 * @id, @wait_ms, @force, @holding: as in struct sg_check_opts.
 * @flush: makes all stores durable, for a caller that stores through a page cache, which writes
 * back in any order. NULL: fences are enough.
 * @relieve: called with the number of bytes that may have changed since the last call. A caller
 * that keeps changes in private memory can store them now, because addresses may become durable in
 * any order between two calls of @flush.
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
	/* bases; if @resumed, @from is the old base of the interrupted move */
	u64 from, to;
	/* numbers of rewritten tables and entries; 0: there was nothing to do */
	u64 tables, entries;
	/* an earlier relocation was interrupted, and this one continued it */
	bool resumed;
	char why[200];		/* reason of an error */
};
/*
 * Rewrites all physical addresses in a volume that no system uses. If it is interrupted at any
 * point, the volume can only be relocated until another relocation completes the work. -EBUSY, with
 * res->why: a system is live. -EUCLEAN: damage has to be repaired first; nothing has changed.
 */
int sg_relocate(void *base, u64 size, const struct sg_relocate_opts *opts,
		struct sg_relocate_result *res);

#endif
