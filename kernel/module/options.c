// SPDX-License-Identifier: GPL-2.0
/* Mount options: what may be asked for, and how it is shown. */
#include <linux/fs_context.h>
#include <linux/fs_parser.h>
#include <linux/seq_file.h>

#include "stargatefs.h"

enum { OPT_MAP, OPT_ERRORS, OPT_PHYS, OPT_SIZE };

static const struct constant_table map_names[] = {
	{ "walk", SGFS_MAP_WALK },
	{ "splice", SGFS_MAP_SPLICE },
	{ "shadow", SGFS_MAP_SHADOW },
	{}
};

static const struct constant_table errors_names[] = {
	{ "continue", SGFS_ERRORS_CONTINUE },
	{ "remount-ro", SGFS_ERRORS_REMOUNT_RO },
	{ "panic", SGFS_ERRORS_PANIC },
	{}
};

const struct fs_parameter_spec sgfs_parameters[] = {
	fsparam_enum("map", OPT_MAP, map_names),
	fsparam_enum("errors", OPT_ERRORS, errors_names),
	fsparam_string("phys", OPT_PHYS),
	fsparam_string("size", OPT_SIZE),
	{}
};

static int parse_bytes(struct fs_context *fc, const struct fs_parameter *param, u64 *out)
{
	char *end;

	*out = memparse(param->string, &end);
	if (end == param->string || *end)
		return invalfc(fc, "%s=%s is no number of bytes (0x400000000, 256M)", param->key,
			       param->string);
	return 0;
}

int sgfs_parse(struct fs_context *fc, struct fs_parameter *param)
{
	struct sgfs_options *opt = fc->fs_private;
	struct fs_parse_result result;
	int id = fs_parse(fc, sgfs_parameters, param, &result);

	switch (id) {
	case OPT_MAP:
		opt->map = result.uint_32;
		opt->set |= SGFS_SET_MAP;
		return 0;
	case OPT_ERRORS:
		opt->errors = result.uint_32;
		opt->set |= SGFS_SET_ERRORS;
		return 0;
	case OPT_PHYS:
		opt->set |= SGFS_SET_PHYS;
		return parse_bytes(fc, param, &opt->phys);
	case OPT_SIZE:
		opt->set |= SGFS_SET_SIZE;
		return parse_bytes(fc, param, &opt->size);
	default:
		return id;
	}
}

const char *sgfs_map_name(enum sgfs_map map)
{
	return map_names[map].name;
}

int sgfs_show_options(struct seq_file *m, struct dentry *root)
{
	const struct sgfs *fs = SGFS(root->d_sb);

	seq_printf(m, ",map=%s,errors=%s", sgfs_map_name(fs->opt.map),
		   errors_names[fs->opt.errors].name);
	if (fs->opt.set & SGFS_SET_PHYS)
		seq_printf(m, ",phys=0x%llx,size=0x%llx", fs->opt.phys, fs->opt.size);
	return 0;
}
