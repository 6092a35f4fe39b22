// SPDX-License-Identifier: GPL-2.0
/*
 * The file of users' locks. All records are volatile. The checker resets a page with a record that
 * no system can have stored. It ignores records of systems that have ended, because no system uses
 * them.
 */
#include "check.h"

/*
 * Reports whether a system can have stored this record. An incarnation that was never assigned is
 * invalid. A range that ends before it begins is invalid, too.
 */
static bool could_be(const struct sg_ck *c, const struct sg_userlock_record *r)
{
	u64 head = sg_load64(&r->head), start = sg_load64(&r->start), last = sg_load64(&r->last);

	return !head || (start <= last && last <= SG_USERLOCK_MAX &&
			 SG_USERLOCK_KIND(head) && SG_USERLOCK_SLOT(head) < SG_SLOTS &&
			 !(SG_USERLOCK_WHAT(head) & ~SG_USERLOCK_KNOWN) && !(head >> 16 & 0xffff) &&
			 SG_USERLOCK_INC(head) <= ck_get(c, SG_HOT(incarnation)));
}

static void check_page(struct sg_ck *c, u64 off)
{
	const struct sg_userlock_page *page = ck_page(c, off);
	unsigned int i;

	ck_lock(c, 0, off + offsetof(struct sg_userlock_page, lock));
	ck_lock(c, 0, off + offsetof(struct sg_userlock_page, circle));
	for (i = 0; i < SG_USERLOCK_RECORDS; i++)
		if (!could_be(c, &page->record[i]))
			break;
	if (c->image)
		ck_image_userlocks(c, off, i);
	if (i < SG_USERLOCK_RECORDS &&
	    ck_found(c, CK_SAFE, 0, off, "file locks are invalid"))
		ck_zero(c, off, SG_PAGE);
}

void ck_userlocks(struct sg_ck *c, void *ctx, u64 first, u64 off, u64 pages)
{
	u64 i;

	(void)ctx;
	(void)first;
	for (i = 0; i < pages; i++)
		check_page(c, off + i * SG_PAGE);
}
