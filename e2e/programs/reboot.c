// SPDX-License-Identifier: Apache-2.0
/* reboot: the last action of an init system: tells the kernel to reboot, whatever is running. */
#include <stdio.h>
#include <sys/reboot.h>

int main(void)
{
	reboot(RB_AUTOBOOT);
	perror("reboot");
	return 1;
}
