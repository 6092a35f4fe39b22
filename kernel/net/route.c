// SPDX-License-Identifier: GPL-2.0
/*
 * Routes to peers, by rtnetlink, as a program would make them. So users see them (`ip route`, with
 * the protocol SG_NET_PROTOCOL), and the kernel exports no other way.
 */
#include <linux/in.h>
#include <linux/net.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/net_namespace.h>

#include "sgnet.h"

#define SGN_METRIC	64	/* before routes of programs with the default metric of IPv6 */

struct sgn_request {
	struct nlmsghdr head;
	struct rtmsg route;
	u8 attributes[128];
};

static void sgn_request_put(struct sgn_request *r, u16 type, const void *data, u16 len)
{
	struct nlattr *a = (void *)r + NLMSG_ALIGN(r->head.nlmsg_len);

	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	memcpy(nla_data(a), data, len);
	r->head.nlmsg_len = NLMSG_ALIGN(r->head.nlmsg_len) + NLA_ALIGN(a->nla_len);
}

static void sgn_request_make(struct sgn_request *r, const struct net_device *dev,
			     const struct sgn_entry *e, enum sgn_route_how how)
{
	bool add = how != SGN_ROUTE_REMOVE;
	bool v4 = e->address.family == 4;
	u16 len = v4 ? 4 : 16;
	u32 index = dev->ifindex, metric = SGN_METRIC;

	memset(r, 0, sizeof(*r));
	r->head.nlmsg_len = NLMSG_LENGTH(sizeof(r->route));
	r->head.nlmsg_type = add ? RTM_NEWROUTE : RTM_DELROUTE;
	r->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	if (add)
		r->head.nlmsg_flags |= NLM_F_CREATE |
				       (how == SGN_ROUTE_SET ? NLM_F_REPLACE : NLM_F_EXCL);
	r->route.rtm_family = v4 ? AF_INET : AF_INET6;
	r->route.rtm_dst_len = 8 * len;
	r->route.rtm_table = RT_TABLE_MAIN;
	r->route.rtm_protocol = SG_NET_PROTOCOL;
	r->route.rtm_scope = v4 ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
	r->route.rtm_type = RTN_UNICAST;
	sgn_request_put(r, RTA_DST, e->address.byte, len);
	sgn_request_put(r, RTA_OIF, &index, sizeof(index));
	sgn_request_put(r, RTA_PRIORITY, &metric, sizeof(metric));
	if (add)
		sgn_request_put(r, RTA_PREFSRC, e->source.byte, len);
}

/* rtnetlink handles the request in the call, so the answer is there when it returns. */
static int sgn_request_send(struct socket *sock, struct sgn_request *r)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct msghdr msg = { .msg_name = &kernel, .msg_namelen = sizeof(kernel) };
	struct kvec vec = { .iov_base = r, .iov_len = r->head.nlmsg_len };
	const struct nlmsgerr *answer;
	int ret = kernel_sendmsg(sock, &msg, &vec, 1, vec.iov_len);

	if (ret < 0)
		return ret;
	msg = (struct msghdr){};
	vec.iov_len = sizeof(*r);
	ret = kernel_recvmsg(sock, &msg, &vec, 1, vec.iov_len, MSG_DONTWAIT);
	if (ret < (int)NLMSG_LENGTH(sizeof(*answer)) || r->head.nlmsg_type != NLMSG_ERROR)
		return ret < 0 ? ret : -EPROTO;
	answer = nlmsg_data(&r->head);
	return answer->error;
}

/* A socket of the kernel keeps no namespace, so the control does. */
int sgn_route(const struct net_device *dev, const struct sgn_entry *e, enum sgn_route_how how)
{
	struct sgn_request request;
	struct socket *sock;
	int err = sock_create_kern(sgn_of(dev)->ns, PF_NETLINK, SOCK_RAW, NETLINK_ROUTE, &sock);

	if (err)
		return err;
	sgn_request_make(&request, dev, e, how);
	err = sgn_request_send(sock, &request);
	sock_release(sock);
	return err == -EEXIST && how == SGN_ROUTE_KEEP ? 0 : err;
}
