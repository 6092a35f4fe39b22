// SPDX-License-Identifier: Apache-2.0
/*
 * Reads from this machine's module which processes hold the memory (.stargate/region) of a volume
 * mounted here, and for which machine. Also makes the module fence a system.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "ctl.h"

#define VOLUMES	"/sys/fs/stargatefs"

static FILE *open_file(const char *dir, const char *name, const char *mode)
{
	char *path;
	FILE *f;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return NULL;
	f = fopen(path, mode);
	free(path);
	return f;
}

static bool is_mount(const char *dir, dev_t dev)
{
	FILE *f = open_file(dir, "dev", "re");
	unsigned int maj, min;
	bool same;

	if (!f)
		return false;
	same = fscanf(f, "%u:%u", &maj, &min) == 2 && makedev(maj, min) == dev;
	fclose(f);
	return same;
}

/*
 * Finds the device @path, or the device of the mount whose .stargate/region is @path. Any other
 * file is a copy of a volume.
 */
static bool device_of(const char *path, dev_t *dev)
{
	char real[PATH_MAX], where[PATH_MAX], own[PATH_MAX];
	struct stat st, folder, its;
	char *name;

	if (stat(path, &st))
		return false;
	*dev = S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev;
	if (S_ISBLK(st.st_mode))
		return true;
	if (!mounted_at(st.st_dev, where) || !realpath(path, real))
		return false;
	name = strrchr(real, '/');
	if (!S_ISREG(st.st_mode) || strncmp(name, "/region", 7))
		return false;
	*name = 0;
	return snprintf(own, sizeof(own), "%s/.stargate", where) < (int)sizeof(own) &&
	       !stat(real, &folder) && !stat(own, &its) && folder.st_dev == its.st_dev &&
	       folder.st_ino == its.st_ino;
}

bool mounted_here(const char *path, char *dir, size_t room)
{
	struct dirent *d;
	bool found = false;
	dev_t dev;
	DIR *all;

	if (!device_of(path, &dev))
		return false;
	all = opendir(VOLUMES);
	if (!all)
		return false;
	while (!found && (d = readdir(all))) {
		snprintf(dir, room, "%s/%s", VOLUMES, d->d_name);
		found = d->d_name[0] != '.' && is_mount(dir, dev);
	}
	closedir(all);
	return found;
}

/* Reads "PID MODE MACHINE COMMAND". */
static bool read_holder(const char *line, struct holder *h)
{
	char machine[40];
	unsigned long pid;

	memset(h, 0, sizeof(*h));
	if (sscanf(line, "%lu %7s %39s %31[^\n]", &pid, h->mode, machine, h->command) != 4)
		return false;
	h->pid = pid;
	h->known = parse_uuid(machine, h->machine);
	return true;
}

/* Leaves out this process, which has itself mapped the volume. */
unsigned int read_holders(const char *path, struct holder *to, unsigned int room)
{
	char dir[PATH_MAX], line[128];
	unsigned int n = 0;
	FILE *f;

	if (!mounted_here(path, dir, sizeof(dir)))
		return 0;
	f = open_file(dir, "holders", "re");
	if (!f)
		return 0;
	while (n < room && fgets(line, sizeof(line), f))
		if (read_holder(line, &to[n]) && to[n].pid != (u64)getpid())
			n++;
	fclose(f);
	return n;
}

int own_slot(const char *dir)
{
	FILE *f = open_file(dir, "slot", "re");
	int slot = -1;

	if (!f)
		return -1;
	if (fscanf(f, "%d", &slot) != 1)
		slot = -1;
	fclose(f);
	return slot;
}

int ask_to_fence(const char *dir, unsigned int slot, u32 incarnation, bool unheld)
{
	FILE *f = open_file(dir, "fence", "we");
	int err = 0;

	if (!f)
		return -errno;
	fprintf(f, "%u %u%s\n", slot, incarnation, unheld ? " unheld" : "");
	if (fflush(f))
		err = -errno;
	fclose(f);
	return err;
}
