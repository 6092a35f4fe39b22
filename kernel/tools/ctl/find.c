// SPDX-License-Identifier: Apache-2.0
/*
 * find: lists the names of a tree that pass tests, with the syntax of find(1). If an inode cannot
 * be read, the command reports its name; tests of only the name or number still find it.
 */
#define _GNU_SOURCE
#include <fnmatch.h>
#include <stdlib.h>
#include "ctl.h"

/**
 * struct test - one test; a name must pass all tests. @order: comparison with a number: '-' less,
 * '+' more, '=' equal. @unit: for -size: bytes of a unit. @types: for -type: a bit for each type,
 * as S_IFMT >> 12.
 */
struct test {
	enum { NAME, TYPE, INUM, SIZE, USER, GROUP, LINKS } kind;
	const char *text;
	u64 number, unit;
	u32 types;
	char order;
};

#define TESTS_MAX	64
static struct {
	struct test test[TESTS_MAX];
	unsigned int n, depth;
	bool print0;
} query;

/* --- the tests ----------------------------------------------------------------------------- */

static bool take_number(struct test *t, const char *text, u64 max)
{
	t->order = *text == '-' || *text == '+' ? *text++ : '=';
	return parse_number(text, 10, max, &t->number);
}

/* Reads "+4M"; as in find(1) the default unit is 512 bytes. */
static bool take_size(struct test *t, const char *text)
{
	static const struct { char letter; u64 bytes; } units[] = {
		{ 'c', 1 }, { 'w', 2 }, { 'b', 512 }, { 'k', 1 << 10 }, { 'M', 1 << 20 },
		{ 'G', 1 << 30 },
	};
	size_t n = strlen(text), i;
	char digits[24] = "";

	t->unit = 512;
	for (i = 0; n && i < SG_ARRAY_SIZE(units); i++) {
		if (text[n - 1] != units[i].letter)
			continue;
		t->unit = units[i].bytes;
		n--;
		break;
	}
	if (n >= sizeof(digits))
		return false;
	memcpy(digits, text, n);
	return take_number(t, digits, UINT64_MAX);
}

/* Reads "f" or "d,l". */
static bool take_types(struct test *t, const char *text)
{
	static const char letters[] = "?pc?d?b?f?l?s???";
	const char *at;

	for (;; text++) {
		at = *text && *text != '?' ? strchr(letters, *text) : NULL;
		if (!at)
			return false;
		t->types |= 1u << (at - letters);
		text++;
		if (*text != ',')
			return !*text;
	}
}

static bool take_owner(struct test *t, const char *text, bool group)
{
	u32 id;
	bool ok = owner_read(text, group, &id);

	t->order = '=';
	t->number = ok ? id : 0;
	return ok || take_number(t, text, UINT32_MAX);
}

#define NUMBER_RULE	"a number, with - for less and + for more"

static const struct kind {
	const char *name, *allowed;
	int kind;
} kinds[] = {
	{ "-name", "a pattern", NAME },
	{ "-type", "one or more of f d l b c p s, with commas between", TYPE },
	{ "-inum", NUMBER_RULE, INUM },
	{ "-size", NUMBER_RULE "; of 512 bytes, or with c, k, M, G", SIZE },
	{ "-user", "a user's number or name", USER },
	{ "-group", "a group's number or name", GROUP },
	{ "-links", NUMBER_RULE, LINKS },
	{ "-maxdepth", "0 to 1024", -1 },
};

static bool take(const struct kind *k, const char *text)
{
	struct test *t = &query.test[query.n];
	u64 depth;

	*t = (struct test){ .text = text };
	if (k->kind < 0) {
		if (!parse_number(text, 10, DEPTH_MAX, &depth))
			return false;
		query.depth = (unsigned int)depth;
		return true;
	}
	t->kind = k->kind;
	query.n++;
	switch (t->kind) {
	case NAME: return true;
	case TYPE: return take_types(t, text);
	case SIZE: return take_size(t, text);
	case USER: return take_owner(t, text, false);
	case GROUP: return take_owner(t, text, true);
	default: return take_number(t, text, UINT64_MAX);
	}
}

static const struct kind *kind_of(const char *name)
{
	unsigned int i;

	for (i = 0; i < SG_ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

int before_find(struct call *c)
{
	int i;

	query.depth = UINT_MAX;
	for (i = 0; i < c->ntests; i++) {
		const struct kind *k = kind_of(c->tests[i]);

		if (!strcmp(c->tests[i], "-print0")) {
			query.print0 = true;
			continue;
		}
		if (!k)
			return tool_usage_error("find: there is no test '%s'", c->tests[i]);
		if (++i == c->ntests)
			return tool_usage_error("find: an argument is missing behind '%s'", k->name);
		if (query.n == TESTS_MAX)
			return tool_usage_error("find: more than %d tests", TESTS_MAX);
		if (!take(k, c->tests[i]))
			return tool_usage_error("find: %s '%s': must be %s", k->name, c->tests[i],
						k->allowed);
	}
	if (query.print0 && c->json)
		return tool_usage_error("find: give either --json or -print0");
	return 0;
}

/* --- the names ----------------------------------------------------------------------------- */

static bool compare(const struct test *t, u64 is)
{
	return t->order == '-' ? is < t->number : t->order == '+' ? is > t->number :
	       is == t->number;
}

static bool passes(const struct test *t, const struct visit *v)
{
	switch (t->kind) {
	case NAME:
		return !fnmatch(t->text, v->name, 0);
	case INUM:
		return compare(t, v->ino);
	default:
		break;
	}
	if (v->err)
		return false;
	switch (t->kind) {
	case TYPE:
		return t->types >> (v->attr.mode >> 12 & 15) & 1;
	case SIZE:	/* rounded up */
		return compare(t, v->attr.size / t->unit + !!(v->attr.size % t->unit));
	case USER:
		return compare(t, v->attr.uid);
	case GROUP:
		return compare(t, v->attr.gid);
	default:
		return compare(t, v->attr.nlink);
	}
}

static void show_json(struct json *j, const struct visit *v)
{
	json_row(j, NULL);
	json_str(j, "path", v->path);
	json_u64(j, "inode", v->ino);
	if (!v->err) {
		json_str(j, "type", type_name(v->attr.mode));
		json_u64(j, "mode", v->attr.mode & 07777);
		json_u64(j, "links", v->attr.nlink);
		json_u64(j, "uid", v->attr.uid);
		json_u64(j, "gid", v->attr.gid);
		json_u64(j, "size", v->attr.size);
	}
	json_close(j, '}');
}

static int find_one(struct call *c, const struct visit *v, void *ctx)
{
	unsigned int i;

	(void)ctx;
	for (i = 0; i < query.n; i++)
		if (!passes(&query.test[i], v))
			return 0;
	if (c->json) {
		show_json(&c->j, v);
	} else if (query.print0) {
		fwrite(v->path, 1, strlen(v->path) + 1, stdout);
	} else {
		print_text(v->path);
		putchar('\n');
	}
	return 0;
}

int cmd_find(struct call *c)
{
	const struct walk w = { .see = find_one, .depth = query.depth };

	return walk_list(c, "found", &w);
}
