// SPDX-License-Identifier: GPL-2.0
/* Superblock and geometry: making, finding, opening a volume. */
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

static u32 default_areas(u64 size)
{
	if (size < 64ULL << 20)
		return 2;
	if (size < 1ULL << 30)
		return 4;
	return size < 16ULL << 30 ? 8 : SG_AREAS_MAX;
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

/* What the hot page says that the volume has grown to; 0: it has not, or it makes no sense. */
static u64 said_size(const void *base)
{
	const struct sg_hot *hot = (const void *)((const u8 *)base + SG_HOT_OFF);
	u64 size = sg_load64(&hot->size);

	return size % SG_VOLUME_ALIGN || size < SG_VOLUME_MIN || size > SG_VOLUME_MAX ? 0 : size;
}

/* Its first superblock is behind, or just being written (grow.c): nothing is wrong with that. */
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

/* More than there is here was said to be its size: bytes that it has, or 0. */
static u64 cut_short(const struct sg_super *sb, u64 said, u64 size)
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
	if (!super_valid(&first, SG_VOLUME_MAX))	/* who was at it may have ended */
		super_read(base, 0, &first);
	out->stargate = first.magic == SG_MAGIC;
	out->whole = cut_short(&first, said, size);
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
			continue;	/* nobody gets as far as to ask */
		out->live += SG_SLOT_STATE(sg_load64(&slot[i].state)) != SG_SLOT_FREE;
	}
	return 0;
}

/*
 * Sizes of volumes are multiples of 2 MiB, so few pages may hold a backup. The newest counts. Many
 * of them may be holes of a file, and stay so.
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

/* --- opening -------------------------------------------------------------------------------- */

static int why(struct sg_vol *vol, int err, const char *text)
{
	sg_snprintf(vol->why, sizeof(vol->why), "%s", text);
	return err;
}

static int check_features(struct sg_vol *vol)
{
	const struct sg_super *sb = &vol->sb;

	if (sb->version != SG_VERSION) {
		sg_snprintf(vol->why, sizeof(vol->why), "format version %u, this one knows %u",
			    sb->version, SG_VERSION);
		return -EOPNOTSUPP;
	}
	if (sb->incompat & ~SG_INCOMPAT_KNOWN || sb->params & ~SG_PARAM_KNOWN) {
		sg_snprintf(vol->why, sizeof(vol->why),
			    "unknown features (incompat 0x%llx, params 0x%llx): newer tools needed",
			    (unsigned long long)(sb->incompat & ~SG_INCOMPAT_KNOWN),
			    (unsigned long long)(sb->params & ~SG_PARAM_KNOWN));
		return -EOPNOTSUPP;
	}
	if (sb->ro_compat & ~SG_RO_COMPAT_KNOWN && !vol->read_only) {
		sg_snprintf(vol->why, sizeof(vol->why),
			    "unknown features 0x%llx: can be used read-only",
			    (unsigned long long)(sb->ro_compat & ~SG_RO_COMPAT_KNOWN));
		return -EROFS;
	}
	return 0;
}

static int open_any(struct sg_vol *vol, void *base, u64 size, bool read_only, void *owner)
{
	struct sg_probe probe;
	unsigned int i;
	u64 found;

	memset(vol, 0, sizeof(*vol));
	for (i = 0; i < SG_OPENING; i++)
		sg_spin_init(&vol->opening[i]);
	sg_spin_init(&vol->spin);
	vol->base = base;
	sg_bad_watch(vol);
	vol->room = size & ~(SG_VOLUME_ALIGN - 1);
	vol->slot = -1;
	vol->read_only = read_only;
	vol->owner = owner;
	if (size < SG_VOLUME_MIN)
		return why(vol, -EINVAL, "smaller than the smallest volume, 16 MiB");
	found = sg_search(base, size, &probe);
	if (probe.whole) {
		sg_snprintf(vol->why, sizeof(vol->why),
			    "cut short: the volume has %llu MiB, and only %llu are here",
			    (unsigned long long)probe.whole >> 20, (unsigned long long)size >> 20);
		return -EUCLEAN;
	}
	if (!probe.stargate)
		return why(vol, -EINVAL,
			   "no StargateFS here: is it the right place? mkfs.stargatefs makes a new one");
	if (found != size)	/* it may be of an older volume: that is for people to decide */
		return why(vol, -EUCLEAN,
			   "the first superblock is damaged: fsck.stargatefs -y can repair it");
	if (!probe.valid)
		return why(vol, -EUCLEAN, "superblock and backup are damaged: run fsck.stargatefs");
	if (probe.from_backup)
		sg_log(owner, SG_WARN, "superblock damaged, using the backup; run fsck.stargatefs");
	vol->sb = probe.sb;
	vol->size = probe.sb.size;
	return check_features(vol);
}

int sg_open_moving(struct sg_vol *vol, void *base, u64 size, bool read_only, void *owner)
{
	int err = open_any(vol, base, size, read_only, owner);

	if (err || !sg_is_image(vol))
		return err;
	return why(vol, -EOPNOTSUPP,
		   "a metadata image, without contents of files: it can be looked at, and nothing else");
}

static int refuse_moving(struct sg_vol *vol)
{
	if (!sg_is_moving(vol))
		return 0;
	sg_snprintf(vol->why, sizeof(vol->why),
		    "half moved to base 0x%llx: no use before stargatectl relocate has finished that",
		    (unsigned long long)vol->sb.move_to);
	return -EUCLEAN;
}

int sg_open(struct sg_vol *vol, void *base, u64 size, bool read_only, void *owner)
{
	return sg_open_moving(vol, base, size, read_only, owner) ?: refuse_moving(vol);
}

int sg_open_to_look(struct sg_vol *vol, void *base, u64 size, void *owner)
{
	return open_any(vol, base, size, true, owner) ?: refuse_moving(vol);
}

/* Read again: does the volume lie where sg_open() has found it? It may have grown since. */
static bool super_stands(const struct sg_vol *vol)
{
	struct sg_probe probe;

	sg_probe(vol->base, vol->room, &probe);
	return probe.valid && same_volume(&probe.sb, &vol->sb) && probe.sb.phys == vol->sb.phys &&
	       probe.sb.incompat == vol->sb.incompat && probe.sb.move_to == vol->sb.move_to;
}

int sg_super_recheck(struct sg_vol *vol)
{
	return super_stands(vol) ? 0 :
	       why(vol, -EAGAIN, "its superblock has changed in this moment: try again");
}

/* --- making --------------------------------------------------------------------------------- */

static void mark_used(struct sg_vol *vol, u64 first, u64 pages)
{
	u64 p;

	for (p = first; p < first + pages; p++) {
		u64 *w = sg_at(vol, sg_chunk_off(vol, p / SG_CHUNK_PAGES) +
			       offsetof(struct sg_chunk, map) + p % SG_CHUNK_PAGES / 64 * 8);

		sg_store64(w, *w | 1ULL << (p & 63));
	}
}

/* The root directory is inode 1 in the inode file's first page; the other records are free. */
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
	sg_store64(&rec->genflags, 1);

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
	sg_snprintf(why_text, 200, "no base: 0x%llx (allowed: multiples of 2 MiB up to 0x%llx)",
		    (unsigned long long)phys,
		    (unsigned long long)((SG_PTE_ADDR - size) & ~(SG_VOLUME_ALIGN - 1)));
	return -EINVAL;
}

/* Which of the values it is that makes no volume. */
static int refuse_geometry(const struct sg_super *sb, char why_text[200])
{
	u64 room = sb->chunk_cap * SG_CHUNK;

	if (sb->size < SG_VOLUME_MIN || sb->size > SG_VOLUME_MAX)
		sg_snprintf(why_text, 200, "a volume has 16 MiB to 64 TiB, and not %llu bytes",
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
			    "%u areas and room to grow to %llu bytes take more metadata than a volume of %llu bytes has place for; less of one, or a larger volume",
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

void sg_super_store(struct sg_vol *vol, u64 off, struct sg_super *sb)
{
	sb->crc = super_crc(sb);
	sg_os_write(vol->base + off, sb, sizeof(*sb));
	sg_wb(vol->base + off, sizeof(*sb));
	sg_fence();
}

/*
 * The parts of the metadata that somebody looks at: all but the chunk table's room to grow, which
 * is the most of it by far. Its entries are made when the volume grows into them (grow.c).
 */
static void for_made_parts(struct sg_vol *vol, void (*f)(void *p, size_t len))
{
	const struct sg_super *sb = &vol->sb;

	f(vol->base + SG_PAGE, sb->chunk_off - SG_PAGE);
	f(vol->base + sb->chunk_off, sb->chunks * sizeof(struct sg_chunk));
	f(vol->base + sb->data_off, SG_PAGE);	/* the first page of the inode file */
}

static void write_back(void *p, size_t len)
{
	sg_wb(p, len);
}

/* No old superblock may outlive a half-made volume, and the new ones come last. */
static void make_volume(struct sg_vol *vol, const struct sg_format_opts *opts)
{
	u64 meta = vol->sb.data_off / SG_PAGE;

	sg_os_zero(vol->base + SG_HOT_OFF, SG_PAGE);	/* it may lead to one */
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
	for_made_parts(vol, write_back);
	sg_fence();
	sg_super_store(vol, vol->size - SG_PAGE, &vol->sb);
	sg_super_store(vol, 0, &vol->sb);
}

int sg_format(void *base, u64 size, const struct sg_format_opts *opts, char why_text[200])
{
	struct sg_vol *vol = sg_alloc(sizeof(*vol));	/* too large for a kernel's stack */
	int err;

	if (!vol) {
		sg_snprintf(why_text, 200, "no memory");
		return -ENOMEM;
	}
	vol->base = base;
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

static SG_NOINLINE bool first_valid(const struct sg_vol *vol)
{
	struct sg_super sb;

	super_read(vol->base, 0, &sb);
	return super_valid(&sb, sg_size(vol));
}

/*
 * First the copy by which nobody goes: at any time one of the two is whole. That is the backup,
 * unless a crash in here, or damage, has left nothing else.
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

/* Of the two copies the one that says the old UUID, or the one that says the new one, is whole. */
static int write_named(struct sg_vol *vol, struct sg_super *sb, const char *label,
		       char why_text[200])
{
	int err = sg_may_write(vol);

	if (!err && !sg_holds_alone(vol) && !sg_alone(vol))
		err = -EBUSY;
	if (err) {
		sg_snprintf(why_text, 200, err == -EBUSY ?
			    "is used by others: only what nobody uses gets another UUID" :
			    "cannot be changed here");
		return err;
	}
	return (label ? take_label(sb, label, why_text) : 0) ?: sg_super_write(vol, sb);
}

int sg_renew(struct sg_vol *vol, const char *label, char why_text[200])
{
	struct sg_super sb = vol->sb;

	sg_make_uuid(sb.uuid);
	sb.created = sg_now();	/* newer than what is left of the other one, see find_backup() */
	return write_named(vol, &sb, label, why_text);
}

int sg_relabel(struct sg_vol *vol, const u8 *uuid, const char *label, char why_text[200])
{
	struct sg_super sb = vol->sb;

	if (uuid)
		memcpy(sb.uuid, uuid, sizeof(sb.uuid));
	return write_named(vol, &sb, label, why_text);
}
