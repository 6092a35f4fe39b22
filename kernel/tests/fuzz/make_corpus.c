// SPDX-License-Identifier: Apache-2.0
/*
 * make_corpus DIRECTORY: makes seeds for the fuzz targets, a folder for each. The volumes
 * themselves are in the targets (fuzz_volume.c). A seed is one change to a volume. Seeds cover each
 * kind of change to each structure, so that the fuzzer begins with changes that have an effect.
 */
#include <sys/stat.h>
#include "fuzz.h"
#include "../../net/wire.h"

static const char *root;
static unsigned int made;

static FILE *begin_seed(const char *target, const char *name)
{
	char path[500];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, target);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/%s/%s", root, target, name);
	f = fopen(path, "wb");
	CHECK(f);
	return f;
}

static void seed(const char *target, const char *name, u8 flags, u8 script,
		 const struct fuzz_change *c, unsigned int n)
{
	FILE *f = begin_seed(target, name);

	CHECK(fputc(flags, f) >= 0 && fputc(script, f) >= 0);
	CHECK(fwrite(c, sizeof(*c), n, f) == n);
	CHECK_OK(fclose(f));
	made++;
}

/* Makes seeds with each kind of change to each class of structure that the target uses. */
static void seeds_for(const char *target, unsigned int classes)
{
	static const u64 values[] = { 0x21, 0xffffffffffffffffULL, 8, 0x1d2, 0xab03 };
	unsigned int class, how;
	char name[40];

	seed(target, "clean", 0, 0, NULL, 0);
	seed(target, "crashed", FUZZ_CRASHED, 1, NULL, 0);
	for (class = 0; class < FZ_CLASSES; class++) {
		for (how = 0; how < FZ_HOWS; how++) {
			struct fuzz_change c[2] = {
				{ (u8)class, (u8)how, (u16)(class * 37 + 2), values[how] },
				{ (u8)class, FZ_REFER, (u16)(class * 101 + 40), 0x10023u + 0x110 * how },
			};

			if (!(classes >> class & 1))
				continue;
			sprintf(name, "class-%u-how-%u", class, how);
			seed(target, name, how & 1 ? FUZZ_CRASHED : 0, (u8)(class * 16 + how), c, 2);
		}
	}
}

/* Makes seeds that change the inode file's root word, its copy, or both, with valid checksums. */
static void seeds_of_copies(const char *target)
{
	const struct fuzz_change word = { FZ_INODE, FZ_REFER, offsetof(struct sg_inode, table) / 8,
					  0x10040 };
	const struct fuzz_change copy = { FZ_SUPER, FZ_REFER, 0x4000, 0x10040 };
	const struct fuzz_change records = { FZ_SUPER, FZ_SET, 0x4001, 1 << 20 };

	seed(target, "root", 0, 0, &word, 1);
	seed(target, "copy", 0, 1, &copy, 1);
	seed(target, "copy-crashed", FUZZ_CRASHED, 2, &copy, 1);
	seed(target, "copy-longer", 0, 3, &records, 1);
	seed(target, "root-and-copy", 0, 4, (struct fuzz_change[]){ word, copy }, 2);
	seed(target, "copy-damaged", FUZZ_FLAWED, 5, &copy, 1);
}

/* Makes seeds with the mark of a move in entries and root words, relative to either base. */
static void seeds_of_moves(const char *target)
{
	const struct fuzz_change entry = { FZ_TABLE, FZ_XOR, 5, SG_PTE_MOVED };
	const struct fuzz_change root = { FZ_INODE, FZ_XOR, 64 + offsetof(struct sg_inode, table) / 8,
					  SG_PTE_MOVED };
	unsigned int script;
	char name[40];

	for (script = 0; script < 64; script += 3) {
		sprintf(name, "script-%u", script);
		seed(target, name, script & 2 ? FUZZ_CRASHED : 0, (u8)script,
		     (struct fuzz_change[]){ entry, root }, script % 2 + 1);
	}
}

/*
 * Makes seeds that change a word in each page of the semaphores: owner, users, type, length,
 * generation.
 */
static void seeds_of_objects(const char *target)
{
	static const struct {
		u16 at;
		u64 value;
	} word[] = {
		{ 64, 0x7f03 }, { 67, 0x3ff00000180ULL }, { 70, ~0ULL }, { 72, ~0ULL }, { 74, ~0ULL },
		{ 80, 0xf000000000000001ULL }, { 0, 0xf000000000000001ULL }, { 64 + 3, ~0ULL },
		{ 128, ~0ULL }, { 1, ~0ULL },
	};
	unsigned int i, page;
	char name[40];

	for (i = 0; i < sizeof(word) / sizeof(word[0]); i++) {
		struct fuzz_change c[32];

		for (page = 0; page < 32; page++)
			c[page] = (struct fuzz_change){ FZ_SEM, FZ_SET,
				(u16)(page << 9 | word[i].at), word[i].value };
		sprintf(name, "word-%u", i);
		seed(target, name, i & 1 ? FUZZ_CRASHED : 0, (u8)i, c, 32);
	}
}

static void ring_step(FILE *f, u8 op, u8 word, u16 len, u64 value)
{
	CHECK(fputc(op, f) >= 0 && fputc(word, f) >= 0);
	CHECK(fwrite(&len, sizeof(len), 1, f) == 1 && fwrite(&value, sizeof(value), 1, f) == 1);
}

/*
 * Makes seeds for ring_fuzz.c: records, and between them each word of the ring is forged in turn.
 */
static void seeds_of_rings(void)
{
	static const u8 ops[] = { 2, 4, 3, 5, 3, 0, 4, 5, 6, 2, 1, 5, 7, 4 };
	static const u64 values[] = { 0, ~0ULL, 1u << 20, 40000, 1ULL << 62, 0x80000000ULL << 9 };
	static const u64 lengths[] = { 33, 40000, 0x7ffffff0, 0xffffffff };
	unsigned int word, i;
	char name[40];
	FILE *f;

	for (word = 0; word < 16; word++) {
		sprintf(name, "word-%u", word);
		f = begin_seed("ring", name);
		CHECK(fputc(word & 1, f) >= 0);
		for (i = 0; i < sizeof(ops); i++)
			ring_step(f, ops[i], (u8)(word | (word & 8) << 3), (u16)(200 * i + word),
				  ops[i] ? 50000 : values[word % 6]);
		CHECK_OK(fclose(f));
		made++;
	}
	/* the first record has a forged length */
	for (i = 0; i < 4; i++) {
		sprintf(name, "length-%u", i);
		f = begin_seed("ring", name);
		CHECK(fputc(i & 1, f) >= 0);
		ring_step(f, 2, 0, 20, 0);
		ring_step(f, 1, 0, 0, lengths[i]);
		ring_step(f, 4, 0, 1, ~0ULL);
		CHECK_OK(fclose(f));
		made++;
	}
}

#define PACKET	96u

/* Makes a seed for net_fuzz.c: a record of the network. */
static void seed_of_record(const char *name, const void *payload, size_t len)
{
	const u64 words[2] = { len, 0x1234 };
	FILE *f = begin_seed("net", name);

	CHECK(fwrite(words, sizeof(words), 1, f) == 1 && fwrite(payload, len, 1, f) == 1);
	CHECK_OK(fclose(f));
	made++;
}

/* A TCP packet that is to be divided into segments, with one byte of frame and headers forged. */
static void seeds_of_packets(bool v6)
{
	struct {
		struct sgn_frame frame;
		u8 ip[PACKET];
	} whole = { .frame = { .flags = SGN_NEEDS_CSUM, .gso_size = 20, .csum_offset = 16 } };
	u32 l4 = v6 ? 40 : 20, i;
	char name[40];

	whole.frame.gso = v6 ? SGN_GSO_TCP6 : SGN_GSO_TCP4;
	whole.frame.csum_start = (u16)l4;
	whole.ip[0] = v6 ? 0x60 : 0x45;
	whole.ip[v6 ? 5 : 3] = (u8)(v6 ? PACKET - 40 : PACKET);
	whole.ip[v6 ? 6 : 9] = 6;
	whole.ip[l4 + 12] = 5 << 4;
	for (i = 0; i <= 24; i++) {
		u8 *at = (u8 *)&whole + i, was = *at;

		*at ^= i < 24 ? 0x55 : 0;
		sprintf(name, "tcp%u-%u", v6 ? 6 : 4, i);
		seed_of_record(name, &whole, sizeof(whole));
		*at = was;
	}
}

static void seeds_of_hellos(void)
{
	struct sgn_hello h = { .version = SGN_VERSION, .serial = 1 };
	char name[40];

	memset(h.address, 0, sizeof(h.address));
	for (h.count = 0; h.count < 3; h.count++) {
		sprintf(name, "hello-%u", h.count);
		seed_of_record(name, &h, SGN_HELLO_LEN(h.count));
		h.address[h.count].family = h.count ? 6 : 4;
		h.address[h.count].byte[0] = 10;
	}
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_corpus DIRECTORY\n");
		return 2;
	}
	root = argv[1];
	mkdir(root, 0777);
	seeds_for("mount", FZ_ALL);
	seeds_for("check", FZ_ALL);
	seeds_of_copies("check");
	seeds_for("image", FZ_ALL);
	seeds_of_copies("image");
	seeds_for("race", FZ_ALL);
	seeds_for("relocate", FZ_ALL);
	seeds_of_moves("relocate");
	seeds_for("recover", FZ_RECOVER);
	seeds_for("lookup", FZ_LOOKUP);
	seeds_for("walk", FZ_WALK);
	seeds_for("sem", FZ_SEMS);
	seeds_of_objects("sem");
	seeds_of_rings();
	seeds_of_packets(false);
	seeds_of_packets(true);
	seeds_of_hellos();
	printf("%u seeds\n", made);
	return 0;
}
