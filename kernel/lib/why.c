// SPDX-License-Identifier: Apache-2.0
/* Error messages. */
#include <string.h>
#include "lib.h"

static const struct {
	int err;
	const char *why;
} sentences[] = {
	{ EAGAIN, "the object is not available at this moment" },
	{ ETIMEDOUT, "timed out: the object was not available in time" },
	{ EINTR, "interrupted by a signal" },
	{ EDEADLK, "the caller has already locked the object" },
	{ EPERM, "not allowed: the caller has not locked the object, or does not own it" },
	{ EOWNERDEAD, "locked, but its last owner died: data that it protects may be inconsistent" },
	{ ENOTRECOVERABLE, "an owner died, and no later owner repaired the data: reset or remove the object" },
	{ EOVERFLOW, "the count would be too large, or this mount maps no owner for the calling user" },
	{ ENOENT, "there is no object of that name" },
	{ EEXIST, "an object of that name already exists" },
	{ EINVAL, "the name is invalid (1 to 255 bytes, no slash), or objects of this kind do not "
		  "support the operation" },
	{ ENAMETOOLONG, "a name has at most 255 bytes" },
	{ EPROTOTYPE, "the object is of another kind" },
	{ EACCES, "the object's owner and mode do not permit this, or those of the volume's root do not permit a new object" },
	{ EUCLEAN, "damaged: see the kernel's log, and run fsck.stargatefs" },
	{ EMSGSIZE, "the record is larger than half the ring, or than the buffer" },
	{ EUSERS, "the ring has the largest possible number of receivers" },
	{ EOPNOTSUPP, "a system has mounted the volume with a module that does not support rings: update that module" },
	{ ENOTCONN, "the ring was opened before fork(): open it again" },
	{ ECONNREFUSED, "no process listens on that name" },
	{ EADDRINUSE, "another process listens on that name, or two processes have joined with it" },
	{ ECONNRESET, "the other end has died, or has closed without a shutdown: its last bytes may be missing" },
	{ EPIPE, "the other end does not read any more" },
	{ EPROTO, "the other end sends invalid data" },
	{ EROFS, "the volume is mounted read-only" },
	{ ENODEV, "the path is not on a mounted StargateFS volume" },
	{ EXDEV, "only a part of the volume is mounted there, without its semaphores" },
	{ EBADF, "the object was opened for reading only" },
	{ ENOSPC, "the volume is full" },
	{ EIO, "the other systems have fenced this system: unmount and mount the volume again" },
};

API const char *stargate_why(int err)
{
	unsigned int i;

	for (i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++)
		if (sentences[i].err == err)
			return sentences[i].why;
	return strerror(err);
}
