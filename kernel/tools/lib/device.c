// SPDX-License-Identifier: Apache-2.0
/*
 * Changes a block device while other systems may mount it.
 *
 * Its page cache is not shared memory: other systems use the memory behind it. So the tool works on
 * a private copy (TARGET_HOLD), and only device_store() writes this copy to the device. The tool
 * writes some words immediately to the device, around the cache, because other systems must read
 * them:
 *
 *   1. device_watch() watches the slots for some seconds. If no slot changes, it remembers all
 *      slots.
 *   2. device_hold() checks that the slots and the last incarnation have not changed. Then it
 *      stores the tool's slot and alone_lock, in this order, and reads all slots again. A system
 *      that joins later finds alone_lock taken. This read, or the next look, detects a system that
 *      has joined before.
 *   3. device_beat() stores the tool's heartbeat, and checks that slot and alone_lock are
 *      unchanged.
 *   4. device_store() reads the slots once more, and stores all changes. It stores slots and hot
 *      page last, after the rest is durable. A tool that is killed before the end leaves its slot
 *      taken.
 *
 * If another system has joined, the tool stores nothing, and prints the name of the system. See
 * docs/tools.md, "Block devices".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "internal.h"
#include "tool.h"

#define LEAVE_MS 3000 /* time for a system that found alone_lock taken to leave */
#define RELIEVE_BYTES	(256ULL << 20)
#define MAP_ENTRIES 4096 /* entries of /proc/self/pagemap in one read */
#define BEGAN		"began to use the volume meanwhile"

/**
 * struct device - the tool's last state of the device. @slots, @incarnation: as last read, or
 * stored by the tool. @slot: the tool's slot, or -1; @alive, @alone: the slot's word while the tool
 * has it, and the word of alone_lock.
 * @held: the tool may store changes: it has a slot, or needs none. @forced: fence every system in
 * the mount table. @lost: another system has joined, see @why. @left: all changes are stored, and
 * the tool has left the volume; it may hold the device again.
 * @begun: the tool has stored more than the slot since the hold. @bytes: number of bytes changed in
 * the private copy since the last store.
 */
struct device {
	struct sg_super sb;
	struct sg_slot slots[SG_SLOTS];
	u64 incarnation, alive, alone, bytes;
	int slot;
	bool watched, forced, held, lost, left, said, begun;
	char why[200];
	/* protects slots from two writers: the heartbeat's thread and device_store() */
	pthread_mutex_t lock;
};

struct device *device_new(void)
{
	struct device *d = calloc(1, sizeof(*d));

	if (d) {
		d->slot = -1;
		pthread_mutex_init(&d->lock, NULL);
	}
	return d;
}

bool device_held(const struct target *t)
{
	return t->kind == TARGET_BLOCK && (t->use == TARGET_HOLD || t->use == TARGET_CHECK);
}

bool device_has_told(const struct target *t)
{
	return t->device && t->device->said;
}

/* --- the device's own bytes ------------------------------------------------------------------ */

static int read_page(int fd, u64 off, u8 *page)
{
	return pread(fd, page, SG_PAGE, (off_t)off) == SG_PAGE ? 0 : -EIO;
}

static int write_page(int fd, u64 off, const u8 *page)
{
	return pwrite(fd, page, SG_PAGE, (off_t)off) == SG_PAGE && !fdatasync(fd) ? 0 : -EIO;
}

/*
 * Reads a page around the cache, changes it, and stores it immediately, so that words of other
 * systems are not changed. If @change fails, stores nothing.
 */
static int edit(const struct target *t, u64 off, int (*change)(const struct target *t, u64 off,
							       u8 *page))
{
	static u8 page[SG_PAGE] __attribute__((aligned(SG_PAGE)));	/* under @lock */
	int fd = device_past_cache(t, O_RDWR), err;

	if (fd < 0)
		return fd;
	err = read_page(fd, off, page) ?: change(t, off, page) ?: write_page(fd, off, page);
	close(fd);
	return err;
}

static int read_table(const struct target *t, struct sg_slot *slots, struct sg_hot *hot)
{
	return target_read_now(t, t->device->sb.slot_off, slots, SG_SLOTS * sizeof(*slots)) ?:
	       target_read_now(t, SG_HOT_OFF, hot, sizeof(*hot));
}

/* --- other systems --------------------------------------------------------------------------- */

/* @slot: SG_SLOTS if unknown. */
static int lose(struct device *d, const char *name, unsigned int slot, const char *what)
{
	char legible[64], in[24] = "";
	size_t i;

	snprintf(legible, sizeof(legible), "%.63s", name);
	for (i = 0; legible[i]; i++)
		if (legible[i] < ' ' || legible[i] > '~')
			legible[i] = '?';
	if (slot < SG_SLOTS)
		snprintf(in, sizeof(in), " (slot %u)", slot);
	if (!d->lost)
		snprintf(d->why, sizeof(d->why), "%s%s %s: no more changes are stored; try again",
			 *legible ? legible : "another system", in, what);
	d->lost = true;
	return -EBUSY;
}

/* *Returns the slot of a system that was not in this slot at the last check, or SG_SLOTS. */
static void who_came(const struct device *d, const struct sg_slot *now, unsigned int *came)
{
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++) {
		u64 state = now[i].state;

		if ((int)i == d->slot)
			continue;
		if (SG_SLOT_STATE(state) != SG_SLOT_FREE && SG_SLOT_STATE(state) != SG_SLOT_DEAD &&
		    (state != d->slots[i].state || now[i].heartbeat != d->slots[i].heartbeat ||
		     now[i].guard != d->slots[i].guard))
			break;
	}
	*came = i;
}

/*
 * Checks that the tool still owns slot and lock: returns 0, or -EBUSY. Waits for a system that
 * joins and is refused.
 */
static int look(const struct target *t)
{
	static struct sg_slot now[SG_SLOTS];	/* under @lock */
	static struct sg_hot hot;
	struct device *d = t->device;
	unsigned int came, waited;
	u64 *inc;
	int err;

	for (waited = 0; ; waited += 50) {
		err = read_table(t, now, &hot);
		if (err)
			return err;
		if (d->slot >= 0 && now[d->slot].state != d->alive)
			return lose(d, "", (unsigned int)d->slot, "has fenced this tool");
		if (d->slot >= 0 && hot.alone_lock.word != d->alone)
			return lose(d, "", SG_LOCK_SLOT(hot.alone_lock.word),
				    "has taken exclusive access");
		who_came(d, now, &came);
		if (came == SG_SLOTS)
			break;
		if (waited >= LEAVE_MS)
			return lose(d, now[came].name, came, "uses the volume meanwhile");
		usleep(50000);
	}
	/* A system that was refused has used an incarnation, and no other system gets the same one.
	 * */
	inc = (u64 *)((u8 *)t->base + SG_HOT(incarnation));
	if (sg_load64(inc) < hot.incarnation)
		sg_store64(inc, hot.incarnation);
	d->incarnation = hot.incarnation;
	return 0;
}

int device_watch(const struct target *t, const struct sg_super *sb, const struct sg_slot *slots,
		 bool force)
{
	struct device *d = t->device;
	struct sg_hot hot;

	if (!device_held(t))
		return 0;
	d->sb = *sb;
	memcpy(d->slots, slots, sizeof(d->slots));
	if (target_read_now(t, SG_HOT_OFF, &hot, sizeof(hot)))
		return -EIO;
	d->incarnation = hot.incarnation;
	d->watched = true;
	d->forced = force;
	/* The bytes that were read before may be out of date. */
	if (madvise(t->base, t->size, MADV_DONTNEED))
		return -errno;
	if (ioctl(t->fd, BLKFLSBUF, 0))		/* needs root */
		posix_fadvise(t->fd, 0, 0, POSIX_FADV_DONTNEED);
	return 0;
}

/* --- the hold -------------------------------------------------------------------------------- */

/*
 * Stores the tool's slot from the private copy, unless another system has taken that slot. From now
 * on, all systems that were silent during the watch are dead. Does not update the other remembered
 * slots: look() must detect a system that has taken one since then, even if its heartbeat never
 * moves.
 */
static int change_slots(const struct target *t, u64 off, u8 *page)
{
	struct device *d = t->device;
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++) {
		u64 at = d->sb.slot_off + i * sizeof(struct sg_slot);
		struct sg_slot *slot = (void *)(page + (at - off));

		if (at < off || at >= off + SG_PAGE)
			continue;
		if ((int)i == d->slot) {
			if (slot->state != d->slots[i].state) {
				d->slot = -1;
				return lose(d, slot->name, i, BEGAN);
			}
			memcpy(slot, (u8 *)t->base + at, sizeof(*slot));
		} else if (SG_SLOT_STATE(slot->state) != SG_SLOT_FREE &&
			   (d->forced || slot->state == d->slots[i].state)) {
			slot->state = SG_SLOT_WORD(SG_SLOT_DEAD, SG_SLOT_INC(slot->state));
		} else {
			continue;
		}
		d->slots[i] = *slot;
	}
	return 0;
}

static int change_slot(const struct target *t, u64 off, u8 *page)
{
	u64 at = t->device->sb.slot_off + (u64)t->device->slot * sizeof(struct sg_slot);

	memcpy(page + (at - off), (u8 *)t->base + at, sizeof(struct sg_slot));
	return 0;
}

/*
 * A system that joins takes its incarnation first, so a new incarnation shows that a system has
 * begun to join.
 */
static int change_hot(const struct target *t, u64 off, u8 *page)
{
	struct sg_hot *hot = (void *)page;
	struct device *d = t->device;

	(void)off;
	if (!d->forced && hot->incarnation != d->incarnation)
		return lose(d, "", SG_SLOTS, BEGAN);
	hot->incarnation = SG_MAX(hot->incarnation, SG_SLOT_INC(d->alive));
	hot->alone_lock.word = d->alone;
	return 0;
}

/* Only valid while the tool has stored nothing but the slot (give_back()). */
static int change_back(const struct target *t, u64 off, u8 *page)
{
	struct device *d = t->device;
	struct sg_slot *slot = (void *)(page + (d->sb.slot_off +
					(u64)d->slot * sizeof(struct sg_slot) - off));

	if (slot->state == d->alive)
		slot->state = SG_SLOT_WORD(SG_SLOT_FREE, SG_SLOT_INC(d->alive));
	return 0;
}

static u64 slot_page(const struct target *t)
{
	u64 at = t->device->sb.slot_off + (u64)t->device->slot * sizeof(struct sg_slot);

	return at & ~(u64)(SG_PAGE - 1);
}

/*
 * Handles a failed hold. Frees the tool's slot if the tool has stored nothing else, so that no
 * system waits for it. Otherwise the slot remains taken, and the next system recovers the tool's
 * changes.
 */
static void give_back(const struct target *t)
{
	struct device *d = t->device;

	if (d->slot < 0 || d->begun)
		return;
	edit(t, slot_page(t), change_back);
	d->slot = -1;
}

/* Marks that all earlier changes are complete on the device, where the tool's slot is free. */
static void begin_anew(struct device *d)
{
	d->slot = -1;
	d->left = false;
	d->begun = false;
}

static int hold(const struct target *t, const struct sg_vol *vol)
{
	static struct sg_slot now[SG_SLOTS];
	static struct sg_hot hot;
	struct device *d = t->device;
	u64 end = d->sb.slot_off + SG_SLOTS * sizeof(struct sg_slot), off;
	unsigned int came = SG_SLOTS;
	int err = read_table(t, now, &hot);

	if (err)
		return err;
	if (d->left)
		begin_anew(d);
	if (!d->forced)
		who_came(d, now, &came);
	if (came < SG_SLOTS)
		return lose(d, now[came].name, came, BEGAN);
	if (!d->forced && hot.incarnation != d->incarnation)
		return lose(d, "", SG_SLOTS, BEGAN);
	d->held = true;
	if (!vol)
		return 0;
	d->slot = vol->slot;
	d->alive = vol->alive;
	d->alone = SG_LOCK_WORD(vol->slot, vol->incarnation);
	for (off = d->sb.slot_off; off < end && !err; off += SG_PAGE)
		err = edit(t, off, change_slots);
	return err ?: edit(t, SG_HOT_OFF, change_hot) ?: look(t);
}

int device_hold(const struct target *t, const struct sg_vol *vol, char why[200])
{
	struct device *d = t->device;
	int err;

	if (!device_held(t))
		return 0;
	pthread_mutex_lock(&d->lock);
	err = d->watched ? hold(t, vol) : -EINVAL;
	if (err) {
		if (err != -EBUSY)
			snprintf(d->why, sizeof(d->why), "its mount table cannot be stored: %s",
				 strerror(-err));
		d->lost = d->said = true;
		snprintf(why, 200, "%s", d->why);
		give_back(t);
	}
	pthread_mutex_unlock(&d->lock);
	return err;
}

static bool has_left(const struct target *t)
{
	const struct device *d = t->device;
	const struct sg_slot *slots = (void *)((u8 *)t->base + d->sb.slot_off);

	return d->slot < 0 || sg_load64(&slots[d->slot].state) != d->alive;
}

void device_beat(const struct target *t)
{
	struct device *d = t->device;

	if (!device_held(t))
		return;
	pthread_mutex_lock(&d->lock);
	/*
	 * Stores nothing after the leave: other systems may see a leave only when all changes are
	 * stored.
	 */
	if (!has_left(t) && !d->lost && !look(t))
		edit(t, slot_page(t), change_slot);
	pthread_mutex_unlock(&d->lock);
}

/* --- storing --------------------------------------------------------------------------------- */

/* A changed page of the private copy is no longer a page of the device. In /proc/self/pagemap: */
#define IS_PRESENT	(1ULL << 63)
#define IS_SWAPPED	(1ULL << 62)
#define IS_FILES	(1ULL << 61)

static bool is_changed(u64 entry)
{
	return entry & IS_SWAPPED || (entry & IS_PRESENT && !(entry & IS_FILES));
}

/* Reports whether the page must be stored last. The mount table and the hot page make the changes
 * of all other pages valid. */
static bool is_last(const struct device *d, u64 off)
{
	return off == SG_HOT_OFF ||
	       (off >= d->sb.slot_off && off < d->sb.slot_off + SG_SLOTS * sizeof(struct sg_slot));
}

static int store_page(const struct target *t, u64 off)
{
	const u8 *from = (const u8 *)t->base + off;
	size_t len = SG_PAGE, n;
	ssize_t got;

	for (n = 0; n < len; n += (size_t)got) {
		got = pwrite(t->fd, from + n, len - n, (off_t)(off + n));
		if (got <= 0)
			return got ? -errno : -EIO;
	}
	return 0;
}

static int store_changed(const struct target *t, int map, bool last)
{
	static u64 entry[MAP_ENTRIES];
	u64 page = 0, pages = t->size / SG_PAGE, i, n;
	u64 first = (uintptr_t)t->base / SG_PAGE;
	int err = 0;

	for (; page < pages && !err; page += n) {
		n = SG_MIN(pages - page, (u64)MAP_ENTRIES);
		if (pread(map, entry, n * 8, (off_t)((first + page) * 8)) != (ssize_t)(n * 8))
			return -EIO;
		for (i = 0; i < n && !err; i++) {
			u64 off = (page + i) * SG_PAGE;

			if (is_changed(entry[i]) && is_last(t->device, off) == last)
				err = store_page(t, off);
		}
		if (last && (page + n) * SG_PAGE > t->device->sb.slot_off +
						   SG_SLOTS * sizeof(struct sg_slot))
			break;
	}
	return err ?: fdatasync(t->fd) ? -errno : 0;
}

static int store(const struct target *t)
{
	struct device *d = t->device;
	int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), err;

	if (map < 0)
		return -errno;
	d->begun = true;
	err = store_changed(t, map, false);
	pthread_mutex_lock(&d->lock);
	err = err ?: look(t) ?: store_changed(t, map, true);
	if (!err) {
		memcpy(d->slots, (u8 *)t->base + d->sb.slot_off, sizeof(d->slots));
		d->left = has_left(t);
	}
	pthread_mutex_unlock(&d->lock);
	close(map);
	return err;
}

int device_store(const struct target *t)
{
	struct device *d = t->device;
	int err = 0;

	if (!d->held || d->left)	/* there are no changes, or all changes are stored */
		return 0;
	pthread_mutex_lock(&d->lock);
	if (!d->lost)
		err = look(t);
	if (d->lost)
		give_back(t);
	pthread_mutex_unlock(&d->lock);
	err = err ?: d->lost ? -EBUSY : store(t);
	d->bytes = 0;
	if (d->lost && !d->said)
		tool_error("%s: %s", t->path, d->why);
	d->said |= d->lost;
	return err;
}

int device_drain(const struct target *t)
{
	int err;

	/*
	 * Before the hold, changes are only in the private copy. After the leave any system can
	 * take any slot, and the copy would hide its stores.
	 */
	if (!device_held(t) || !t->device->held)
		return 0;
	err = device_store(t);
	/* This store may overwrite a heartbeat, but the system sends the next one soon. */
	return err ?: madvise(t->base, t->size, MADV_DONTNEED) ? -errno : 0;
}

int device_relieve(const struct target *t, u64 bytes)
{
	struct device *d = t->device;

	if (!device_held(t))
		return 0;
	d->bytes += bytes;
	return d->bytes < RELIEVE_BYTES ? 0 : device_drain(t);
}

void device_free(struct target *t)
{
	if (t->device)
		pthread_mutex_destroy(&t->device->lock);
	free(t->device);
	t->device = NULL;
}
