// SPDX-License-Identifier: Apache-2.0
/* Where devices are mounted: /proc/self/mountinfo. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include "tool.h"

/* "\040" for a blank, and so on. */
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
 * "ID PARENT MAJOR:MINOR ROOT WHERE ... - TYPE SOURCE ..."; a bind mount of something in it has
 * another root.
 */
static bool mount_line(char *line, dev_t dev, char where[PATH_MAX], char source[PATH_MAX])
{
	static const char type[] = " - stargatefs ";
	unsigned int maj, min;
	const char *from;
	int root, at;

	if (sscanf(line, "%*u %*u %u:%u %n%*s %n", &maj, &min, &root, &at) != 2 ||
	    makedev(maj, min) != dev || strncmp(line + root, "/ ", 2))
		return false;
	from = strstr(line, type);
	if (!from)
		return false;
	from += sizeof(type) - 1;
	unescape(line + at, strcspn(line + at, " "), where, PATH_MAX);
	unescape(from, strcspn(from, " "), source, PATH_MAX);
	return true;
}

/* Something else may have been mounted over it. */
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

/* Of several, one by which it can be written. */
static bool find_mount(dev_t dev, char where[PATH_MAX], char source[PATH_MAX])
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char at[PATH_MAX], from[PATH_MAX];
	bool found = false;
	char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		bool writable;

		if (!mount_line(line, dev, at, from) || !is_seen(at, dev))
			continue;
		writable = !mounted_read_only(at);
		if (found && !writable)
			continue;
		found = true;
		snprintf(where, PATH_MAX, "%s", at);
		snprintf(source, PATH_MAX, "%s", from);
		if (writable)
			break;
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

bool mounted_at(dev_t dev, char where[PATH_MAX])
{
	char source[PATH_MAX];

	return find_mount(dev, where, source);
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
