/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of mkfs.stargatefs share. */
#ifndef SG_MKFS_H
#define SG_MKFS_H

#include <sys/stat.h>
#include "tool.h"

struct request {
	const char *path;
	u64 size;		/* 0: the device's or file's */
	const char *phys_given;	/* the option that did it, or NULL */
	bool force, force_live, dry, json, sparse, quiet;
	u8 uuid[16];
	struct sg_format_opts opts;
};

/* options.c: false when there is nothing more to do than to exit with *@status. */
bool read_options(struct request *r, int argc, char **argv, int *status);

/* check.c: all that can be known before anything is changed. Each says what is wrong. */
int check_device(struct request *r, const struct target *t);
/* A plain file, there (@st) or to be made (NULL). *size: the volume's. */
int check_file(const struct request *r, const struct stat *st, u64 *size);

#endif
