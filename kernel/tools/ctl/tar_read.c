// SPDX-License-Identifier: Apache-2.0
/* Reads a tar archive, one entry at a time. It checks every length against the bytes that exist. */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "tar_read.h"

#define RECORDS_MAX	(8u << 20)	/* bytes of pax records, or of a long name */

static const s64 second = 1000000000;

static int broken(struct tar_reader *r, const char *why)
{
	if (!r->broken)
		tool_error("%s: %s", r->path, why);
	r->broken = true;
	return -EINVAL;
}

/* --- bytes ----------------------------------------------------------------------------------- */

/* Reads @len bytes, or fewer at the end. */
static ssize_t fill(const struct tar_reader *r, void *to, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = read(r->fd, (char *)to + done, len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return n;
		if (!n)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int take(struct tar_reader *r, void *to, size_t len)
{
	ssize_t n = fill(r, to, len);

	if (n == (ssize_t)len)
		return 0;
	return broken(r, n < 0 ? strerror(errno) : "the archive ends in the middle of an entry");
}

int tar_read_data(struct tar_reader *r, void *to, size_t len)
{
	int err = len > r->left ? broken(r, "a sparse file has fewer bytes than its header says") :
		  take(r, to, len);

	if (!err)
		r->left -= len;
	return err;
}

static int skip_rest(struct tar_reader *r)
{
	u64 rest = r->left + r->padding;
	char bytes[16384];
	int err = 0;

	for (; rest && !err; rest -= SG_MIN(rest, sizeof(bytes)))
		err = take(r, bytes, SG_MIN(rest, sizeof(bytes)));
	r->left = 0;
	r->padding = 0;
	return err;
}

/* --- numbers and headers --------------------------------------------------------------------- */

/* Reads a number in octal, or in GNU's binary form. */
static bool read_number(const char *field, size_t size, s64 *out)
{
	const u8 *f = (const u8 *)field;
	u64 n = 0;
	size_t i = 0;

	if (f[0] & 0x80) {
		n = f[0] & 0x40 ? ~0ULL : 0;
		for (i = 1; i < size; i++) {
			if (n != (f[0] & 0x40 ? ~0ULL : 0) && (n << 8) >> 8 != n)
				return false;
			n = n << 8 | f[i];
		}
		*out = (s64)n;
		return (f[0] & 0x40) == 0 ? *out >= 0 : *out < 0;
	}
	while (i < size && f[i] == ' ')
		i++;
	for (; i < size && f[i] >= '0' && f[i] <= '7'; i++)
		n = n << 3 | (u64)(f[i] - '0');
	*out = (s64)n;
	return i == size || !f[i] || f[i] == ' ';
}

static bool header_valid(const struct tar_header *h)
{
	s64 sum;

	return read_number(h->sum, sizeof(h->sum), &sum) && sum == tar_sum(h);
}

static bool is_zero(const struct tar_header *h)
{
	return !h->name[0] && !memcmp(h, (const char *)h + 1, sizeof(*h) - 1);
}

/* Returns 0 if *r has a header. */
static int next_header(struct tar_reader *r)
{
	ssize_t n;

	if (r->first) {
		r->first = false;
	} else {
		n = fill(r, &r->header, sizeof(r->header));
		if (!n)
			return TAR_END;
		if (n != sizeof(r->header))
			return broken(r, n < 0 ? strerror(errno) :
				      "the archive ends in the middle of an entry");
	}
	if (is_zero(&r->header))
		return TAR_END;
	return header_valid(&r->header) ? 0 :
		broken(r, "the archive is damaged: a header's checksum is wrong");
}

/* --- long names and pax records -------------------------------------------------------------- */

static int set_text(char **text, const char *from, size_t len)
{
	char *copy = strndup(from, len);

	free(*text);
	*text = copy;
	return copy ? 0 : -ENOMEM;
}

/*
 * Reads seconds with a fraction. If a volume cannot store the time, uses the nearest one that it
 * can store.
 */
static bool read_time(const char *text, size_t len, s64 *out)
{
	const s64 most = INT64_MAX / second - 1;
	bool minus = len && *text == '-';
	s64 sec = 0, ns = 0, digit = second / 10;
	size_t i;

	for (i = minus; i < len && isdigit((unsigned char)text[i]); i++)
		sec = SG_MIN(sec * 10 + text[i] - '0', most);
	if (i < len && text[i] == '.')
		for (i++; i < len && isdigit((unsigned char)text[i]); i++, digit /= 10)
			ns += (text[i] - '0') * digit;
	*out = (sec * second + ns) * (minus ? -1 : 1);
	return i == len && len > (size_t)minus;
}

static bool read_u64(const char *text, size_t len, u64 most, u64 *out)
{
	char digits[24] = "";

	if (len >= sizeof(digits))
		return false;
	memcpy(digits, text, len);
	return parse_number(digits, 10, most, out);
}

static bool read_u32(const char *text, size_t len, u32 *out)
{
	u64 n = 0;
	bool ok = read_u64(text, len, UINT32_MAX, &n);

	*out = (u32)n;
	return ok;
}

/* GNU tar stores an ACL twice, as text and as an attribute: uses the first. */
static bool has_acl(const struct tar_entry *e, unsigned int space)
{
	return e->acls & 1u << space;
}

static int add_acl(struct tar_entry *e, unsigned int space, const void *value, int n)
{
	if (n <= 0 || has_acl(e, space))
		return n < 0 ? n : 0;
	e->acls |= 1u << space;
	return xattrs_add(&e->xattrs, space, "", 0, value, (u32)n);
}

static int add_acl_text(struct tar_entry *e, unsigned int space, const char *text, size_t len)
{
	static u64 value[SG_XATTR_VALUE_MAX / 8];

	return add_acl(e, space, value, tar_acl_read(text, len, value, sizeof(value)));
}

/* Checks an attribute in the kernel's form, which must be an ACL. */
static int add_acl_value(struct tar_entry *e, unsigned int space, const char *value, size_t len)
{
	struct tar_text shown = { 0 };
	bool good = len <= SG_XATTR_VALUE_MAX && tar_acl_show(value, len, &shown);

	free(shown.bytes);
	return good ? add_acl(e, space, value, (int)len) : -EINVAL;
}

static int add_xattr(struct tar_entry *e, char *key, size_t n, const char *value, size_t len)
{
	static const char access[] = "system.posix_acl_access", def[] = "system.posix_acl_default";
	const char *name;
	u32 name_len;
	unsigned int space = tar_space(key, n, &name, &name_len);

	if (n == sizeof(access) - 1 && !memcmp(key, access, n))
		return add_acl_value(e, SG_XATTR_ACL_ACCESS, value, len);
	if (n == sizeof(def) - 1 && !memcmp(key, def, n))
		return add_acl_value(e, SG_XATTR_ACL_DEFAULT, value, len);
	if (!space)
		return -EOPNOTSUPP;
	return len > SG_XATTR_VALUE_MAX ? -E2BIG :
	       xattrs_add(&e->xattrs, space, name, name_len, value, (u32)len);
}

/* Checks that sizes are at most that of the largest file. */
#define SIZE_MOST	((u64)INT64_MAX)

/* Reads a record. Returns 0, or the text of an error. Skips unknown keys, as POSIX requires. */
static int one_record(struct tar_entry *e, char *key, size_t n, const char *value, size_t len)
{
	static const char xattr[] = TAR_SYMBOLIC;
	size_t skip = sizeof(xattr) - 1;
	u64 ignored;
	bool ok = true;

#define KEY(name) (n == sizeof(name) - 1 && !memcmp(key, name, sizeof(name) - 1))
	if (n > skip && !memcmp(key, xattr, skip))
		return add_xattr(e, key + skip, n - skip, value, len);
	if (KEY(TAR_ACL))
		return add_acl_text(e, SG_XATTR_ACL_ACCESS, value, len);
	if (KEY(TAR_ACL_DEFAULT))
		return add_acl_text(e, SG_XATTR_ACL_DEFAULT, value, len);
	if (KEY("path") || KEY("GNU.sparse.name"))
		return set_text(&e->path, value, len);
	if (KEY("linkpath"))
		return set_text(&e->link, value, len);
	if (KEY(TAR_FLAGS))
		e->flags = tar_flags_read(value, len);
	else if (KEY("size"))
		ok = read_u64(value, len, SIZE_MOST, &e->size);
	else if (KEY("uid"))
		ok = read_u32(value, len, &e->uid);
	else if (KEY("gid"))
		ok = read_u32(value, len, &e->gid);
	else if (KEY("mtime"))
		ok = read_time(value, len, &e->mtime);
	else if (KEY("atime"))
		ok = read_time(value, len, &e->atime);
	else if (KEY("GNU.sparse.major"))
		e->sparse = ok = read_u64(value, len, 9, &e->major);
	else if (KEY("GNU.sparse.minor"))
		e->sparse = ok = read_u64(value, len, 9, &e->minor);
	else if (KEY("GNU.sparse.realsize"))
		ok = read_u64(value, len, SIZE_MOST, &e->real_size);
	else if (KEY("GNU.sparse.size"))	/* keys of the sparse formats before 1.0 */
		e->sparse = ok = read_u64(value, len, SIZE_MOST, &ignored);
#undef KEY
	return ok ? 0 : -EINVAL;
}

static int say_record(struct tar_reader *r, const struct tar_entry *e, const char *key, size_t n,
		      int err)
{
	char name[80];

	snprintf(name, sizeof(name), "%.*s", (int)SG_MIN(n, sizeof(name) - 1), key);
	tool_error("%s: %s: %s: %s", r->path, e->path ? e->path : "an entry", name,
		   err == -ENOENT ? "it names a user or group that this machine does not have" :
		   err == -EOPNOTSUPP ? "volumes have no such attributes" : strerror(-err));
	return err;
}

/*
 * Reports the first attribute that cannot be stored, with its error in *said, and continues with
 * the others. An invalid list of records ends the loop.
 */
static int read_records(struct tar_reader *r, struct tar_entry *e, char *text, size_t len,
			int *said)
{
	char *end = text + len, *digits, *next, *value;
	int err;

	while (text < end) {
		u64 n = strtoull(text, &digits, 10);

		if (digits == text || *digits != ' ' || n > (u64)(end - text) || n < 5 ||
		    text[n - 1] != '\n')
			return broken(r, "the archive is damaged: a pax header is invalid");
		next = text + n;
		digits++;
		value = digits < next ? memchr(digits, '=', (size_t)(next - digits)) : NULL;
		if (!value)
			return broken(r, "the archive is damaged: a pax header is invalid");
		err = one_record(e, digits, (size_t)(value - digits), value + 1,
				 (size_t)(next - value - 2));
		if (err && !*said)
			*said = say_record(r, e, digits, (size_t)(value - digits), err);
		text = next;
	}
	return 0;
}

/* Reads a header that describes the next entry. */
static int read_extra(struct tar_reader *r, struct tar_entry *e, int *said)
{
	char type = r->header.type, *text;
	int err;

	if (r->left > RECORDS_MAX)
		return broken(r, "the archive is damaged: a pax header is too large");
	if (type == 'g')	/* a header for all later entries: comments, as git writes them */
		return skip_rest(r);
	text = calloc(1, (size_t)r->left + 1);
	if (!text)
		return broken(r, strerror(ENOMEM));
	err = take(r, text, (size_t)r->left);
	if (!err)
		err = type == 'x' ? read_records(r, e, text, (size_t)r->left, said) :
		      set_text(type == 'L' ? &e->path : &e->link, text, (size_t)r->left);
	free(text);
	r->left = 0;
	return err ?: skip_rest(r);
}

/* --- holes ----------------------------------------------------------------------------------- */

static int add_piece(struct tar_reader *r, struct tar_entry *e, u64 pos, u64 len)
{
	const struct tar_piece *last = e->pieces ? &e->piece[e->pieces - 1] : NULL;
	size_t room = e->room ? 2 * e->room : 64;
	struct tar_piece *more;

	if (pos > e->real_size || len > e->real_size - pos || (last && pos < last->pos + last->len))
		return broken(r, "the archive is damaged: a list of holes is invalid");
	if (e->pieces == e->room) {
		more = realloc(e->piece, room * sizeof(*more));
		if (!more)
			return broken(r, strerror(ENOMEM));
		e->piece = more;
		e->room = room;
	}
	e->piece[e->pieces++] = (struct tar_piece){ pos, len };
	return 0;
}

/* Reads a line of the list, which fills complete blocks. */
static int list_number(struct tar_reader *r, char block[TAR_BLOCK], size_t *at, u64 *out)
{
	size_t digits = 0;
	int err;

	for (*out = 0;; (*at)++) {
		if (*at == TAR_BLOCK) {
			err = tar_read_data(r, block, TAR_BLOCK);
			if (err)
				return err;
			*at = 0;
		}
		if (block[*at] == '\n' && digits) {
			(*at)++;
			return 0;
		}
		if (!isdigit((unsigned char)block[*at]) || ++digits > 18)
			return broken(r, "the archive is damaged: a list of holes is invalid");
		*out = *out * 10 + (u64)(block[*at] - '0');
	}
}

static int read_list(struct tar_reader *r, struct tar_entry *e)
{
	char block[TAR_BLOCK];
	size_t at = TAR_BLOCK;
	u64 n, pos, len, sum = 0;
	int err = list_number(r, block, &at, &n);

	for (; !err && n; n--) {
		err = list_number(r, block, &at, &pos) ?: list_number(r, block, &at, &len) ?:
		      add_piece(r, e, pos, len);
		sum += err ? 0 : len;
	}
	if (!err && sum != r->left)
		err = broken(r, "a sparse file's size differs from its header");
	return err;
}

/* --- entries --------------------------------------------------------------------------------- */

static void begin(struct tar_entry *e)
{
	tar_forget(e);
	e->flags = 0;
	e->acls = 0;
	e->sparse = false;
	e->pieces = 0;
	e->real_size = e->major = e->minor = 0;
	e->xattrs.len = 0;
	e->atime = (s64)sg_now();
	e->mtime = INT64_MIN;
	e->uid = e->gid = UINT32_MAX;
	e->size = UINT64_MAX;
}

void tar_forget(struct tar_entry *e)
{
	free(e->path);
	free(e->link);
	free(e->piece);
	e->path = e->link = NULL;
	e->piece = NULL;
	e->pieces = e->room = 0;
}

/* Joins the two parts of a ustar name. */
static int header_names(const struct tar_header *h, struct tar_entry *e)
{
	bool ustar = !memcmp(h->magic, "ustar", 6) && h->prefix[0];
	char name[sizeof(h->prefix) + sizeof(h->name) + 2];

	snprintf(name, sizeof(name), "%.*s%s%.*s", ustar ? (int)sizeof(h->prefix) : 0, h->prefix,
		 ustar ? "/" : "", (int)sizeof(h->name), h->name);
	return (e->path ? 0 : set_text(&e->path, name, strlen(name))) ?:
	       (e->link ? 0 : set_text(&e->link, h->link, sizeof(h->link)));
}

/* Takes values from the header for which there is no pax record. */
static int read_header(struct tar_reader *r, struct tar_entry *e)
{
	const struct tar_header *h = &r->header;
	s64 mode, uid, gid, size, mtime, maj = 0, min = 0;
	int err = header_names(h, e);
	size_t n;

	if (err)
		return broken(r, strerror(-err));
	if (!read_number(h->mode, sizeof(h->mode), &mode) ||
	    !read_number(h->uid, sizeof(h->uid), &uid) ||
	    !read_number(h->gid, sizeof(h->gid), &gid) ||
	    !read_number(h->size, sizeof(h->size), &size) ||
	    !read_number(h->mtime, sizeof(h->mtime), &mtime) || size < 0)
		return broken(r, "the archive is damaged: a header has no numbers");
	e->type = h->type ? h->type : '0';
	n = strlen(e->path);
	if (e->type == '0' && n && e->path[n - 1] == '/')
		e->type = '5';
	e->mode = (u32)mode & 07777;
	e->uid = e->uid == UINT32_MAX ? (u32)uid : e->uid;
	e->gid = e->gid == UINT32_MAX ? (u32)gid : e->gid;
	e->size = e->size == UINT64_MAX ? (u64)size : e->size;
	if (e->mtime == INT64_MIN)
		e->mtime = SG_MAX(SG_MIN(mtime, INT64_MAX / second - 1), -INT64_MAX / second + 1) *
			   second;
	if (e->type == '3' || e->type == '4') {
		read_number(h->major, sizeof(h->major), &maj);
		read_number(h->minor, sizeof(h->minor), &min);
	}
	e->rdev = makedev((unsigned int)maj, (unsigned int)min);
	return 0;
}

int tar_next(struct tar_reader *r, struct tar_entry *e)
{
	int err = skip_rest(r), said = 0;
	bool extra;
	s64 size;

	begin(e);
	do {
		err = err ?: next_header(r);
		if (err)
			return err;
		extra = r->header.type && strchr("xgLKXV", r->header.type);
		if (!extra)
			break;
		if (!read_number(r->header.size, sizeof(r->header.size), &size) || size < 0)
			return broken(r, "the archive is damaged: a header has no numbers");
		r->left = r->header.type == 'V' ? 0 : (u64)size;
		r->padding = -(unsigned int)r->left & (TAR_BLOCK - 1);
		err = r->header.type == 'V' ? 0 : read_extra(r, e, &said);
	} while (!err);
	err = err ?: read_header(r, e);
	if (err)
		return err;
	r->left = e->type >= '1' && e->type <= '6' ? e->type == '1' ? e->size : 0 : e->size;
	r->padding = -(unsigned int)r->left & (TAR_BLOCK - 1);
	e->said = said;
	if (e->sparse && e->type == '0') {
		if (e->major == 1 && e->minor == 0)
			return read_list(r, e);
		e->type = 'S';
	}
	return 0;
}

static const char *compressed(const void *b, size_t n)
{
	static const struct {
		const char *magic, *program;
	} known[] = {
		{ "\x1f\x8b", "gzip" }, { "\x28\xb5\x2f\xfd", "zstd" }, { "\xfd" "7zXZ", "xz" },
		{ "BZh", "bzip2" },
	};
	unsigned int i;

	for (i = 0; i < SG_ARRAY_SIZE(known); i++)
		if (n >= strlen(known[i].magic) &&
		    !memcmp(b, known[i].magic, strlen(known[i].magic)))
			return known[i].program;
	return NULL;
}

int tar_open(struct tar_reader *r, const char *path)
{
	const char *program;
	ssize_t n;

	*r = (struct tar_reader){ .path = path, .first = true };
	r->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : dup(STDIN_FILENO);
	if (r->fd < 0)
		return outside_error(path);
	n = fill(r, &r->header, sizeof(r->header));
	if (n < 0)
		return outside_error(path);
	program = compressed(&r->header, (size_t)n);
	if (program) {
		tool_error("%s: is compressed: %s -dc FILE | stargatectl put --tar VOLUME -", path,
			   program);
		return -EINVAL;
	}
	if (n == sizeof(r->header) && (is_zero(&r->header) || header_valid(&r->header)))
		return 0;
	tool_error("%s: is not a tar archive", path);
	return -EINVAL;
}

void tar_close(struct tar_reader *r)
{
	close(r->fd);
}
