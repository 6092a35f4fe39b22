// SPDX-License-Identifier: Apache-2.0
/* Messages, numbers, and how they are shown. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdlib.h>
#include <time.h>
#include "tool.h"

const char *tool_name = "stargatefs";
bool tool_quiet;

extern void (*sg_log_hook)(void *owner, enum sg_level level, const char *line);

static void engine_says(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	if (level == SG_INFO || tool_quiet)
		return;
	fprintf(stderr, "%s: %s%s\n", tool_name, level == SG_WARN ? "warning: " : "", line);
}

void tool_begin(const char *name, char **argv)
{
	tool_name = name;
	argv[0] = (char *)name;	/* for what getopt_long() says */
	sg_log_hook = engine_says;
}

static void say(const char *kind, const char *fmt, va_list ap)
{
	fflush(stdout);
	fprintf(stderr, "%s: %s", tool_name, kind);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void tool_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
}

void tool_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("warning: ", fmt, ap);
	va_end(ap);
}

int tool_usage_hint(void)
{
	fprintf(stderr, "Try '%s --help'.\n", tool_name);
	return 2;
}

int tool_usage_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
	return tool_usage_hint();
}

int tool_version(void)
{
	printf("%s %s (format %d)\n", tool_name, TOOL_VERSION, SG_VERSION);
	return 0;
}

/* --- numbers ------------------------------------------------------------------------------- */

bool parse_size(const char *text, u64 *out)
{
	static const char units[] = "KMGTP";
	unsigned int shift = 0;
	const char *unit;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*out = strtoull(text, &end, 0);
	if (errno)
		return false;
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (unit) {
		shift = 10 * (unsigned int)(unit - units + 1);
		end++;
		if (!strcasecmp(end, "iB") || !strcasecmp(end, "B"))
			end += strlen(end);
	}
	if (*end || *out << shift >> shift != *out)
		return false;
	*out <<= shift;
	return true;
}

bool parse_uuid(const char *text, u8 uuid[16])
{
	unsigned int n = 0;

	for (; *text; text++) {
		char pair[3] = { text[0], text[1], 0 };

		if (*text == '-' && (n == 4 || n == 6 || n == 8 || n == 10))
			continue;
		if (n == 16 || !isxdigit((unsigned char)text[0]) ||
		    !isxdigit((unsigned char)text[1]))
			return false;
		uuid[n++] = (u8)strtoul(pair, NULL, 16);
		text++;
	}
	return n == 16;
}

const char *show_size(u64 bytes, char buf[32])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	unsigned int u = 0;
	double v = (double)bytes;

	while (v >= 1024 && u + 1 < sizeof(units) / sizeof(units[0])) {
		v /= 1024;
		u++;
	}
	snprintf(buf, 32, u && v != (double)(u64)v ? "%.1f %s" : "%.0f %s", v, units[u]);
	return buf;
}

const char *show_uuid(const u8 uuid[16], char buf[37])
{
	unsigned int i, n = 0;

	for (i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			buf[n++] = '-';
		n += (unsigned int)snprintf(buf + n, 37 - n, "%02x", uuid[i]);
	}
	return buf;
}

const char *show_time(s64 ns, char buf[48])
{
	s64 rest = ns % 1000000000;
	time_t t = (time_t)(ns / 1000000000);
	struct tm tm;
	size_t n;

	if (rest < 0) {
		rest += 1000000000;
		t--;
	}
	if (!gmtime_r(&t, &tm))
		return "?";
	n = strftime(buf, 48, "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(buf + n, 48 - n, ".%09lld UTC", (long long)rest);
	return buf;
}
