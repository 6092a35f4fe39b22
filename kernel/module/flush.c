// SPDX-License-Identifier: GPL-2.0
/*
 * Whether the module writes cache lines back (clwb). Write-back is half of the cost of a change of
 * metadata. It is useless if the platform writes the caches back itself when power fails (eADR), or
 * if the memory is lost with the power anyway.
 *
 * The device says whether its caches persist: the platform reports it in the NFIT, and an
 * administrator can change it (DEVICE/dax/write_cache in sysfs). A namespace without struct pages
 * cannot be asked, because its driver does not offer it for DAX. No device says that its memory is
 * DRAM: memmap= reserves both DRAM and old NVDIMMs. So only the option flush=never skips the
 * write-back there. The bytes of DRAM survive a warm reset, but caches may not.
 */
#include <linux/dax.h>
#include <linux/jump_label.h>

#include "stargatefs.h"

DEFINE_STATIC_KEY_FALSE(sgfs_flush_key);

bool sgfs_flush_needed(const struct sgfs_memory *mem, enum sgfs_flush flush)
{
	if (flush != SGFS_FLUSH_AUTO)
		return flush == SGFS_FLUSH_ALWAYS;
	return !mem->dax || dax_write_cache_enabled(mem->dax);
}

/*
 * The engine's interface names no mount, so the decision is one for all mounts of this system: as
 * long as one of them needs write-back, all lines are written back. A mount counts from before its
 * first store until after its last one.
 */
void sgfs_flush_use(struct sgfs *fs, bool needed)
{
	if (needed == fs->flushes)
		return;
	if (needed)
		static_branch_inc(&sgfs_flush_key);
	else
		static_branch_dec(&sgfs_flush_key);
	fs->flushes = needed;
}
