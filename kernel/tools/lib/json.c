// SPDX-License-Identifier: Apache-2.0
/*
 * Prints the output of the tools as JSON or as lines for people, from the same calls. It prints
 * each value immediately, without a tree or a buffer.
 *
 * For people an object is a block of "key: value" lines; inner objects are indented. A row is an
 * object on one line, as "key value key value".
 */
#include "tool.h"

static void indent(struct json *j)
{
	unsigned int i;

	for (i = 0; i < j->depth; i++)
		fputs("  ", j->out);
}

static void before_plain(struct json *j, const char *key)
{
	if (j->row) {
		fprintf(j->out, "%s%s ", j->first ? "" : "  ", key ? key : "");
	} else {
		indent(j);
		if (key)
			fprintf(j->out, "%s: ", key);
	}
	j->first = false;
}

static void before(struct json *j, const char *key)
{
	if (j->plain) {
		before_plain(j, key);
		return;
	}
	if (!j->first)
		fputc(',', j->out);
	if (j->depth && !j->row) {
		fputc('\n', j->out);
		indent(j);
	} else if (!j->first) {
		fputc(' ', j->out);
	}
	j->first = false;
	if (key)
		fprintf(j->out, "\"%s\": ", key);
}

static void after(struct json *j)
{
	if (j->plain && !j->row)
		fputc('\n', j->out);
}

static void open_with(struct json *j, const char *key, char bracket)
{
	if (!j->plain) {
		before(j, key);
		fputc(bracket, j->out);
	} else if (key) {
		indent(j);
		fprintf(j->out, "%s:\n", key);
	}
	j->depth++;
	j->first = true;
}

void json_begin(struct json *j, FILE *out, bool plain)
{
	*j = (struct json){ .out = out, .first = true, .plain = plain };
	if (!plain)
		open_with(j, NULL, '{');
}

void json_end(struct json *j)
{
	if (j->plain)
		return;
	json_close(j, '}');
	fputc('\n', j->out);
}

void json_object(struct json *j, const char *key)
{
	open_with(j, key, '{');
}

void json_array(struct json *j, const char *key)
{
	open_with(j, key, '[');
}

void json_row(struct json *j, const char *key)
{
	if (j->plain) {
		indent(j);
		if (key)
			fprintf(j->out, "%s: ", key);
	} else {
		before(j, key);
		fputc('{', j->out);
	}
	j->row = true;
	j->first = true;
}

void json_close(struct json *j, char bracket)
{
	if (j->row) {
		fputs(j->plain ? "\n" : "}", j->out);
		j->row = false;
		j->first = false;
		return;
	}
	j->depth--;
	if (!j->plain) {
		if (!j->first) {
			fputc('\n', j->out);
			indent(j);
		}
		fputc(bracket, j->out);
	}
	j->first = false;
}

void json_u64(struct json *j, const char *key, u64 value)
{
	before(j, key);
	fprintf(j->out, "%llu", (unsigned long long)value);
	after(j);
}

void json_s64(struct json *j, const char *key, s64 value)
{
	before(j, key);
	fprintf(j->out, "%lld", (long long)value);
	after(j);
}

void json_bool(struct json *j, const char *key, bool value)
{
	before(j, key);
	fputs(!j->plain ? value ? "true" : "false" : value ? "yes" : "no", j->out);
	after(j);
}

void json_hex(struct json *j, const char *key, u64 value)
{
	const char *quote = j->plain ? "" : "\"";

	before(j, key);
	fprintf(j->out, "%s0x%llx%s", quote, (unsigned long long)value, quote);
	after(j);
}

void json_size(struct json *j, const char *key, u64 value)
{
	char text[32];

	if (!j->plain) {
		json_u64(j, key, value);
		return;
	}
	before(j, key);
	fprintf(j->out, "%llu (%s)", (unsigned long long)value, show_size(value, text));
	after(j);
}

void json_time(struct json *j, const char *key, s64 ns)
{
	char text[48];

	if (j->plain)
		json_str(j, key, show_time(ns, text));
	else
		json_s64(j, key, ns);
}

/* Prints text. Returns false if some bytes are not UTF-8, and were replaced. */
static bool put_string(struct json *j, const unsigned char *s, size_t len)
{
	bool whole = true;
	size_t i, n;

	fputc('"', j->out);
	for (i = 0; i < len; i += n ? n : 1) {
		n = utf8_len(s + i, len - i);
		whole &= n != 0;
		if (!n)
			fputs("\\ufffd", j->out);
		else if (!s[i] || utf8_hidden(s + i, n))
			fprintf(j->out, "\\u%04x", utf8_hidden(s + i, n));
		else if (s[i] == '"' || s[i] == '\\')
			fprintf(j->out, "\\%c", s[i]);
		else
			fwrite(s + i, 1, n, j->out);
	}
	fputc('"', j->out);
	return whole;
}

void json_bytes(struct json *j, const char *key, const char *value, size_t len)
{
	const unsigned char *s = (const unsigned char *)value;
	char other[32];
	size_t i;

	before(j, key);
	if (j->plain) {
		put_text(j->out, value, len);
		after(j);
		return;
	}
	if (put_string(j, s, len) || !key)
		return;
	snprintf(other, sizeof(other), "%s_hex", key);
	before(j, other);
	fputc('"', j->out);
	for (i = 0; i < len; i++)
		fprintf(j->out, "%02x", s[i]);
	fputc('"', j->out);
}

void json_str(struct json *j, const char *key, const char *value)
{
	json_bytes(j, key, value, strlen(value));
}
