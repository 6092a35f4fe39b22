// SPDX-License-Identifier: Apache-2.0
/* Attributes in a tar archive: growing text, pax records, ACLs, flags, names. */
#define _GNU_SOURCE
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <strings.h>
#include "tar.h"

/* --- text ------------------------------------------------------------------------------------ */

void tar_add(struct tar_text *t, const void *bytes, size_t len)
{
	size_t room = SG_MAX(2 * t->room, t->len + len + 256);
	char *more;

	if (t->len + len + 1 > t->room) {
		more = realloc(t->bytes, room);
		if (!more) {
			t->lost = true;
			return;
		}
		t->bytes = more;
		t->room = room;
	}
	memcpy(t->bytes + t->len, bytes, len);
	t->len += len;
	t->bytes[t->len] = 0;
}

void tar_printf(struct tar_text *t, const char *fmt, ...)
{
	char line[512];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	tar_add(t, line, SG_MIN((size_t)n, sizeof(line) - 1));
}

/* The length includes its own digits. */
void tar_record(struct tar_text *t, const char *key, const void *value, size_t len)
{
	size_t rest = strlen(key) + len + 3, all = rest + 1;
	char digits[24];

	while (rest + (size_t)snprintf(digits, sizeof(digits), "%zu", all) != all)
		all = rest + strlen(digits);
	tar_printf(t, "%s ", digits);
	tar_add(t, key, strlen(key));
	tar_add(t, "=", 1);
	tar_add(t, value, len);
	tar_add(t, "\n", 1);
}

unsigned int tar_sum(const struct tar_header *h)
{
	const u8 *b = (const u8 *)h;
	unsigned int i, sum = 0;

	for (i = 0; i < TAR_BLOCK; i++)
		sum += i >= offsetof(struct tar_header, sum) &&
		       i < offsetof(struct tar_header, type) ? ' ' : b[i];
	return sum;
}

/* --- ACLs ------------------------------------------------------------------------------------ */

/*
 * The same as the kernel's struct posix_acl_xattr_header and _entry; all values are little endian.
 *
 */
struct acl_entry {
	u16 tag, perm;
	u32 id;
};
struct acl {
	u32 version;
	struct acl_entry entry[];
};
#define ACL_VERSION	2
#define ACL_MOST	((SG_XATTR_VALUE_MAX - sizeof(struct acl)) / sizeof(struct acl_entry))
#define ACL_NOBODY	0xffffffffu

enum { USER_OBJ = 1, USER = 2, GROUP_OBJ = 4, GROUP = 8, MASK = 16, OTHER = 32 };

bool tar_acl_show(const void *value, size_t len, struct tar_text *out)
{
	const u8 *from = (const u8 *)value + sizeof(struct acl);
	struct acl_entry one, *e = &one;
	struct acl head;
	size_t i, n;

	if (len < sizeof(head) || (len - sizeof(head)) % sizeof(one))
		return false;
	memcpy(&head, value, sizeof(head));	/* the value may be unaligned */
	if (head.version != ACL_VERSION)
		return false;
	n = (len - sizeof(head)) / sizeof(one);
	for (i = 0; i < n; i++) {
		const char *who;

		memcpy(&one, from + i * sizeof(one), sizeof(one));
		who = e->tag == USER_OBJ || e->tag == USER ? "user" :
			e->tag == GROUP_OBJ || e->tag == GROUP ? "group" :
			e->tag == MASK ? "mask" : e->tag == OTHER ? "other" : NULL;

		if (!who || e->perm > 7)
			return false;
		tar_printf(out, "%s%s:", i ? "," : "", who);
		if (e->tag == USER || e->tag == GROUP)
			tar_printf(out, "%u", e->id);
		tar_printf(out, ":%c%c%c", e->perm & 4 ? 'r' : '-', e->perm & 2 ? 'w' : '-',
			   e->perm & 1 ? 'x' : '-');
	}
	return true;
}

/* If the ACL has a mask, chmod's bits for the group change the mask. */
bool tar_acl_chmod(void *value, size_t len, u32 mode)
{
	u8 *at = (u8 *)value + sizeof(struct acl), *group = NULL, *mask = NULL, *end;
	struct tar_text text = { .len = 0 };
	bool ok = tar_acl_show(value, len, &text);
	struct acl_entry e;

	free(text.bytes);
	end = (u8 *)value + len;
	for (; ok && at < end; at += sizeof(e)) {
		memcpy(&e, at, sizeof(e));
		if (e.tag == GROUP_OBJ)
			group = at;
		if (e.tag == MASK)
			mask = at;
		if (e.tag == USER_OBJ || e.tag == OTHER) {
			e.perm = mode >> (e.tag == OTHER ? 0 : 6) & 7;
			memcpy(at, &e, sizeof(e));
		}
	}
	at = mask ? mask : group;
	if (!ok || !at)
		return false;
	memcpy(&e, at, sizeof(e));
	e.perm = mode >> 3 & 7;
	memcpy(at, &e, sizeof(e));
	return true;
}

/* Returns the next field of those separated by @between, and "" after the last. */
static char *field(char **text, const char *between)
{
	char *f = *text ? strsep(text, between) : NULL;

	if (!f)
		return "";
	f += strspn(f, " \t");
	f[strcspn(f, " \t#")] = 0;
	return f;
}

/* Reads a user or group: a name, a number, or a name with its number in another field. */
static int find_id(u16 tag, const char *name, const char *number, u32 *id)
{
	const struct passwd *user;
	const struct group *group;
	u64 n;

	if (parse_number(number, 10, ACL_NOBODY - 1, &n) ||
	    parse_number(name, 10, ACL_NOBODY - 1, &n)) {
		*id = (u32)n;
		return 0;
	}
	user = tag == USER ? getpwnam(name) : NULL;
	group = tag == GROUP ? getgrnam(name) : NULL;
	*id = user ? user->pw_uid : group ? group->gr_gid : 0;
	return user || group ? 0 : -ENOENT;
}

static int read_entry(char *text, struct acl_entry *e)
{
	static const struct {
		const char *kind;
		u16 own, other;
	} kinds[] = {
		{ "user", USER_OBJ, USER }, { "u", USER_OBJ, USER },
		{ "group", GROUP_OBJ, GROUP }, { "g", GROUP_OBJ, GROUP },
		{ "mask", MASK, 0 }, { "m", MASK, 0 }, { "other", OTHER, 0 }, { "o", OTHER, 0 },
	};
	char *kind = field(&text, ":"), *name = field(&text, ":"), *perm;
	/* star omits the empty field of these entries */
	bool single = *kind == 'm' || *kind == 'o';
	unsigned int i;

	*e = (struct acl_entry){ .id = ACL_NOBODY };
	for (i = 0; i < SG_ARRAY_SIZE(kinds); i++)
		if (!strcmp(kind, kinds[i].kind))
			e->tag = *name && !single ? kinds[i].other : kinds[i].own;
	perm = single && *name ? name : field(&text, ":");
	if (!e->tag || !*perm || perm[strspn(perm, "rwx-")])
		return -EINVAL;
	for (; *perm; perm++)
		e->perm |= *perm == 'r' ? 4 : *perm == 'w' ? 2 : *perm == 'x' ? 1 : 0;
	return e->tag == USER || e->tag == GROUP ? find_id(e->tag, name, field(&text, ":"), &e->id) :
	       0;
}

static int by_tag(const void *a, const void *b)
{
	const struct acl_entry *x = a, *y = b;

	if (x->tag != y->tag)
		return x->tag - y->tag;
	return x->id < y->id ? -1 : x->id > y->id;
}

int tar_acl_read(const char *text, size_t len, void *out, size_t room)
{
	char *copy = strndup(text, len), *rest = copy, *one;
	struct acl *a = out;
	size_t n = 0;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (one = strsep(&rest, ",\n"))) {
		one += strspn(one, " \t");
		if (!*one || *one == '#')
			continue;
		if (n == ACL_MOST || sizeof(*a) + (n + 1) * sizeof(a->entry[0]) > room)
			err = -E2BIG;
		else
			err = read_entry(one, &a->entry[n++]);
	}
	free(copy);
	if (err || !n)
		return err;
	a->version = ACL_VERSION;
	qsort(a->entry, n, sizeof(a->entry[0]), by_tag);
	return (int)(sizeof(*a) + n * sizeof(a->entry[0]));
}

/* --- flags ----------------------------------------------------------------------------------- */

/* The names of flags in libarchive. The tool reads the last two, but never writes them. */
#define FLAGS_SHOWN	6
static const struct {
	const char *name;
	u32 flag;
} flag_names[] = {
	{ "sappnd", SG_FL_APPEND }, { "schg", SG_FL_IMMUTABLE }, { "nodump", SG_FL_NODUMP },
	{ "noatime", SG_FL_NOATIME }, { "sync", SG_FL_SYNC }, { "dirsync", SG_FL_DIRSYNC },
	{ "uappnd", SG_FL_APPEND }, { "uchg", SG_FL_IMMUTABLE },
};

void tar_flags_show(u32 flags, struct tar_text *out)
{
	unsigned int i;

	for (i = 0; i < FLAGS_SHOWN; i++)
		if (flags & flag_names[i].flag)
			tar_printf(out, "%s%s", out->len ? "," : "", flag_names[i].name);
}

u32 tar_flags_read(const char *text, size_t len)
{
	const char *end = text + len;
	u32 flags = 0;
	unsigned int i;
	size_t n;

	for (; text < end; text += n + 1) {
		for (n = 0; text + n < end && text[n] != ','; n++)
			;
		for (i = 0; i < SG_ARRAY_SIZE(flag_names); i++)
			if (strlen(flag_names[i].name) == n && !memcmp(text, flag_names[i].name, n))
				flags |= flag_names[i].flag;
	}
	return flags;
}

/* --- names of extended attributes ------------------------------------------------------------ */

static const char *const prefix[] = {
	[SG_XATTR_USER] = "user.", [SG_XATTR_TRUSTED] = "trusted.", [SG_XATTR_SECURITY] = "security.",
};

/* A key ends at the first '='. So the tool writes '=' and '%' in hexadecimal, as GNU tar does. */
void tar_key(unsigned int space, const char *name, u32 len, struct tar_text *out)
{
	tar_printf(out, TAR_SYMBOLIC "%s", prefix[space]);
	for (; len; name++, len--) {
		if (*name == '=' || *name == '%')
			tar_printf(out, "%%%02X", *name);
		else
			tar_add(out, name, 1);
	}
}

static size_t decode(char *key, size_t n)
{
	size_t i, to = 0;

	for (i = 0; i < n; to++) {
		bool coded = n - i >= 3 && (!strncasecmp(key + i, "%3D", 3) ||
					    !strncmp(key + i, "%25", 3));

		key[to] = !coded ? key[i] : key[i + 1] == '3' ? '=' : '%';
		i += coded ? 3 : 1;
	}
	return to;
}

unsigned int tar_space(char *key, size_t n, const char **name, u32 *len)
{
	unsigned int space;
	size_t skip;

	n = decode(key, n);
	for (space = SG_XATTR_USER; space <= SG_XATTR_SECURITY; space++) {
		skip = strlen(prefix[space]);
		if (n <= skip || n - skip > 255 || memcmp(key, prefix[space], skip))
			continue;
		*name = key + skip;
		*len = (u32)(n - skip);
		return space;
	}
	return 0;
}
