/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers for the fuzz targets: an undamaged volume with each kind of structure, and inputs that
 * are lists of changes to it. So a few bytes of input have deep effects: they make an entry that
 * names another structure, a valid journal record, a size, or a count.
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
#define FUZZ_CRASHED	2	/* the volume after a system's death; otherwise a clean one */
#define FUZZ_RAW	128

/* The kinds of structures that inputs change. A target selects kinds by a bit mask. */
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

/* Returns the volume with the input's changes, or NULL if the input is too short. */
u8 *fuzz_volume(const u8 *data, size_t size, unsigned int classes);
/* Returns the input's script number. */
static inline u8 fuzz_script(const u8 *data, size_t size)
{
	return size > 1 ? data[1] : 0;
}
void fuzz_say(const char *line);
/* Makes the volume read-only, for calls that must not store. */
void fuzz_protect(bool read_only);

/*
 * fuzz_race_volume() returns the undamaged volume, for readers next to a hostile peer. While @look
 * runs, a thread of fuzz_race() repeatedly stores the input's changes and the old values.
 */
u8 *fuzz_race_volume(const u8 *data, size_t size, unsigned int classes);
void fuzz_race(void (*look)(void *ctx), void *ctx);

/* Uses of a volume that must return for any contents. */
bool fuzz_join(struct sg_vol *v, u8 *mem, bool read_only);
void fuzz_read_all(struct sg_vol *v);		/* reads every inode with each reading call */
void fuzz_names(struct sg_vol *v, u8 script);	/* changes to directories */
void fuzz_data(struct sg_vol *v, u8 script);	/* changes to files */

/*
 * Number of objects in the volumes, with at least one of each type. Object i has the name i, in
 * decimal.
 */
#define FUZZ_OBJECTS	14

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#endif
