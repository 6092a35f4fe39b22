// SPDX-License-Identifier: GPL-2.0
/* Mount options: parsing, checking and showing them. */
#include <linux/ctype.h>
#include <linux/fs_context.h>
#include <linux/fs_parser.h>
#include <linux/seq_file.h>

#include "stargatefs.h"

enum { OPT_MAP, OPT_ERRORS, OPT_PHYS, OPT_SIZE, OPT_RELOCATE, OPT_NOJOIN,
       OPT_UID, OPT_GID, OPT_MODE, OPT_MARKED, OPT_DATA, OPT_FLUSH };

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

static const struct constant_table data_names[] = {
	{ "inplace", SGFS_DATA_INPLACE },
	{ "atomic", SGFS_DATA_ATOMIC },
	{}
};

static const struct constant_table flush_names[] = {
	{ "auto", SGFS_FLUSH_AUTO },
	{ "always", SGFS_FLUSH_ALWAYS },
	{ "never", SGFS_FLUSH_NEVER },
	{}
};

const struct fs_parameter_spec sgfs_parameters[] = {
	fsparam_string("map", OPT_MAP),
	fsparam_string("errors", OPT_ERRORS),
	fsparam_string("phys", OPT_PHYS),
	fsparam_string("size", OPT_SIZE),
	fsparam_flag("relocate", OPT_RELOCATE),
	fsparam_flag("nojoin", OPT_NOJOIN),
	fsparam_string("region_uid", OPT_UID),
	fsparam_string("region_gid", OPT_GID),
	fsparam_string("region_mode", OPT_MODE),
	fsparam_flag("region_nodiratime", OPT_MARKED),
	fsparam_string("data", OPT_DATA),
	fsparam_string("flush", OPT_FLUSH),
	{}
};

/* Parse a size. memparse() would wrap without an error; here a value beyond 64 bits is -ERANGE. */
static int sgfs_to_bytes(const char *text, u64 *out)
{
	static const char units[] = "KMGTPE";
	size_t len = strlen(text);
	const char *unit;
	char digits[32];
	unsigned int shift;
	int err;

	if (!len || !isdigit(*text))
		return -EINVAL;
	unit = strchr(units, toupper(text[len - 1]));
	if (unit && *unit == 'E' && strncasecmp(text, "0x", 2) == 0)
		unit = NULL;	/* a digit follows */
	shift = unit ? 10 * (unit - units + 1) : 0;
	len -= unit ? 1 : 0;
	if (len >= sizeof(digits))
		return -ERANGE;
	memcpy(digits, text, len);
	digits[len] = 0;
	err = kstrtoull(digits, 0, out);
	if (err)
		return err;
	if (*out << shift >> shift != *out)
		return -ERANGE;
	*out <<= shift;
	return 0;
}

static int sgfs_parse_bytes(struct fs_context *fc, const struct fs_parameter *param, u64 *out)
{
	int err = sgfs_to_bytes(param->string, out);

	if (err == -ERANGE)
		return invalfc(fc, "%s=%s is out of range: at most 64 bits", param->key,
			       param->string);
	if (err)
		return invalfc(fc, "%s=%s is not a number of bytes (0x400000000, 256M)", param->key,
			       param->string);
	return 0;
}

/* Parse the options for the users that may open .stargate/region and volume.json. */
static int sgfs_parse_region(struct fs_context *fc, const struct fs_parameter *param, int id)
{
	struct sgfs_options *opt = fc->fs_private;
	unsigned int value;

	if (!isdigit(*param->string) || kstrtouint(param->string, id == OPT_MODE ? 8 : 10, &value))
		return invalfc(fc, "%s=%s is not an %s", param->key, param->string,
			       id == OPT_MODE ? "octal number (0660)" : "owner's number (107)");
	switch (id) {
	case OPT_UID:
		opt->region_uid = make_kuid(fc->user_ns, value);
		opt->set |= SGFS_SET_UID;
		return uid_valid(opt->region_uid) ? 0 :
		       invalfc(fc, "region_uid=%u: no such user", value);
	case OPT_GID:
		opt->region_gid = make_kgid(fc->user_ns, value);
		opt->set |= SGFS_SET_GID;
		return gid_valid(opt->region_gid) ? 0 :
		       invalfc(fc, "region_gid=%u: no such group", value);
	}
	if (value & ~0666)
		return invalfc(fc, "region_mode=%s: at most 0666",
			       param->string);
	opt->region_mode = value;
	opt->set |= SGFS_SET_MODE;
	return 0;
}

/*
 * Return the index of the given name among two or three. Any other name is an error that lists
 * them. Otherwise -errno.
 */
static int sgfs_parse_name(struct fs_context *fc, const struct fs_parameter *param,
			   const struct constant_table names[])
{
	int value = lookup_constant(names, param->string, -1);

	if (value >= 0)
		return value;
	if (!names[2].name)
		return invalfc(fc, "%s=%s is unknown: use %s=%s or %s", param->key, param->string,
			       param->key, names[0].name, names[1].name);
	return invalfc(fc, "%s=%s is unknown: use %s=%s, %s or %s", param->key, param->string,
		       param->key, names[0].name, names[1].name, names[2].name);
}

int sgfs_parse(struct fs_context *fc, struct fs_parameter *param)
{
	struct sgfs_options *opt = fc->fs_private;
	struct fs_parse_result result;
	int id = fs_parse(fc, sgfs_parameters, param, &result), value;

	switch (id) {
	case OPT_MAP:
		value = sgfs_parse_name(fc, param, map_names);
		if (value < 0)
			return value;
		opt->map = value;
		opt->set |= SGFS_SET_MAP;
		return 0;
	case OPT_ERRORS:
		value = sgfs_parse_name(fc, param, errors_names);
		if (value < 0)
			return value;
		opt->errors = value;
		opt->set |= SGFS_SET_ERRORS;
		return 0;
	case OPT_DATA:
		value = sgfs_parse_name(fc, param, data_names);
		if (value < 0)
			return value;
		opt->data = value;
		opt->set |= SGFS_SET_DATA;
		return 0;
	case OPT_FLUSH:
		value = sgfs_parse_name(fc, param, flush_names);
		if (value < 0)
			return value;
		opt->flush = value;
		opt->set |= SGFS_SET_FLUSH;
		return 0;
	case OPT_PHYS:
		opt->set |= SGFS_SET_PHYS;
		return sgfs_parse_bytes(fc, param, &opt->phys);
	case OPT_SIZE:
		opt->set |= SGFS_SET_SIZE;
		return sgfs_parse_bytes(fc, param, &opt->size);
	case OPT_RELOCATE:
		opt->relocate = true;
		return 0;
	case OPT_NOJOIN:
		opt->nojoin = true;
		return 0;
	case OPT_MARKED:
		opt->region_marked = true;
		return 0;
	case OPT_UID:
	case OPT_GID:
	case OPT_MODE:
		return sgfs_parse_region(fc, param, id);
	default:
		return id;
	}
}

static int sgfs_differs(struct fs_context *fc, const char *key, const char *now, const char *asked)
{
	return invalfc(fc, "mounted already, with %s=%s; mount -o remount,%s=%s changes that", key,
		       now, key, asked);
}

bool sgfs_region_differs(const struct sgfs_options *asked, const struct sgfs_options *now)
{
	return (asked->set & SGFS_SET_UID && !uid_eq(asked->region_uid, now->region_uid)) ||
	       (asked->set & SGFS_SET_GID && !gid_eq(asked->region_gid, now->region_gid)) ||
	       (asked->set & SGFS_SET_MODE && asked->region_mode != now->region_mode);
}

int sgfs_data_usable(struct fs_context *fc, const struct sgfs *fs, enum sgfs_data data)
{
	if (data == SGFS_DATA_INPLACE || fs->vol.sb.incompat & SG_INCOMPAT_ATOMIC)
		return 0;
	return invalfc(fc, "data=atomic: the volume was made by an earlier version; make a new one "
		       "with mkfs.stargatefs and copy the files");
}

int sgfs_options_agree(struct fs_context *fc, const struct sgfs_options *now)
{
	const struct sgfs_options *asked = fc->fs_private;

	if (asked->set & SGFS_SET_MAP && asked->map != now->map)
		return sgfs_differs(fc, "map", map_names[now->map].name, map_names[asked->map].name);
	if (asked->set & SGFS_SET_ERRORS && asked->errors != now->errors)
		return sgfs_differs(fc, "errors", errors_names[now->errors].name,
				    errors_names[asked->errors].name);
	if (asked->set & SGFS_SET_DATA && asked->data != now->data)
		return sgfs_differs(fc, "data", data_names[now->data].name,
				    data_names[asked->data].name);
	if (asked->set & SGFS_SET_FLUSH && asked->flush != now->flush)
		return invalfc(fc, "mounted already, with flush=%s; unmount all mounts of the volume "
			       "to change that", flush_names[now->flush].name);
	if (asked->set & SGFS_SET_SIZE && asked->size != now->size)
		return invalfc(fc, "mounted already, with size=0x%llx", now->size);
	if (asked->nojoin && !now->nojoin)
		return invalfc(fc, "nojoin: mounted already, as a member of the volume");
	if (asked->region_marked && !now->region_marked)
		return invalfc(fc, "mounted already, without region_nodiratime; "
			       "mount -o remount,region_nodiratime changes that");
	if (sgfs_region_differs(asked, now))
		return invalfc(fc, "mounted already, with region_uid=%u,region_gid=%u,"
			       "region_mode=0%o; mount -o remount,... changes that",
			       from_kuid_munged(fc->user_ns, now->region_uid),
			       from_kgid_munged(fc->user_ns, now->region_gid), now->region_mode);
	return 0;
}

const char *sgfs_map_name(enum sgfs_map map)
{
	return map_names[map].name;
}

/* Show the options, except those with their default value. */
static void sgfs_show_region(struct seq_file *m, const struct sgfs_options *opt)
{
	if (!uid_eq(opt->region_uid, GLOBAL_ROOT_UID))
		seq_printf(m, ",region_uid=%u", from_kuid_munged(&init_user_ns, opt->region_uid));
	if (!gid_eq(opt->region_gid, GLOBAL_ROOT_GID))
		seq_printf(m, ",region_gid=%u", from_kgid_munged(&init_user_ns, opt->region_gid));
	if (opt->region_mode != SGFS_REGION_MODE)
		seq_printf(m, ",region_mode=%#o", opt->region_mode);
	if (opt->region_marked)
		seq_puts(m, ",region_nodiratime");
}

int sgfs_show_options(struct seq_file *m, struct dentry *root)
{
	const struct sgfs *fs = SGFS(root->d_sb);

	seq_printf(m, ",map=%s,errors=%s", sgfs_map_name(fs->opt.map),
		   errors_names[fs->opt.errors].name);
	if (fs->opt.data == SGFS_DATA_ATOMIC)
		seq_puts(m, ",data=atomic");
	if (fs->opt.flush != SGFS_FLUSH_AUTO)
		seq_printf(m, ",flush=%s", flush_names[fs->opt.flush].name);
	if (fs->opt.set & SGFS_SET_PHYS)
		seq_printf(m, ",phys=0x%llx,size=0x%llx", fs->opt.phys, fs->opt.size);
	if (fs->opt.nojoin)
		seq_puts(m, ",nojoin");
	sgfs_show_region(m, &fs->opt);
	return 0;
}
