// SPDX-License-Identifier: Apache-2.0
/* dump: prints any structure of a volume from its bytes, even if it is damaged. */
#define _GNU_SOURCE
#include <stdlib.h>
#include "ctl.h"

static void begin(struct call *c)
{
	json_begin(&c->j, stdout, !c->json);
}

/* --- superblock, hot page, inodes ---------------------------------------------------------- */

static int dump_super(struct call *c)
{
	const struct sg_super *sb = &call_vol(c)->sb;
	struct json *j = &c->j;
	char id[37];

	json_hex(j, "magic", sb->magic);
	json_u64(j, "version", sb->version);
	json_hex(j, "crc", sb->crc);
	json_hex(j, "compat", sb->compat);
	json_hex(j, "ro_compat", sb->ro_compat);
	json_hex(j, "incompat", sb->incompat);
	json_str(j, "uuid", show_uuid(sb->uuid, id));
	json_str(j, "label", sb->label);
	json_hex(j, "phys", sb->phys);
	json_u64(j, "size", sb->size);
	json_hex(j, "params", sb->params);
	json_time(j, "created", (s64)sb->created);
	json_u64(j, "generation", sb->generation);
	json_u64(j, "areas", sb->areas);
	json_u64(j, "slots", sb->slots);
	json_u64(j, "chunks", sb->chunks);
	json_u64(j, "chunk_cap", sb->chunk_cap);
	json_hex(j, "slot_off", sb->slot_off);
	json_hex(j, "journal_off", sb->journal_off);
	json_hex(j, "ledger_off", sb->ledger_off);
	json_hex(j, "hint_off", sb->hint_off);
	json_hex(j, "chunk_off", sb->chunk_off);
	json_hex(j, "data_off", sb->data_off);
	json_u64(j, "free_base", sb->free_base);
	return 0;
}

static void dump_lock(struct call *c, const char *key, const struct sg_lock *lock)
{
	struct json *j = &c->j;

	json_row(j, key);
	json_hex(j, "word", lock->word);
	if (lock->word) {
		json_u64(j, "slot", SG_LOCK_SLOT(lock->word));
		json_u64(j, "incarnation", SG_LOCK_INC(lock->word));
		json_bool(j, "handed", lock->word & SG_LOCK_HANDED);
		json_bool(j, "asked", lock->word & SG_LOCK_ASKED);
	}
	json_hex(j, "waiters", lock->waiters);
	json_close(j, '}');
}

void dump_inode_raw(struct call *c, const struct sg_inode *in)
{
	struct json *j = &c->j;
	char mode[16];

	dump_lock(c, "lock", &in->lock);
	json_u64(j, "seq", in->seq);
	snprintf(mode, sizeof(mode), "0%o", sg_mode(in->mode));
	json_str(j, "mode", mode);
	json_u64(j, "links", sg_nlink(in->mode));
	json_u64(j, "uid", (u32)in->owner);
	json_u64(j, "gid", in->owner >> 32);
	json_u64(j, "size", in->size);
	json_hex(j, "table", in->table);
	json_u64(j, "blocks", in->blocks);
	json_time(j, "mtime", (s64)in->mtime);
	json_time(j, "ctime", (s64)in->ctime);
	json_time(j, "atime", (s64)in->atime);
	json_time(j, "btime", (s64)in->btime);
	json_hex(j, "xattr", in->xattr);
	json_u64(j, "generation", (u32)in->genflags);
	json_hex(j, "flags", in->genflags >> 32);
	json_hex(j, "special", in->special);
	json_u64(j, "entries", in->entries);
	json_u64(j, "next_free", in->next_free);
	json_hex(j, "openers", in->openers);
}

static int dump_hot(struct call *c)
{
	static const char *const names[] = { "inodes", "locks", "semaphores", "spare" };
	const struct sg_hot *hot = sg_at(call_vol(c), SG_HOT_OFF);
	struct json *j = &c->j;
	unsigned int i;

	dump_lock(c, "rename_lock", &hot->rename_lock);
	dump_lock(c, "inode_lock", &hot->inode_lock);
	dump_lock(c, "slot_lock", &hot->slot_lock);
	json_u64(j, "incarnation", hot->incarnation);
	json_u64(j, "epoch", hot->epoch);
	json_u64(j, "errors", hot->errors);
	json_u64(j, "error_ino", hot->error_ino);
	json_u64(j, "inodes", hot->inodes);
	json_size(j, "size", hot->size);
	json_size(j, "growing_to", SG_SIZE_OF(hot->grow));
	dump_lock(c, "grow_lock", &hot->grow_lock);
	json_object(j, "system_files");
	for (i = 0; i < SG_SYS_COUNT; i++) {
		json_object(j, names[i]);
		dump_inode_raw(c, &hot->sys[i]);
		json_close(j, '}');
	}
	json_close(j, '}');
	return 0;
}

/* --- journal and ledgers ------------------------------------------------------------------- */

/* Prints the log of an atomic write, without its bytes, which are content of a file. */
static void dump_log(struct call *c, const struct sg_log_head *head, unsigned int n)
{
	unsigned int count = SG_MIN(SG_LOG_COUNT(head->ino), (n - 1) / 2), i;
	const struct sg_log_piece *piece = (const void *)(head + 1);
	struct json *j = &c->j;

	json_object(j, "log");
	json_u64(j, "ino", SG_LOG_INO(head->ino));
	json_u64(j, "generation", head->generation);
	json_array(j, "pieces");
	for (i = 0; i < count; i++) {
		json_row(j, NULL);
		json_u64(j, "pos", piece[i].pos);
		json_u64(j, "len", SG_LOG_LEN(piece[i].len));
		json_hex(j, "from", piece[i].from);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

static void dump_words(struct call *c, const struct sg_area *a)
{
	unsigned int n = SG_MIN(SG_AREA_COUNT(a->head), (unsigned int)SG_AREA_WORDS), i;
	unsigned int log = SG_MIN(SG_AREA_LOG_COUNT(a->head), n);
	struct json *j = &c->j;

	json_array(j, "words");
	for (i = 0; i < n - log; i++) {
		json_row(j, NULL);
		json_hex(j, "offset", a->word[i].off);
		json_hex(j, "value", a->word[i].val);
		json_close(j, '}');
	}
	json_close(j, ']');
	if (log)
		dump_log(c, (const void *)(a->word + n - log), log);
}

static bool area_idle(const struct sg_area *a)
{
	return !a->head && !a->lock.word && !a->free_pages && !a->used_inodes && !a->free_ino;
}

static int dump_journal(struct call *c)
{
	struct sg_vol *vol = call_vol(c);
	struct json *j = &c->j;
	unsigned int slot, i;

	json_array(j, "areas");
	for (slot = 0; slot < SG_SLOTS; slot++) {
		for (i = 0; i < vol->sb.areas; i++) {
			const struct sg_area *a = sg_at(vol, sg_area_off(vol, slot, i));
			unsigned int log;

			if (area_idle(a))
				continue;
			json_object(j, NULL);
			json_u64(j, "slot", slot);
			json_u64(j, "area", i);
			json_hex(j, "head", a->head);
			json_bool(j, "committed", sg_tx_words(a, &log) != 0);
			dump_lock(c, "lock", &a->lock);
			json_s64(j, "free_pages", (s64)a->free_pages);
			json_s64(j, "used_inodes", (s64)a->used_inodes);
			json_u64(j, "free_ino", a->free_ino);
			json_u64(j, "deferred_ino", a->deferred_ino);
			if (a->head)
				dump_words(c, a);
			json_close(j, '}');
		}
	}
	json_close(j, ']');
	return 0;
}

static void dump_deferred(struct call *c, unsigned int slot, u64 at, u64 word)
{
	static const char *const kinds[] = { "run", "table 1", "table 2", "table 3", "table 4",
					     "inode", "directory", "xattr" };
	struct json *j = &c->j;

	json_row(j, NULL);
	json_u64(j, "slot", slot);
	json_hex(j, "at", at);
	json_str(j, "kind", kinds[SG_LEDGER_KIND(word)]);
	json_u64(j, SG_LEDGER_KIND(word) == SG_LEDGER_INODE ? "inode" : "page", SG_LEDGER_VALUE(word));
	json_u64(j, SG_LEDGER_KIND(word) == SG_LEDGER_RUN ? "more" : "from", SG_LEDGER_COUNT(word));
	json_u64(j, "epoch", SG_LEDGER_EPOCH(word));
	json_close(j, '}');
}

static int dump_ledger(struct call *c)
{
	struct sg_vol *vol = call_vol(c);
	unsigned int slot, i, pages;
	u64 page;

	json_array(&c->j, "deferreds");
	for (slot = 0; slot < SG_SLOTS; slot++) {
		page = sg_ledger_off(vol, slot);
		for (pages = 0; page && pages < 4096; pages++) {
			for (i = 1; i < SG_LEDGER_WORDS; i++)
				if (sg_get(vol, page + 8 * i))
					dump_deferred(c, slot, page + 8 * i,
						      sg_get(vol, page + 8 * i));
			page = sg_get(vol, page);
			if (!sg_data_page(vol, page))
				page = 0;
		}
	}
	json_close(&c->j, ']');
	return 0;
}

static int dump_slots(struct call *c)
{
	struct sg_slot slot;
	unsigned int i;

	json_array(&c->j, "slots");
	for (i = 0; i < SG_SLOTS; i++)
		if (!sg_slot_read(call_vol(c), i, &slot) && slot.state)
			show_slot(&c->j, i, &slot);
	json_close(&c->j, ']');
	return 0;
}

/* --- space --------------------------------------------------------------------------------- */

static void dump_chunk(struct call *c, u64 chunk)
{
	const struct sg_chunk *ch = sg_at(call_vol(c), sg_chunk_off(call_vol(c), chunk));
	struct json *j = &c->j;
	unsigned int i, used = 0;
	char map[8 * 16 + 1];

	for (i = 0; i < 8; i++) {
		used += sg_popcount64(ch->map[i]);
		snprintf(map + 16 * i, 17, "%016llx", (unsigned long long)ch->map[i]);
	}
	json_row(j, NULL);
	json_u64(j, "chunk", chunk);
	json_hex(j, "offset", chunk * SG_CHUNK);
	json_u64(j, "used", used);
	json_hex(j, "lock", ch->lock.word);
	json_str(j, "map", map);
	json_close(j, '}');
}

static int dump_chunks(struct call *c)
{
	u64 chunks = call_vol(c)->sb.chunks, first = 0, n = chunks, i;

	if (c->argc > 1 && (!parse_size(c->argv[1], &first) || first >= chunks)) {
		tool_error("dump chunks: FIRST '%s': must be 0 to %llu", c->argv[1],
			   (unsigned long long)chunks - 1);
		return -EINVAL;
	}
	if (c->argc > 2 && (!parse_size(c->argv[2], &n) || !n)) {
		tool_error("dump chunks: COUNT '%s': must be 1 or more", c->argv[2]);
		return -EINVAL;
	}
	begin(c);
	json_array(&c->j, "chunks");
	for (i = first; i < chunks && i - first < n; i++)
		dump_chunk(c, i);
	json_close(&c->j, ']');
	return 0;
}

/* --- choice of the structure --------------------------------------------------------------- */

static int dump_inode(struct call *c, const struct sg_iref *ref)
{
	json_u64(&c->j, "inode", ref->ino);
	json_hex(&c->j, "record", ref->off);
	dump_inode_raw(c, sg_at(call_vol(c), ref->off));
	return 0;
}

static int dump_bucket_at(struct call *c)
{
	u64 off;

	if (!parse_size(c->argv[1], &off) || !sg_data_page(call_vol(c), off)) {
		tool_error("dump bucket: OFFSET '%s': must be a page of the volume, as dump dir "
			   "shows them", c->argv[1]);
		return -EINVAL;
	}
	begin(c);
	return dump_bucket(c, off);
}

/*
 * Checks the number and names of the arguments. A structure with a function that opens the volume
 * checks its own arguments.
 */
static const struct structure {
	const char *name;
	int (*whole)(struct call *c);
	int (*of)(struct call *c, const struct sg_iref *ref);
	int min, max;
	const char *arguments;
	bool begins;
} structures[] = {
	{ "super", dump_super, NULL, 0, 0, "", false },
	{ "hot", dump_hot, NULL, 0, 0, "", false },
	{ "slots", dump_slots, NULL, 0, 0, "", false },
	{ "journal", dump_journal, NULL, 0, 0, "", false },
	{ "ledger", dump_ledger, NULL, 0, 0, "", false },
	{ "chunks", dump_chunks, NULL, 0, 2, " [FIRST [COUNT]]", true },
	{ "bucket", dump_bucket_at, NULL, 1, 1, " OFFSET", true },
	{ "inode", NULL, dump_inode, 1, 1, " PATH", false },
	{ "dir", NULL, dump_dir, 1, 1, " PATH", false },
	{ "table", NULL, dump_table, 1, 1, " PATH", false },
	{ "xattr", NULL, dump_xattr, 1, 1, " PATH", false },
};

static const struct structure *find_structure(const char *name)
{
	unsigned int i;

	for (i = 0; i < SG_ARRAY_SIZE(structures); i++)
		if (!strcmp(structures[i].name, name))
			return &structures[i];
	return NULL;
}

/*
 * For a path of the form <N>, prints also a damaged or free record, whose attributes cannot be
 * read.
 */
static int inode_of(struct call *c, struct sg_iref *ref)
{
	const char *path = c->argv[1];
	struct sg_attr attr;

	path_seek(call_vol(c), path, false, ref, &attr);
	return *path == '<' && ref->off ? 0 : path_find(call_vol(c), path, false, ref, &attr);
}

int before_dump(struct call *c)
{
	const struct structure *s = find_structure(c->argv[0]);

	if (!s)
		return tool_usage_error("there is no structure '%s'", c->argv[0]);
	if (c->argc - 1 < s->min || c->argc - 1 > s->max)
		return tool_usage_error("dump %s: takes VOLUME %s%s", s->name, s->name,
					s->arguments);
	return 0;
}

int cmd_dump(struct call *c)
{
	const struct structure *s = find_structure(c->argv[0]);
	struct sg_iref ref = { 0 };
	int err;

	if (s->of) {
		err = inode_of(c, &ref);
		if (err)
			return err;
	}
	if (!s->begins)
		begin(c);
	err = s->of ? s->of(c, &ref) : s->whole(c);
	if (c->j.out)
		json_end(&c->j);
	return err;
}
