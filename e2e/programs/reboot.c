// SPDX-License-Identifier: Apache-2.0
/* reboot: what an init system does last: the kernel is told to boot anew, whatever is going on. */
#include <stdio.h>
#include <sys/reboot.h>

int main(void)
{
	reboot(RB_AUTOBOOT);
	perror("reboot");
	return 1;
}
