/* SPDX-License-Identifier: GPL-2.0 */
/* Check and repair (docs/fsck.md). */
#ifndef SG_ENGINE_CHECK_H
#define SG_ENGINE_CHECK_H

#include "engine/volume.h"

enum sg_check_mode { SG_CHECK_ONLY, SG_CHECK_PREEN, SG_CHECK_REPAIR };

/**
 * struct sg_check_image - where a metadata image goes: all that a check looks into (docs/tools.md)
 * @put: stores a page of it, which may have been stored before; what is not stored is zeroes.
 * @get: a page that has been stored.
 * @plain: names, targets of links and extended attributes as they are; else they are hidden.
 */
struct sg_check_image {
	int (*put)(void *ctx, u64 off, const void *page);
	int (*get)(void *ctx, u64 off, void *page);
	bool plain;
	void *ctx;
};

struct sg_check_opts {
	enum sg_check_mode mode;
	const struct sg_check_image *image;	/* SG_CHECK_ONLY: to be made as well, or NULL */
	/* Repairing: who we are in the mount table meanwhile, so that nobody else joins. */
	const struct sg_identity *id;
	unsigned int wait_ms;	/* as sg_join() */
	bool force;
	void *owner;		/* for sg_log() */
	/* Called before anything is stored; it may refuse that, and says why. */
	int (*change)(void *ctx, char why[200]);
	/*
	 * The volume has been joined to repair it, or (NULL) is about to be left. Whoever needs
	 * longer than others wait calls sg_beat() meanwhile; so does sg_check(), now and then.
	 * Not 0, with vol->why: it is somebody else's, and is left.
	 */
	int (*holding)(void *ctx, struct sg_vol *vol);
	/* as struct sg_relocate_opts has them, for a move that is ended */
	int (*flush)(void *ctx);
	int (*relieve)(void *ctx, u64 bytes);
	/* a finding, in one line; @fixed: has been repaired */
	void (*report)(void *ctx, const char *what, u64 ino, u64 off, bool fixed);
	void (*progress)(void *ctx, const char *phase, u64 done, u64 total);
	void *ctx;
};
struct sg_check_result {
	u64 files, directories, others, pages, pages_used;
	u64 found, fixed;	/* fixed == found: a last pass has found nothing */
	u64 beyond;		/* of what was found and is left: nothing can repair it */
	bool no_space;		/* something is left because the volume is full */
	/* inodes that could not be kept, as far as the volume tells; of these, of known type: */
	u64 lost, lost_files, lost_dirs;
	u64 adopted;		/* that have got a name in lost+found */
	bool unclean;		/* a system had not left: recovery was, or will be, needed */
	bool replayed;		/* it had committed something that was not in place yet */
	char why[200];		/* reason of an error */
};
/*
 * Checks a volume that nobody uses. SG_CHECK_ONLY stores nothing at all, so that @base may be
 * mapped read-only; the volume is checked as recovery would leave it, and needing recovery is no
 * finding. The other modes begin with the same and store something only when that found a reason
 * to;
 * -EBUSY with res->why when another system is live. SG_CHECK_PREEN recovers and repairs what
 * cannot lose anything; what else it finds stays (found > fixed). Interrupted anywhere, a repair
 * is continued by the next one.
 */
int sg_check(void *base, u64 size, const struct sg_check_opts *opts, struct sg_check_result *res);

#endif
