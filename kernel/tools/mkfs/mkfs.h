/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the parts of mkfs.stargatefs share. */
#ifndef SG_MKFS_H
#define SG_MKFS_H

#include <sys/stat.h>
#include "tool.h"

struct request {
	const char *path;
	u64 size;		/* 0: the size of the device or file */
	const char *phys_given;	/* the option for the address, or NULL */
	bool force, force_live, dry, json, sparse, quiet;
	u8 uuid[16];
	struct sg_format_opts opts;
};

/* options.c: returns false if mkfs must only exit with *@status. */
bool read_options(struct request *r, int argc, char **argv, int *status);

/* check.c: all checks before the first change. Each reports errors. */
int check_device(struct request *r, const struct target *t);
/*
 * Checks a regular file, which exists (@st) or which mkfs will make (NULL). *size: size of the
 * volume.
 */
int check_file(const struct request *r, const struct stat *st, u64 *size);

#endif
