// SPDX-License-Identifier: Apache-2.0
/*
 * info --export: prints the names of a volume as lines KEY=value for udev's IMPORT{program}, with
 * the keys and escapes of blkid(8) -o udev. So links in /dev/disk, lsblk and mount find a volume
 * like any other file system. The command only reads the superblocks, and changes nothing.
 *
 * A label is untrusted: no byte of it may end a line, quote a value, or add a key.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include "ctl.h"

/*
 * Returns the length of the character at @s if libblkid does not escape it, otherwise 0. Returns 0
 * also for invisible characters, which no label should have.
 */
static size_t harmless(const unsigned char *s, size_t left)
{
	size_t n = utf8_len(s, left);

	if (n == 1)
		return *s && (isalnum(*s) || strchr("#+-.:=@_", *s));
	return n && !utf8_hidden(s, n) ? n : 0;
}

/* Prints KEY= with '_' for each character that could do harm, and KEY_ENC= with \xNN for it. */
static void put_name(const char *key, bool enc, const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t i, n;

	printf("%s%s=", key, enc ? "_ENC" : "");
	for (i = 0; i < len; i += n ? n : 1) {
		n = harmless(s + i, len - i);
		if (n)
			fwrite(s + i, 1, n, stdout);
		else if (enc)
			printf("\\x%02x", s[i]);
		else
			putchar('_');
	}
	putchar('\n');
}

static void put_both(const char *key, const char *text, size_t len)
{
	if (!len)
		return;
	put_name(key, false, text, len);
	put_name(key, true, text, len);
}

/*
 * A copy at another address has the UUID and label of its source, and the links must lead to the
 * source.
 */
static bool lies_elsewhere(const struct target *t, const struct sg_super *sb)
{
	u64 phys;

	return t->kind != TARGET_FILE && !target_phys(t, &phys) && phys != sb->phys;
}

static void show(const struct target *t, const struct sg_super *sb)
{
	char id[37];

	put_both("ID_FS_LABEL", sb->label, strnlen(sb->label, sizeof(sb->label)));
	show_uuid(sb->uuid, id);
	put_both("ID_FS_UUID", id, strlen(id));
	printf("ID_FS_VERSION=%u\n", sb->version);
	printf("ID_FS_BLOCKSIZE=%u\n", (unsigned int)SG_PAGE);
	printf("ID_FS_TYPE=stargatefs\nID_FS_USAGE=filesystem\n");
	if (lies_elsewhere(t, sb))
		printf("STARGATEFS_MOVED=1\n");
}

/*
 * If other data has overwritten the start of the volume, the backup superblock at its end remains.
 *
 */
static int refuse(const struct target *t, const struct sg_probe *probe)
{
	const char *other = NULL;

	if (probe->from_backup || !probe->valid)
		other = foreign_signature(t->base, t->size);
	if (other)
		tool_error("%s: holds %s, not a StargateFS", t->path, other);
	else if (probe->whole)
		tool_error("%s: a StargateFS that is cut short: it has %llu bytes, and only %llu are here",
			   t->path, (unsigned long long)probe->whole, (unsigned long long)t->size);
	else if (!probe->valid)
		tool_error("%s: holds no intact StargateFS", t->path);
	else
		return 0;
	return -EINVAL;
}

int export_info(struct call *c)
{
	struct sg_probe probe;
	struct target t;
	int err;

	tool_quiet = true;
	if (target_open(&t, c->volume, TARGET_READ))
		return 1;
	sg_probe(t.base, t.size, &probe);
	err = refuse(&t, &probe);
	if (!err)
		show(&t, &probe.sb);
	return target_close(&t) || err ? 1 : 0;
}
