// SPDX-License-Identifier: GPL-2.0
/* /sys/class/net/NAME/stargate: what the device tells its administrator. */
#include <linux/device.h>
#include <linux/inet.h>

#include "sgnet.h"

static int sgn_show_addresses(char *buf, int at, const struct sgn *net, const struct sgn_peer *p)
{
	const struct sgn_entry *e;
	int i;

	hash_for_each_rcu(net->entries, i, e, node) {
		if (e->peer != p)
			continue;
		at += sysfs_emit_at(buf, at, e->address.family == 4 ? " %pI4%s" : " %pI6c%s",
				    e->address.byte, READ_ONCE(e->routed) ? "" : "(no route)");
	}
	return at;
}

/* One line for each peer: its name, its slot, the rings that it has, its addresses. */
static ssize_t peers_show(struct device *d, struct device_attribute *attr, char *buf)
{
	const struct sgn *net = sgn_of(to_net_dev(d));
	unsigned int slot;
	int at;

	at = sysfs_emit(buf, "volume %s%s\n", net->path,
			READ_ONCE(net->permitted) ? "" : " (not permitted, or frozen)");
	rcu_read_lock();
	for (slot = 0; slot < STARGATE_SLOTS; slot++) {
		const struct sgn_peer *p = rcu_dereference(net->peer[slot]);
		const struct sgn_side *tx = p ? rcu_dereference(p->tx) : NULL;

		if (!p)
			continue;
		at += sysfs_emit_at(buf, at, "%*pE slot %u queues %u:",
				    (int)strnlen(p->name, sizeof(p->name)), p->name, slot,
				    tx ? tx->n : 0);
		at = sgn_show_addresses(buf, at, net, p);
		at += sysfs_emit_at(buf, at, "\n");
	}
	rcu_read_unlock();
	return at;
}
static DEVICE_ATTR_RO(peers);

static struct attribute *sgn_attributes[] = {
	&dev_attr_peers.attr,
	NULL
};

const struct attribute_group sgn_status_group = {
	.name	= "stargate",
	.attrs	= sgn_attributes,
};
