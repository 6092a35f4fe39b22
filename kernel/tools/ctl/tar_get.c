// SPDX-License-Identifier: Apache-2.0
/*
 * get --tar: writes a tree of a volume as a tar archive, with owners, modes with set-ID bits,
 * times, extended attributes, ACLs, flags, devices, hard links and holes.
 *
 * The command writes only the archive, so it leaves nothing out. The user who unpacks the archive
 * decides what to create.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "outside.h"
#include "tar.h"

static char buffer[CTL_PIECE];

/** struct data - an extent of a file that is not a hole. */
struct data {
	u64 pos, len;
};
struct map {
	struct data *at;
	size_t n, room;
	u64 bytes;
};

/**
 * struct entry - one entry of the archive. @path: path in the volume, for messages. @name: name in
 * the archive. @link: another name of the same file, or NULL. @map: extents of a file. @sparse: the
 * file has holes, and @list is the map of its data. @bad: some of its attributes are missing.
 */
struct entry {
	const char *path, *name;
	const struct sg_iref *ref;
	const struct sg_attr *attr;
	char type;
	const char *link;
	struct map map;
	bool sparse;
	struct tar_text pax, list;
	int bad;
};

/* --- output ---------------------------------------------------------------------------------- */

static int out(const void *bytes, size_t len)
{
	return fwrite(bytes, 1, len, stdout) == len ? 0 : tool_output_error();
}

static int out_padding(u64 len)
{
	static const char zeroes[TAR_BLOCK];

	return out(zeroes, -len & (TAR_BLOCK - 1));
}

/* Writes 0 for a number that does not fit, which a pax record then has. */
static bool number(char *field, size_t size, u64 n)
{
	bool fits = n < 1ULL << 3 * (size - 1);

	snprintf(field, size, "%0*llo", (int)size - 1, (unsigned long long)(fits ? n : 0));
	return fits;
}

static int out_header(struct tar_header *h)
{
	memcpy(h->magic, "ustar", 6);
	memcpy(h->version, "00", 2);
	snprintf(h->sum, sizeof(h->sum), "%06o", tar_sum(h));
	h->sum[7] = ' ';
	return out(h, sizeof(*h));
}

static int out_pax(const struct tar_text *pax)
{
	struct tar_header h = { .type = 'x', .name = "././@PaxHeader" };

	if (!pax->len)
		return 0;
	number(h.mode, sizeof(h.mode), 0644);
	number(h.uid, sizeof(h.uid), 0);
	number(h.gid, sizeof(h.gid), 0);
	number(h.size, sizeof(h.size), pax->len);
	number(h.mtime, sizeof(h.mtime), 0);
	return out_header(&h) ?: out(pax->bytes, pax->len) ?: out_padding(pax->len);
}

/* --- attributes ------------------------------------------------------------------------------ */

static void record_number(struct tar_text *pax, const char *key, u64 n)
{
	char text[24];

	tar_record(pax, key, text, (size_t)snprintf(text, sizeof(text), "%llu",
						    (unsigned long long)n));
}

static void record_time(struct tar_text *pax, const char *key, s64 ns)
{
	u64 all = ns < 0 ? -(u64)ns : (u64)ns;
	char text[48];

	tar_record(pax, key, text, (size_t)snprintf(text, sizeof(text), "%s%llu.%09llu",
						    ns < 0 ? "-" : "",
						    (unsigned long long)(all / 1000000000),
						    (unsigned long long)(all % 1000000000)));
}

static int record_xattr(void *ctx, unsigned int space, const char *name, u32 name_len,
			const void *value, u32 value_len)
{
	struct tar_text text = { 0 }, *pax = ctx;
	bool acl = space == SG_XATTR_ACL_ACCESS || space == SG_XATTR_ACL_DEFAULT;
	int err = 0;

	if (!acl)
		tar_key(space, name, name_len, &text);
	else if (!tar_acl_show(value, value_len, &text))
		err = -EUCLEAN;
	if (!err && !text.lost)
		tar_record(pax, !acl ? text.bytes : space == SG_XATTR_ACL_ACCESS ? TAR_ACL :
			   TAR_ACL_DEFAULT, acl ? text.bytes : value, acl ? text.len : value_len);
	pax->lost |= text.lost;
	free(text.bytes);
	return err;
}

static int record_attributes(struct call *c, struct entry *e)
{
	struct tar_text flags = { 0 };
	int err = sg_xattr_list(call_vol(c), e->ref, record_xattr, &e->pax);

	tar_flags_show(e->attr->flags, &flags);
	if (flags.len)
		tar_record(&e->pax, TAR_FLAGS, flags.bytes, flags.len);
	e->pax.lost |= flags.lost;
	free(flags.bytes);
	return path_error(e->path, err);
}

/* Adds a pax record for a name or target that does not fit into the header. */
static void record_text(struct tar_text *pax, const char *key, const char *text, char *field,
			size_t size)
{
	if (strlen(text) > size)
		tar_record(pax, key, text, strlen(text));
	memcpy(field, text, SG_MIN(strlen(text), size));
}

static int out_entry(struct call *c, struct entry *e)
{
	const char *name = e->sparse ? "GNUSparseFile.0/file" : e->name;
	u64 size = e->type == '0' ? e->map.bytes + e->list.len : 0;
	const struct sg_attr *a = e->attr;
	struct tar_header h = { .type = e->type };

	record_text(&e->pax, "path", name, h.name, sizeof(h.name));
	if (e->link)
		record_text(&e->pax, "linkpath", e->link, h.link, sizeof(h.link));
	if (e->type != '1')
		e->bad = record_attributes(c, e);
	/*
	 * If an ACL cannot be stored, the group's bits of the mode must not be those of the ACL's
	 * mask.
	 */
	number(h.mode, sizeof(h.mode), a->mode & (e->bad ? 07707 : 07777));
	if (!number(h.uid, sizeof(h.uid), a->uid))
		record_number(&e->pax, "uid", a->uid);
	if (!number(h.gid, sizeof(h.gid), a->gid))
		record_number(&e->pax, "gid", a->gid);
	if (!number(h.size, sizeof(h.size), size))
		record_number(&e->pax, "size", size);
	number(h.mtime, sizeof(h.mtime), a->mtime < 0 ? 0 : (u64)a->mtime / 1000000000);
	number(h.major, sizeof(h.major), e->type == '3' || e->type == '4' ? major(a->special) : 0);
	number(h.minor, sizeof(h.minor), e->type == '3' || e->type == '4' ? minor(a->special) : 0);
	record_time(&e->pax, "mtime", a->mtime);
	record_time(&e->pax, "atime", a->atime);
	if (e->pax.lost)
		return path_error(e->path, -ENOMEM);
	return out_pax(&e->pax) ?: out_header(&h);
}

/* --- contents -------------------------------------------------------------------------------- */

static int add_data(struct map *m, u64 pos, u64 len)
{
	size_t room = m->room ? 2 * m->room : 64;
	struct data *more;

	if (m->n == m->room) {
		more = realloc(m->at, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		m->at = more;
		m->room = room;
	}
	m->at[m->n++] = (struct data){ pos, len };
	m->bytes += len;
	return 0;
}

static int read_map(struct call *c, const char *path, const struct sg_iref *ref, u64 size,
		    struct map *m)
{
	struct piece p = { 0 };
	int more;

	while ((more = piece_next(c, path, ref, size, &p)) > 0)
		if (add_data(m, p.pos, p.end - p.pos))
			return path_error(path, -ENOMEM);
	return more;
}

/*
 * Version 1.0 of GNU tar's sparse format: before the data, decimal lines list the offsets and
 * lengths of data.
 */
static void describe_holes(struct entry *e)
{
	struct tar_text *list = &e->list;
	u64 size = e->attr->size;
	bool ends = !e->map.n || e->map.at[e->map.n - 1].pos + e->map.at[e->map.n - 1].len < size;
	size_t i;

	if (e->map.n == (size > 0) && e->map.bytes == size)
		return;
	e->sparse = true;
	tar_printf(list, "%zu\n", e->map.n + ends);
	for (i = 0; i < e->map.n; i++)
		tar_printf(list, "%llu\n%llu\n", (unsigned long long)e->map.at[i].pos,
			   (unsigned long long)e->map.at[i].len);
	if (ends)	/* the last one marks the end of the file */
		tar_printf(list, "%llu\n0\n", (unsigned long long)size);
	while (list->len & (TAR_BLOCK - 1) && !list->lost)
		tar_add(list, "", 1);
	tar_record(&e->pax, "GNU.sparse.major", "1", 1);
	tar_record(&e->pax, "GNU.sparse.minor", "0", 1);
	tar_record(&e->pax, "GNU.sparse.name", e->name, strlen(e->name));
	record_number(&e->pax, "GNU.sparse.realsize", size);
	e->pax.lost |= list->lost;
}

/* Writes as many bytes as the header says, even if some cannot be read. */
static int out_data(struct call *c, const struct entry *e)
{
	int err = out(e->list.bytes, e->list.len), bad = 0;
	u64 pos, end;
	size_t i;
	s64 n;

	for (i = 0; i < e->map.n && !err; i++) {
		pos = e->map.at[i].pos;
		end = pos + e->map.at[i].len;
		for (; pos < end && !err; pos += (u64)n) {
			u64 want = SG_MIN(end - pos, (u64)CTL_PIECE);

			n = sg_read(call_vol(c), e->ref, pos, buffer, want);
			if (n < 0 && want > SG_PAGE) {	/* reads only the part that exists */
				want = SG_PAGE - (pos & (SG_PAGE - 1));
				n = sg_read(call_vol(c), e->ref, pos, buffer, want);
			}
			if (n <= 0) {
				if (!bad)
					path_error(e->path, n ? (int)n : -EIO);
				bad = n ? (int)n : -EIO;
				n = (s64)want;
				memset(buffer, 0, want);
			}
			err = out(buffer, (size_t)n);
		}
	}
	return err ?: out_padding(e->map.bytes + e->list.len) ?: bad;
}

/* --- entries --------------------------------------------------------------------------------- */

static int get_file(struct call *c, struct entry *e)
{
	int err = read_map(c, e->path, e->ref, e->attr->size, &e->map);

	if (err)
		return err;
	describe_holes(e);
	return out_entry(c, e) ?: out_data(c, e);
}

static int get_link(struct call *c, struct entry *e)
{
	char target[SG_SYMLINK_MAX + 1];
	int n = sg_readlink(call_vol(c), e->ref, target, SG_SYMLINK_MAX);

	if (n < 0)
		return path_error(e->path, n);
	target[SG_MIN(n, SG_SYMLINK_MAX)] = 0;
	e->link = target;
	return out_entry(c, e);
}

static int get_any(struct call *c, const struct sg_iref *ref, const char *path, const char *name,
		   unsigned int depth);

static int get_below(struct call *c, const struct sg_iref *ref, const char *path, const char *name,
		     unsigned int depth)
{
	struct listing l;
	char *below, *there;
	int err, e;
	size_t i;

	if (depth > DEPTH_MAX)
		return path_error(path, -ENAMETOOLONG);
	err = list_dir(call_vol(c), ref, path, &l);
	if (err)
		return err;
	err = l.missing;
	for (i = 0; i < l.n && err != -ELOOP && !ferror(stdout); i++) {
		struct sg_iref child;

		below = there = NULL;
		if (asprintf(&below, "%s/%s", strcmp(path, "/") ? path : "", l.item[i].name) < 0 ||
		    asprintf(&there, "%s%s", name, l.item[i].name) < 0)
			e = path_error(path, -ENOMEM);
		else
			e = path_error(below, sg_iref(call_vol(c), l.item[i].ino, &child)) ?:
			    get_any(c, &child, below, there, depth + 1);
		err = err ? err : e;
		free(below);
		free(there);
	}
	list_free(&l);
	return err;
}

/* Names of directories end in a slash. */
static int get_dir(struct call *c, struct entry *e, unsigned int depth)
{
	char *name;
	int err;

	if (asprintf(&name, "%s/", e->name) < 0)
		return path_error(e->path, -ENOMEM);
	e->name = name;
	err = out_entry(c, e);
	if (!ferror(stdout))
		err = get_below(c, e->ref, e->path, name, depth) ?: err;
	free(name);
	return err;
}

static char type_of(u32 mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG: return '0';
	case S_IFLNK: return '2';
	case S_IFCHR: return '3';
	case S_IFBLK: return '4';
	case S_IFDIR: return '5';
	case S_IFIFO: return '6';
	}
	return 0;
}

static int get_any(struct call *c, const struct sg_iref *ref, const char *path, const char *name,
		   unsigned int depth)
{
	struct link_seen this = { .ino = ref->ino, .path = (char *)name };
	const struct link_seen *seen = NULL;
	struct sg_attr attr;
	struct entry e = { .path = path, .name = name, .ref = ref, .attr = &attr };
	int err = path_error(path, sg_getattr(call_vol(c), ref, &attr));

	if (!err && (S_ISDIR(attr.mode) || attr.nlink <= 1))
		err = tree_meet(c, path, ref->ino);
	if (err)
		return err;
	e.type = type_of(attr.mode);
	if (!e.type) {
		tool_warn("%s: is a %s, which an archive cannot hold: it is left out", path,
			  type_name(attr.mode));
		return 0;
	}
	if (attr.nlink > 1 && !S_ISDIR(attr.mode))
		seen = links_find(&c->links, 0, ref->ino);
	if (seen) {
		e.type = '1';
		e.link = seen->path;
		err = out_entry(c, &e);
	} else if (S_ISDIR(attr.mode)) {
		err = get_dir(c, &e, depth);
	} else {
		err = S_ISREG(attr.mode) ? get_file(c, &e) : S_ISLNK(attr.mode) ? get_link(c, &e) :
		      out_entry(c, &e);
		if (!err && attr.nlink > 1)
			err = path_error(path, links_add(&c->links, &this));
	}
	free(e.map.at);
	free(e.list.bytes);
	free(e.pax.bytes);
	return err ?: e.bad;
}

/* --- the command ----------------------------------------------------------------------------- */

/* Only users who can read the volume may read the archive. */
static int open_archive(struct call *c, const char *to)
{
	struct stat st, own;
	int fd, err = 0;

	if (!strcmp(to, "-")) {
		if (!isatty(STDOUT_FILENO))
			return 0;
		tool_error("standard output is a terminal: write the archive to a file: get --tar VOLUME PATH FILE");
		return -EINVAL;
	}
	fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	if (fd < 0)
		return outside_error(to);
	/* the open used O_NONBLOCK, so as not to wait for a FIFO's reader */
	fcntl(fd, F_SETFL, 0);
	if (!fstat(fd, &st) && !fstat(c->m.target.fd, &own) &&
	    (outside_same(&st, &own) || (S_ISBLK(st.st_mode) && st.st_rdev == own.st_rdev))) {
		tool_error("%s: is the volume itself", to);
		err = -EINVAL;
	} else if ((S_ISREG(st.st_mode) && (fchmod(fd, 0600) || ftruncate(fd, 0))) ||
		   dup2(fd, STDOUT_FILENO) < 0) {
		err = outside_error(to);
	}
	close(fd);
	return err;
}

int tar_get(struct call *c)
{
	static const char end[2 * TAR_BLOCK];
	char *path = without_slashes(c->argv[0]);
	const char *name = path ? last_name(path) : NULL;
	struct sg_attr attr;
	struct sg_iref ref;
	int err = path ? path_find(call_vol(c), c->argv[0], true, &ref, &attr) :
		  path_error(c->argv[0], -ENOMEM);

	err = err ?: open_archive(c, c->argc > 1 ? c->argv[1] : "-");
	if (!err) {
		if (S_ISDIR(attr.mode))
			name = ".";
		else if (*name == '<')
			name = "file";
		err = get_any(c, &ref, path, name, 0);
		links_free(&c->links);
		err = ferror(stdout) ? -EIO : out(end, sizeof(end)) ?: err;
	}
	free(path);
	return err;
}
