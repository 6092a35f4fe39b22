/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar archives of trees in a volume, in the pax format of POSIX. Extended attributes and ACLs have
 * the form of GNU tar, star and libarchive.
 */
#ifndef SG_CTL_TAR_H
#define SG_CTL_TAR_H

#include "ctl.h"

#define TAR_BLOCK	512
#define TAR_SYMBOLIC "SCHILY.xattr." /* prefix of a pax key, before the attribute's name */
#define TAR_ACL		"SCHILY.acl.access"
#define TAR_ACL_DEFAULT	"SCHILY.acl.default"
#define TAR_FLAGS	"SCHILY.fflags"

/* The header of an archive: text, with numbers in octal. */
struct tar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a block");

unsigned int tar_sum(const struct tar_header *h);

/** struct tar_text - a growing text. @lost: memory ran out, so the text is incomplete. */
struct tar_text {
	char *bytes;
	size_t len, room;
	bool lost;
};
void tar_add(struct tar_text *t, const void *bytes, size_t len);
void tar_printf(struct tar_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Appends a record of a pax header: "LENGTH KEY=VALUE\n". The value may have any bytes. */
void tar_record(struct tar_text *t, const char *key, const void *value, size_t len);

/* --- tar_attr.c: attributes as text, and back ------------------------------------------------ */

/*
 * Converts an ACL from the form of an extended attribute to text. Returns false if it is not an
 * ACL.
 */
bool tar_acl_show(const void *value, size_t len, struct tar_text *out);
/*
 * Converts text to the form of an extended attribute. Returns its length, or -EINVAL, -ENOENT (no
 * such user) and others.
 */
int tar_acl_read(const char *text, size_t len, void *out, size_t room);
/* Changes an ACL in place as chmod does. Returns false if it is not an ACL. */
bool tar_acl_chmod(void *value, size_t len, u32 mode);
void tar_flags_show(u32 flags, struct tar_text *out);
u32 tar_flags_read(const char *text, size_t len);
/*
 * Makes the pax key of an extended attribute, without TAR_SYMBOLIC. SG_XATTR_ACL_* have no such
 * key.
 */
void tar_key(unsigned int space, const char *name, u32 len, struct tar_text *out);
/*
 * The reverse of tar_key(): decodes @key in place, and returns its name space, or 0 if volumes do
 * not have that name space. *name, *len: the name without its prefix.
 */
unsigned int tar_space(char *key, size_t n, const char **name, u32 *len);

int tar_get(struct call *c);
int tar_put(struct call *c);
int before_tar_put(struct call *c);

#endif
