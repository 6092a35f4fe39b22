// SPDX-License-Identifier: Apache-2.0
/*
 * Describes a process as systems store it in their slots, and detects whether such a process has
 * ended. This process cannot see processes of another machine, boot or name space of process IDs,
 * whatever their numbers are.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

/*
 * Reports whether all threads of a process have ended, although its parent has not waited for it
 * yet. Some init processes of containers never do. Kernels before 5.3 cannot tell.
 */
static bool is_zombie(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	bool ended = fd >= 0 && poll(&p, 1, 0) == 1 && p.revents & POLLIN;

	if (fd >= 0)
		close(fd);
	return ended;
}

/* A number that another process has by now proves nothing here. */
bool sg_os_has_ended(const u8 boot[16], u64 process)
{
	u32 pid = SG_SLOT_PID(process), space = SG_SLOT_PID_SPACE(process);
	u8 here[16];

	if (!space || space != SG_SLOT_PID_SPACE(process_self()) || (pid_t)pid <= 0 ||
	    !process_boot(here) || memcmp(here, boot, sizeof(here)))
		return false;
	return (kill((pid_t)pid, 0) && errno == ESRCH) || is_zombie((pid_t)pid);
}
