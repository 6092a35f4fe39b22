/* SPDX-License-Identifier: Apache-2.0 */
/* LVM's reports, as rows of keys with values. */
#ifndef SG_REPORT_H
#define SG_REPORT_H

#include "tool.h"

struct report_field {
	size_t row;
	const char *key, *text;
};
struct report {
	char *text;
	struct report_field *field;
	size_t fields, room, rows;
};
/*
 * Parses a report, which then owns @text. Returns false, and frees everything, if @text is not a
 * report.
 */
bool report_read(struct report *report, char *text);
void report_free(struct report *report);
/* Returns "" if the row has no such key. */
const char *report_text(const struct report *report, size_t row, const char *key);
bool report_number(const struct report *report, size_t row, const char *key, u64 *out);

#endif
