// SPDX-License-Identifier: Apache-2.0
/* The device as its module describes it in sysfs. */
#include <errno.h>
#include <string.h>
#include "net.h"

int cmd_show(struct call *c)
{
	char path[PATH_MAX], line[512];
	FILE *f;

	if (strchr(c->o.name, '/')) {
		tool_error("%s: an interface has no '/' in its name", c->o.name);
		return 1;
	}
	snprintf(path, sizeof(path), "/sys/class/net/%s/stargate/peers", c->o.name);
	f = fopen(path, "re");
	if (!f) {
		tool_error("%s: %s", c->o.name, errno == ENOENT ?
			   "there is no network of a volume of that name" : strerror(errno));
		return 1;
	}
	while (fgets(line, sizeof(line), f))
		fputs(line, stdout);
	fclose(f);
	return 0;
}
