/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stargatefs-fuse: a system in user space. It joins a volume like any other system, and serves the
 * volume's files to the kernel by the FUSE protocol. docs/fuse.md describes the design.
 */
#ifndef SG_FUSE_H
#define SG_FUSE_H

#include <pthread.h>
#include "tool.h"
#include "wire.h"

#define IO_MAX		(1u << 20)	/* bytes of one READ or WRITE */
#define CALL_BYTES	(IO_MAX + 8192)	/* a request: its headers, and the data of a WRITE */
#define WORKERS_MAX	64
#define WORKERS		32		/* by default */
#define SPARE_CALLS	32		/* requests that may wait for a worker */
/*
 * Further requests that may wait for a worker: those that release closed files. The kernel has at
 * most this many of them in progress. The server must not refuse such a request, or the file would
 * never be released.
 */
#define SPARE_RELEASES	64
#define CALLS		(WORKERS_MAX + SPARE_CALLS + SPARE_RELEASES)
#define HANDLES		(1u << 20)	/* open files and directories */
#define STATUS_AGAIN	75		/* exit status: the keeper shall start another server */
#define REPLY_KEPT	256		/* largest reply that is kept, in bytes */

enum errors { ERRORS_REMOUNT_RO, ERRORS_CONTINUE };

struct options {
	const char *volume, *dir;
	bool foreground, read_only, noatime, others, alone, mappings;
	unsigned int workers;
	unsigned long flags;	/* MS_... */
	u64 cache_ns;		/* how long the kernel may cache names and attributes */
	enum errors errors;
	bool kept;		/* another program is the keeper, with these descriptors: */
	int kept_mount, kept_memory;
};

/* --- memory that the next server inherits (keeper.c) ----------------------------------------- */

enum { CALL_FREE, CALL_READING, CALL_QUEUED, CALL_RUNNING, CALL_DONE };

/**
 * struct call - a request of the kernel, from its read() until its reply.
 * @state: CALL_...; @now: the time that its changes get.
 * @repeated: an earlier server has begun the call, and may have finished it. @note: data of that
 * attempt, stored by the handler for a repetition.
 * @interrupted: the number of the last request that was interrupted here: this request, or an older
 * one in the same memory.
 * @reply, @reply_len: the reply, valid in the state CALL_DONE.
 * @in: the request, with its header.
 */
struct call {
	u64 state, now, note[4], interrupted;
	u32 reply_len, repeated;
	u8 reply[REPLY_KEPT];
	u8 in[CALL_BYTES] __attribute__((aligned(64)));
};

struct handle {
	u64 id;			/* of the node; 0: this handle is free */
	u64 flags;		/* HANDLE_... */
};
#define HANDLE_DIR	1u
#define HANDLE_WRITES	2u	/* open for writing */
#define HANDLE_KEPT	4u	/* of a file that counts as open (keep.c), but is not */
/* behind the flags: the number of the call that has made the handle */
#define HANDLE_CALL	3
#define HANDLE_FLAGS(flags, unique)	((u64)(flags) | (unique) << HANDLE_CALL)

/*
 * A user's lock that this system holds (locks.c). @behind: the last server had this lock, and this
 * server has not taken it again yet.
 */
#define LOCKS_KEPT	16384
#define WAITS_KEPT	4096
struct kept_lock {
	u64 id, fh, owner, start, last;
	u32 pid;
	u8 kind, exclusive, behind;
};
/*
 * A request for a lock that waits. @unique: 0 if this entry is unused. @answered: the result is in
 * @err. If @err is 0, the table of locks contains the lock.
 */
struct kept_wait {
	u64 unique, id;
	u32 interrupted, answered;
	s32 err;
	struct fuse_lk_in in;
};

/* A thread of which a call has failed with ESTALE (keep.c). @pid: as in its requests. */
#define STALE_KEPT	256
struct kept_stale {
	u64 until;
	u32 pid;
};

/* This number changes with each change of the layout or the meaning of struct inherited. */
#define KEPT_LAYOUT	4

struct inherited {
	u64 layout;		/* KEPT_LAYOUT, once a server has used it */
	u64 begun;		/* INIT is done, with these flags: */
	u64 flags;
	u64 slot, incarnation;	/* of the last server, while it is joined (slot + 1, or 0) */
	u64 handles;		/* all handles from this number on are unused */
	struct call call[CALLS];
	u64 locks;
	struct kept_lock lock[LOCKS_KEPT];
	struct kept_wait wait[WAITS_KEPT];
	u64 stale_until;	/* of all of these: the latest */
	struct kept_stale stale[STALE_KEPT];
	struct handle handle[HANDLES];
};

/* --- the server ------------------------------------------------------------------------------ */

/**
 * struct worker - a thread that handles calls.
 * @call: its current call; @unique: the number of that call, or 0; @since: its start (sg_ticks()).
 * @out: buffer for replies with data, allocated for the first such reply.
 */
struct worker {
	pthread_t thread;
	bool used;
	struct call *call;
	u64 unique, since;
	u8 *out;
};

struct server {
	struct options opt;
	struct target target;
	struct sg_vol vol;
	int fd;			/* /dev/fuse */
	struct inherited *kept;
	bool joined, durable, damaged;
	u64 stopping;
	u64 reserved;		/* bytes of address space at vol.base */
};
extern struct server fs;
#define VOL	(&fs.vol)

/* mount.c: returns the descriptor of a new mount, or -1 after it has reported the error */
int mount_fuse(const struct options *opt);
void mount_end(const struct options *opt, bool lazy);
int fd_send(int socket, int fd);
int fd_receive(int socket);	/* or -1 */

void *reserve_room(size_t len);	/* memory is allocated on first use; NULL: failure */

/* member.c: the server as a system of the volume */
int system_join(void);
void system_leave(void);
/*
 * change_begin() and change_end() enclose everything that changes the volume. So no change is in
 * progress while the volume is frozen. change_begin() returns -EINTR if the caller was interrupted.
 */
int change_begin(void);
bool change_try(void);		/* false: the volume is frozen */
void change_end(void);
bool system_alive(void);

/* session.c: calls and replies */
int session_run(void);
void session_prepare(void);	/* after it, fs.stopping ends waits for other systems */
/*
 * Lets no thread begin another call, and waits for the calls in progress. Returns false if some of
 * them have not ended within that time.
 */
bool session_stop(unsigned int seconds);
extern __thread struct worker *self;
#define IN	((const struct fuse_in_header *)self->call->in)
#define ARG(type) ((const type *)call_arg(sizeof(type)))
const void *call_arg(size_t len);	/* NULL: the request is shorter */
/* Returns the string of the request at offset @at, or NULL if there is none. */
const char *call_name(size_t at, size_t *next);
u8 *out_room(void);
int reply(const void *data, size_t len);
int reply_large(const void *data, size_t len);
void reply_none(void);			/* FORGET has no reply */
void reply_later(void);			/* another thread replies by answer() */
void answer(u64 unique, int err, const void *data, size_t len);
s64 call_time(void);			/* the time that changes of this call get */
static inline bool is_repeated(void)
{
	return self->call->repeated;
}

/* node.c: the inodes that the kernel has looked up */
u64 node_id(const struct sg_iref *ref);
int node_ref(u64 id, struct sg_iref *ref);
int node_of(u64 ino, struct sg_iref *ref);
void node_known(u64 id);
void node_forget(u64 id, u64 n);
int node_open(u64 id, const struct sg_iref *ref, bool again, bool made);
void node_close(u64 id);
bool node_in_use(struct sg_vol *vol, u64 ino, u32 generation);
int node_prepare(void);
void node_inherit(void);
void node_close_all(void);
int handle_new(u64 id, unsigned int flags, u64 *fh);
/* The node of the handle that the last server made for this call; 0: none. */
u64 handle_of_last(u64 *fh);
u64 handle_end(u64 fh);
/*
 * Until the end, no process opens the node for writing (ETXTBSY). -EBUSY: one has it open so, or
 * another node is being sealed.
 */
int handles_deny_writes(u64 id);
void handles_allow_writes(void);
unsigned int handles_of(u64 id);	/* the number of its open files */
void handle_drop(u64 fh);		/* of a handle that the kernel does not know */
/* Sets a node's mark for keep.c, with @if_kept only if it is kept. Returns its earlier mark. */
enum { NOT_KEPT, KEPT, KEPT_AGAIN };
u8 node_mark(u64 id, u8 mark, bool if_kept);
struct sg_inode *node_record(const struct sg_iref *ref);
static inline u32 node_flags(const struct sg_iref *ref)
{
	return (u32)(sg_load64(&node_record(ref)->genflags) >> 32);
}

/*
 * keep.c: after an ESTALE, the files that this thread looks up count as open, until it has opened
 * one, or for some seconds
 */
void nodes_keep_for_caller(void);
void nodes_opened(void);
int node_keep(const struct sg_iref *ref);
void nodes_keep_inherited(u64 id, u64 fh);
void nodes_settle(void);	/* each second */

/* attr.c */
int attr_of(const struct sg_iref *ref, struct fuse_attr *out);
void valid_for(u64 *sec, u32 *nsec);
int drop_privileges(const struct sg_iref *ref, bool ids, s64 now);
void touch_atime(const struct sg_iref *ref);
bool is_fixed(const struct sg_iref *ref, u32 flags);	/* true: one of these SG_FL_... is set */
int truncate_to(const struct sg_iref *ref, u64 size, bool ids, s64 now);
int op_getattr(void);
int op_statx(void);
int op_setattr(void);
int op_statfs(void);
int op_ioctl(void);

/* names.c */
int op_lookup(void);
int op_mknod(void);
int op_mkdir(void);
int op_symlink(void);
int op_link(void);
int op_create(void);
int op_tmpfile(void);
int op_unlink(void);
int op_rmdir(void);
int op_rename(void);
int op_rename2(void);
int op_readlink(void);

/* dirs.c */
int op_opendir(void);
int op_readdir(void);
int op_readdirplus(void);
int entry_of(const struct sg_iref *ref, struct fuse_entry_out *out);

/* data.c */
int op_open(void);
int op_release(void);
int op_read(void);
int op_write(void);
int op_fsync(void);
int op_fallocate(void);
int op_lseek(void);
int op_copy(void);

/* seal.c */
int ioctl_seal(const struct sg_iref *ref, const struct fuse_ioctl_in *in);

/* xattr.c, acl.c */
struct payload {
	u8 *data;
	u32 len;
};
int op_getxattr(void);
int op_setxattr(void);
int op_listxattr(void);
int op_removexattr(void);
int acl_inherit(const struct sg_iref *dir, u32 *mode, u32 umask, struct payload *p);
int acl_chmod(const struct sg_iref *ref, u32 mode, s64 now, bool *done);
int acl_set(const struct sg_iref *ref, unsigned int space, const void *value, u32 len,
	    bool drop_gid, s64 now);

/* locks.c */
int op_getlk(void);
int op_setlk(void);
int op_flush(void);
void locks_release(u64 id, u64 fh, u64 flock_owner, bool flock);
bool locks_interrupt(u64 unique);
bool locks_end_wait(void);	/* true: locks_stop() ends the wait of this thread */
bool locks_wait(u64 unique);	/* true: this request waits for a lock */
void locks_start(void);		/* takes over the last server's locks, before new ones */
void locks_serve(void);
void locks_stop(void);

#endif
