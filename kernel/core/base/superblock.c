// SPDX-License-Identifier: GPL-2.0
/* Superblock and geometry: finding, checking and storing them. */
#include "internal.h"

/* --- geometry ------------------------------------------------------------------------------- */

bool sg_base_fits(u64 size, u64 phys)
{
	return !(phys % SG_VOLUME_ALIGN) && phys <= SG_PTE_ADDR - size;
}

int sg_geometry(struct sg_super *sb)
{
	u64 at = 2 * SG_PAGE;

	if (sb->size < SG_VOLUME_MIN || sb->size > SG_VOLUME_MAX || sb->size % SG_VOLUME_ALIGN ||
	    !sg_base_fits(sb->size, sb->phys) || !sg_base_fits(sb->size, sb->move_to) ||
	    !sb->areas || sb->areas > SG_AREAS_MAX || sb->slots != SG_SLOTS)
		return -EINVAL;
	sb->chunks = sb->size / SG_CHUNK;
	if (sb->chunk_cap < sb->chunks || sb->chunk_cap > SG_VOLUME_MAX / SG_CHUNK)
		return -EINVAL;
	sb->slot_off = at;
	at += SG_SLOTS * sizeof(struct sg_slot);
	sb->journal_off = at;
	at += (u64)SG_SLOTS * sb->areas * sizeof(struct sg_area);
	sb->ledger_off = at;
	at += SG_SLOTS * SG_PAGE;
	sb->hint_off = at;
	at += SG_ALIGN_UP(2 * (SG_ALIGN_UP(sb->chunk_cap, 64) / 8), SG_PAGE);
	sb->chunk_off = at;
	at += SG_ALIGN_UP(sb->chunk_cap * sizeof(struct sg_chunk), SG_PAGE);
	sb->data_off = at;
	return at + 16 * SG_PAGE < sb->size ? 0 : -EINVAL;
}

/* --- checksum and validity ------------------------------------------------------------------ */

static u32 super_crc(const struct sg_super *sb)
{
	struct sg_super copy = *sb;

	copy.crc = 0;
	return sg_crc32c(~0u, &copy, sizeof(copy));
}

bool sg_super_crc_wrong(const struct sg_super *sb)
{
	return sb->crc != super_crc(sb);
}

void sg_super_sign(struct sg_super *sb)
{
	sb->crc = super_crc(sb);
}

static bool super_valid(const struct sg_super *sb, u64 size)
{
	struct sg_super again = *sb;

	return sb->magic == SG_MAGIC && sb->crc == super_crc(sb) && sb->size <= size &&
	       !sb->label[sizeof(sb->label) - 1] && !sg_geometry(&again) &&
	       !memcmp(&again, sb, sizeof(again));
}

static void super_read(const void *base, u64 off, struct sg_super *sb)
{
	if (sg_bad_listed(base, off))
		memset(sb, 0, sizeof(*sb));
	else
		memcpy(sb, (const u8 *)base + off, sizeof(*sb));
}

/*
 * Returns the size to which the volume has grown, from the hot page. 0: it has not grown, or the
 * size is invalid.
 */
static u64 said_size(const void *base)
{
	const struct sg_hot *hot = (const void *)((const u8 *)base + SG_HOT_OFF);
	u64 size = sg_load64(&hot->size);

	return size % SG_VOLUME_ALIGN || size < SG_VOLUME_MIN || size > SG_VOLUME_MAX ? 0 : size;
}

/*
 * Growth stores the first superblock last (volume_grow.c). Until that store the backup is the valid
 * copy.
 */
static bool being_written(const void *base, u64 size)
{
	const struct sg_hot *hot = (const void *)((const u8 *)base + SG_HOT_OFF);

	return size && SG_SIZE_OF(sg_load64(&hot->grow)) == size;
}

static bool same_volume(const struct sg_super *a, const struct sg_super *b)
{
	return a->chunk_cap == b->chunk_cap && a->areas == b->areas &&
	       !memcmp(a->uuid, b->uuid, sizeof(a->uuid));
}

bool sg_super_read(const struct sg_vol *vol, u64 off, u64 size, struct sg_super *out)
{
	super_read(vol->base, off, out);
	return super_valid(out, size) && out->size == size && same_volume(out, &vol->sb);
}

/*
 * If the superblock names a larger volume than the memory here, returns the size that it names,
 * otherwise 0.
 */
static u64 superblock_cut_short(const struct sg_super *sb, u64 said, u64 size)
{
	if (!super_valid(sb, SG_VOLUME_MAX))
		return 0;
	if (said > size && said > sb->size && said <= sb->chunk_cap * SG_CHUNK)
		return said;
	return sb->size > size ? sb->size : 0;
}

int sg_probe(const void *base, u64 size, struct sg_probe *out)
{
	struct sg_super first, last;
	bool ok_first, ok_last, grown;
	unsigned int i;
	u64 said, end;

	memset(out, 0, sizeof(*out));
	if (size < SG_VOLUME_MIN)
		return 0;
	super_read(base, 0, &first);
	said = said_size(base);
	end = said && said <= size ? said : size & ~(SG_VOLUME_ALIGN - 1);
	super_read(base, end - SG_PAGE, &last);
	/* another system may have been storing the superblock, and may have finished */
	if (!super_valid(&first, SG_VOLUME_MAX))
		super_read(base, 0, &first);
	out->stargate = first.magic == SG_MAGIC;
	out->whole = superblock_cut_short(&first, said, size);
	ok_first = super_valid(&first, size) && !out->whole;
	ok_last = super_valid(&last, end) && (end != said || last.size == said) && !out->whole;
	out->stargate |= ok_last;
	out->valid = ok_first || ok_last;
	out->from_backup = !ok_first && ok_last && !being_written(base, said);
	grown = ok_last && end == said && last.size > first.size && same_volume(&first, &last);
	out->sb = ok_last && (!ok_first || grown) ? last : first;
	if (!out->valid)
		return 0;
	for (i = 0; i < SG_SLOTS; i++) {
		const struct sg_slot *slot = (const void *)((const u8 *)base + out->sb.slot_off);

		if (sg_bad_listed(base, out->sb.slot_off + i * sizeof(*slot)))
			/* the caller rejects the volume before it needs this number */
			continue;
		out->live += SG_SLOT_STATE(sg_load64(&slot[i].state)) != SG_SLOT_FREE;
	}
	return 0;
}

/*
 * Finds the newest backup superblock. Sizes of volumes are multiples of 2 MiB, so only few pages
 * can hold a backup. Many of these pages may be holes of a file, and reading must not fill them.
 */
static u64 find_backup(const void *base, u64 size)
{
	u64 end, best = 0, created = 0;
	struct sg_super sb;

	for (end = SG_VOLUME_MIN; end <= size; end += SG_VOLUME_ALIGN) {
		if (sg_bad_listed(base, end - SG_PAGE))
			continue;
		sg_os_peek(&sb, (const u8 *)base + end - SG_PAGE, sizeof(sb));
		if (sb.size != end || sb.created < created || !super_valid(&sb, end))
			continue;
		best = end;
		created = sb.created;
	}
	return best;
}

u64 sg_search(const void *base, u64 size, struct sg_probe *out)
{
	u64 found;

	sg_probe(base, size, out);
	found = out->valid || out->whole ? 0 : find_backup(base, size);
	if (!found)
		return size;
	sg_probe(base, found, out);
	return found;
}

/* --- check again, and store ------------------------------------------------------------------- */

SG_NOINLINE int sg_super_compare(struct sg_vol *vol, const struct sg_super *sb)
{
	struct sg_super same = vol->sb;

	same.crc = sb->crc;
	same.compat = sb->compat;
	/* another system may set a feature that this software supports (lock/feature.c) */
	if (!(sb->ro_compat & ~SG_RO_COMPAT_KNOWN))
		same.ro_compat = sb->ro_compat;
	same.size = sb->size;
	same.chunks = sb->chunks;
	same.generation = sb->generation;
	memcpy(same.label, sb->label, sizeof(same.label));
	if (!memcmp(sb, &same, sizeof(same)))
		return 0;
	sg_snprintf(vol->why, sizeof(vol->why), "its superblock has changed: try again");
	return -EAGAIN;
}

/*
 * Reads the superblock again, and checks whether the volume is still as sg_open() found it. The
 * volume may have grown since then, and its label and compatible features may have changed. This
 * system copies these fields, because tools later store its copy of the superblock.
 */
int sg_super_recheck(struct sg_vol *vol)
{
	struct sg_probe probe;
	int err;

	sg_probe(vol->base, vol->room, &probe);
	if (!probe.valid)
		memset(&probe.sb, 0, sizeof(probe.sb));
	err = sg_super_compare(vol, &probe.sb);
	if (!err && probe.sb.size == vol->sb.size)
		vol->sb = probe.sb;
	return err;
}

void sg_super_store(struct sg_vol *vol, u64 off, struct sg_super *sb)
{
	sb->crc = super_crc(sb);
	sg_os_write(vol->base + off, sb, sizeof(*sb));
	sg_wb(vol->base + off, sizeof(*sb));
	sg_fence();
}

static SG_NOINLINE bool first_valid(const struct sg_vol *vol)
{
	struct sg_super sb;

	super_read(vol->base, 0, &sb);
	return super_valid(&sb, sg_size(vol));
}

/*
 * Stores first the copy that is not in use, so that one of the two copies is complete at any time.
 * The copy not in use is the backup, unless damage, or a crash in this function, has left only the
 * backup valid.
 */
int sg_super_write(struct sg_vol *vol, const struct sg_super *sb)
{
	u64 first = sg_size(vol) - SG_PAGE, second = 0;
	struct sg_super new = *sb;
	int err = sg_may_write(vol);

	if (err)
		return err;
	if (!first_valid(vol)) {
		second = first;
		first = 0;
	}
	new.generation = vol->sb.generation + 1;
	sg_super_store(vol, first, &new);
	sg_super_store(vol, second, &new);
	vol->sb = new;
	return 0;
}
