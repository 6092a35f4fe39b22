// SPDX-License-Identifier: Apache-2.0
/*
 * The volume's permission is an object of root that no other user may open. All systems that have a
 * network on the volume have this object open.
 */
#include <errno.h>
#include "net.h"

int cmd_allow(struct call *c)
{
	const struct stargate_new what = { .type = STARGATE_EVENT, .mode = 0600 };
	struct stargate_stat st;
	stargate_sem *s;
	int err = stargate_create(&s, c->o.volume, SG_NET_PERMIT, &what, STARGATE_BY_KERNEL);

	if (!err) {
		err = stargate_fstat(s, &st);
		stargate_close(s);
	}
	if (!err && (st.uid || st.mode & 077))
		return trouble(c, EACCES, "the object '" SG_NET_PERMIT "' is not root's alone: "
			       "run 'stargate-net deny' first");
	return err ? trouble(c, err, NULL) : 0;
}

int cmd_deny(struct call *c)
{
	int err = stargate_remove(c->o.volume, SG_NET_PERMIT);

	return err && err != ENOENT ? trouble(c, err, NULL) : 0;
}
