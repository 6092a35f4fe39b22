// SPDX-License-Identifier: Apache-2.0
/* Making and removing the device, by rtnetlink: ip(8) does not know the module's attributes. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "net.h"

/**
 * struct request - a request to the kernel, and later its answer
 */
struct request {
	struct nlmsghdr head;
	struct ifinfomsg link;
	char attributes[2 * PATH_MAX];
};

static struct rtattr *put(struct request *r, unsigned short type, const void *data, size_t len)
{
	struct rtattr *a = (void *)((char *)r + NLMSG_ALIGN(r->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	if (len)
		memcpy(RTA_DATA(a), data, len);
	r->head.nlmsg_len = NLMSG_ALIGN(r->head.nlmsg_len) + RTA_ALIGN(a->rta_len);
	return a;
}

static void nest_end(struct request *r, struct rtattr *a)
{
	a->rta_len = (unsigned short)((char *)r + r->head.nlmsg_len - (char *)a);
}

static void begin(struct request *r, unsigned short type, unsigned short flags, const char *name)
{
	memset(r, 0, sizeof(*r));
	r->head.nlmsg_len = NLMSG_LENGTH(sizeof(r->link));
	r->head.nlmsg_type = type;
	r->head.nlmsg_flags = (unsigned short)(NLM_F_REQUEST | NLM_F_ACK | flags);
	put(r, IFLA_IFNAME, name, strlen(name) + 1);
}

/* Finds the kernel's explanation of an error, if there is one. */
static const char *explanation(const struct request *r, const struct nlmsgerr *e)
{
	size_t at = sizeof(*e), end = r->head.nlmsg_len - NLMSG_HDRLEN;

	if (!(r->head.nlmsg_flags & NLM_F_ACK_TLVS))
		return NULL;
	if (!(r->head.nlmsg_flags & NLM_F_CAPPED))
		at += e->msg.nlmsg_len - NLMSG_HDRLEN;
	while (at + sizeof(struct nlattr) <= end) {
		const struct nlattr *a = (const void *)((const char *)e + at);

		if (a->nla_type == NLMSGERR_ATTR_MSG)
			return (const char *)a + NLA_HDRLEN;
		at += NLA_ALIGN(a->nla_len ? a->nla_len : sizeof(*a));
	}
	return NULL;
}

/* Returns 0 or an errno number. *why: the kernel's explanation, or NULL. */
static int ask(struct request *r, const char **why)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), on = 1, err = 0;
	const struct nlmsgerr *e = NLMSG_DATA(&r->head);
	ssize_t n = -1;

	*why = NULL;
	if (fd < 0)
		return errno;
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	if (sendto(fd, r, r->head.nlmsg_len, 0, (void *)&kernel, sizeof(kernel)) >= 0)
		n = recv(fd, r, sizeof(*r), 0);
	if (n < 0)
		err = errno;
	else if ((size_t)n < NLMSG_LENGTH(sizeof(*e)) || r->head.nlmsg_type != NLMSG_ERROR)
		err = EPROTO;
	else
		err = -e->error;
	if (err && n > 0 && err != EPROTO)
		*why = explanation(r, e);
	close(fd);
	return err;
}

static void put_data(struct request *r, const struct call *c, const char *volume)
{
	struct rtattr *info = put(r, IFLA_LINKINFO, NULL, 0), *data;
	unsigned int queues = (unsigned int)c->queues, ring = (unsigned int)c->ring;
	unsigned char publish = c->all ? SG_NET_PUBLISH_ALL : SG_NET_PUBLISH_OWN;

	put(r, IFLA_INFO_KIND, SG_NET_KIND, strlen(SG_NET_KIND));
	data = put(r, IFLA_INFO_DATA, NULL, 0);
	put(r, SG_NET_VOLUME, volume, strlen(volume) + 1);
	if (queues)
		put(r, SG_NET_NQUEUES, &queues, sizeof(queues));
	put(r, SG_NET_RING, &ring, sizeof(ring));
	put(r, SG_NET_PUBLISH, &publish, sizeof(publish));
	nest_end(r, data);
	nest_end(r, info);
}

static const char *why_not(int err, const char *kernel)
{
	if (kernel)
		return kernel;
	switch (err) {
	case EEXIST:
		return "there is an interface of that name";
	case EOPNOTSUPP:
		return "the module stargate_net is not loaded: run 'modprobe stargate_net'";
	case EPERM:
		return "only root may change network interfaces";
	case ENODEV:
		return "there is no interface of that name";
	default:
		return strerror(err);
	}
}

static int report(const struct call *c, int err, const char *kernel)
{
	tool_error("%s: %s", c->o.name, why_not(err, kernel));
	return 1;
}

static bool name_fits(const struct call *c)
{
	if (strlen(c->o.name) < IFNAMSIZ)
		return true;
	tool_error("%s: the name of an interface has at most %d bytes", c->o.name, IFNAMSIZ - 1);
	return false;
}

/* A path that the module, too, resolves to the volume. */
static int volume_of(struct call *c, char where[PATH_MAX])
{
	if (!c->o.volume)
		return mounted_first(where) ? 0 : ENODEV;
	return realpath(c->o.volume, where) ? 0 : errno;
}

static struct request request;

int cmd_up(struct call *c)
{
	char volume[PATH_MAX];
	const char *why;
	int err;

	if (!name_fits(c))
		return 1;
	err = volume_of(c, volume);
	if (err) {
		tool_error("%s: %s", c->o.volume ? c->o.volume : c->o.name,
			   err == ENODEV ? "no StargateFS volume is mounted" : strerror(err));
		return 1;
	}
	begin(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, c->o.name);
	request.link.ifi_flags = request.link.ifi_change = IFF_UP;
	put_data(&request, c, volume);
	err = ask(&request, &why);
	return err ? report(c, err, why) : 0;
}

int cmd_down(struct call *c)
{
	const char *why;
	int err;

	if (!name_fits(c))
		return 1;
	begin(&request, RTM_DELLINK, 0, c->o.name);
	err = ask(&request, &why);
	return err ? report(c, err, why) : 0;
}
