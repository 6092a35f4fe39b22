/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rings of a volume for other modules (docs/channels.md, docs/network.md). A module gets the
 * addresses of a ring's memory, and sends and receives by uapi/ringword.h. It has each ring for one
 * direction, and is the only sender or the only receiver.
 *
 * A use of a volume does not keep the volume mounted. When the volume is about to be unmounted, the
 * module is told, and must end its use. All functions sleep, except where the comment says
 * otherwise.
 */
#ifndef STARGATE_RING_H
#define STARGATE_RING_H

#include "uapi/semtype.h"

#define STARGATE_SLOTS		64	/* systems of a volume */
#define STARGATE_NAME_ROOM	64	/* a system's name, with its last zero */

struct stargate_volume;

/**
 * struct stargate_volume_ops - calls to the module
 * @gone: the volume is about to be unmounted. It must not sleep; the module calls
 *	stargate_volume_end() soon, and the unmount waits for that.
 * @rung: another system has rung this one by a doorbell. Called from an interrupt. NULL: none.
 */
struct stargate_volume_ops {
	void (*gone)(void *ctx);
	void (*rung)(void *ctx);
};

/**
 * struct stargate_ring - a ring that this module has open
 * @page: its words, in memory that all systems share. @grains: its size, a power of two.
 * @piece: the address of each page of its data. @flat: the address of all data, if the pages are
 *	contiguous; otherwise NULL.
 */
struct stargate_ring {
	u64 *page;
	u64 grains;
	void **piece, *flat;
	struct stargate_ring_object *object;	/* private */
};

/**
 * stargate_volume_use() - begin to use the volume that is mounted at @path
 * A volume has one use for each @ops.
 *
 * Return: -ENODEV: the path is in no StargateFS. -EROFS: this system is no member of the volume, or
 * the mount at @path is read-only. -EBUSY: there is such a use.
 */
struct stargate_volume *stargate_volume_use(const char *path,
					    const struct stargate_volume_ops *ops, void *ctx);
/*
 * Permits another use with the same operations. The caller makes no ring any more, and calls
 * stargate_volume_end() soon.
 */
void stargate_volume_leave(struct stargate_volume *v);
/* The caller has closed all rings, and the object of stargate_permit(). */
void stargate_volume_end(struct stargate_volume *v);

/*
 * Reports whether this system may store into the volume: it was not fenced, and the mount is
 * writable. Does not sleep.
 */
bool stargate_volume_alive(const struct stargate_volume *v);
unsigned int stargate_volume_slot(const struct stargate_volume *v);
/* Returns the incarnation of this system, which no other system or life ever has. */
u32 stargate_volume_incarnation(const struct stargate_volume *v);
/* Reports whether a system is live in @slot, with its incarnation and its name. Does not sleep. */
bool stargate_slot_live(const struct stargate_volume *v, unsigned int slot, u32 *incarnation,
			char name[STARGATE_NAME_ROOM]);

/*
 * Doorbells (docs/doorbells.md). Neither function sleeps. The first one makes the system in @slot
 * call @rung of its users, if there is a bell between the systems; the caller has stored what that
 * system is to find. The second one reports whether each live system can ring this one.
 */
void stargate_bell_ring(const struct stargate_volume *v, unsigned int slot);
bool stargate_bell_covers(const struct stargate_volume *v);

/**
 * stargate_permit() - open the object by which the volume's administrator permits a service
 *
 * The systems that have the object open are those that take part.
 *
 * Return: -ENOENT: no such object, so the service is not permitted. -EACCES: its owner is not root,
 * or other users may open it. -EBUSY: the volume is frozen; call again.
 */
int stargate_permit(struct stargate_volume *v, const char *name);
/* Returns one bit for each slot that has the object open; 0: the object has been removed. */
u64 stargate_permit_users(const struct stargate_volume *v);
void stargate_permit_end(struct stargate_volume *v);

/**
 * stargate_ring_make() - make a ring, as its only receiver
 *
 * The ring exists until its last user closes it. An object with the same name loses its name.
 */
int stargate_ring_make(struct stargate_volume *v, const char *name, u64 size,
		       struct stargate_ring *ring);
/**
 * stargate_ring_open() - open a ring that another system has made, as its only sender
 * Return: -ENOENT: there is no such ring. -EACCES: it is not root's. -EAGAIN: it has a sender.
 */
int stargate_ring_open(struct stargate_volume *v, const char *name, struct stargate_ring *ring);
/* Reports whether a ring still has its name and a receiver. */
bool stargate_ring_received(struct stargate_volume *v, const struct stargate_ring *ring);
void stargate_ring_close(struct stargate_volume *v, struct stargate_ring *ring);

#endif
