// SPDX-License-Identifier: Apache-2.0
/*
 * Sealed files (docs/sealed-files.md). The engine looks at other systems; here are the processes of
 * this mount.
 */
#define _GNU_SOURCE
#include <errno.h>
#include "fuse.h"
#include "uapi/ioctl.h"

/* The kernel checks the owner for its own requests only. */
static bool may_seal(const struct sg_iref *ref)
{
	return !IN->uid || IN->uid == (u32)sg_load64(&node_record(ref)->owner);
}

static int seal_ask(const struct sg_iref *ref, struct sg_ioc_seal *s)
{
	u64 root[SG_DIGEST_SIZE / 8];
	int err = sg_seal_root(VOL, ref, root);

	if (err && err != -ENODATA)
		return err;
	s->state = sg_is_sealed(VOL, ref) ? SG_SEAL_IS_SET : 0;
	memset(s->root, 0, sizeof(s->root));
	if (!err) {
		s->state |= SG_SEAL_HAS_ROOT;
		memcpy(s->root, root, sizeof(root));
	}
	return 0;
}

static int seal_set(const struct sg_iref *ref, struct sg_ioc_seal *s)
{
	int err = handles_deny_writes(IN->nodeid);

	if (err) {
		snprintf(s->why, sizeof(s->why),
			 "a process of this system has the file open for writing");
		return err;
	}
	err = sg_seal(VOL, ref, call_time(), s->why);
	handles_allow_writes();
	return err;
}

static int seal_clear(const struct sg_iref *ref, struct sg_ioc_seal *s)
{
	if (handles_of(IN->nodeid) > 1) {
		snprintf(s->why, sizeof(s->why),
			 "a process of this system has the file open, or mapped");
		return -EBUSY;
	}
	return sg_unseal(VOL, ref, call_time(), s->why);
}

static int seal_change(const struct sg_iref *ref, struct sg_ioc_seal *s)
{
	u64 root[SG_DIGEST_SIZE / 8];

	if (!may_seal(ref) || is_fixed(ref, SG_FL_IMMUTABLE))
		return -EPERM;
	if (s->what == SG_SEAL_SET)
		return seal_set(ref, s);
	if (s->what == SG_SEAL_CLEAR)
		return seal_clear(ref, s);
	memcpy(root, s->root, sizeof(root));
	return sg_seal_set_root(VOL, ref, root);
}

/*
 * A reply with an error has no data. So a refusal with a reason is a reply with data, and the
 * kernel returns its result to the caller as the error.
 */
int ioctl_seal(const struct sg_iref *ref, const struct fuse_ioctl_in *in)
{
	struct {
		struct fuse_ioctl_out out;
		struct sg_ioc_seal s;
	} a = { { 0 }, { 0 } };
	int err;

	if (!call_arg(sizeof(*in) + sizeof(a.s)) || in->out_size < sizeof(a.s))
		return -EINVAL;
	memcpy(&a.s, in + 1, sizeof(a.s));
	memset(a.s.why, 0, sizeof(a.s.why));
	if (a.s.what > SG_SEAL_ROOT)
		return -EINVAL;
	err = a.s.what == SG_SEAL_ASK ? seal_ask(ref, &a.s) : seal_change(ref, &a.s);
	if (err && !a.s.why[0])
		return err;
	a.out.result = err;
	return reply(&a, sizeof(a));
}
