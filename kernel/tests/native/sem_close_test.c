// SPDX-License-Identifier: Apache-2.0
/*
 * A caller that may not wait, or may not store, closes a shared semaphore. The close releases read
 * locks immediately, because other systems wait for them. The remaining work is done when the
 * system may store again, or when no other system holds a needed lock.
 */
#include "sem_pair.h"

static struct sg_sem rw, rw2;

static void reader_closes(void)
{
	begin();
	rw = sem_make(&t.v, "rw", SG_SEM_RWLOCK, SG_SEM_MAPPED, 0);
	rw2 = sem_of(&other, "rw");
	CHECK_OK(sg_sem_read_lock(&t.v, &rw, me, 0));
	CHECK_EQ(sg_sem_write_lock(&other, &rw2, they, 0), -EAGAIN);
}

static bool has_it_open(void)
{
	return stat_of(&other, "rw").users >> t.v.slot & 1;
}

static void others_go_on(void)
{
	CHECK_OK(sg_sem_write_lock(&other, &rw2, they, 0));
	CHECK_OK(sg_sem_write_unlock(&other, &rw2, they));
	CHECK(has_it_open());		/* the close has stored nothing else */
}

static void is_closed(void)
{
	sg_sem_settle(&t.v);
	CHECK(!has_it_open());
	sg_sem_close(&other, &rw2);
	end();
}

/* A user has frozen the mount, so the complete close would wait for the thaw. */
static void later(void)
{
	u64 file_lock = sg_sys_ref(SG_SYS_SEMS).off + offsetof(struct sg_inode, lock);

	reader_closes();
	CHECK(sg_trylock(&other, file_lock));	/* the close must not wait for another system */
	sg_sem_close_later(&t.v, &rw);
	sg_unlock(&other, file_lock);
	others_go_on();
	is_closed();
}

/*
 * The system is frozen for a snapshot. The stores of a close are in no transaction, so the freeze
 * must stop them separately.
 */
static void standing_still(void)
{
	reader_closes();
	sg_store64(&t.v.still.closed, 1);
	sg_sem_close(&t.v, &rw);
	others_go_on();
	sg_sem_settle(&t.v);
	CHECK(has_it_open());
	sg_store64(&t.v.still.closed, 0);
	is_closed();
}

static void read_only(void)
{
	reader_closes();
	t.v.read_only = true;
	sg_sem_close(&t.v, &rw);
	others_go_on();
	t.v.read_only = false;
	is_closed();
}

#define OBJECTS	3

/*
 * Another system keeps the objects' file locked. A process that exits closes its objects without a
 * wait for that system. The remaining work is done when the file can be locked.
 */
static void behind_another_system(void)
{
	u64 file_lock = sg_sys_ref(SG_SYS_SEMS).off + offsetof(struct sg_inode, lock), start;
	static const char *const name[OBJECTS] = { "a", "b", "c" };
	struct sg_sem sem[OBJECTS];
	unsigned int i;

	begin();
	for (i = 0; i < OBJECTS; i++)
		sem[i] = sem_make(&t.v, name[i], SG_SEM_MUTEX, 0, 0);
	CHECK(sg_trylock(&other, file_lock));
	start = sg_ticks();
	for (i = 0; i < OBJECTS; i++)
		sg_sem_close(&t.v, &sem[i]);
	sg_sem_settle(&t.v);
	CHECK(sg_ticks() - start < 5 * SEC);
	sg_unlock(&other, file_lock);
	for (i = 0; i < OBJECTS; i++)
		CHECK(stat_of(&other, name[i]).users >> t.v.slot & 1);
	sg_sem_settle(&t.v);
	for (i = 0; i < OBJECTS; i++)
		CHECK_EQ(stat_of(&other, name[i]).users, 0);
	end();
}

static void *unlock_soon(void *file_lock)
{
	sg_sleep_us(300000);
	sg_unlock(&other, *(u64 *)file_lock);
	return NULL;
}

/*
 * A system that leaves waits for the file's lock. Without the close, the object would be reset as
 * after a death, and its value would be lost.
 */
static void before_it_leaves(void)
{
	u64 file_lock = sg_sys_ref(SG_SYS_SEMS).off + offsetof(struct sg_inode, lock);
	struct sg_sem sem;
	pthread_t id;

	begin();
	sem = sem_make(&t.v, "left", SG_SEM_MUTEX, 0, 0);
	CHECK(sg_trylock(&other, file_lock));
	sg_sem_close(&t.v, &sem);
	CHECK_OK(pthread_create(&id, NULL, unlock_soon, &file_lock));
	t.v.hurry = true;
	sg_sem_settle(&t.v);
	t.v.hurry = false;
	CHECK_OK(pthread_join(id, NULL));
	CHECK_EQ(stat_of(&other, "left").users, 0);
	end();
}

/*
 * The last user closes an object whose life ends with its last user. Another system has locked all
 * transaction areas of this system. The close keeps no lock on the objects' file, and the next
 * system removes the object.
 */
static void last_user_without_an_area(void)
{
	u64 file_lock = sg_sys_ref(SG_SYS_SEMS).off + offsetof(struct sg_inode, lock), start, lock[64];
	struct sg_sem_new new = new_of(SG_SEM_MUTEX, 0, 0);
	struct sg_sem sem;
	unsigned int i;

	begin();
	new.life = SG_SEM_LAST_USER;
	CHECK_OK(try_create(&t.v, "last", new, true, &sem));
	CHECK(t.v.sb.areas <= SG_ARRAY_SIZE(lock));
	for (i = 0; i < t.v.sb.areas; i++) {
		lock[i] = sg_area_off(&t.v, (unsigned int)t.v.slot, i) +
			  offsetof(struct sg_area, lock);
		CHECK(sg_trylock(&other, lock[i]));
	}
	start = sg_ticks();
	test_within(60, "a close without a transaction area");
	sg_sem_close(&t.v, &sem);
	test_within(0, NULL);
	CHECK(sg_ticks() - start < 5 * SEC);
	CHECK(sg_trylock(&other, file_lock));
	sg_unlock(&other, file_lock);
	CHECK_EQ(try_open(&other, "last", 0, false, &sem), -ENOENT);
	for (i = 0; i < t.v.sb.areas; i++)
		sg_unlock(&other, lock[i]);
	end();
}

int main(void)
{
	later();
	standing_still();
	read_only();
	behind_another_system();
	before_it_leaves();
	last_user_without_an_area();
	return test_done();
}
