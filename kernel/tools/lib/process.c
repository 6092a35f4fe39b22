// SPDX-License-Identifier: Apache-2.0
/*
 * Describes a process as systems store it in their slots, and detects whether such a process has
 * ended. This process cannot see processes of another machine, boot or name space of process IDs,
 * whatever their numbers are.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tool.h"

bool uuid_from(const char *path, u8 uuid[16])
{
	char text[64] = "";
	FILE *f = fopen(path, "re");
	bool ok;

	if (!f)
		return false;
	ok = fgets(text, sizeof(text), f);
	fclose(f);
	text[strcspn(text, "\n")] = 0;
	return ok && parse_uuid(text, uuid);
}

bool process_boot(u8 boot[16])
{
	return uuid_from("/proc/sys/kernel/random/boot_id", boot);
}

/* A name space's number is used again only after its last process has ended. */
u64 process_self(void)
{
	struct stat st;

	return SG_SLOT_PROCESS(getpid(), stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino);
}

/* A process with this number may be a later one, so its existence proves nothing. */
bool sg_os_has_ended(const u8 boot[16], u64 process)
{
	u32 pid = SG_SLOT_PID(process), space = SG_SLOT_PID_SPACE(process);
	u8 here[16];

	if (!space || space != SG_SLOT_PID_SPACE(process_self()) || (pid_t)pid <= 0 ||
	    !process_boot(here) || memcmp(here, boot, sizeof(here)))
		return false;
	return kill((pid_t)pid, 0) && errno == ESRCH;
}
