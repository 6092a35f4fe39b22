/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that a damage and its repair harmed nothing else. check_damage.h includes it behind its
 * table.
 */
#ifndef SG_CHECK_INTACT_H
#define SG_CHECK_INTACT_H

static bool below(const char *path, const char *list)
{
	size_t n;

	for (; *list; list += n + (list[n] == ' ')) {
		n = strcspn(list, " ");
		if (!strncmp(path, list, n) && (!path[n] || path[n] == '/'))
			return true;
	}
	return false;
}

/* struct loss - the paths that a damage may cost. @allowed: how many of them may be missing. */
struct loss {
	const char *list;
	unsigned int allowed, seen;
};

static struct loss loss_of(const struct damage *d)
{
	if (!strcmp(d->lost, "@name"))
		return (struct loss){ "wide", 1, 0 };
	if (!strcmp(d->lost, "@bucket"))
		return (struct loss){ "wide", SG_BUCKET_SLOTS, 0 };
	if (!strcmp(d->lost, "@hole"))
		return (struct loss){ "wide", SG_INODES_PER_PAGE, 0 };
	return (struct loss){ d->lost, ~0u, 0 };
}

/* Permission bits that a repair clears, because the damage included them. */
static u32 closed;

static u32 closed_by(const struct damage *d)
{
	if (d->make == file_type || d->make == dir_type || d->make == mode_bits ||
	    d->make == typeless_both || d->make == typeless_rebuilt)
		return 07077;
	return d->name && !strncmp(d->name, "xattr_", 6) ? 070 : 0;
}

static bool intact(struct sg_vol *v, const struct known *k)
{
	const char *path = k->path, *slash;
	struct sg_attr attr;
	struct sg_iref at;
	unsigned int type;
	int err = sg_iref(v, SG_INO_ROOT, &at);

	do {
		slash = strchrnul(path, '/');
		err = err ? err : sg_lookup(v, &at, path, (u32)(slash - path), &at, &type);
		path = slash + 1;
	} while (!err && *slash);
	if (err || at.ino != k->ino || sg_getattr(v, &at, &attr))
		return false;
	if (attr.mode != k->mode && attr.mode != (k->mode & ~closed))
		return false;
	return (S_ISDIR(k->mode) || attr.size == k->size) &&
	       contents(v, &at, &attr) == k->crc;
}

/* Checks that nothing has changed except through the damage. */
static inline void check_intact(struct sg_vol *v, const struct damage *d)
{
	struct loss loss = loss_of(d);
	unsigned int i;

	closed = closed_by(d);
	for (i = 0; i < nknown; i++) {
		if (intact(v, &known[i]))
			continue;
		if (!below(known[i].path, loss.list) || ++loss.seen > loss.allowed)
			test_fail(__FILE__, __LINE__, "%s has changed", known[i].path);
	}
}

#endif
