/* SPDX-License-Identifier: GPL-2.0 */
/* Check and repair (docs/fsck.md). */
#ifndef SG_ENGINE_CHECK_H
#define SG_ENGINE_CHECK_H

#include "engine/volume.h"

enum sg_check_mode { SG_CHECK_ONLY, SG_CHECK_PREEN, SG_CHECK_REPAIR };

/**
 * struct sg_check_image - destination of a metadata image: all pages that a check reads
 * (docs/tools.md)
 * @put: stores a page; the check may store the same page twice. Pages that are never stored are
 * zeroes.
 * @get: returns a page that has been stored.
 * @plain: store names, link targets and extended attributes as they are; otherwise hide them.
 */
struct sg_check_image {
	int (*put)(void *ctx, u64 off, const void *page);
	int (*get)(void *ctx, u64 off, void *page);
	bool plain;
	void *ctx;
};

struct sg_check_opts {
	enum sg_check_mode mode;
	/* SG_CHECK_ONLY: the image that the check also makes, or NULL */
	const struct sg_check_image *image;
	/*
	 * For repair: the check's identity in the mount table; its entry keeps other systems from
	 * joining.
	 */
	const struct sg_identity *id;
	unsigned int wait_ms;	/* as sg_join() */
	bool force;
	void *owner;		/* for sg_log() */
	/*
	 * Called before the check stores anything. If the callback returns an error, @why has the
	 * reason.
	 */
	int (*change)(void *ctx, char why[200]);
	/*
	 * Called when the check has joined the volume to repair it, and with NULL before the check
	 * leaves it. A callback that takes longer than other systems wait calls sg_beat()
	 * meanwhile, as sg_check() does. If another program uses the volume, the callback returns
	 * an error and sets vol->why. Then the check leaves the volume.
	 */
	int (*holding)(void *ctx, struct sg_vol *vol);
	/* as in struct sg_relocate_opts, for a relocation that the check completes */
	int (*flush)(void *ctx);
	int (*relieve)(void *ctx, u64 bytes);
	/* reports a finding, in one line; @fixed: the check has repaired it */
	void (*report)(void *ctx, const char *what, u64 ino, u64 off, bool fixed);
	void (*progress)(void *ctx, const char *phase, u64 done, u64 total);
	void *ctx;
};
struct sg_check_result {
	u64 files, directories, others, pages, pages_used;
	u64 found, fixed;	/* if fixed == found, the last pass found nothing */
	u64 beyond;		/* findings that remain because no repair exists for them */
	bool no_space;		/* a finding remains because the volume is full */
	/*
	 * inodes that could not be kept, as far as can be determined; those of them whose type is
	 * known
	 */
	u64 lost, lost_files, lost_dirs;
	u64 adopted;		/* inodes that the check has linked in lost+found */
	bool unclean;		/* a system had not left, so recovery was necessary, or still is */
	/* that system had committed a transaction but not yet stored it in place */
	bool replayed;
	char why[200];		/* reason of an error */
};
/*
 * Checks a volume that no system uses. SG_CHECK_ONLY stores nothing, so @base may be mapped
 * read-only. It checks the volume in the state that recovery would produce; a need for recovery is
 * not a finding. The other modes begin with the same pass, and store only if that pass found
 * something to repair or recover. -EBUSY, with res->why: another system is live. SG_CHECK_PREEN
 * recovers, and makes the repairs that cannot lose data; other findings remain (found > fixed). If
 * a repair is interrupted at any point, the next one continues it.
 */
int sg_check(void *base, u64 size, const struct sg_check_opts *opts, struct sg_check_result *res);

#endif
