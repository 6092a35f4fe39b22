// SPDX-License-Identifier: Apache-2.0
/*
 * A report of LVM (--reportformat json):
 *
 *	{ "report": [ { "pvseg": [ { "vg_name":"zone", ... }, ... ] } ], "log": [ ... ] }
 *
 * The rows are the objects of the fifth level; the reader skips all else. Text of any other form is
 * no report.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include "report.h"

#define ROW_LEVEL	5
#define LEVEL_MAX	8

struct reader {
	char *at;
	unsigned int level;
	struct report *report;
};

static bool value(struct reader *r, const char *key);

static char next(struct reader *r)
{
	r->at += strspn(r->at, " \t\r\n");
	return *r->at;
}

static bool pass(struct reader *r, char what)
{
	if (next(r) != what)
		return false;
	r->at++;
	return true;
}

/* Decodes a text in place, because decoded text is never longer than its encoding. */
static const char *string(struct reader *r)
{
	char *start, *to;

	if (!pass(r, '"'))
		return NULL;
	for (start = to = r->at; *r->at != '"'; *to++ = *r->at++) {
		if (*r->at == '\\' && !strchr("\"\\/", *++r->at))
			return NULL;	/* names in LVM have no other characters */
		if (!*r->at)
			return NULL;
	}
	r->at++;
	*to = 0;
	return start;
}

static bool add(struct report *report, const char *key, const char *text)
{
	if (report->fields == report->room) {
		size_t room = 2 * report->room + 64;
		struct report_field *field = realloc(report->field, room * sizeof(*field));

		if (!field)
			return false;
		report->field = field;
		report->room = room;
	}
	report->field[report->fields++] = (struct report_field){ report->rows, key, text };
	return true;
}

static bool member(struct reader *r)
{
	const char *key = string(r);

	return key && pass(r, ':') && value(r, key);
}

static bool list(struct reader *r, char end)
{
	bool row = end == '}' && r->level == ROW_LEVEL;

	if (!pass(r, end))
		do
			if (!(end == '}' ? member(r) : value(r, NULL)))
				return false;
		while (pass(r, ','));
	else
		r->at--;
	r->report->rows += row;
	return pass(r, end);
}

static bool value(struct reader *r, const char *key)
{
	const char *text;
	bool ok;

	switch (next(r)) {
	case '{':
	case '[':
		if (++r->level > LEVEL_MAX)
			return false;
		ok = list(r, *r->at++ == '{' ? '}' : ']');
		r->level--;
		return ok;
	case '"':
		text = string(r);
		return text && (r->level != ROW_LEVEL || !key || add(r->report, key, text));
	}
	return false;
}

bool report_read(struct report *report, char *text)
{
	struct reader r = { .at = text, .report = report };

	*report = (struct report){ .text = text };
	if (value(&r, NULL) && !next(&r))
		return true;
	report_free(report);
	return false;
}

void report_free(struct report *report)
{
	free(report->field);
	free(report->text);
	*report = (struct report){ 0 };
}

const char *report_text(const struct report *report, size_t row, const char *key)
{
	size_t i;

	for (i = 0; i < report->fields; i++)
		if (report->field[i].row == row && !strcmp(report->field[i].key, key))
			return report->field[i].text;
	return "";
}

bool report_number(const struct report *report, size_t row, const char *key, u64 *out)
{
	return parse_number(report_text(report, row, key), 10, UINT64_MAX, out);
}
