// SPDX-License-Identifier: Apache-2.0
/*
 * The only program of a VM (its /init). The parameter at= of the kernel's command line is an
 * address of physical memory. The program prints the text at that address on the serial line,
 * replaces the text by an answer, and switches the VM off.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE	4096
#define ANSWER	"seen by the machine\n"

static FILE *line;

static void end(const char *what)
{
	if (what)
		fprintf(line ? line : stderr, "lookout: %s: %s\n", what, strerror(errno));
	if (line)
		fclose(line);
	sync();
	reboot(RB_POWER_OFF);
}

static off_t where(void)
{
	char text[4096] = "", *at;
	int fd = open("/proc/cmdline", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		end("/proc/cmdline");
	at = strstr(text, " at=");
	if (!at)
		end("at=");
	return (off_t)strtoull(at + 4, NULL, 0);
}

int main(void)
{
	char *mem;
	int fd;

	mkdir("/dev", 0755);
	mkdir("/proc", 0755);
	if (mount("devtmpfs", "/dev", "devtmpfs", 0, "") || mount("proc", "/proc", "proc", 0, ""))
		end("mount");
	line = fopen("/dev/ttyS0", "w");
	fd = open("/dev/mem", O_RDWR);
	if (!line || fd < 0)
		end("/dev");
	mem = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, where());
	if (mem == MAP_FAILED)
		end("mmap");
	fprintf(line, "lookout: %.*s\n", (int)strcspn(mem, "\n"), mem);
	memcpy(mem, ANSWER, sizeof(ANSWER) - 1);
	end(NULL);
	return 0;
}
