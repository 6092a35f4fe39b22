/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a file as a model keeps them: pages by number, those that are missing are zero. */
#ifndef SG_TEST_SPARSE_H
#define SG_TEST_SPARSE_H

#include "engine.h"

struct sparse_page {
	u64 page;		/* number + 1; 0: this place is empty */
	u8 *bytes;
};

struct sparse {
	struct sparse_page *e;
	u64 cap, n;
};

void sparse_free(struct sparse *s);
/* The page's bytes, or NULL when it is all zero for having never been written. */
const u8 *sparse_page(const struct sparse *s, u64 page);
void sparse_write(struct sparse *s, u64 pos, const void *buf, u64 len);
void sparse_read(const struct sparse *s, u64 pos, void *buf, u64 len);
void sparse_zero(struct sparse *s, u64 pos, u64 len);
/* Pages from @from on move by @by pages; those that @by < 0 would move below @from + by go. */
void sparse_shift(struct sparse *s, u64 from, s64 by);

#endif
