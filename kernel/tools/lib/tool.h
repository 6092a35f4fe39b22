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

/* --- tool.c -------------------------------------------------------------------------------- */

extern const char *tool_name;	/* prefix of all messages */
extern bool tool_quiet;		/* the user need not see the engine's warnings */
extern int tool_trouble;	/* exit status when memory of the volume is missing */

void tool_begin(const char *name, char **argv);
/* From now on neither a closed pipe nor a closed terminal ends the tool half way; SIGINT does. */
void tool_goes_on(void);
void tool_signals_back(void);	/* before another program: undo the changes of tool_begin() */
/* One line on stderr with the error and the action to take. */
void tool_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tool_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * The same, for errors of the command line: with a hint. The functions below return the exit
 * status.
 */
int tool_usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* An option's argument is none of those @allowed. @size: parse_size() reads it. */
int tool_value_error(const char *option, const char *text, bool size, const char *allowed);
/* getopt_long() has returned ':' or '?' (its own messages are off: opterr is 0). */
int tool_option_error(int found, char **argv);
int tool_help(const char *usage);
int tool_version(void);
/* A write to standard output has failed (errno): report it, once. -errno. */
int tool_output_error(void);
/* All output has been written; if not, that is reported. */
bool tool_output_whole(void);
/* The exit status: @status, or 1 if the output could not be written, which is reported. */
int tool_end(int status);

/* Digits in @radix, and nothing else; false: it is no such number, or above @max. */
bool parse_number(const char *text, unsigned int radix, u64 max, u64 *out);
/* "64M", "0x240000000", "1G"; false: not a number, or too large. */
bool parse_size(const char *text, u64 *out);
/* An address at which a volume may begin. */
bool parse_base(const char *text, u64 *out);
#define BASE_RULE	"2M to 4095T, a multiple of 2M"
bool parse_uuid(const char *text, u8 uuid[16]);
/* "never" or "0", or seconds; in ms, and 0 is never. */
bool parse_lease(const char *text, u64 *ms);
#define LEASE_RULE	"never (0), or 2 to 86400 (seconds)"
bool label_valid(const char *label);
#define LABEL_RULE	"up to 63 bytes of UTF-8 without control characters"
const char *show_size(u64 bytes, char buf[32]);
const char *show_uuid(const u8 uuid[16], char buf[37]);
const char *show_time(s64 ns, char buf[48]);

/* --- text.c -------------------------------------------------------------------------------- */

/* For people: unambiguous, harmless to terminals, one line. */
void put_text(FILE *out, const char *text, size_t len);
void print_text(const char *text);		/* the same for a string, to standard output */
bool text_plain(const char *text, size_t len);	/* UTF-8 without control characters */
/* Length of the UTF-8 character at @s, 0 when it is none. */
size_t utf8_len(const unsigned char *s, size_t left);
/* For such a character: its number if it must not reach a terminal unchanged, else 0. */
unsigned int utf8_hidden(const unsigned char *s, size_t n);

/* --- json.c -------------------------------------------------------------------------------- */

/**
 * struct json - a description being written, for programs (JSON) or for people (@plain). Keys are
 * NULL within arrays.
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
void json_row(struct json *j, const char *key);	/* an object on one line; holds no others */
void json_close(struct json *j, char bracket);	/* '}' or ']' */
void json_u64(struct json *j, const char *key, u64 value);
void json_s64(struct json *j, const char *key, s64 value);
void json_bool(struct json *j, const char *key, bool value);
void json_hex(struct json *j, const char *key, u64 value);	/* in JSON a string: "0x..." */
void json_size(struct json *j, const char *key, u64 bytes);
void json_time(struct json *j, const char *key, s64 ns);	/* in JSON ns since the epoch */
/*
 * Bytes that are no UTF-8 become U+FFFD; then "KEY_hex" follows, with all bytes. For people, as
 * put_text().
 */
void json_str(struct json *j, const char *key, const char *value);
void json_bytes(struct json *j, const char *key, const char *value, size_t len);

/* --- target.c: the file or device that holds a volume -------------------------------------- */

enum target_kind { TARGET_FILE, TARGET_BLOCK, TARGET_DAX };
enum target_use {
	TARGET_LOOK,		/* private copy: stores to it stay in this process */
	TARGET_READ,		/* read-only mapping */
	TARGET_CHANGE,		/* shared; no other process here may have the device open for use */
	TARGET_HOLD,		/* the same, for a volume; a block device: see device.c */
	TARGET_CHECK,		/* the same, read-only until target_change() */
	TARGET_SHARE,		/* shared with present users; it need not be a volume yet */
};

/**
 * struct target - a mapped volume.
 * @fd: of the file or device; @base, @size: its mapping.
 * @made, @grown, @was: the work of target_create(): it made the file, or grew one of that size.
 * @device: for a block device that is held, see device.c.
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
 * From now on @path is the file behind @fd, whichever file has the name. In a folder that another
 * user can write to, that user may exchange the file.
 */
void target_pin(const char *path, int fd);
const char *target_path(const char *path);	/* the path by which to open it */
bool file_is_named(int fd, const char *path);	/* it has this name now, and no other one */
/* Both report errors. */
int target_open(struct target *t, const char *path, enum target_use use);
int target_create(struct target *t, const char *path, const struct sg_super *sb, bool sparse);
/*
 * A target of TARGET_CHECK becomes one of TARGET_HOLD, mapped at the same address. 0 or -errno,
 * with @why. Only from then on does the mapping of a block device count as memory of this process.
 */
int target_change(struct target *t, char why[200]);
/*
 * Call this before each look at a target of TARGET_SHARE, which may grow, shrink, or become a
 * volume meanwhile: its mapping follows. False: it is too small for a volume now, and base is NULL.
 */
bool target_follow(struct target *t);
/* Instead of target_close(): restores the file to its state before target_create(). */
void target_undo(struct target *t);
/* A file of @had bytes gets @size, all allocated; and loses them again. Report errors. */
int target_lengthen(const char *path, u64 had, u64 size);
void target_shorten(const char *path, u64 had);
/* Make stores durable, also through a page cache. 0 or -errno. */
int target_flush(const struct target *t);
int target_drain(const struct target *t);	/* the same; and free the memory kept for it */
/* The same, with errors reported, and close it. */
int target_close(struct target *t);
/* Physical address of a device's first byte: 0, or -errno (-ENODATA: it has none). */
int target_phys(const struct target *t, u64 *phys);
int device_phys(dev_t dev, u64 *phys);	/* the same for a block device */
bool device_read_only(int fd);
int device_writable(int fd, const char *path);	/* -EROFS, reported: a block device that is not */
bool device_is_dax(dev_t dev);		/* the kernel maps its memory itself */
/* Read the device's bytes as they are now, past any cache. */
int target_read_now(const struct target *t, u64 off, void *buf, size_t len);
int device_past_cache(const struct target *t, int flags);	/* opened anew; or -errno */

/* --- device.c: a block device that is changed while others may mount it -------------------- */

bool device_held(const struct target *t);	/* false: the functions below do nothing */
bool device_has_told(const struct target *t);	/* that another system has come */
struct device *device_new(void);
void device_free(struct target *t);
/*
 * Notes @slots, which were read while no heartbeat moved. @force: a system whose heartbeat moves is
 * fenced. Returns 0 or -errno.
 */
int device_watch(const struct target *t, const struct sg_super *sb, const struct sg_slot *slots,
		 bool force);
/*
 * Shows other systems on the device that @vol has joined and has the volume exclusively. Until now
 *	only the private copy says so. @vol NULL: no system can join this volume. Before this call
 *	nothing is stored. -EBUSY: another system has come meanwhile; nothing is stored any more.
 */
int device_hold(const struct target *t, const struct sg_vol *vol, char why[200]);
void device_beat(const struct target *t);
/* Store all changes; -EBUSY, reported: another system has come, and nothing is stored. */
int device_store(const struct target *t);
/* The same, and start a new private copy: the next store has only later changes. */
int device_drain(const struct target *t);
/* @bytes more have been put into the private copy: from time to time they are stored. */
int device_relieve(const struct target *t, u64 bytes);

/* Name of another file system or container on the device, or NULL. */
const char *foreign_signature(const void *base, u64 size);
const char *foreign_besides_lvm(const void *base, u64 size);	/* besides LVM, which may be there,
								 * too */

/* --- mounts.c ------------------------------------------------------------------------------- */

/* The place where the StargateFS on that device is mounted here; one place of several. */
bool mounted_at(dev_t dev, char where[PATH_MAX]);

/* Keep the present table from now on, for questions about many devices at one moment. */
void mounts_keep(void);
bool mounted_read_only(const char *where);	/* that mount writes nothing */
/* For a directory of a StargateFS: the file or device that has all of its volume. */
bool mounted_memory(const char *dir, char path[PATH_MAX]);

/* --- process.c ----------------------------------------------------------------------------- */

bool uuid_from(const char *path, u8 uuid[16]);	/* the first line of a file */
bool process_boot(u8 boot[16]);
u64 process_self(void);		/* SG_SLOT_PROCESS() */

/* --- member.c: a tool in the mount table --------------------------------------------------- */

void member_identity(struct sg_identity *id);
/*
 * -EBUSY, reported, if some system is live. Call this before a change of a block device. Its
 * mapping shows the state of the first read, so the engine sees no heartbeat in it.
 */
int member_watch(const struct target *t, const struct sg_super *sb, unsigned int wait_ms,
		 char why[200]);
#define MEMBER_WAIT_MS	2500

/* The heartbeat of a joined volume, in a thread of its own. */
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
 * Open the volume at @path. For reading only: nothing on the device is changed, and dead systems
 * are recovered in the private copy. To change: join, with a heartbeat. Reports errors.
 */
int member_open(struct member *m, const char *path, bool change, bool force);
/* The same for a change, together with all users, on a file or device-dax node. */
int member_join(struct member *m, const char *path);
int member_close(struct member *m);
/*
 * The volume as it is at this moment, used or not: nothing is changed, recovered or joined. End it
 * with target_close(). Reports errors.
 */
int member_look_on(struct target *t, struct sg_vol *vol, const char *path);

#endif
