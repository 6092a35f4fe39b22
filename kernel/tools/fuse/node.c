// SPDX-License-Identifier: Apache-2.0
/*
 * Nodes: the inodes of the volume that the kernel has looked up or has open.
 *
 * A node's number consists of the inode's number and 28 bits of the inode's generation. So nodes
 * need no table of numbers, and their numbers stay valid for the next server. The table below has
 * only two counts of each node: the kernel's look-ups, and the open files. This file reports the
 * first open and the last close of a node to the volume.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include "fuse.h"

#define INO_BITS	36
#define GENERATION_MASK	((1u << (64 - INO_BITS)) - 1)
#define CHAINS		(1u << 16)
#define LOCKS		64

struct node {
	struct node *next;
	u64 id, lookups;
	u32 opens;
	bool counted;		/* the volume counts this node as open */
	u8 kept;		/* for keep.c: NOT_KEPT, KEPT or KEPT_AGAIN */
};

static struct node *chain[CHAINS];
static pthread_mutex_t chain_lock[LOCKS] = { [0 ... LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER };

static struct {
	pthread_mutex_t lock;
	u64 *free, nfree;	/* used handles that are free again */
	u64 sealing;		/* the node that is being sealed, or 0 */
} handles = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- numbers -------------------------------------------------------------------------------- */

struct sg_inode *node_record(const struct sg_iref *ref)
{
	return (struct sg_inode *)(VOL->base + ref->off);
}

u64 node_id(const struct sg_iref *ref)
{
	if (ref->ino == SG_INO_ROOT)
		return FUSE_ROOT_ID;
	return ref->ino | (ref->generation & GENERATION_MASK) << INO_BITS;
}

/* Finds the inode that has this number now. */
int node_of(u64 ino, struct sg_iref *ref)
{
	int err = sg_iref(VOL, ino, ref);

	if (!err && sg_is_lost(VOL, ref->off))
		err = -EIO;
	if (!err)
		ref->generation = (u32)sg_load64(&node_record(ref)->genflags);
	return err;
}

/*
 * Finds the inode of a node of the kernel. Returns -ESTALE if another file has the inode number
 * now.
 */
int node_ref(u64 id, struct sg_iref *ref)
{
	u64 ino = id == FUSE_ROOT_ID ? SG_INO_ROOT : id & SG_INO_MAX;
	int err = node_of(ino, ref);

	if (err)
		return err;
	if (id != FUSE_ROOT_ID && (ref->generation & GENERATION_MASK) != id >> INO_BITS)
		return -ESTALE;
	return 0;
}

/* --- the table ------------------------------------------------------------------------------ */

static unsigned int hash_of(u64 id)
{
	return (unsigned int)((id * 0x9e3779b97f4a7c15ULL) >> 48) & (CHAINS - 1);
}

static pthread_mutex_t *lock_chain(u64 id)
{
	pthread_mutex_t *lock = &chain_lock[hash_of(id) % LOCKS];

	pthread_mutex_lock(lock);
	return lock;
}

static struct node *find(u64 id)
{
	struct node *n = chain[hash_of(id)];

	while (n && n->id != id)
		n = n->next;
	return n;
}

static struct node *find_or_new(u64 id)
{
	struct node *n = find(id);

	if (n)
		return n;
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->id = id;
	n->next = chain[hash_of(id)];
	chain[hash_of(id)] = n;
	return n;
}

/* Frees the entry of a node without look-ups and open files. Returns true if it has. */
static bool drop_unused(u64 id)
{
	struct node **at = &chain[hash_of(id)], *n;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	n = *at;
	if (!n || n->lookups || n->opens)
		return false;
	*at = n->next;
	free(n);
	return true;
}

/*
 * Counts a look-up. Without memory the count is lost. Then a removed directory may be freed while
 * it is the working directory of a process.
 */
void node_known(u64 id)
{
	pthread_mutex_t *lock = lock_chain(id);
	struct node *n = find_or_new(id);

	if (n)
		n->lookups++;
	pthread_mutex_unlock(lock);
}

/*
 * Frees an inode without links after the kernel has forgotten it or closed its last open file.
 * Waits for no other system: sg_settle() tries again.
 */
static void evict(u64 id)
{
	struct sg_iref ref;

	if (id == FUSE_ROOT_ID || node_ref(id, &ref) || sg_load64(&node_record(&ref)->mode) >> 32)
		return;
	if (!sg_load64(&node_record(&ref)->mode) || fs.vol.read_only || !system_alive())
		return;
	if (!change_try())	/* the volume is frozen: sg_settle() frees the inode later */
		return;
	sg_evict_try(VOL, &ref);
	change_end();
}

void node_forget(u64 id, u64 n)
{
	pthread_mutex_t *lock = lock_chain(id);
	struct node *node = find(id);
	bool gone = !node;	/* only the last server had an entry */

	if (node) {
		node->lookups -= n < node->lookups ? n : node->lookups;
		gone = drop_unused(id);
	}
	pthread_mutex_unlock(lock);
	if (gone)
		evict(id);
}

/*
 * Counts an open file of a node. @again: the file may have no links, because this system had it
 * open before, or has created it. @made: the volume already counts the file as open (sg_tmpfile()).
 */
int node_open(u64 id, const struct sg_iref *ref, bool again, bool made)
{
	pthread_mutex_t *lock = lock_chain(id);
	struct node *n = find_or_new(id);
	int err = n ? 0 : -ENOMEM;

	if (n && !n->counted && !made)
		err = sg_open_inode(VOL, ref, again);
	if (!err) {
		n->counted = true;
		n->opens++;
	} else if (n) {
		drop_unused(id);
	}
	pthread_mutex_unlock(lock);
	return err;
}

void node_close(u64 id)
{
	pthread_mutex_t *lock = lock_chain(id);
	struct node *n = find(id);
	bool removed = false;
	struct sg_iref ref;

	if (n && n->opens && !--n->opens) {
		if (n->counted && !node_ref(id, &ref))
			removed = sg_close_inode(VOL, &ref);
		n->counted = false;
		drop_unused(id);
	}
	pthread_mutex_unlock(lock);
	if (removed)
		evict(id);
}

u8 node_mark(u64 id, u8 mark, bool if_kept)
{
	pthread_mutex_t *lock = lock_chain(id);
	struct node *n = find(id);
	u8 before = n ? n->kept : NOT_KEPT;

	if (n && (before || !if_kept))
		n->kept = mark;
	pthread_mutex_unlock(lock);
	return before;
}

/*
 * For the engine: an inode without links that this system has deferred. It must not wait, because
 * the caller has the engine's lock of openers. Opens and closes take that lock while they have a
 * chain's lock. If one of them is at work in this chain, the inode counts as in use.
 */
bool node_in_use(struct sg_vol *vol, u64 ino, u32 generation)
{
	struct sg_iref ref = { .ino = ino, .generation = generation };
	pthread_mutex_t *lock;
	struct node *n;
	bool used;

	(void)vol;
	lock = &chain_lock[hash_of(node_id(&ref)) % LOCKS];
	if (pthread_mutex_trylock(lock))
		return true;
	n = find(node_id(&ref));
	used = n && (n->lookups || n->opens);
	pthread_mutex_unlock(lock);
	return used;
}

/* --- handles -------------------------------------------------------------------------------- */

/*
 * Makes a handle, which then owns one open count of the node. The call notes the handle, and the
 * handle has the call's number. If the server dies, the next server finds it (handle_of_last()).
 * The kernel does not know a handle of a kept node (keep.c), and the call does not note it.
 */
int handle_new(u64 id, unsigned int flags, u64 *fh)
{
	struct inherited *k = fs.kept;
	int err = 0;

	pthread_mutex_lock(&handles.lock);
	if (flags & HANDLE_WRITES && handles.sealing == id)
		err = -ETXTBSY;
	else if (handles.nfree)
		*fh = handles.free[--handles.nfree];
	else if (k->handles < HANDLES)
		*fh = k->handles++;
	else
		err = -ENFILE;
	if (!err) {
		k->handle[*fh].flags = HANDLE_FLAGS(flags, IN->unique);
		if (!(flags & HANDLE_KEPT))
			self->call->note[0] = *fh + 1;
		__atomic_store_n(&k->handle[*fh].id, id, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&handles.lock);
	return err;
}

void handle_drop(u64 fh)
{
	pthread_mutex_lock(&handles.lock);
	fs.kept->handle[fh].id = 0;
	handles.free[handles.nfree++] = fh;
	pthread_mutex_unlock(&handles.lock);
}

u64 handle_of_last(u64 *fh)
{
	const struct inherited *k = fs.kept;
	u64 noted = self->call->note[0], id = 0;

	if (!is_repeated() || !noted)
		return 0;
	pthread_mutex_lock(&handles.lock);
	*fh = noted - 1;
	if (*fh < k->handles &&
	    k->handle[*fh].flags >> HANDLE_CALL == HANDLE_FLAGS(0, IN->unique) >> HANDLE_CALL)
		id = k->handle[*fh].id;
	pthread_mutex_unlock(&handles.lock);
	return id;
}

/*
 * Notes in the call which handle it ends. Another call may use the same number before the repeated
 * call.
 */
static bool is_to_end(const struct handle *h)
{
	u64 *note = self->call->note;

	if (is_repeated() && note[0] && note[1] != h->flags)
		return false;
	note[1] = h->flags;
	note[0] = 1;
	return true;
}

/* Frees a handle. Returns its node, or 0 if there is no such handle. */
u64 handle_end(u64 fh)
{
	u64 id = 0;

	pthread_mutex_lock(&handles.lock);
	if (fh < fs.kept->handles && fs.kept->handle[fh].id && is_to_end(&fs.kept->handle[fh])) {
		id = fs.kept->handle[fh].id;
		fs.kept->handle[fh].id = 0;
		handles.free[handles.nfree++] = fh;
	}
	pthread_mutex_unlock(&handles.lock);
	return id;
}

/* Counts the open files of a node that have all of these flags. */
static unsigned int count_handles(u64 id, u64 flags)
{
	const struct inherited *k = fs.kept;
	unsigned int n = 0;
	u64 fh;

	for (fh = 0; fh < k->handles; fh++)
		n += k->handle[fh].id == id &&
		     (k->handle[fh].flags & (flags | HANDLE_KEPT)) == flags;
	return n;
}

int handles_deny_writes(u64 id)
{
	int err = 0;

	pthread_mutex_lock(&handles.lock);
	if (handles.sealing || count_handles(id, HANDLE_WRITES))
		err = -EBUSY;
	else
		handles.sealing = id;
	pthread_mutex_unlock(&handles.lock);
	return err;
}

void handles_allow_writes(void)
{
	pthread_mutex_lock(&handles.lock);
	handles.sealing = 0;
	pthread_mutex_unlock(&handles.lock);
}

unsigned int handles_of(u64 id)
{
	unsigned int n;

	pthread_mutex_lock(&handles.lock);
	n = count_handles(id, 0);
	pthread_mutex_unlock(&handles.lock);
	return n;
}

/*
 * Counts the open files of the last server before the join, because the engine then checks which
 * nodes are in use. node_inherit() reports them to the volume later.
 */
int node_prepare(void)
{
	struct inherited *k = fs.kept;
	struct node *n;
	u64 fh;

	handles.free = reserve_room(HANDLES * sizeof(*handles.free));
	if (!handles.free)
		return -ENOMEM;
	for (fh = 0; fh < k->handles; fh++) {
		u64 id = k->handle[fh].id;

		if (!id) {
			handles.free[handles.nfree++] = fh;
			continue;
		}
		n = find_or_new(id);
		if (!n)
			return -ENOMEM;
		n->opens++;
		if (k->handle[fh].flags & HANDLE_KEPT)
			nodes_keep_inherited(id, fh);
	}
	return 0;
}

/*
 * Reports inherited open files to the volume, after the join. Users of a file that was removed
 * meanwhile get ESTALE.
 */
void node_inherit(void)
{
	struct sg_iref ref;
	struct node *n;
	unsigned int i;

	for (i = 0; i < CHAINS; i++)
		for (n = chain[i]; n; n = n->next)
			n->counted = n->opens && !node_ref(n->id, &ref) &&
				     !sg_open_inode(VOL, &ref, true);
}

/* Closes all files before the system leaves, and frees removed files that were open. */
void node_close_all(void)
{
	struct sg_iref ref;
	struct node *n;
	unsigned int i;

	for (i = 0; i < CHAINS; i++) {
		for (n = chain[i]; n; n = n->next) {
			n->opens = 0;
			n->lookups = 0;
			if (n->counted && !node_ref(n->id, &ref) && sg_close_inode(VOL, &ref))
				evict(n->id);
			n->counted = false;
		}
	}
}
