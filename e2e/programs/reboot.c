// SPDX-License-Identifier: Apache-2.0
/*
 * reboot: reboots the kernel at once, without stopping the processes first. An init system ends
 * with the same call.
 */
#include <stdio.h>
#include <sys/reboot.h>

int main(void)
{
	reboot(RB_AUTOBOOT);
	perror("reboot");
	return 1;
}
