/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the fuzz targets: an undamaged volume with each kind of structure, and inputs that are
 * lists of changes to it. So a few bytes of input reach deep: they make an entry that names another
 * structure, a valid journal record, a size, or a count.
 *
 * An input is a head of two bytes (FUZZ_*, a script number for the target) and changes of 12 bytes
 * each; or, with FUZZ_RAW, parts of (offset, length, bytes). docs/testing.md has the table.
 */
#ifndef SG_FUZZ_H
#define SG_FUZZ_H

#include "test_objects.h"
#include "test.h"

#define FUZZ_SIZE	SG_VOLUME_MIN
#define FUZZ_FLAWED	1	/* do not fix checksums */
#define FUZZ_CRASHED	2	/* the volume of a system that died, else a clean one */
#define FUZZ_RAW	128

/* The structure that is changed; a target selects these by a mask of bits. */
enum fuzz_class {
	FZ_SUPER, FZ_HOT, FZ_SLOT, FZ_AREA, FZ_RECORD, FZ_LEDGER, FZ_HINT, FZ_CHUNK, FZ_INODE,
	FZ_TABLE, FZ_DIR, FZ_XATTR, FZ_RAW, FZ_SEM, FZ_CLASSES
};
#define FZ_ALL		((1u << FZ_CLASSES) - 1)
#define FZ_LOOKUP	(1u << FZ_DIR | 1u << FZ_INODE | 1u << FZ_XATTR)
#define FZ_WALK		(1u << FZ_TABLE | 1u << FZ_INODE | 1u << FZ_CHUNK)
#define FZ_RECOVER	(1u << FZ_AREA | 1u << FZ_RECORD | 1u << FZ_LEDGER | 1u << FZ_SLOT | \
			 1u << FZ_HOT | 1u << FZ_INODE)

#define FZ_SEMS		(1u << FZ_SEM | 1u << FZ_RECORD | 1u << FZ_INODE)

struct fuzz_change {
	u8 class, how;
	u16 index;
	u64 value;
} __attribute__((packed));

enum fuzz_how { FZ_SET, FZ_XOR, FZ_ADD, FZ_REFER, FZ_BYTE, FZ_HOWS };

/* Returns the volume, changed as the input says. NULL: the input is too short. */
u8 *fuzz_volume(const u8 *data, size_t size, unsigned int classes);
/* The input's script number. */
static inline u8 fuzz_script(const u8 *data, size_t size)
{
	return size > 1 ? data[1] : 0;
}
void fuzz_say(const char *line);
/* Makes the volume read-only, for calls that must not store. */
void fuzz_protect(bool read_only);

/*
 * For readers beside a hostile peer: the undamaged volume. While @look runs, a thread stores the
 * input's changes, and the old values, over and over.
 */
u8 *fuzz_race_volume(const u8 *data, size_t size, unsigned int classes);
void fuzz_race(void (*look)(void *ctx), void *ctx);

/* Uses of a volume that must end, whatever its contents. */
bool fuzz_join(struct sg_vol *v, u8 *mem, bool read_only);
void fuzz_read_all(struct sg_vol *v);		/* every inode, by every reading call */
void fuzz_names(struct sg_vol *v, u8 script);	/* changes to directories */
void fuzz_data(struct sg_vol *v, u8 script);	/* changes to files */

/* Objects of the volumes, at least one of each type; the name of number i is i, in decimal. */
#define FUZZ_OBJECTS	14

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#endif
