/* SPDX-License-Identifier: GPL-2.0 */
/* Check and repair (docs/fsck.md). */
#ifndef SG_ENGINE_CHECK_H
#define SG_ENGINE_CHECK_H

#include "engine/volume.h"

enum sg_check_mode { SG_CHECK_ONLY, SG_CHECK_PREEN, SG_CHECK_REPAIR };

/**
 * struct sg_check_image - destination of a metadata image: all pages that a check reads
 * (docs/tools.md)
 * @put: stores a page, perhaps a second time. Pages that are never stored are zeroes.
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
	/* SG_CHECK_ONLY: an image to make as well, or NULL */
	const struct sg_check_image *image;
	/* Repairing: the check's identity in the mount table, so that no other system joins. */
	const struct sg_identity *id;
	unsigned int wait_ms;	/* as sg_join() */
	bool force;
	void *owner;		/* for sg_log() */
	/* Called before anything is stored. If it returns an error, @why has the reason. */
	int (*change)(void *ctx, char why[200]);
	/*
	 * Called when the check has joined the volume to repair it, and with NULL before the check
	 * leaves it. If the callback needs longer than other systems wait, it calls sg_beat()
	 * meanwhile; sg_check() also does so regularly. If another program uses the volume, the
	 * callback returns an error and sets vol->why. Then the check leaves the volume.
	 */
	int (*holding)(void *ctx, struct sg_vol *vol);
	/* as struct sg_relocate_opts has them, for a move that is ended */
	int (*flush)(void *ctx);
	int (*relieve)(void *ctx, u64 bytes);
	/* a finding, in one line; @fixed: it has been repaired */
	void (*report)(void *ctx, const char *what, u64 ino, u64 off, bool fixed);
	void (*progress)(void *ctx, const char *phase, u64 done, u64 total);
	void *ctx;
};
struct sg_check_result {
	u64 files, directories, others, pages, pages_used;
	u64 found, fixed;	/* fixed == found: a last pass has found nothing */
	u64 beyond;		/* findings that remain because no repair exists for them */
	bool no_space;		/* a finding remains because the volume is full */
	/* inodes that could not be kept, as far as the volume tells; then those of known type */
	u64 lost, lost_files, lost_dirs;
	u64 adopted;		/* inodes that have got a name in lost+found */
	bool unclean;		/* a system had not left: recovery was, or will be, needed */
	/* that system had committed a transaction that was not in place yet */
	bool replayed;
	char why[200];		/* reason of an error */
};
/*
 * Checks a volume that no system uses. SG_CHECK_ONLY stores nothing, so @base may be mapped
 * read-only. It checks the volume as recovery would leave it; a need for recovery is no finding.
 * The other modes begin with the same pass, and store something only if that pass found a reason.
 * -EBUSY, with res->why: another system is live. SG_CHECK_PREEN recovers, and repairs what cannot
 * lose anything; other findings stay (found > fixed). If a repair is interrupted at any point, the
 * next one continues it.
 */
int sg_check(void *base, u64 size, const struct sg_check_opts *opts, struct sg_check_result *res);

#endif
