// SPDX-License-Identifier: GPL-2.0
/*
 * Finds the slots of a machine. Each system stores its machine's number in its slot. These
 * functions are for a system that watches machines from outside, as a host watches its VMs. (D6;
 * docs/protocol.md, section 3). The number in a slot is as untrusted as all words of the volume. A
 * member that stores the number of another machine is treated as a part of that machine (D10).
 */
#include "internal.h"

/* Firmware reports all zeroes or all ones for a machine without a number. */
bool sg_machine_known(const u8 machine[16])
{
	unsigned int i;

	for (i = 1; i < 16; i++)
		if (machine[i] != machine[0])
			return true;
	return machine[0] != 0 && machine[0] != 0xff;
}

bool sg_slot_of_machine(const struct sg_slot *slot, const u8 machine[16])
{
	return SG_SLOT_STATE(slot->state) == SG_SLOT_LIVE &&
	       slot->named == SG_SLOT_INC(slot->state) && !memcmp(slot->machine, machine, 16);
}

/* Reports whether the machine ran on this host in an earlier boot. */
static bool was_hosted(const struct sg_slot *slot, const struct sg_identity *id)
{
	return SG_SLOT_STATE(slot->state) == SG_SLOT_LIVE &&
	       slot->hosted == SG_SLOT_INC(slot->state) && !memcmp(slot->host, id->machine, 16) &&
	       memcmp(slot->host_boot, id->boot, 16);
}

/*
 * Returns the slots of this machine, or of a VM on it, from another boot. They cannot be live if
 * the machine's number is unique.
 */
u64 sg_slots_of_machine(const struct sg_vol *vol, const struct sg_identity *id)
{
	struct sg_slot slot;
	unsigned int i;
	u64 bits = 0;

	for (i = 0; i < SG_SLOTS && sg_machine_known(id->machine); i++) {
		sg_slot_read(vol, i, &slot);
		if ((sg_slot_of_machine(&slot, id->machine) && memcmp(slot.boot, id->boot, 16)) ||
		    was_hosted(&slot, id))
			bits |= 1ULL << i;
	}
	return bits;
}

/*
 * Reports whether the slot is that of this system. After a fence it is not this system's any more.
 */
static bool is_ourselves(const struct sg_vol *vol, unsigned int i, const struct sg_slot *slot)
{
	return (int)i == vol->slot && slot->state == vol->alive;
}

/*
 * Stores this host and its boot in the slot of a machine that it sees, once for each incarnation.
 * Such a machine ends with this host, and the host's next boot has no other way to find that out.
 */
static void note_host(struct sg_vol *vol, struct sg_slot *shared, u32 inc)
{
	struct sg_slot self;

	sg_slot_read(vol, (unsigned int)vol->slot, &self);
	if (self.state != vol->alive || !sg_machine_known(self.machine))
		return;
	sg_os_write(shared->host, self.machine, 16);
	sg_os_write(shared->host_boot, self.boot, 16);
	sg_store64_release(&shared->hosted, inc);
	sg_wb(shared, sizeof(*shared));
	sg_fence();
}

void sg_guard_slot(struct sg_vol *vol, unsigned int i, const u8 machine[16])
{
	struct sg_slot slot, *shared;

	sg_slot_read(vol, i, &slot);
	if (is_ourselves(vol, i, &slot) || !sg_slot_of_machine(&slot, machine))
		return;
	shared = sg_at(vol, sg_slot_off(vol, i));
	sg_store64(&shared->guard, slot.guard + 1);
	if (vol->slot >= 0 && slot.hosted != SG_SLOT_INC(slot.state))
		note_host(vol, shared, SG_SLOT_INC(slot.state));
}

void sg_guard(struct sg_vol *vol, const u8 machine[16])
{
	unsigned int i;

	for (i = 0; i < SG_SLOTS; i++)
		sg_guard_slot(vol, i, machine);
}

unsigned int sg_fence_machine(struct sg_vol *vol, const u8 machine[16])
{
	struct sg_slot slot;
	unsigned int i, n = 0;

	for (i = 0; i < SG_SLOTS && !sg_has_stopped(vol); i++) {
		sg_slot_read(vol, i, &slot);
		if (is_ourselves(vol, i, &slot) || !sg_slot_of_machine(&slot, machine) ||
		    sg_fence_slot(vol, i, SG_SLOT_INC(slot.state)))
			continue;
		sg_log(vol->owner, SG_WARN, "%.60s (slot %u): its VM has ended: fenced",
		       slot.name, i);
		n++;
	}
	return n;
}
