// SPDX-License-Identifier: Apache-2.0
/*
 * libstargate over the engine; the test acts as its kernel (sem_kernel.h). The library's own
 * operations and the operations that it leaves to the kernel must work together, for many threads
 * of two systems. The library's file functions are tested on files.
 */
#define _GNU_SOURCE
#include "sem_kernel.h"
#include "lib.h"

/* --- objects ---------------------------------------------------------------------------------- */

static void names(void)
{
	stargate_sem *s = make("a", STARGATE_SEMAPHORE, 0, 1), *o;
	const struct stargate_new what = { .type = STARGATE_MUTEX };

	CHECK_EQ(stargate_open(&o, at[1], "b", STARGATE_ANY, 0), ENOENT);
	CHECK_EQ(stargate_open(&o, at[1], "a", STARGATE_MUTEX, 0), EPROTOTYPE);
	CHECK_EQ(stargate_open(&o, "/", "a", STARGATE_ANY, 0), ENODEV);
	CHECK_EQ(stargate_open(&o, "/nowhere", "a", STARGATE_ANY, 0), ENODEV);
	CHECK_EQ(stargate_open(&o, at[1], "a", STARGATE_ANY, STARGATE_EXCLUSIVE), EINVAL);
	CHECK_EQ(stargate_create(&o, at[1], "a", &what, STARGATE_EXCLUSIVE), EEXIST);
	CHECK_EQ(stargate_create(&o, at[1], "a/b", &what, 0), EINVAL);
	CHECK(!strcmp(stargate_why(ENOENT), "there is no object of that name"));
	CHECK(!strcmp(stargate_why(EFAULT), "Bad address"));
	CHECK_OK(stargate_remove(at[1], "a"));
	CHECK_EQ(stargate_remove(at[1], "a"), ENOENT);
	CHECK_OK(stargate_sem_wait(s, STARGATE_TRY));
	stargate_close(s);
	stargate_close(NULL);
}

static void recursive(void)
{
	stargate_sem *s = make("r", STARGATE_MUTEX, STARGATE_RECURSIVE, 0), *k = have(2, "r"),
		*o = have(1, "r");
	unsigned int i;

	for (i = 0; i < 4; i++)
		CHECK_OK(stargate_mutex_lock(i & 1 ? s : k, STARGATE_TRY));
	for (i = 0; i < 4; i++) {
		CHECK_EQ(stargate_mutex_lock(o, STARGATE_TRY), EAGAIN);
		CHECK_OK(stargate_mutex_unlock(i & 2 ? s : k));
	}
	CHECK_EQ(stargate_mutex_unlock(s), EPERM);
	CHECK_OK(stargate_mutex_lock(o, STARGATE_TRY));
	CHECK_OK(stargate_mutex_unlock(o));
	stargate_close(s);
	stargate_close(k);
	stargate_close(o);
}

/*
 * The thread resets() stores free words until this is set, as forced resets or hostile systems do.
 */
static u64 enough;

static void *resets(void *arg)
{
	struct sg_semwords *w = arg;

	while (!sg_load64(&enough)) {
		sg_store64(&w->more, 0);
		sg_store64(&w->word, 0);
	}
	return NULL;
}

static void recursive_reset(void)
{
	stargate_sem *s = make("rr", STARGATE_MUTEX, STARGATE_RECURSIVE, 0), *o = have(1, "rr");
	struct sg_semwords *w = (void *)s->page;
	u64 i, most = 0;
	pthread_t t;

	CHECK_OK(stargate_mutex_lock(s, STARGATE_TRY));
	/* makes the count invalid: the unlock releases the word anyway */
	sg_store64(&w->more, ~0ULL);
	CHECK_OK(stargate_mutex_unlock(s));
	CHECK_OK(stargate_mutex_lock(o, STARGATE_TRY));
	CHECK_OK(stargate_mutex_unlock(o));
	sg_store64(&w->more, 0);
	CHECK_OK(pthread_create(&t, NULL, resets, w));
	for (i = 0; i < test_amount(300000, 1000000, 10000000); i++) {
		stargate_mutex_lock(s, STARGATE_TRY);
		stargate_mutex_lock(s, STARGATE_TRY);
		stargate_mutex_unlock(s);
		most = SG_MAX(most, sg_load64(&w->more));
		stargate_mutex_unlock(s);
		most = SG_MAX(most, sg_load64(&w->more));
	}
	sg_store64(&enough, 1);
	CHECK_OK(pthread_join(t, NULL));
	CHECK(most <= 4);
	stargate_close(s);
	stargate_close(o);
}

/* Readers and writers exclude each other, whether the library or the kernel locks for them. */
static void readers_and_writer(void)
{
	stargate_sem *kept = make("x", STARGATE_RWLOCK, 0, 0), *r, *w;
	unsigned int i;

	for (i = 0; i < 16; i++) {
		r = have(i, "x");
		w = have(i / 4, "x");
		CHECK_OK(stargate_read_lock(r, STARGATE_TRY));
		CHECK_EQ(stargate_write_lock(w, STARGATE_TRY), EAGAIN);
		CHECK_EQ(stargate_write_lock(w, stargate_in(2 * MS)), ETIMEDOUT);
		CHECK_OK(stargate_read_lock(w, STARGATE_TRY));
		CHECK_OK(stargate_read_unlock(r));
		CHECK_OK(stargate_read_unlock(w));
		CHECK_OK(stargate_write_lock(w, STARGATE_TRY));
		CHECK_EQ(stargate_read_lock(r, STARGATE_TRY), (i % 2) == (i / 4) % 2 ? EDEADLK : EAGAIN);
		CHECK_OK(stargate_write_unlock(w));
		stargate_close(r);
		stargate_close(w);
	}
	stargate_close(kept);
}

static void *dies_with_it(void *arg)
{
	CHECK_OK(stargate_mutex_lock(arg, STARGATE_TRY));
	thread_ends();
	return NULL;
}

static void robust(void)
{
	stargate_sem *s = make("d", STARGATE_MUTEX, 0, 0), *o = have(1, "d");
	pthread_t t;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		CHECK_OK(pthread_create(&t, NULL, dies_with_it, s));
		CHECK_OK(pthread_join(t, NULL));
		CHECK_EQ(stargate_mutex_lock(o, stargate_in(SEC)), EOWNERDEAD);
		if (!i)
			CHECK_OK(stargate_consistent(o));
		CHECK_OK(stargate_mutex_unlock(o));
	}
	CHECK_EQ(stargate_mutex_lock(s, STARGATE_TRY), ENOTRECOVERABLE);
	stargate_close(s);
	stargate_close(o);
}

/* --- many threads ---------------------------------------------------------------------------- */

#define THREADS	4
static u64 rounds, shared[2], arrived[THREADS], met;
static struct worker {
	unsigned int n;
	pthread_t thread;
} workers[THREADS];

static void all(void *(*body)(void *arg), u64 quick, u64 normal)
{
	unsigned int i;

	rounds = test_amount(quick, normal, 10 * normal);
	memset(shared, 0, sizeof(shared));
	for (i = 0; i < THREADS; i++) {
		workers[i].n = i;
		CHECK_OK(pthread_create(&workers[i].thread, NULL, body, &workers[i]));
	}
	for (i = 0; i < THREADS; i++)
		CHECK_OK(pthread_join(workers[i].thread, NULL));
}

static void *use_mutex(void *arg)
{
	stargate_sem *s = have(((struct worker *)arg)->n, "m");
	u64 i;

	for (i = 0; i < rounds; i++) {
		CHECK_OK(stargate_mutex_lock(s, stargate_in(60 * SEC)));
		sg_store64(&shared[0], sg_load64(&shared[0]) + 1);
		CHECK_OK(stargate_mutex_unlock(s));
	}
	stargate_close(s);
	thread_ends();
	return NULL;
}

static void *use_semaphore(void *arg)
{
	stargate_sem *s = have(((struct worker *)arg)->n, "s");
	u64 i;

	for (i = 0; i < rounds; i++) {
		CHECK_OK(stargate_sem_wait(s, stargate_in(60 * SEC)));
		sg_store64(&shared[0], sg_load64(&shared[0]) + 1);
		CHECK_OK(stargate_sem_post(s));
	}
	stargate_close(s);
	thread_ends();
	return NULL;
}

static void *use_rwlock(void *arg)
{
	stargate_sem *s = have(((struct worker *)arg)->n, "rw");
	u64 i;

	for (i = 0; i < rounds; i++) {
		if (i % 4) {
			CHECK_OK(stargate_read_lock(s, stargate_in(60 * SEC)));
			CHECK_EQ(sg_load64(&shared[0]), sg_load64(&shared[1]));
			CHECK_OK(stargate_read_unlock(s));
			continue;
		}
		CHECK_OK(stargate_write_lock(s, stargate_in(60 * SEC)));
		sg_store64(&shared[0], sg_load64(&shared[0]) + 1);
		sg_store64(&shared[1], sg_load64(&shared[1]) + 1);
		CHECK_OK(stargate_write_unlock(s));
	}
	CHECK_EQ(stargate_read_unlock(s), EPERM);
	CHECK_EQ(stargate_write_unlock(s), EPERM);
	stargate_close(s);
	thread_ends();
	return NULL;
}

/* Each thread increments a count; the last one wakes all threads through the condition. */
static void *use_condition(void *arg)
{
	unsigned int n = ((struct worker *)arg)->n;
	stargate_sem *m = have(n, "m"), *c = have(n, "c");
	u64 i, mine;

	for (i = 0; i < rounds; i++) {
		CHECK_OK(stargate_mutex_lock(m, stargate_in(60 * SEC)));
		mine = shared[1];
		if (++shared[0] % THREADS == 0) {
			shared[1]++;
			CHECK_OK(stargate_cond_broadcast(c));
		}
		while (shared[1] == mine)
			CHECK_OK(stargate_cond_wait(c, m, stargate_in(60 * SEC)));
		CHECK_OK(stargate_mutex_unlock(m));
	}
	stargate_close(m);
	stargate_close(c);
	thread_ends();
	return NULL;
}

static void *use_barrier(void *arg)
{
	unsigned int n = ((struct worker *)arg)->n, k;
	stargate_sem *s = have(n, "b");
	int last;
	u64 i;

	for (i = 1; i <= rounds; i++) {
		sg_store64_release(&arrived[n], i);
		CHECK_OK(stargate_barrier_wait(s, stargate_in(60 * SEC), &last));
		sg_add64(&met, (u64)last);
		for (k = 0; k < THREADS; k++)
			CHECK(sg_load64_acquire(&arrived[k]) - i <= 1);
	}
	stargate_close(s);
	thread_ends();
	return NULL;
}

static u8 ring[1000];

static u8 byte_at(u64 i)
{
	return (u8)(i * 2654435761u >> 7);
}

static void *use_ring(void *arg)
{
	unsigned int n = ((struct worker *)arg)->n;
	u64 done = 0, where, len, i;
	stargate_cursor *c;

	if (n > 1)
		return NULL;
	CHECK_OK(stargate_cursor_open(&c, at[n], "ring", sizeof(ring)));
	for (; done < rounds; done += len) {
		CHECK_OK(n ? stargate_consume_at(c, &where, &len, stargate_in(60 * SEC)) :
			     stargate_publish_at(c, &where, &len, stargate_in(60 * SEC)));
		CHECK(len && where + len <= sizeof(ring));
		len = SG_MIN(SG_MIN(len, 1 + done % 300), rounds - done);
		for (i = 0; i < len; i++) {
			if (!n)
				ring[where + i] = byte_at(done + i);
			CHECK_EQ(ring[where + i], byte_at(done + i));
		}
		CHECK_OK(n ? stargate_consume(c, len) : stargate_publish(c, len));
	}
	CHECK_EQ(n ? stargate_consume(c, sizeof(ring) + 1) : stargate_publish(c, sizeof(ring) + 1), EINVAL);
	stargate_cursor_close(c);
	thread_ends();
	return NULL;
}

static void many(void)
{
	stargate_sem *kept[] = {
		make("m", STARGATE_MUTEX, 0, 0), make("s", STARGATE_SEMAPHORE, 0, 1),
		make("rw", STARGATE_RWLOCK, 0, 0), make("c", STARGATE_CONDITION, 0, 0),
		make("b", STARGATE_BARRIER, 0, THREADS),
	};
	unsigned int i;

	all(use_mutex, 20000, 200000);
	CHECK_EQ(shared[0], THREADS * rounds);
	all(use_semaphore, 20000, 200000);
	CHECK_EQ(shared[0], THREADS * rounds);
	all(use_rwlock, 4000, 40000);
	CHECK_EQ(shared[0], THREADS * rounds / 4);
	all(use_condition, 200, 2000);
	CHECK_EQ(shared[1], rounds);
	all(use_barrier, 200, 2000);
	CHECK_EQ(met, rounds);
	all(use_ring, 50000, 1000000);
	for (i = 0; i < SG_ARRAY_SIZE(kept); i++)
		stargate_close(kept[i]);
}

/* --- files ----------------------------------------------------------------------------------- */

static void *grow_later(void *path)
{
	sg_sleep_us(50000);
	CHECK_OK(truncate(path, 9000));
	return NULL;
}

static void files(void)
{
	char path[] = "/tmp/libstargate-file-XXXXXX";
	struct stargate_map m;
	pthread_t t;
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	CHECK_EQ(stargate_map_file(&m, path, O_RDWR, 0, 0), EINVAL);
	CHECK_OK(stargate_map_file(&m, path, O_RDWR, 0, 5000));
	CHECK_EQ(m.size, 5000);
	memcpy(m.base, "first", 5);
	CHECK_OK(stargate_await_size(fd, 5000, STARGATE_TRY));
	CHECK_EQ(stargate_await_size(fd, 5001, STARGATE_TRY), EAGAIN);
	CHECK_EQ(stargate_await_size(fd, 5001, stargate_in(20 * MS)), ETIMEDOUT);
	CHECK_OK(pthread_create(&t, NULL, grow_later, path));
	CHECK_OK(stargate_await_size(fd, 9000, stargate_in(20 * SEC)));
	CHECK_OK(pthread_join(t, NULL));
	CHECK_OK(stargate_map_again(&m));
	CHECK_EQ(m.size, 9000);
	CHECK(!memcmp(m.base, "first", 5));
	stargate_unmap(&m);
	CHECK_OK(stargate_map_file(&m, path, O_RDONLY, 0, 100000));
	CHECK_EQ(m.size, 9000);
	stargate_unmap(&m);
	close(fd);
	unlink(path);
	CHECK_EQ(stargate_map_file(&m, path, O_RDWR, 0, 0), ENOENT);
}

/* --- a cancelled thread ----------------------------------------------------------------------- */

/*
 * Set when a cancelled thread has called each function that opens an object or a file, and each
 * function that waits in the library.
 */
static bool through_whole;

static void *through_all(void *path)
{
	stargate_sem *s;
	struct stargate_map m;
	/* before the cancellation, because open() is a cancellation point itself */
	int fd = open(path, O_RDWR);

	pthread_cancel(pthread_self());
	CHECK_OK(stargate_create(&s, at[0], "cancelled", &(struct stargate_new){
				 .type = STARGATE_SEMAPHORE, .mode = 0600, .initial = 1 }, 0));
	CHECK_OK(stargate_sem_wait(s, STARGATE_TRY));
	stargate_close(s);
	CHECK_OK(stargate_remove(at[0], "cancelled"));
	CHECK_OK(stargate_map_file(&m, path, O_RDWR, 0, 5000));
	CHECK_EQ(stargate_await_size(fd, 1 << 20, stargate_in(20 * MS)), ETIMEDOUT);
	stargate_unmap(&m);
	through_whole = true;
	close(fd);			/* the cancellation takes effect here */
	return NULL;
}

static void cancelled(void)
{
	char path[] = "/tmp/libstargate-file-XXXXXX";
	pthread_t t;
	void *end;

	close(mkstemp(path));
	CHECK_OK(pthread_create(&t, NULL, through_all, path));
	CHECK_OK(pthread_join(t, &end));
	CHECK(end == PTHREAD_CANCELED);
	CHECK(through_whole);
	unlink(path);
}

int main(void)
{
	begin();
	names();
	recursive();
	recursive_reset();
	readers_and_writer();
	robust();
	many();
	cancelled();
	end();
	files();
	return test_done();
}
