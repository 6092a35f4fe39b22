// SPDX-License-Identifier: Apache-2.0
/*
 * Makes metadata images of any volume, with hidden and with kept names. A check of an image gives
 * the same findings, in the same order, as a check of the volume. Each image can be read.
 */
#include <sys/mman.h>
#include "fuzz.h"

#define FINDINGS_MAX	4096

struct finding {
	u64 ino, off;
	char what[160];
};
struct findings {
	const char *of;
	unsigned int n;
	struct finding list[FINDINGS_MAX];
};

static u8 *image;

static int put(void *ctx, u64 off, const void *page)
{
	(void)ctx;
	CHECK(!(off & (SG_PAGE - 1)) && off < FUZZ_SIZE);
	memcpy(image + off, page, SG_PAGE);
	return 0;
}

static int get(void *ctx, u64 off, void *page)
{
	(void)ctx;
	CHECK(!(off & (SG_PAGE - 1)) && off < FUZZ_SIZE);
	memcpy(page, image + off, SG_PAGE);
	return 0;
}

static void found(void *ctx, const char *what, u64 ino, u64 off, bool fixed)
{
	struct findings *to = ctx;
	struct finding *f = &to->list[to->n];
	char line[300];

	(void)fixed;
	snprintf(line, sizeof(line), "%s: %s (inode %" PRIu64 ", offset 0x%" PRIx64 ")", to->of, what,
		 ino, off);
	fuzz_say(line);
	if (to->n == FINDINGS_MAX)
		return;
	*f = (struct finding){ .ino = ino, .off = off };
	snprintf(f->what, sizeof(f->what), "%s", what);
	to->n++;
}

static void compare(const struct findings *a, const struct findings *b)
{
	unsigned int i;

	/* ignores the part behind a comma, which quotes attributes; the image hides them */
	for (i = 0; i < a->n && i < b->n; i++)
		if (a->list[i].ino != b->list[i].ino || a->list[i].off != b->list[i].off ||
		    strcspn(a->list[i].what, ",") != strcspn(b->list[i].what, ",") ||
		    strncmp(a->list[i].what, b->list[i].what, strcspn(a->list[i].what, ",")))
			test_fail(__FILE__, __LINE__, "%s: '%s', %s: '%s'", a->of, a->list[i].what,
				  b->of, b->list[i].what);
	if (a->n != b->n)
		test_fail(__FILE__, __LINE__, "%s: %u findings, %s: %u", a->of, a->n, b->of, b->n);
}

static void try(u8 *mem, bool plain, const struct sg_check_result *want,
		const struct findings *wanted)
{
	static struct findings making, had;
	const struct sg_check_image to = { .put = put, .get = get, .plain = plain };
	const struct sg_check_opts make = { .mode = SG_CHECK_ONLY, .report = found, .ctx = &making,
					    .image = &to };
	const struct sg_check_opts only = { .mode = SG_CHECK_ONLY, .report = found, .ctx = &had };
	struct sg_check_result res;
	struct sg_vol v;

	making = (struct findings){ .of = "making" };
	had = (struct findings){ .of = plain ? "kept" : "hidden" };
	memset(image, 0, FUZZ_SIZE);
	CHECK_OK(sg_check(mem, FUZZ_SIZE, &make, &res));
	compare(wanted, &making);
	CHECK_OK(sg_check(image, FUZZ_SIZE, &only, &res));
	compare(wanted, &had);
	CHECK(!memcmp(&res, want, sizeof(res)));
	CHECK(sg_open(&v, image, FUZZ_SIZE, true, NULL) == -EOPNOTSUPP);
	CHECK_OK(sg_open_to_look(&v, image, FUZZ_SIZE, NULL));
	v.alone = true;
	fuzz_read_all(&v);
	sg_abandon(&v);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct findings wanted;
	const struct sg_check_opts only = { .mode = SG_CHECK_ONLY, .report = found, .ctx = &wanted };
	u8 *mem = fuzz_volume(data, size, FZ_ALL);
	struct sg_check_result res;

	if (!mem)
		return 0;
	if (!image)
		image = mmap(NULL, FUZZ_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
	CHECK(image != MAP_FAILED);
	wanted = (struct findings){ .of = "volume" };
	if (sg_check(mem, FUZZ_SIZE, &only, &res))
		return 0;	/* an image of such a volume is not possible either */
	fuzz_protect(true);
	try(mem, false, &res, &wanted);
	try(mem, true, &res, &wanted);
	fuzz_protect(false);
	return 0;
}
