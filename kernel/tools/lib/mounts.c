// SPDX-License-Identifier: Apache-2.0
/* Finds the mount points of devices in /proc/self/mountinfo. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include "tool.h"

/* Decodes "\040" to a blank, and other octal escapes. */
static void unescape(const char *from, size_t len, char *to, size_t room)
{
	size_t i;

	for (i = 0; i < len && room > 1; i++, room--) {
		if (from[i] == '\\' && i + 3 < len) {
			*to++ = (char)((from[i + 1] - '0') << 6 | (from[i + 2] - '0') << 3 |
				       (from[i + 3] - '0'));
			i += 3;
		} else {
			*to++ = from[i];
		}
	}
	*to = 0;
}

/*
 * Reads a line "ID PARENT MAJOR:MINOR ROOT WHERE ... - TYPE SOURCE ...". A bind mount of a part of
 * a file system has another ROOT.
 */
static bool mount_line(const char *line, dev_t *dev, char where[PATH_MAX], char source[PATH_MAX])
{
	static const char type[] = " - stargatefs ";
	unsigned int maj, min;
	const char *from;
	int root, at;

	if (sscanf(line, "%*u %*u %u:%u %n%*s %n", &maj, &min, &root, &at) != 2 ||
	    strncmp(line + root, "/ ", 2))
		return false;
	*dev = makedev(maj, min);
	from = strstr(line, type);
	if (!from)
		return false;
	from += sizeof(type) - 1;
	unescape(line + at, strcspn(line + at, " "), where, PATH_MAX);
	unescape(from, strcspn(from, " "), source, PATH_MAX);
	return true;
}

/* Checks that no other file system is mounted over it. */
static bool is_seen(const char *where, dev_t dev)
{
	struct stat st;

	return !stat(where, &st) && st.st_dev == dev;
}

bool mounted_read_only(const char *where)
{
	struct statvfs st;

	return !statvfs(where, &st) && st.f_flag & ST_RDONLY;
}

/* Returns the table of mounts, sorted by device. Entries of one device keep their order. */
struct mount {
	dev_t dev;
	size_t at;
	char *where, *source;
};

static struct mount *kept;
static size_t kept_count;
static bool keeping;

static int by_device(const void *a, const void *b)
{
	const struct mount *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

static bool add(struct mount **table, size_t *n, dev_t dev, const char *where, const char *source)
{
	struct mount *more = realloc(*table, (*n + 1) * sizeof(*more));

	if (!more)
		return false;
	*table = more;
	more[*n] = (struct mount){ dev, *n, strdup(where), strdup(source) };
	if (!more[*n].where || !more[*n].source)
		return false;
	++*n;
	return true;
}

static void drop(struct mount *table, size_t n)
{
	while (n--) {
		free(table[n].where);
		free(table[n].source);
	}
	free(table);
}

/* Reads the entries of one device, or of all devices (0). */
static size_t read_table(dev_t only, struct mount **table)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char at[PATH_MAX], from[PATH_MAX];
	char *line = NULL;
	size_t room = 0, n = 0;
	dev_t dev;

	*table = NULL;
	while (f && getline(&line, &room, f) > 0)
		if (mount_line(line, &dev, at, from) && (!only || dev == only) &&
		    !add(table, &n, dev, at, from))
			break;
	free(line);
	if (f)
		fclose(f);
	return n;
}

void mounts_keep(void)
{
	kept_count = read_table(0, &kept);
	if (kept_count)
		qsort(kept, kept_count, sizeof(*kept), by_device);
	keeping = true;
}

/* Returns the first entry of a device in the kept table, or the place for it there. */
static const struct mount *kept_of(dev_t dev)
{
	size_t low = 0, high = kept_count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (kept[middle].dev < dev)
			low = middle + 1;
		else
			high = middle;
	}
	return kept + low;
}

/* Chooses one of several mounts of a device. Prefers a writable mount. */
static bool choose(const struct mount *m, const struct mount *end, dev_t dev, char where[PATH_MAX],
		   char source[PATH_MAX])
{
	bool found = false;

	for (; m < end && m->dev == dev; m++) {
		bool writable;

		if (!is_seen(m->where, dev))
			continue;
		writable = !mounted_read_only(m->where);
		if (found && !writable)
			continue;
		found = true;
		snprintf(where, PATH_MAX, "%s", m->where);
		snprintf(source, PATH_MAX, "%s", m->source);
		if (writable)
			break;
	}
	return found;
}

static bool find_mount(dev_t dev, char where[PATH_MAX], char source[PATH_MAX])
{
	struct mount *table;
	bool found;
	size_t n;

	if (keeping)
		return choose(kept_of(dev), kept + kept_count, dev, where, source);
	n = read_table(dev, &table);
	found = choose(table, table + n, dev, where, source);
	drop(table, n);
	return found;
}

bool mounted_at(dev_t dev, char where[PATH_MAX])
{
	char source[PATH_MAX];

	return find_mount(dev, where, source);
}

bool mounted_first(char where[PATH_MAX])
{
	struct mount *table;
	size_t n = read_table(0, &table), i;

	for (i = 0; i < n && !is_seen(table[i].where, table[i].dev); i++)
		;
	if (i < n)
		snprintf(where, PATH_MAX, "%s", table[i].where);
	drop(table, n);
	return i < n;
}

bool mounted_memory(const char *dir, char path[PATH_MAX])
{
	char where[PATH_MAX], source[PATH_MAX];
	struct stat st;

	if (stat(dir, &st) || !S_ISDIR(st.st_mode) || !find_mount(st.st_dev, where, source))
		return false;
	if (snprintf(path, PATH_MAX, "%s/.stargate/region", where) < PATH_MAX && !stat(path, &st))
		return true;
	snprintf(path, PATH_MAX, "%s", source);
	return !stat(path, &st);
}
