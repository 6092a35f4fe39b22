// SPDX-License-Identifier: Apache-2.0
/* Commands about attributes: chmod, chown. They have the same effect as on a mount. */
#define _GNU_SOURCE
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include "ctl.h"
#include "tar.h"

#define NOBODY 0xffffffffu /* a number that no user has */

/* --- the text of a mode -------------------------------------------------------------------- */

/**
 * struct clause - a change of a mode. @who: bits of the named classes; 0: the clause names none.
 * @op: '-', '+', '='.
 * @bits: the bits for all classes. @copy: if 'u', 'g' or 'o', the bits of this class replace @bits.
 * @some_x: the clause has an X. @mentioned: set-ID bits that the clause changes also on a
 * directory.
 */
struct clause {
	u32 who, bits, mentioned;
	char op, copy;
	bool some_x;
};

/** struct modes - the changes that chmod makes. */
#define CLAUSES_MAX	64
static struct modes {
	struct clause clause[CLAUSES_MAX];
	unsigned int n;
	u32 umask;
} modes;

static u32 bits_of(char who)
{
	switch (who) {
	case 'u': return 04700;
	case 'g': return 02070;
	case 'o': return 01007;
	case 'a': return 07777;
	}
	return 0;
}

/* "rwxXst", or one of "ugo". */
static const char *read_bits(const char *text, struct clause *k)
{
	if (*text && strchr("ugo", *text)) {
		k->copy = *text;
		return text + 1;
	}
	for (; *text && strchr("rwxXst", *text); text++) {
		switch (*text) {
		case 'r': k->bits |= 0444; break;
		case 'w': k->bits |= 0222; break;
		case 'x': k->bits |= 0111; break;
		case 'X': k->some_x = true; break;
		case 's': k->bits |= 06000; break;
		case 't': k->bits |= 01000; break;
		}
	}
	return text;
}

/* "u+x", "go-w+X". */
static const char *read_clause(const char *text, struct modes *m)
{
	u32 who = 0;

	for (; bits_of(*text); text++)
		who |= bits_of(*text);
	if (!*text || !strchr("-+=", *text))
		return NULL;
	while (*text && strchr("-+=", *text)) {
		struct clause *k = &m->clause[m->n++];

		if (m->n == CLAUSES_MAX)
			return NULL;
		*k = (struct clause){ .who = who, .op = *text };
		text = read_bits(text + 1, k);
		k->mentioned = who ? who & k->bits : k->bits;
	}
	return text;
}

/*
 * As in GNU chmod, a mode of up to four digits keeps a directory's set-ID bits that it does not
 * set.
 */
static bool read_number(const char *text, struct modes *m)
{
	u64 mode;

	if (!parse_number(text, 8, 07777, &mode))
		return false;
	m->clause[0] = (struct clause){ .who = 07777, .bits = (u32)mode, .op = '=',
					.mentioned = strlen(text) > 4 ? 07777 : (u32)mode };
	m->n = 1;
	return true;
}

static bool read_modes(const char *text, struct modes *m)
{
	m->n = 0;
	m->umask = umask(0);
	umask(m->umask);
	if (read_number(text, m))
		return true;
	do
		text = read_clause(text, m);
	while (text && *text++ == ',');
	return text && !text[-1];
}

static u32 apply(const struct clause *k, u32 mode, bool is_dir, u32 mask)
{
	u32 bits = k->bits, keep = is_dir ? 06000 & ~k->mentioned : 0;

	if (k->copy)
		bits = (mode >> (k->copy == 'u' ? 6 : k->copy == 'g' ? 3 : 0) & 7) * 0111;
	if (k->some_x && (is_dir || mode & 0111))
		bits |= 0111;
	bits &= k->who ? k->who : ~mask;
	bits &= ~keep;
	switch (k->op) {
	case '+':
		return mode | bits;
	case '-':
		return mode & ~bits;
	}
	return (mode & (keep | (k->who ? ~k->who & 07777 : 0))) | bits;
}

static u32 new_mode(const struct modes *m, u32 mode)
{
	unsigned int i;
	u32 new = mode & 07777;

	for (i = 0; i < m->n; i++)
		new = apply(&m->clause[i], new, S_ISDIR(mode), m->umask);
	return new;
}

/* --- chmod --------------------------------------------------------------------------------- */

/* An ACL also has the bits of the mode; both change in one transaction. */
static int set_mode(struct call *c, const struct sg_iref *ref, const struct sg_attr *attr, u32 mode,
		    const char *path)
{
	static u8 acl[SG_XATTR_VALUE_MAX];
	struct sg_attr new = { .mode = mode, .ctime = (s64)sg_now() };
	int n = attr->has_xattr ? sg_xattr_get(call_vol(c), ref, SG_XATTR_ACL_ACCESS, "", 0, acl,
					       sizeof(acl)) : -ENODATA;

	if (n == -ENODATA)
		return sg_setattr(call_vol(c), ref, SG_SET_MODE | SG_SET_CTIME, &new);
	if (n < 0)
		return n;
	if (!tar_acl_chmod(acl, (size_t)n, mode)) {
		tool_warn("%s: its ACL is damaged, and was not changed", path);
		return sg_setattr(call_vol(c), ref, SG_SET_MODE | SG_SET_CTIME, &new);
	}
	return sg_xattr_set_mode(call_vol(c), ref, SG_XATTR_ACL_ACCESS, acl, (u32)n, mode,
				 new.ctime);
}

static int chmod_one(struct call *c, const struct visit *v, void *ctx)
{
	u32 mode;
	int err;

	if (v->err || (S_ISLNK(v->attr.mode) && v->depth))
		return 0;
	if (S_ISLNK(v->attr.mode)) {
		tool_error("%s: is a symbolic link, which has no mode of its own", v->path);
		return -EOPNOTSUPP;
	}
	mode = new_mode(ctx, v->attr.mode);
	err = attr_allows(v->path, &v->attr);
	if (err || mode == (v->attr.mode & 07777))
		return err;
	return path_error(v->path, set_mode(c, &v->ref, &v->attr, mode, v->path));
}

int before_chmod(struct call *c)
{
	if (read_modes(c->argv[0], &modes))
		return 0;
	return tool_usage_error("mode '%s': must be 0 to 7777 (octal), or changes such as u+x,go-w",
				c->argv[0]);
}

/* --- chown --------------------------------------------------------------------------------- */

static struct owners {
	u32 uid, gid;		/* NOBODY leaves it unchanged */
} owners;

/* Reads the text as a number first, because users of the volume may not exist on this machine. */
static bool read_user(const char *text, u32 *uid)
{
	const struct passwd *user;
	u64 n;

	if (parse_number(text, 10, NOBODY - 1, &n)) {
		*uid = (u32)n;
		return true;
	}
	user = getpwnam(text);
	if (user)
		*uid = user->pw_uid;
	return user;
}

static bool read_group(const char *text, u32 *gid)
{
	const struct group *group;
	u64 n;

	if (parse_number(text, 10, NOBODY - 1, &n)) {
		*gid = (u32)n;
		return true;
	}
	group = getgrnam(text);
	if (group)
		*gid = group->gr_gid;
	return group;
}

bool owner_read(const char *text, bool group, u32 *id)
{
	return group ? read_group(text, id) : read_user(text, id);
}

int before_chown(struct call *c)
{
	char *text = strdup(c->argv[0]), *group = text ? strchr(text, ':') : NULL;
	bool ok = text && *text && (!group || group[1]);

	owners = (struct owners){ NOBODY, NOBODY };
	if (group)
		*group++ = 0;
	if (ok && *text)
		ok = owner_read(text, false, &owners.uid);
	if (ok && group)
		ok = owner_read(group, true, &owners.gid);
	free(text);
	if (ok)
		return 0;
	return tool_usage_error("owner '%s': must be USER, USER:GROUP or :GROUP, as numbers or as "
				"names that this machine knows", c->argv[0]);
}

/*
 * Removes the file's capabilities, because the administrator gave them to a program of the previous
 * owner. A kernel does the same.
 */
static int drop_capability(struct call *c, const struct visit *v)
{
	int err = v->attr.has_xattr ?
		  sg_xattr_set(call_vol(c), &v->ref, SG_XATTR_SECURITY, "capability", 10, NULL, 0, 0,
			       (s64)sg_now()) : 0;

	return err == -ENODATA ? 0 : err;
}

static int chown_one(struct call *c, const struct visit *v, void *ctx)
{
	const struct owners *to = ctx;
	struct sg_attr new = { .mode = v->attr.mode & 07777, .uid = to->uid, .gid = to->gid,
			       .ctime = (s64)sg_now() };
	unsigned int set = SG_SET_CTIME | (to->uid == NOBODY ? 0 : SG_SET_UID) |
			   (to->gid == NOBODY ? 0 : SG_SET_GID);
	int err = v->err ? 0 : attr_allows(v->path, &v->attr);

	if (v->err || err)
		return err;
	if (S_ISREG(v->attr.mode)) {
		set |= SG_SET_MODE;
		new.mode &= ~(u32)(new.mode & 010 ? 06000 : 04000);
		err = drop_capability(c, v);
	}
	return path_error(v->path, err ? err : sg_setattr(call_vol(c), &v->ref, set, &new));
}

/* --- both ---------------------------------------------------------------------------------- */

/*
 * Changes the inodes of all paths of the command. Follows symbolic links in a path, also the last
 * one; within a tree it follows none.
 */
static int change_all(struct call *c, const struct walk *w)
{
	struct sg_attr attr;
	struct sg_iref ref;
	int i, err = 0, e;

	for (i = 1; i < c->argc; i++) {
		e = path_find(call_vol(c), c->argv[i], true, &ref, &attr);
		if (!e)
			e = walk_tree(c, c->argv[i], &ref, w);
		err = err ? err : e;
	}
	return err;
}

int cmd_chmod(struct call *c)
{
	const struct walk w = { .see = chmod_one, .ctx = &modes,
				.depth = c->recursive ? UINT_MAX : 0 };

	return change_all(c, &w);
}

int cmd_chown(struct call *c)
{
	const struct walk w = { .see = chown_one, .ctx = &owners,
				.depth = c->recursive ? UINT_MAX : 0 };

	return change_all(c, &w);
}
