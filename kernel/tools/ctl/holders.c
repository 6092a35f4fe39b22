// SPDX-License-Identifier: Apache-2.0
/*
 * What this machine's module tells of a volume that is mounted here: which processes hold its
 * memory (.stargate/region), each for which machine; and how it is told to fence a system.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
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

static bool is_volume(const char *dir, const u8 uuid[16])
{
	FILE *f = open_file(dir, "uuid", "re");
	char text[64] = "";
	u8 its[16];
	bool same;

	if (!f)
		return false;
	same = fgets(text, sizeof(text), f);
	fclose(f);
	text[strcspn(text, "\n")] = 0;
	return same && parse_uuid(text, its) && !memcmp(its, uuid, 16);
}

bool mounted_here(const u8 uuid[16], char *dir, size_t room)
{
	DIR *all = opendir(VOLUMES);
	struct dirent *d;
	bool found = false;

	if (!all)
		return false;
	while (!found && (d = readdir(all))) {
		snprintf(dir, room, "%s/%s", VOLUMES, d->d_name);
		found = d->d_name[0] != '.' && is_volume(dir, uuid);
	}
	closedir(all);
	return found;
}

/* "PID MODE MACHINE COMMAND" */
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

/* Not ourselves, who have just mapped it in order to look. */
unsigned int read_holders(const u8 uuid[16], struct holder *to, unsigned int room)
{
	char dir[PATH_MAX], line[128];
	unsigned int n = 0;
	FILE *f;

	if (!mounted_here(uuid, dir, sizeof(dir)))
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
