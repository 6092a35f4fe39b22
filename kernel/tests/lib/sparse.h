/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a file in a model, as a table of pages by number. A missing page is zero. */
#ifndef SG_TEST_SPARSE_H
#define SG_TEST_SPARSE_H

#include "engine.h"

struct sparse_page {
	u64 page;		/* the page's number + 1; 0: this entry is empty */
	u8 *bytes;
};

struct sparse {
	struct sparse_page *e;
	u64 cap, n;
};

void sparse_free(struct sparse *s);
/* Returns the page's bytes, or NULL if the page was never written and is thus zero. */
const u8 *sparse_page(const struct sparse *s, u64 page);
void sparse_write(struct sparse *s, u64 pos, const void *buf, u64 len);
void sparse_read(const struct sparse *s, u64 pos, void *buf, u64 len);
void sparse_zero(struct sparse *s, u64 pos, u64 len);
/*
 * Moves pages from @from on by @by pages. With @by < 0, drops pages that would get numbers below
 * @from.
 */
void sparse_shift(struct sparse *s, u64 from, s64 by);

#endif
