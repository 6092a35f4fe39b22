// SPDX-License-Identifier: Apache-2.0
/*
 * reboot: makes the kernel reboot immediately, even if processes run, as an init system does at its
 * end.
 */
#include <stdio.h>
#include <sys/reboot.h>

int main(void)
{
	reboot(RB_AUTOBOOT);
	perror("reboot");
	return 1;
}
