// SPDX-License-Identifier: Apache-2.0
/* Commands about a complete volume: info, df, slots, look, label. */
#define _GNU_SOURCE
#include <linux/magic.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include "ctl.h"

static unsigned int slots_taken(const struct sg_vol *vol)
{
	unsigned int i, n = 0;
	struct sg_slot slot;

	for (i = 0; i < SG_SLOTS; i++)
		n += !sg_slot_read(vol, i, &slot) && SG_SLOT_STATE(slot.state) != SG_SLOT_FREE &&
		     (int)i != vol->slot;
	return n;
}

static const char *state_of(struct call *c)
{
	if (c->m.joined || slots_taken(&c->m.vol))
		return "in use, or not cleanly unmounted";
	return "clean";
}

/* Reads what the kernel knows about the caches of a device's memory. */
static int write_cache(dev_t device, const char *at)
{
	char path[80];
	int c;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%sdax/write_cache", major(device),
		 minor(device), at);
	f = fopen(path, "re");
	if (!f)
		return EOF;
	c = getc(f);
	fclose(f);
	return c;
}

/*
 * Says whether systems must write changed cache lines back to the volume's memory. No device says
 * that its memory is DRAM.
 */
static const char *write_back(const struct target *t)
{
	struct statfs st;
	int c;

	if (t->kind == TARGET_FILE && !fstatfs(t->fd, &st))
		return st.f_type == TMPFS_MAGIC || st.f_type == HUGETLBFS_MAGIC ?
		       "not needed: the memory is lost with its power" : "needed";
	if (t->kind != TARGET_BLOCK)
		return "needed";
	c = write_cache(t->rdev, "");
	if (c == EOF)	/* a partition */
		c = write_cache(t->rdev, "../");
	return c == '0' ? "not needed: caches persist" : "needed";
}

static void show_info(struct call *c)
{
	const struct sg_super *sb = &c->m.vol.sb;
	struct json *j = &c->j;
	char id[37];

	json_str(j, "uuid", show_uuid(sb->uuid, id));
	json_str(j, "label", sb->label);
	json_str(j, "state", state_of(c));
	if (sg_is_image(&c->m.vol))
		json_str(j, "image", sb->incompat & SG_INCOMPAT_HIDDEN ? "metadata, names hidden" :
			 "metadata, names kept");
	json_hex(j, "base", sb->phys);
	json_size(j, "size", sb->size);
	json_size(j, "max_size", sb->chunk_cap * SG_CHUNK);
	json_u64(j, "version", sb->version);
	json_u64(j, "generation", sb->generation);
	json_time(j, "created", (s64)sb->created);
	json_u64(j, "areas", sb->areas);
	json_str(j, "data", sb->params & SG_PARAM_DATA_ATOMIC ? "atomic" : "inplace");
	json_bool(j, "atomic_writes", sb->incompat & SG_INCOMPAT_ATOMIC);
	json_str(j, "write_back", write_back(&c->m.target));
	json_bool(j, "host_splice", sb->params & SG_PARAM_HOST_SPLICE);
	show_lease(j, sg_lease(&c->m.vol));
	json_u64(j, "errors", sg_get(&c->m.vol, SG_HOT(errors)));
}

int before_info(struct call *c)
{
	return c->json && c->export ? tool_usage_error("info: give only one of --export and --json") : 0;
}

int cmd_info(struct call *c)
{
	int err;

	if (c->export)
		return export_info(c);
	if (member_open(&c->m, c->volume, false, false))
		return 1;
	json_begin(&c->j, stdout, !c->json);
	show_info(c);
	json_end(&c->j);
	err = tool_end(0);
	return member_close(&c->m) ? 1 : err;
}

static void show_space(struct json *j, const struct sg_statfs *s, u64 largest)
{
	json_size(j, "size", s->pages * SG_PAGE);
	json_size(j, "used", (s->pages - s->free_pages) * SG_PAGE);
	json_size(j, "free", s->free_pages * SG_PAGE);
	json_size(j, "largest_free", largest * SG_PAGE);
	json_u64(j, "inodes_used", s->used_inodes);
	json_u64(j, "inodes", s->inodes);
}

int cmd_df(struct call *c)
{
	struct json *j = &c->j;
	struct sg_statfs s;
	int err = sg_statfs(&c->m.vol, &s);

	if (err)
		return path_error(c->m.target.path, err);
	json_begin(j, stdout, !c->json);
	show_space(j, &s, sg_largest_free(&c->m.vol));
	json_end(j);
	return 0;
}

/* --- the mount table ----------------------------------------------------------------------- */

static const char *slot_state(u64 word)
{
	static const char *const names[] = { "free", "live", "dead", "recovering" };

	return SG_SLOT_STATE(word) < 4 ? names[SG_SLOT_STATE(word)] : "unknown";
}

void show_slot(struct json *j, unsigned int number, const struct sg_slot *slot)
{
	char id[37];

	json_object(j, NULL);
	json_u64(j, "slot", number);
	json_str(j, "state", slot_state(slot->state));
	json_u64(j, "incarnation", SG_SLOT_INC(slot->state));
	json_str(j, "name", slot->name);
	json_str(j, "kind", slot->pid ? "tool" : "kernel");
	json_u64(j, "pid", SG_SLOT_PID(slot->pid));
	json_str(j, "machine", show_uuid(slot->machine, id));
	json_str(j, "boot", show_uuid(slot->boot, id));
	json_bytes(j, "version", slot->version, strnlen(slot->version, sizeof(slot->version)));
	json_time(j, "joined", (s64)slot->joined);
	json_u64(j, "heartbeat", slot->heartbeat);
	json_u64(j, "beat_ms", slot->beat_ns / 1000000);
	json_u64(j, "epoch", slot->epoch);
	json_size(j, "memory", SG_SIZE_OF(slot->memory));
	json_close(j, '}');
}

/* Prints the slots from the volume, because recovery in the private copy would have freed them. */
int cmd_slots(struct call *c)
{
	const struct sg_vol *vol = &c->m.vol;
	struct sg_slot slots[SG_SLOTS];
	struct json *j = &c->j;
	unsigned int i, n = 0;

	if (target_read_now(&c->m.target, vol->sb.slot_off, slots, sizeof(slots)))
		return path_error(c->m.target.path, -EIO);
	json_begin(j, stdout, !c->json);
	json_array(j, "slots");
	for (i = 0; i < SG_SLOTS; i++) {
		if (SG_SLOT_STATE(slots[i].state) == SG_SLOT_FREE)
			continue;
		slots[i].name[sizeof(slots[i].name) - 1] = 0;
		show_slot(j, i, &slots[i]);
		n++;
	}
	json_close(j, ']');
	json_u64(j, "taken", n);
	json_end(j);
	return 0;
}

/* --- look: info, df and slots of many volumes ---------------------------------------------- */

/* Reads them from the volume, as cmd_slots() does. */
static int count_taken(const struct call *c, unsigned int *taken)
{
	struct sg_slot slots[SG_SLOTS];
	unsigned int i;

	if (target_read_now(&c->m.target, c->m.vol.sb.slot_off, slots, sizeof(slots)))
		return -EIO;
	for (i = 0, *taken = 0; i < SG_SLOTS; i++)
		*taken += SG_SLOT_STATE(slots[i].state) != SG_SLOT_FREE;
	return 0;
}

static void look_at(struct call *c, const char *path)
{
	struct json *j = &c->j;
	struct sg_statfs s;
	unsigned int taken;

	json_object(j, NULL);
	json_str(j, "path", path);
	if (!member_open(&c->m, path, false, false)) {
		if (!sg_statfs(&c->m.vol, &s) && !count_taken(c, &taken)) {
			json_object(j, "info");
			show_info(c);
			json_close(j, '}');
			json_object(j, "space");
			show_space(j, &s, sg_largest_free(&c->m.vol));
			json_close(j, '}');
			json_u64(j, "taken", taken);
		}
		member_close(&c->m);
	}
	json_close(j, '}');
}

/* For a volume that cannot be read, prints only the path; `info` shows the reason. */
int cmd_look(struct call *c)
{
	int i;

	json_begin(&c->j, stdout, !c->json);
	json_array(&c->j, "volumes");
	look_at(c, c->volume);
	for (i = 0; i < c->argc; i++)
		look_at(c, c->argv[i]);
	json_close(&c->j, ']');
	json_end(&c->j);
	return 0;
}

/* --- label --------------------------------------------------------------------------------- */

int before_label(struct call *c)
{
	if (!c->argc || label_valid(c->argv[0]))
		return 0;
	return tool_usage_error("label '%s': must be " LABEL_RULE, c->argv[0]);
}

int cmd_label(struct call *c)
{
	struct sg_super sb = c->m.vol.sb;

	if (c->argc) {
		memset(sb.label, 0, sizeof(sb.label));
		memcpy(sb.label, c->argv[0], strlen(c->argv[0]));
		return path_error(c->m.target.path, sg_super_write(&c->m.vol, &sb));
	}
	if (c->json) {
		json_begin(&c->j, stdout, false);
		json_str(&c->j, "label", sb.label);
		json_end(&c->j);
	} else {
		put_text(stdout, sb.label, strlen(sb.label));
		putchar('\n');
	}
	return 0;
}
