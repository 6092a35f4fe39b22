// SPDX-License-Identifier: Apache-2.0
/*
 * Moves any volume to another base. The volume is not moved yet, or half moved in some way. The
 * move ends. If it reports success, no part of the volume is half moved. After a repair, the volume
 * can be used.
 */
#include "internal.h"
#include "fuzz.h"

/* Bits of the input's script number. */
#define HALF	1	/* a move has begun */
#define SETTLE	2	/* the move has adapted all words: only the marks remain */
#define MARKS	4	/* the root words have the mark already */
#define FAR	8	/* the ranges do not overlap */
#define DOWN	16
#define BEGUN	32	/* the new base is SG_BASE_BEGUN, that of the begun move */

static u64 base_for(u8 script, u64 phys)
{
	u64 by = script & FAR ? 1ULL << 40 : SG_CHUNK;

	return script & DOWN && phys >= by ? phys - by : phys + by;
}

/* Marks the volume as half moved in both superblocks. */
static void say_half_moved(u8 *mem, struct sg_super *sb, u8 script, u64 to)
{
	sb->incompat |= SG_INCOMPAT_MOVING;
	sb->move_to = to;
	if (script & SETTLE)
		sb->phys = to;
	sb->crc = 0;
	sb->crc = sg_crc32c(~0u, sb, sizeof(*sb));
	memcpy(mem, sb, sizeof(*sb));
	memcpy(mem + FUZZ_SIZE - SG_PAGE, sb, sizeof(*sb));
}

/* Marks the root words of the system inodes, as if the move had adapted them. */
static void mark_roots(u8 *mem, u64 by)
{
	struct sg_hot *hot = (void *)(mem + SG_HOT_OFF);
	unsigned int i;

	for (i = 0; i < SG_SYS_COUNT; i++)
		if (hot->sys[i].table)
			hot->sys[i].table = (hot->sys[i].table + by) | SG_PTE_MOVED;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	const struct sg_check_opts repair = { .mode = SG_CHECK_REPAIR, .force = true,
					      .holding = test_end_lapses };
	u8 *mem = fuzz_volume(data, size, FZ_ALL), script = fuzz_script(data, size);
	struct sg_relocate_opts opts = { .id = &test_identity, .force = true };
	struct sg_relocate_result moved;
	struct sg_check_result res;
	struct sg_probe probe;
	struct sg_vol v;

	if (!mem)
		return 0;
	CHECK_OK(sg_probe(mem, FUZZ_SIZE, &probe));
	opts.phys = base_for(script, probe.sb.phys);
	if (probe.valid && probe.sb.size == FUZZ_SIZE && script & HALF) {
		say_half_moved(mem, &probe.sb, script, opts.phys);
		if (script & MARKS)
			mark_roots(mem, script & SETTLE ? 0 : opts.phys - probe.sb.phys);
		opts.phys = script & BEGUN ? SG_BASE_BEGUN : opts.phys + SG_CHUNK;
	}
	if (!sg_relocate(mem, FUZZ_SIZE, &opts, &moved)) {
		CHECK_OK(sg_probe(mem, FUZZ_SIZE, &probe));
		CHECK(probe.valid && !(probe.sb.incompat & SG_INCOMPAT_MOVING));
	}
	if (sg_check(mem, FUZZ_SIZE, &repair, &res) || res.found > res.fixed)
		return 0;	/* the repair reports that it cannot repair everything */
	test_clean(mem, FUZZ_SIZE);
	if (!fuzz_join(&v, mem, false))
		test_fail(__FILE__, __LINE__, "the repaired volume cannot be joined: %s", v.why);
	fuzz_read_all(&v);
	sg_leave(&v);
	return 0;
}
