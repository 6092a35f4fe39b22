// SPDX-License-Identifier: GPL-2.0
/* Making a volume, and changing its label and UUID. */
#include "internal.h"

static u32 default_areas(u64 size)
{
	if (size < 64ULL << 20)
		return 2;
	if (size < 1ULL << 30)
		return 4;
	return size < 16ULL << 30 ? 8 : SG_AREAS_MAX;
}

static void mark_used(struct sg_vol *vol, u64 first, u64 pages)
{
	u64 p;

	for (p = first; p < first + pages; p++) {
		u64 *w = sg_at(vol, sg_chunk_off(vol, p / SG_CHUNK_PAGES) +
			       offsetof(struct sg_chunk, map) + p % SG_CHUNK_PAGES / 64 * 8);

		sg_store64(w, *w | 1ULL << (p & 63));
	}
}

/*
 * Makes the root directory: inode 1 in the inode file's first page, whose other records are free.
 */
static void make_inodes(struct sg_vol *vol, const struct sg_format_opts *opts)
{
	const struct sg_iref sys = sg_sys_ref(SG_SYS_INODES);
	struct sg_inode *file = sg_at(vol, sys.off), *rec = sg_at(vol, vol->sb.data_off);
	struct sg_area *area = sg_at(vol, sg_area_off(vol, 0, 0));
	struct sg_hot *hot = sg_at(vol, SG_HOT_OFF);
	unsigned int i;
	u64 now = sg_now();

	for (i = SG_INO_ROOT + 1; i + 1 < SG_INODES_PER_PAGE; i++)
		sg_store64(&rec[i].next_free, i + 1);
	rec += SG_INO_ROOT;
	sg_store64(&rec->mode, (SG_S_IFDIR | (opts->root_mode ? opts->root_mode & 07777 : 0755)) |
			       2ULL << 32);
	sg_store64(&rec->owner, (u64)opts->root_uid | (u64)opts->root_gid << 32);
	sg_store64(&rec->mtime, now);
	sg_store64(&rec->ctime, now);
	sg_store64(&rec->atime, now);
	sg_store64(&rec->btime, now);
	sg_store64(&rec->special, SG_INO_ROOT);
	sg_store64(&rec->genflags, opts->params & SG_PARAM_DATA_ATOMIC ?
				   1 | (u64)SG_FL_ATOMIC << 32 : 1);

	for (i = 0; i < SG_SYS_COUNT; i++)
		sg_store64(&file[i].mode, SG_S_IFREG | 1ULL << 32);
	sg_store64(&file->table, SG_ROOT(sg_leaf(vol, vol->sb.data_off, 1), 0));
	sg_store64(&file->blocks, 1);
	sg_store64(&hot->inodes, SG_INODES_PER_PAGE);
	sg_store64(&hot->lease_ms, opts->lease_ms);
	sg_store64(&area->free_ino, SG_INO_ROOT + 1);
	sg_store64(&area->used_inodes, 1);
}

int sg_refuse_base(u64 size, u64 phys, char why_text[200])
{
	sg_snprintf(why_text, 200, "invalid base 0x%llx (allowed: multiples of 2 MiB up to 0x%llx)",
		    (unsigned long long)phys,
		    (unsigned long long)((SG_PTE_ADDR - size) & ~(SG_VOLUME_ALIGN - 1)));
	return -EINVAL;
}

/* Writes into @why which value is invalid. */
static int refuse_geometry(const struct sg_super *sb, char why_text[200])
{
	u64 room = sb->chunk_cap * SG_CHUNK;

	if (sb->size < SG_VOLUME_MIN || sb->size > SG_VOLUME_MAX)
		sg_snprintf(why_text, 200, "invalid size of %llu bytes (allowed: 16 MiB to 64 TiB)",
			    (unsigned long long)sb->size);
	else if (!sg_base_fits(sb->size, sb->phys))
		sg_refuse_base(sb->size, sb->phys, why_text);
	else if (!sb->areas || sb->areas > SG_AREAS_MAX)
		sg_snprintf(why_text, 200, "%u areas (allowed: 1 to %u)", sb->areas, SG_AREAS_MAX);
	else if (room < sb->size || room > SG_VOLUME_MAX)
		sg_snprintf(why_text, 200,
			    "room to grow to %llu bytes (allowed: the volume's %llu, to 64 TiB)",
			    (unsigned long long)room, (unsigned long long)sb->size);
	else
		sg_snprintf(why_text, 200,
			    "metadata for %u areas and growth to %llu bytes does not fit into %llu bytes: reduce one of them, or enlarge the volume",
			    sb->areas, (unsigned long long)room, (unsigned long long)sb->size);
	return -EINVAL;
}

void sg_make_uuid(u8 uuid[16])
{
	sg_random(uuid, 16);
	uuid[6] = (uuid[6] & 0x0f) | 0x40;
	uuid[8] = (uuid[8] & 0x3f) | 0x80;
}

static int take_label(struct sg_super *sb, const char *label, char why_text[200])
{
	if (strlen(label) >= sizeof(sb->label)) {
		sg_snprintf(why_text, 200, "label is longer than %u bytes",
			    (unsigned int)sizeof(sb->label) - 1);
		return -EINVAL;
	}
	memset(sb->label, 0, sizeof(sb->label));
	memcpy(sb->label, label, strlen(label));
	return 0;
}

int sg_format_plan(u64 size, const struct sg_format_opts *opts, struct sg_super *sb,
		   char why_text[200])
{
	memset(sb, 0, sizeof(*sb));
	sb->magic = SG_MAGIC;
	sb->version = SG_VERSION;
	sb->phys = opts->phys;
	sb->size = size & ~(SG_VOLUME_ALIGN - 1);
	sb->incompat = SG_INCOMPAT_ATOMIC;
	sb->params = opts->params;
	sb->created = sg_now();
	sb->generation = 1;
	sb->areas = opts->areas ?: default_areas(size);
	sb->slots = SG_SLOTS;
	sb->chunk_cap = opts->chunk_cap ?: SG_MIN(size / SG_CHUNK * SG_MAX_FACTOR,
						  SG_VOLUME_MAX / SG_CHUNK);
	if (opts->label && take_label(sb, opts->label, why_text))
		return -EINVAL;
	if (opts->uuid)
		memcpy(sb->uuid, opts->uuid, 16);
	else
		sg_make_uuid(sb->uuid);
	sg_random(sb->hash_seed, sizeof(sb->hash_seed));
	if (opts->params & ~SG_PARAM_KNOWN) {
		sg_snprintf(why_text, 200, "unknown parameters 0x%llx",
			    (unsigned long long)(opts->params & ~SG_PARAM_KNOWN));
		return -EINVAL;
	}
	if (sg_geometry(sb))
		return refuse_geometry(sb, why_text);
	sb->free_base = sb->size / SG_PAGE - sb->data_off / SG_PAGE - 2;
	return 0;
}

/*
 * Calls @f for the parts of the metadata that are read: all except the chunk table's room for
 * growth, which is the largest part. Growth initialises the entries there (volume_grow.c).
 */
static void for_made_parts(struct sg_vol *vol, void (*f)(void *p, size_t len))
{
	const struct sg_super *sb = &vol->sb;

	f(vol->base + SG_PAGE, sb->chunk_off - SG_PAGE);
	f(vol->base + sb->chunk_off, sb->chunks * sizeof(struct sg_chunk));
	f(vol->base + sb->data_off, SG_PAGE);	/* the first page of the inode file */
}

static void mkfs_write_back(void *p, size_t len)
{
	sg_wb(p, len);
}

/*
 * Makes the volume. It first clears old superblocks, because none may remain valid if it is
 * interrupted. It stores the new ones last.
 */
static void make_volume(struct sg_vol *vol, const struct sg_format_opts *opts)
{
	u64 meta = vol->sb.data_off / SG_PAGE;

	/* an old superblock may name the place of a backup */
	sg_os_zero(vol->base + SG_HOT_OFF, SG_PAGE);
	sg_wb(vol->base + SG_HOT_OFF, SG_PAGE);
	sg_fence();
	sg_os_zero(vol->base, SG_PAGE);
	sg_os_zero(vol->base + vol->size - SG_PAGE, SG_PAGE);
	sg_wb(vol->base, SG_PAGE);
	sg_wb(vol->base + vol->size - SG_PAGE, SG_PAGE);
	sg_fence();
	for_made_parts(vol, sg_os_zero);

	mark_used(vol, 0, meta + 1);	/* and the first page of the inode file */
	mark_used(vol, vol->size / SG_PAGE - 1, 1);
	make_inodes(vol, opts);
	sg_sys_copies_write(vol, vol->size);
	sg_space_rebuild_hints(vol);
	for_made_parts(vol, mkfs_write_back);
	sg_fence();
	sg_super_store(vol, vol->size - SG_PAGE, &vol->sb);
	sg_super_store(vol, 0, &vol->sb);
}

int sg_format(void *base, u64 size, const struct sg_format_opts *opts, char why_text[200])
{
	/* allocated, because it is too large for a kernel's stack */
	struct sg_vol *vol = sg_alloc(sizeof(*vol));
	int err;

	if (!vol) {
		sg_snprintf(why_text, 200, "no memory");
		return -ENOMEM;
	}
	vol->base = base;
	vol->up = &sg_upcalls;
	sg_bad_watch(vol);
	vol->slot = -1;
	err = sg_format_plan(size, opts, &vol->sb, why_text);
	if (!err) {
		vol->size = vol->sb.size;
		make_volume(vol, opts);
	}
	sg_free(vol);
	return err;
}

/*
 * Stores both superblocks. One of them is complete at any time, with the old UUID or with the new
 * one.
 */
static int write_named(struct sg_vol *vol, struct sg_super *sb, const char *label,
		       char why_text[200])
{
	int err = sg_may_write(vol);

	if (!err && !sg_holds_alone(vol) && !sg_alone(vol))
		err = -EBUSY;
	if (err) {
		sg_snprintf(why_text, 200, err == -EBUSY ?
			    "is in use by other systems: unmount it there to change its UUID" :
			    "cannot be changed here");
		return err;
	}
	return (label ? take_label(sb, label, why_text) : 0) ?: sg_super_write(vol, sb);
}

int sg_renew(struct sg_vol *vol, const char *label, char why_text[200])
{
	struct sg_super sb = vol->sb;

	sg_make_uuid(sb.uuid);
	/* a higher generation than an old superblock of the other volume, see find_backup() */
	sb.created = sg_now();
	return write_named(vol, &sb, label, why_text);
}

int sg_relabel(struct sg_vol *vol, const u8 *uuid, const char *label, char why_text[200])
{
	struct sg_super sb = vol->sb;

	if (uuid)
		memcpy(sb.uuid, uuid, sizeof(sb.uuid));
	return write_named(vol, &sb, label, why_text);
}
