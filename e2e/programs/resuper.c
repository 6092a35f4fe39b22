// SPDX-License-Identifier: Apache-2.0
/*
 * Changes a field in both copies of the superblock, and computes the checksum anew.
 *
 *   resuper VOLUME FIELD VALUE
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../../kernel/core/format/format.h"

static u32 crc32c(const void *data, size_t len)
{
	const unsigned char *byte = data;
	u32 crc = ~0u;

	while (len--) {
		crc ^= *byte++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return crc;	/* the engine's checksum has no final inversion */
}

static void set(struct sg_super *sb, const char *field, u64 value)
{
	if (!strcmp(field, "incompat"))
		sb->incompat = value;
	else if (!strcmp(field, "ro_compat"))
		sb->ro_compat = value;
	else if (!strcmp(field, "compat"))
		sb->compat = value;
	else if (!strcmp(field, "version"))
		sb->version = value;
	else if (!strcmp(field, "data_off"))
		sb->data_off = value;
	else if (!strcmp(field, "hash_seed"))	/* correct only while the volume has no names */
		sb->hash_seed[0] = sb->hash_seed[1] = value;
	else {
		fprintf(stderr, "resuper: %s is not the name of a field\n", field);
		exit(2);
	}
	sb->crc = 0;
	sb->crc = crc32c(sb, sizeof(*sb));
}

int main(int argc, char **argv)
{
	struct stat st;
	int fd = argc == 4 ? open(argv[1], O_RDWR) : -1;

	if (fd < 0 || fstat(fd, &st)) {
		fprintf(stderr, "usage: resuper VOLUME FIELD VALUE\n");
		return 2;
	}
	char *base = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED) {
		perror("resuper: mmap");
		return 1;
	}
	struct sg_super before;

	memcpy(&before, base, sizeof(before));
	before.crc = 0;
	if (crc32c(&before, sizeof(before)) != ((struct sg_super *)base)->crc) {
		fprintf(stderr, "resuper: the checksum of the superblock is wrong\n");
		return 1;
	}
	set((struct sg_super *)base, argv[2], strtoull(argv[3], NULL, 0));
	set((struct sg_super *)(base + st.st_size - SG_PAGE), argv[2],
	    strtoull(argv[3], NULL, 0));
	return 0;
}
