// SPDX-License-Identifier: Apache-2.0
/* Prints messages, reads numbers, and formats numbers. */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "tool.h"

const char *tool_name = "stargatefs";
bool tool_quiet;
int tool_trouble = 1;

extern void (*sg_log_hook)(void *owner, enum sg_level level, const char *line);

static void engine_says(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	if (level == SG_INFO || tool_quiet)
		return;
	fprintf(stderr, "%s: %s", tool_name, level == SG_WARN ? "warning: " : "");
	put_text(stderr, line, strlen(line));	/* the message may contain names of systems */
	fputc('\n', stderr);
}

/*
 * If the caller has closed an output (>&-), the next opened file would get its number, and messages
 * would overwrite the volume. So this code opens a descriptor that cannot be written for this
 * number.
 */
static void hold_closed_outputs(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/*
 * Handles SIGBUS: a store to the volume has found no memory. The cause is a sparse file in a full
 * tmpfs, a truncated file, or a bad page. As after any death, the next system recovers.
 */
static void no_memory(int sig)
{
	static const char text[] = ": memory of the volume is missing or bad (a sparse file where "
				   "nothing is free, or one cut short?): stopped\n";

	(void)sig;
	if (write(STDERR_FILENO, tool_name, strlen(tool_name)) < 0 ||
	    write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(tool_trouble);	/* the caller has closed standard error */
	_exit(tool_trouble);
}

static void (*file_limit)(int) = SIG_DFL;	/* the inherited handlers */

void tool_signals_back(void)
{
	signal(SIGXFSZ, file_limit == SIG_IGN ? SIG_IGN : SIG_DFL);
}

void tool_goes_on(void)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
}

void tool_begin(const char *name, char **argv)
{
	signal(SIGBUS, no_memory);
	hold_closed_outputs();
	/* Ignores SIGXFSZ, so that a write above the limit of file sizes fails with EFBIG. */
	file_limit = signal(SIGXFSZ, SIG_IGN);
	tool_name = name;
	argv[0] = (char *)name;	/* getopt_long() prints this name */
	sg_log_hook = engine_says;
}

/* Prints the message as one line, even if names in it contain line ends. */
static void say(const char *kind, const char *hint, const char *fmt, va_list ap)
{
	char *text;

	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	fflush(stdout);
	fprintf(stderr, "%s: %s", tool_name, kind);
	put_text(stderr, text, strlen(text));
	if (hint)
		fprintf(stderr, "; try '%s %s'", tool_name, hint);
	fputc('\n', stderr);
	free(text);
}

void tool_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("", NULL, fmt, ap);
	va_end(ap);
}

void tool_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("warning: ", NULL, fmt, ap);
	va_end(ap);
}

/* --- the command line ---------------------------------------------------------------------- */

int tool_usage_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("", "--help", fmt, ap);
	va_end(ap);
	return 2;
}

/* Explains forms of numbers that other tools accept, but this one does not. */
static const char *number_fault(const char *text)
{
	if (*text == '+' || *text == '-')
		return ", and not relative: give the whole size, as in 4G";
	if (isdigit((unsigned char)*text) && strpbrk(text, ".,"))
		return ", and no fraction: use a smaller unit, as in 1536M";
	return "";
}

int tool_value_error(const char *option, const char *text, bool size, const char *allowed)
{
	return tool_usage_error("--%s '%s': must be %s%s", option, text, allowed,
				size ? number_fault(text) : "");
}

/* optopt has a short option, which may be one of several in a word; @argv has a long option. */
int tool_option_error(int found, char **argv)
{
	const char *word = argv[optind - 1];

	if (found == ':')
		return tool_usage_error("an argument is missing behind '%s'", word);
	if (!optopt)
		return tool_usage_error("there is no option '%s', or more than one", word);
	if (!strncmp(word, "--", 2) && strchr(word, '='))
		return tool_usage_error("'%.*s' takes no argument",
					(int)strcspn(word, "="), word);
	return tool_usage_error("there is no option '-%c'", optopt);
}

/* A reader that has closed the pipe needs no message. */
int tool_output_error(void)
{
	static bool said;
	int err = errno;

	if (!said && err != EPIPE)
		tool_error("the output cannot be written%s%s", err ? ": " : "",
			   err ? strerror(err) : "");
	said = true;
	return err ? -err : -EIO;
}

bool tool_output_whole(void)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return true;
	tool_output_error();
	return false;
}

int tool_end(int status)
{
	return tool_output_whole() || status ? status : 1;
}

int tool_help(const char *usage)
{
	fputs(usage, stdout);
	return tool_end(0);
}

int tool_version(void)
{
	printf("%s %s (format %d)\n", tool_name, TOOL_VERSION, SG_VERSION);
	return tool_end(0);
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

bool parse_number(const char *text, unsigned int radix, u64 max, u64 *out)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;	/* strtoull() would also accept signs and blanks */
	errno = 0;
	*out = strtoull(text, &end, (int)radix);
	return !*end && !errno && *out <= max;
}

/* Reads 32 digits, with all four dashes of a UUID or with none. */
bool parse_base(const char *text, u64 *out)
{
	return parse_size(text, out) && *out >= SG_VOLUME_ALIGN && *out <= 4095ULL << 40 &&
	       !(*out % SG_VOLUME_ALIGN);
}

bool parse_uuid(const char *text, u8 uuid[16])
{
	bool dashes = strlen(text) == 36;
	unsigned int n;

	for (n = 0; n < 16; n++) {
		char pair[3] = { 0 };

		if (dashes && (n == 4 || n == 6 || n == 8 || n == 10) && *text++ != '-')
			return false;
		if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]))
			return false;
		memcpy(pair, text, 2);
		uuid[n] = (u8)strtoul(pair, NULL, 16);
		text += 2;
	}
	return !*text;
}

bool parse_lease(const char *text, u64 *ms)
{
	*ms = 0;
	if (!strcmp(text, "never") || !strcmp(text, "0"))
		return true;
	if (!parse_number(text, 10, 86400, ms) || *ms * 1000 < SG_SUSPECT_MS)
		return false;
	*ms *= 1000;
	return true;
}

bool label_valid(const char *label)
{
	size_t len = strlen(label);

	return len < sizeof(((struct sg_super *)0)->label) && text_plain(label, len);
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
