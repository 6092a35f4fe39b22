// SPDX-License-Identifier: Apache-2.0
/* Error messages. */
#include <string.h>
#include "lib.h"

static const struct {
	int err;
	const char *why;
} sentences[] = {
	{ EAGAIN, "another owner has it at this moment" },
	{ ETIMEDOUT, "timed out: it was not available in time" },
	{ EINTR, "interrupted by a signal" },
	{ EDEADLK, "the caller has locked it already" },
	{ EPERM, "not allowed: the caller has not locked the object, or does not own it" },
	{ EOWNERDEAD, "locked, but its last owner died: data that it protects may be inconsistent" },
	{ ENOTRECOVERABLE, "an owner died, and no later owner repaired the data: reset or remove the object" },
	{ EOVERFLOW, "the count would be too large, or this mount maps no owner for you" },
	{ ENOENT, "there is no object of that name" },
	{ EEXIST, "an object of that name exists already" },
	{ EINVAL, "invalid name (1 to 255 bytes, no slash), or not possible with an object of this "
		  "kind" },
	{ ENAMETOOLONG, "a name has at most 255 bytes" },
	{ EPROTOTYPE, "the object is of another kind" },
	{ EACCES, "the object's owner and mode forbid it, or to create it, those of the volume's root" },
	{ EUCLEAN, "damaged: see the kernel's log, and run fsck.stargatefs" },
	{ EMSGSIZE, "the record is larger than half the ring, or than the buffer" },
	{ EUSERS, "the ring has as many receivers as it can have" },
	{ EOPNOTSUPP, "a system has the volume mounted with a module that knows no rings: update it" },
	{ ENOTCONN, "opened before fork(): open it again" },
	{ ECONNREFUSED, "no process listens by that name" },
	{ EADDRINUSE, "another process listens by that name, or two have joined by it" },
	{ ECONNRESET, "the other end has died or closed without an end: its last bytes may be missing" },
	{ EPIPE, "the other end does not read any more" },
	{ EPROTO, "the other end does not speak as a stream does" },
	{ EROFS, "the volume is mounted read-only" },
	{ ENODEV, "that is not on a mounted StargateFS volume" },
	{ EXDEV, "only a part of the volume is mounted there, without its semaphores" },
	{ EBADF, "the object was opened for reading only" },
	{ ENOSPC, "the volume is full" },
	{ EIO, "this system has been fenced by the others: unmount and mount the volume again" },
};

API const char *stargate_why(int err)
{
	unsigned int i;

	for (i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++)
		if (sentences[i].err == err)
			return sentences[i].why;
	return strerror(err);
}
