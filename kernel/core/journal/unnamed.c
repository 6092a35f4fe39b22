// SPDX-License-Identifier: GPL-2.0
/*
 * Inodes without a name that this system has made, uses, and has deferred on a list. Until
 * sg_close_inode() they are not freed, and may be linked, whatever the bits of openers are. The
 * ledger records this for its own entries. The data is in the system's own memory.
 */
#include "internal.h"

#define BUCKETS	4096

struct sg_kept {
	u64 ino;
	u32 generation;
	struct sg_kept *next;
};

struct sg_nameless {
	struct sg_spin spin;
	u64 n;
	struct sg_kept *bucket[BUCKETS];
};

int sg_nameless_open(struct sg_vol *vol)
{
	vol->nameless = sg_alloc(sizeof(*vol->nameless));
	if (!vol->nameless)
		return -ENOMEM;
	sg_spin_init(&vol->nameless->spin);
	return 0;
}

void sg_nameless_close(struct sg_vol *vol)
{
	struct sg_kept *k;
	unsigned int i;

	for (i = 0; vol->nameless && i < BUCKETS; i++) {
		while ((k = vol->nameless->bucket[i])) {
			vol->nameless->bucket[i] = k->next;
			sg_free(k);
		}
	}
	sg_free(vol->nameless);
	vol->nameless = NULL;
}

static struct sg_kept **unnamed_bucket(struct sg_nameless *set, u64 ino)
{
	return &set->bucket[ino % BUCKETS];
}

/* Called before other systems can see the transaction. */
void sg_nameless_keep(struct sg_tx *tx, const struct sg_iref *ref)
{
	struct sg_nameless *set = tx->vol->nameless;
	struct sg_kept *k = tx->err ? NULL : sg_alloc(sizeof(*k));

	if (!k) {
		sg_tx_fail(tx, -ENOMEM);
		return;
	}
	k->ino = ref->ino;
	k->generation = (u32)ref->generation;
	sg_spin_lock(&set->spin);
	k->next = *unnamed_bucket(set, ref->ino);
	*unnamed_bucket(set, ref->ino) = k;
	sg_store64(&set->n, set->n + 1);
	sg_spin_unlock(&set->spin);
	tx->kept = k;
}

static bool is_meant(const struct sg_kept *k, const struct sg_iref *ref)
{
	return k->ino == ref->ino && (!ref->generation || k->generation == (u32)ref->generation);
}

bool sg_nameless_kept(const struct sg_vol *vol, const struct sg_iref *ref)
{
	struct sg_nameless *set = vol->nameless;
	const struct sg_kept *k;

	if (!sg_load64(&set->n))
		return false;
	sg_spin_lock(&set->spin);
	for (k = *unnamed_bucket(set, ref->ino); k && !is_meant(k, ref); k = k->next)
		;
	sg_spin_unlock(&set->spin);
	return k;
}

void sg_nameless_drop(struct sg_vol *vol, const struct sg_iref *ref, const struct sg_kept *which)
{
	struct sg_nameless *set = vol->nameless;
	struct sg_kept **at, *k;

	if (!sg_load64(&set->n))
		return;
	sg_spin_lock(&set->spin);
	at = unnamed_bucket(set, which ? which->ino : ref->ino);
	while (*at && (which ? *at != which : !is_meant(*at, ref)))
		at = &(*at)->next;
	k = *at;
	if (k) {
		*at = k->next;
		sg_store64(&set->n, set->n - 1);
	}
	sg_spin_unlock(&set->spin);
	sg_free(k);
}
