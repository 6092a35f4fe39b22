// SPDX-License-Identifier: Apache-2.0
/* Facts about a VM's process: its name, its control group, the processors that it may use. */
#define _GNU_SOURCE
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "vsched.h"

#define CGROUPS	"/sys/fs/cgroup"

/*
 * Copies the first line that begins with @start from the file to @line. Returns false if there is
 * none.
 */
static bool first_line(const char *path, const char *start, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool there = false;

	while (file && !there && fgets(line, size, file))
		there = !strncmp(line, start, strlen(start));
	if (file)
		fclose(file);
	if (there)
		line[strcspn(line, "\n")] = 0;
	return there;
}

/* Writes the path of a thread's control group to @path. */
static bool group_of(pid_t tgid, pid_t tid, char *path, size_t size)
{
	char file[64], line[PATH_MAX];

	snprintf(file, sizeof(file), "/proc/%d/task/%d/cgroup", tgid, tid);
	return first_line(file, "0::/", line, sizeof(line)) &&
		snprintf(path, size, "%s%s", CGROUPS, line + 3) < (int)size;
}

/*
 * Reports whether libvirt created the group. libvirt puts each thread of a VM into its own group,
 * below the group that has the weight.
 */
static bool of_libvirt(const char *path)
{
	const char *name = strrchr(path, '/') + 1;

	return !strcmp(name, "libvirt") || !strcmp(name, "emulator") || !strncmp(name, "vcpu", 4);
}

u32 vs_weight(pid_t tgid)
{
	char path[PATH_MAX], file[PATH_MAX + 16], line[32];
	long weight;

	if (!group_of(tgid, tgid, path, sizeof(path)))
		return VS_WEIGHT;
	while (strlen(path) > strlen(CGROUPS) && of_libvirt(path))
		*strrchr(path, '/') = 0;
	snprintf(file, sizeof(file), "%s/cpu.weight", path);
	if (!first_line(file, "", line, sizeof(line)))
		return VS_WEIGHT;
	weight = strtol(line, NULL, 10);
	return weight >= 1 && weight <= 10000 ? weight : VS_WEIGHT;
}

bool vs_limited(pid_t tgid, pid_t tid)
{
	char path[PATH_MAX], file[PATH_MAX + 16], line[64];

	if (!group_of(tgid, tid, path, sizeof(path)))
		return false;
	for (; strlen(path) > strlen(CGROUPS); *strrchr(path, '/') = 0) {
		snprintf(file, sizeof(file), "%s/cpu.max", path);
		if (first_line(file, "", line, sizeof(line)) && strncmp(line, "max", 3))
			return true;
	}
	return false;
}

/* Reports whether the thread may use only one processor of several (a dedicated processor). */
bool vs_pinned(pid_t tid)
{
	cpu_set_t set;

	return sysconf(_SC_NPROCESSORS_ONLN) > 1 && !sched_getaffinity(tid, sizeof(set), &set) &&
		CPU_COUNT(&set) == 1;
}

/* Writes the VM's name to @name: the value of QEMU's option -name, or else the name of the program.
 * */
void vs_name(pid_t tgid, char *name, size_t size)
{
	char path[64], words[8192];
	const char *word, *value = NULL;
	size_t length = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", tgid);
	file = fopen(path, "re");
	if (file) {
		length = fread(words, 1, sizeof(words) - 1, file);
		fclose(file);
	}
	words[length] = 0;
	for (word = words; word < words + length; word += strlen(word) + 1)
		if (!strcmp(word, "-name"))
			value = word + strlen(word) + 1;
	if (value && !strncmp(value, "guest=", 6))
		value += 6;
	if (value && value < words + length) {
		snprintf(name, size, "%.*s", (int)strcspn(value, ","), value);
	} else {
		snprintf(path, sizeof(path), "/proc/%d/comm", tgid);
		if (!first_line(path, "", name, size))
			snprintf(name, size, "?");
	}
	/*
	 * Replace characters that are not safe on terminals or in JSON: the name comes from another
	 * program.
	 */
	for (; *name; name++)
		if (*name < ' ' || *name > '~' || *name == '"' || *name == '\\')
			*name = '?';
}
