/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations that the tools share: errors in one line, sizes, JSON, the volume's file or device.
 */
#ifndef SG_TOOL_H
#define SG_TOOL_H

#include <limits.h>
#include <stdio.h>
#include <sys/types.h>
#include "engine.h"
#include "format/version.h"

#define TOOL_VERSION	SG_RELEASE
#define SG_ALIGN_PAGE(x)	(((x) + SG_PAGE - 1) & ~(SG_PAGE - 1))

/* --- sha256.c, digest.c: digests of sealed files ------------------------------------------- */

void sha256(const void *data, size_t len, u8 out[32]);
/* Reads bytes of a file: returns all of them, or an error. */
typedef s64 digest_read(void *from, u64 pos, void *buf, u64 len);
/*
 * Computes the root of the tree of hashes over the file's contents. Only one thread at a time may
 * call it.
 */
int digest_root(digest_read *read, void *from, u64 size, u8 root[32]);
/* Computes the file's digest, as `fsverity digest` prints it. */
void digest_of(const u8 root[32], u64 size, u8 out[32]);

/* --- tool.c -------------------------------------------------------------------------------- */

extern const char *tool_name;	/* prefix of all messages */
extern bool tool_quiet;		/* suppresses the engine's warnings */
extern int tool_trouble;	/* exit status if memory of the volume is missing */

void tool_begin(const char *name, char **argv);
/* After this call, a closed pipe or terminal does not interrupt the tool; SIGINT still does. */
void tool_goes_on(void);
/* undoes the changes of tool_begin(), before the start of another program */
void tool_signals_back(void);
/* Prints one line on stderr with the error and the action to take. */
void tool_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tool_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * Like tool_error(), for errors of the command line, with a hint at --help. The functions below
 * return the exit status.
 */
int tool_usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Reports that an option's argument is not one of those @allowed. @size: parse_size() reads it. */
int tool_value_error(const char *option, const char *text, bool size, const char *allowed);
/*
 * Reports the error of a getopt_long() that has returned ':' or '?' (opterr 0 suppresses its own
 * messages).
 */
int tool_option_error(int found, char **argv);
int tool_help(const char *usage);
int tool_version(void);
/* Reports, only once, that a write to standard output has failed (errno). Returns -errno. */
int tool_output_error(void);
/* Returns whether all output has been written; reports a failure. */
bool tool_output_whole(void);
/* Returns the exit status: @status, or 1, after a message, if the output could not be written. */
int tool_end(int status);

/*
 * Reads a number of only digits in @radix. Returns false for other text, or for a number above
 * @max.
 */
bool parse_number(const char *text, unsigned int radix, u64 max, u64 *out);
/*
 * Reads "64M", "0x240000000" or "1G". Returns false for other text, or for a number that is too
 * large.
 */
bool parse_size(const char *text, u64 *out);
/* Reads an address at which a volume may begin. */
bool parse_base(const char *text, u64 *out);
#define BASE_RULE	"2M to 4095T, a multiple of 2M"
bool parse_uuid(const char *text, u8 uuid[16]);
/* Reads "never", "0", or seconds into milliseconds; 0 means never. */
bool parse_lease(const char *text, u64 *ms);
#define LEASE_RULE	"never (0), or 2 to 86400 (seconds)"
bool label_valid(const char *label);
#define LABEL_RULE	"up to 63 bytes of UTF-8 without control characters"
const char *show_size(u64 bytes, char buf[32]);
const char *show_uuid(const u8 uuid[16], char buf[37]);
const char *show_time(s64 ns, char buf[48]);

/* --- text.c -------------------------------------------------------------------------------- */

/* Prints text for people: unambiguous, harmless to terminals, on one line. */
void put_text(FILE *out, const char *text, size_t len);
void print_text(const char *text);		/* the same for a string, to standard output */
bool text_plain(const char *text, size_t len);	/* UTF-8 without control characters */
/* Returns the length of the UTF-8 character at @s, or 0 if it is not one. */
size_t utf8_len(const unsigned char *s, size_t left);
/* Returns the number of such a character if it must not reach a terminal unchanged, otherwise 0. */
unsigned int utf8_hidden(const unsigned char *s, size_t n);

/* --- json.c -------------------------------------------------------------------------------- */

/**
 * struct json - an output in progress, for programs (JSON) or for people (@plain). Keys are NULL
 * within arrays.
 */
struct json {
	FILE *out;
	unsigned int depth;
	bool first, plain, row;
};
void json_begin(struct json *j, FILE *out, bool plain);
void json_end(struct json *j);
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_row(struct json *j, const char *key);	/* an object on one line, without inner objects */
void json_close(struct json *j, char bracket);	/* '}' or ']' */
void json_u64(struct json *j, const char *key, u64 value);
void json_s64(struct json *j, const char *key, s64 value);
void json_bool(struct json *j, const char *key, bool value);
/* in JSON it is a string: "0x..." */
void json_hex(struct json *j, const char *key, u64 value);
void json_size(struct json *j, const char *key, u64 bytes);
/* in JSON it is ns since the epoch */
void json_time(struct json *j, const char *key, s64 ns);
/*
 * Prints bytes. In JSON, bytes that are not UTF-8 become U+FFFD, and a member "KEY_hex" with all
 * bytes follows. For people, prints as put_text() does.
 */
void json_str(struct json *j, const char *key, const char *value);
void json_bytes(struct json *j, const char *key, const char *value, size_t len);

/* --- target.c: the file or device that holds a volume -------------------------------------- */

enum target_kind { TARGET_FILE, TARGET_BLOCK, TARGET_DAX };
enum target_use {
	TARGET_LOOK,		/* private copy: stores to it stay in this process */
	TARGET_READ,		/* read-only mapping */
	TARGET_CHANGE,		/* shared; no other process here may use the device */
	TARGET_HOLD,		/* like TARGET_CHANGE, for a volume; block device: device.c */
	TARGET_CHECK,		/* like TARGET_HOLD, but read-only until target_change() */
	TARGET_SHARE,		/* shared with present users; need not be a volume yet */
};

/**
 * struct target - a mapped volume. @fd: descriptor of the file or device; @base, @size: its
 * mapping. @made, @grown, @was: set by target_create(), which has made the file, or has grown it
 * from size @was. @device: for a held block device, see device.c.
 */
struct device;
struct target {
	const char *path;
	int fd;
	enum target_kind kind;
	enum target_use use;
	dev_t rdev;
	void *base;
	u64 size;
	bool made, grown;
	u64 was;
	struct device *device;
};
/*
 * Makes @path mean the file behind @fd from now on, because a user with write permission for the
 * folder may exchange the file.
 */
void target_pin(const char *path, int fd);
const char *target_path(const char *path);	/* returns the path with which to open it */
bool file_is_named(int fd, const char *path);	/* sets its only name */
/* Both report errors. */
int target_open(struct target *t, const char *path, enum target_use use);
int target_create(struct target *t, const char *path, const struct sg_super *sb, bool sparse);
/*
 * Changes a target from TARGET_CHECK to TARGET_HOLD, mapped at the same address. Returns 0, or
 * -errno and sets @why. From then on the kernel charges the mapping of a block device as memory of
 * this process.
 */
int target_change(struct target *t, char why[200]);
/*
 * Adapts the mapping of a TARGET_SHARE target, which may grow, shrink, or become a volume at any
 * time. Call it before each read. Returns false if the target is now too small for a volume; base
 * is then NULL.
 */
bool target_follow(struct target *t);
/*
 * Closes the target like target_close(), and restores the state of the file before target_create().
 *
 */
void target_undo(struct target *t);
/* These extend a file of @had bytes to @size, all allocated, and undo this. They report errors. */
int target_lengthen(const char *path, u64 had, u64 size);
void target_shorten(const char *path, u64 had);
/* Makes stores durable, also through a page cache. Returns 0 or -errno. */
int target_flush(const struct target *t);
/* Like target_flush(), and frees the reserved memory. */
int target_drain(const struct target *t);
/* Like target_drain(); also reports errors, and closes the target. */
int target_close(struct target *t);
/*
 * Finds the physical address of a device's first byte. Returns 0, or -errno (-ENODATA if it has
 * none).
 */
int target_phys(const struct target *t, u64 *phys);
int device_phys(dev_t dev, u64 *phys);	/* like target_phys(), for a block device */
bool device_read_only(int fd);
/* returns -EROFS, after a message, for a read-only block device */
int device_writable(int fd, const char *path);
bool device_is_dax(dev_t dev);		/* whether the kernel maps the device's memory directly */
/* Reads the device's present bytes, around any cache. */
int target_read_now(const struct target *t, u64 off, void *buf, size_t len);
/* opens it again; returns a descriptor, or -errno */
int device_past_cache(const struct target *t, int flags);

/* --- device.c: changes a block device while others may mount it ----------------------------- */

bool device_held(const struct target *t);	/* if false, the functions below do nothing */
bool device_has_told(const struct target *t);	/* whether another system has joined */
struct device *device_new(void);
void device_free(struct target *t);
/*
 * Remembers @slots, which were read while no heartbeat moved. @force: fence a system whose
 * heartbeat moves. Returns 0 or -errno.
 */
int device_watch(const struct target *t, const struct sg_super *sb, const struct sg_slot *slots,
		 bool force);
/*
 * Stores on the device, for other systems, that @vol has joined and has the volume exclusively.
 * Until now only the private copy has this, and nothing is stored. @vol NULL: no system can join
 * this volume. Returns -EBUSY if another system has joined; nothing more is stored then.
 */
int device_hold(const struct target *t, const struct sg_vol *vol, char why[200]);
void device_beat(const struct target *t);
/*
 * Stores all changes. If another system has joined, returns -EBUSY after a message, and stores
 * nothing.
 */
int device_store(const struct target *t);
/*
 * Like device_store(), and starts a new private copy, so that the next store has only later
 * changes.
 */
int device_drain(const struct target *t);
/* Counts @bytes more bytes in the private copy, and stores them after a certain number. */
int device_relieve(const struct target *t, u64 bytes);

/* Returns the name of another file system or container on the device, or NULL. */
const char *foreign_signature(const void *base, u64 size);
const char *foreign_besides_lvm(const void *base, u64 size);	/* besides LVM, which may be there,
								 * too */

/* --- mounts.c ------------------------------------------------------------------------------- */

/* Returns a directory where the StargateFS on that device is mounted here. */
bool mounted_at(dev_t dev, char where[PATH_MAX]);

/* Returns the directory of the mount that is the first one in the table. */
bool mounted_first(char where[PATH_MAX]);

/* Keeps the present table, so that all later calls use the same table. */
void mounts_keep(void);
bool mounted_read_only(const char *where);	/* whether that mount is read-only */
/* Returns, for a directory of a StargateFS, the file or device that has the complete volume. */
bool mounted_memory(const char *dir, char path[PATH_MAX]);

/* --- process.c ----------------------------------------------------------------------------- */

bool uuid_from(const char *path, u8 uuid[16]);	/* reads it from the first line of a file */
bool process_boot(u8 boot[16]);
u64 process_self(void);		/* SG_SLOT_PROCESS() */

/* --- member.c: a tool in the mount table --------------------------------------------------- */

void member_identity(struct sg_identity *id);
/*
 * Returns -EBUSY, after a message, if some system is live. Call this before a change of a block
 * device. Its mapping keeps the state of the first read, so the engine cannot detect a heartbeat in
 * it.
 */
int member_watch(const struct target *t, const struct sg_super *sb, unsigned int wait_ms,
		 char why[200]);
#define MEMBER_WAIT_MS	2500

/* The heartbeat of a joined volume, in its own thread. */
struct beater {
	struct sg_vol *vol;
	const struct target *target;
	pthread_t thread;
	bool running, stop;
};
void beater_start(struct beater *b, struct sg_vol *vol, const struct target *t);
void beater_stop(struct beater *b);

struct member {
	struct target target;
	struct sg_vol vol;
	struct beater beater;
	bool joined;
};
/*
 * Opens the volume at @path. For reading, changes nothing on the device, and recovers dead systems
 * in the private copy. For a change, joins with a heartbeat. Reports errors.
 */
int member_open(struct member *m, const char *path, bool change, bool force);
/*
 * Like member_open(), for a change on a file or device-dax node, together with all other systems.
 */
int member_join(struct member *m, const char *path);
int member_close(struct member *m);
/*
 * Opens the volume in its present state, even if it is in use. Changes nothing, recovers nothing,
 * and does not join. Close it with target_close(). Reports errors.
 */
int member_look_on(struct target *t, struct sg_vol *vol, const char *path);

#endif
