// SPDX-License-Identifier: Apache-2.0
/*
 * Prints untrusted text: names and labels of a volume, arguments of a script. Output for people
 * must not control their terminal, must be one line for any text, and must identify all bytes.
 * Bytes that are not printable UTF-8, or that change the direction of text, are printed as \xNN,
 * and a backslash as two.
 */
#include "tool.h"

size_t utf8_len(const unsigned char *s, size_t left)
{
	static const unsigned int least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = *s < 0x80 ? 1 : *s >> 5 == 6 ? 2 : *s >> 4 == 14 ? 3 : *s >> 3 == 30 ? 4 : 0, i;
	unsigned int c;

	if (!n || n > left)
		return 0;
	if (n == 1)
		return 1;
	c = *s & (0x7fu >> n);
	for (i = 1; i < n; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	return c >= least[n] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff) ? n : 0;
}

static unsigned int code_of(const unsigned char *s, size_t n)
{
	unsigned int c = n == 1 ? *s : *s & (0x7fu >> n);
	size_t i;

	for (i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

/* Includes control characters from U+0080 to U+009F, which some terminals obey. */
static bool is_control(unsigned int c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

/*
 * Detects a character that ends a line, or that reverses the direction of text. With such a
 * character, one line could imitate another line.
 */
static bool is_layout(unsigned int c)
{
	return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

unsigned int utf8_hidden(const unsigned char *s, size_t n)
{
	unsigned int c = code_of(s, n);

	return is_control(c) || is_layout(c) ? c : 0;
}

void put_text(FILE *out, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t i, n, k;

	for (i = 0; i < len; i += n) {
		n = utf8_len(s + i, len - i);
		if (!n || !s[i] || utf8_hidden(s + i, n)) {
			n = n ? n : 1;
			for (k = 0; k < n; k++)
				fprintf(out, "\\x%02x", s[i + k]);
		} else if (s[i] == '\\') {
			fputs("\\\\", out);
		} else {
			fwrite(s + i, 1, n, out);
		}
	}
}

void print_text(const char *text)
{
	put_text(stdout, text, strlen(text));
}

bool text_plain(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t i, n;

	for (i = 0; i < len; i += n) {
		n = utf8_len(s + i, len - i);
		if (!n || !s[i] || utf8_hidden(s + i, n))
			return false;
	}
	return true;
}
