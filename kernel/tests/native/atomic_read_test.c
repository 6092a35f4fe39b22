// SPDX-License-Identifier: Apache-2.0
/*
 * Reads during writes: a reader sees each atomic write completely or not at all, whether the writer
 * stores into the file's pages or replaces them.
 */
#include <pthread.h>
#include "data_util.h"

#define LEN	65536

static struct sg_vol *vol;
static struct sg_iref file;
static u64 written, ended;

static void *write_all_the_time(void *unused)
{
	static u8 bytes[LEN];
	bool filled;

	while (!sg_load64(&ended)) {
		memset(bytes, (int)(1 + written % 255), LEN);
		CHECK_OK(sg_write_atomic(vol, &file, 0, bytes, LEN, 0, 1, &filled));
		sg_add64(&written, 1);
	}
	return unused;
}

static void read_beside(bool replaced)
{
	u64 reads = test_amount(2000, 20000, 400000), changes = 0, i;
	static u8 got[LEN], last;
	pthread_t id;

	CHECK_OK(sg_set_atomic(vol, &file, replaced, 1));
	written = ended = 0;
	CHECK_OK(pthread_create(&id, NULL, write_all_the_time, NULL));
	while (!sg_load64(&written))
		sg_yield();
	for (i = 0; i < reads || changes < reads / 20; i++) {
		CHECK_EQ(sg_read(vol, &file, 0, got, LEN), LEN);
		if (memcmp(got, got + 1, LEN - 1))
			test_fail(__FILE__, __LINE__, "read %" PRIu64 " has parts of two writes", i);
		changes += got[0] != last;
		last = got[0];
	}
	sg_store64(&ended, 1);
	CHECK_OK(pthread_join(id, NULL));
	test_counted();
}

int main(void)
{
	vol = vol_new(16 * MIB);
	file = file_new(vol);
	read_beside(false);
	read_beside(true);
	account_volume(vol, &file, 1, NULL);
	file_end(vol, &file);
	vol_end(vol);
	return test_done();
}
