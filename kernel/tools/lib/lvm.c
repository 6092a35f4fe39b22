// SPDX-License-Identifier: Apache-2.0
/*
 * Calls the program `lvm`. So an administrator could run the same commands, and can read their
 * results. `lvm` uses the machine's settings (/etc/lvm), and does not inherit the caller's
 * environment.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lvm.h"
#include "run.h"

#define WORDS_MAX	40

/* --- requirements -------------------------------------------------------------------------- */

/*
 * Distributions load the module when a process first opens its device.
 */
static bool has_device_mapper(void)
{
	static const char *const load[] = { "modprobe", "-q", "dm_mod", NULL };
	static const char known[] = "/sys/class/misc/device-mapper";
	char path[PATH_MAX];

	if (access(known, F_OK) && program_find(load[0], path))
		program_show(path, load, true);
	return !access(known, F_OK);
}

int lvm_ready(void)
{
	char path[PATH_MAX];

	if (geteuid()) {
		tool_error("only root may change zones and volumes: run it as root");
		return -EPERM;
	}
	if (!program_find("lvm", path)) {
		tool_error("LVM, which cuts a zone into volumes, is missing: install the package "
			   "lvm2");
		return -ENODEV;
	}
	if (!has_device_mapper()) {
		tool_error("the kernel has no device mapper, which LVM needs: load dm_mod, or "
			   "use a kernel that has it");
		return -ENODEV;
	}
	return 0;
}

/* --- messages ------------------------------------------------------------------------------ */

/* Prints LVM's errors as one line; prints warnings only if there are no errors. */
static void explain(const char *command, int status, const char *said)
{
	char line[1024] = "";
	size_t len = 0, n;
	const char *p;
	int pass;

	for (pass = 0; pass < 2 && !len; pass++) {
		for (p = said ? said : ""; *p; p += n + (p[n] == '\n')) {
			p += strspn(p, " ");
			n = strcspn(p, "\n");
			if (!n || (!pass && !strncmp(p, "WARNING:", 8)) ||
			    len + n + 3 > sizeof(line))
				continue;
			len += (size_t)snprintf(line + len, sizeof(line) - len, "%s%.*s",
						len ? "; " : "", (int)n, p);
		}
	}
	if (len && line[len - 1] == '.')
		line[len - 1] = 0;
	if (len)
		tool_error("%s: %s", command, line);
	else
		tool_error("%s: ended with status %d, without a message", command, status);
}

/*
 * LVM archives the state before each change for 30 days. A deleted volume is wiped, so no user
 * needs its old state, and thousands of archives would fill /etc/lvm. LVM still keeps a copy of the
 * present state, and archives for changes of the zone itself.
 */
static const char *const no_archive[] = { "--config", "backup/archive=0" };

static bool changes_volume(const char *command)
{
	return !strncmp(command, "lv", 2) && strcmp(command, "lvs") != 0;
}

/*
 * Without udevd, LVM must make the device nodes itself, and must not wait for udevd. LVM must not
 * warn of descriptors that this tool has inherited.
 */
static int call(const char *const *command, struct said *said)
{
	bool udev = !access("/run/udev/control", F_OK);
	const char *const env[] = {
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "LVM_SUPPRESS_FD_WARNINGS=1",
		udev ? NULL : "DM_DISABLE_UDEV=1", NULL
	};
	const char *words[WORDS_MAX] = { "lvm" };
	unsigned int i = 0;
	char path[PATH_MAX];

	while (command[i] && i + 4 < WORDS_MAX) {
		words[i + 1] = command[i];
		i++;
	}
	if (changes_volume(command[0]))
		memcpy(words + i + 1, no_archive, sizeof(no_archive));
	return program_find("lvm", path) && !command[i] ?
		program_hear(path, words, env, said) : 127;
}

int lvm_run(const char *const *words)
{
	struct said said = { 0 };
	int status = call(words, &said);

	if (status)
		explain(words[0], status, said.err.bytes);
	said_free(&said);
	return status ? -EIO : 0;
}

int lvm_report(const char *const *words, struct report *out)
{
	struct said said = { 0 };
	int status = call(words, &said);
	bool read = false;

	if (status) {
		explain(words[0], status, said.err.bytes);
	} else {
		read = said.out.bytes && report_read(out, said.out.bytes);
		said.out.bytes = NULL;	/* the report now owns this text */
		if (!read)
			tool_error("%s: its report cannot be read; lvm2 2.02.158 or later is "
				   "needed", words[0]);
	}
	said_free(&said);
	return read ? 0 : -EIO;
}
