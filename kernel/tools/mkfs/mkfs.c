// SPDX-License-Identifier: Apache-2.0
/* mkfs.stargatefs: make a StargateFS. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "tool.h"

struct request {
	const char *path;
	u64 size;		/* 0: the device's or file's */
	bool phys_given;
	bool force, force_live, dry, json, sparse, quiet;
	u8 uuid[16];
	struct sg_format_opts opts;
};

static const char usage[] =
"Usage: mkfs.stargatefs [OPTION]... DEVICE|FILE\n"
"Make a StargateFS on a DAX device, or in a file that VMs map at one address.\n"
"\n"
"  -L, --label LABEL      name of the volume (up to 63 bytes)\n"
"  -U, --uuid UUID        its UUID (default: random)\n"
"      --phys ADDRESS     physical address of its first byte; found out for\n"
"                         devices, needed for files (--base is the same)\n"
"      --size SIZE        make FILE this large, e.g. 256M\n"
"      --sparse           ... without taking its memory at once\n"
"      --areas N          transactions that one system can have under way (1-16)\n"
"      --max-size SIZE    how far the volume can grow in place\n"
"      --root-owner U:G   owner of the root directory (default 0:0)\n"
"      --root-mode MODE   its permissions (default 0755)\n"
"      --param NAME       host-splice: the host may use map=splice\n"
"  -f, --force            overwrite what is there\n"
"      --force-live       ... even a StargateFS that some system has not left\n"
"  -n, --dry-run          show what would be made\n"
"  -q, --quiet            say nothing but errors\n"
"      --json             describe the volume as JSON\n"
"      --help, --version\n"
"\n"
"Sizes take K, M, G, T. See mkfs.stargatefs(8).\n";

/* --- what is there ------------------------------------------------------------------------- */

static int refuse_stargate(const struct request *r, const struct sg_probe *probe)
{
	char id[37];

	if (probe->live && !r->force_live) {
		tool_error("%s: %u system(s) use this StargateFS or died with it; unmount it "
			   "there, or run fsck.stargatefs, or give --force-live", r->path,
			   probe->live);
		return -EBUSY;
	}
	if (r->force || r->force_live)
		return 0;
	tool_error("%s: holds a StargateFS (%.63s%s%s); give -f to overwrite it", r->path,
		   probe->sb.label, probe->sb.label[0] ? ", " : "",
		   probe->valid ? show_uuid(probe->sb.uuid, id) : "damaged");
	return -EEXIST;
}

/* Nothing of value may be lost by a slip of the finger. */
static int refuse_existing(const struct request *r, const struct target *t)
{
	struct sg_probe probe;
	const char *other;

	sg_probe(t->base, t->size, &probe);
	if (probe.stargate)
		return refuse_stargate(r, &probe);
	other = foreign_signature(t->base, t->size);
	if (!other || r->force)
		return 0;
	tool_error("%s: holds %s; give -f to overwrite it", r->path, other);
	return -EEXIST;
}

static int find_phys(struct request *r, const struct target *t)
{
	u64 phys;
	int err = target_phys(t, &phys);

	if (err && !r->phys_given) {
		if (t->kind == TARGET_FILE)
			tool_error("%s: give the address where VMs map it, e.g. --phys 16G",
				   r->path);
		else
			tool_error("%s: not one contiguous piece of memory known to the kernel; "
				   "give --phys", r->path);
		return err;
	}
	if (!err && r->phys_given && phys != r->opts.phys) {
		tool_error("%s: lies at 0x%llx, and not at 0x%llx; leave --phys out", r->path,
			   (unsigned long long)phys, (unsigned long long)r->opts.phys);
		return -EINVAL;
	}
	if (!err)
		r->opts.phys = phys;
	if (r->opts.phys % SG_VOLUME_ALIGN) {
		tool_error("%s: its address 0x%llx is not a multiple of 2 MiB; cut it aligned",
			   r->path, (unsigned long long)r->opts.phys);
		return -EINVAL;
	}
	return 0;
}

/* --- making it ----------------------------------------------------------------------------- */

static void describe(const struct request *r, const struct sg_super *sb, struct json *j)
{
	char id[37];

	json_str(j, "path", r->path);
	json_str(j, "uuid", show_uuid(sb->uuid, id));
	json_str(j, "label", sb->label);
	json_u64(j, "phys", sb->phys);
	json_u64(j, "size", sb->size);
	json_u64(j, "max_size", sb->chunk_cap * SG_CHUNK);
	json_u64(j, "areas", sb->areas);
	json_u64(j, "metadata", sb->data_off);
	json_u64(j, "free", sb->free_base * SG_PAGE);
	json_bool(j, "host_splice", sb->params & SG_PARAM_HOST_SPLICE);
	json_bool(j, "made", !r->dry);
}

static void summary(const struct request *r, const struct sg_super *sb)
{
	char a[32], b[32], c[32], id[37];
	struct json j;

	if (r->json) {
		json_begin(&j, stdout, false);
		describe(r, sb, &j);
		json_end(&j);
		return;
	}
	if (r->quiet)
		return;
	printf("%s: StargateFS %s%s\n", r->path, r->dry ? "as it would be made" : "made",
	       sb->label[0] ? "" : " (no label)");
	if (sb->label[0])
		printf("  label     %s\n", sb->label);
	printf("  uuid      %s\n", show_uuid(sb->uuid, id));
	printf("  base      0x%llx\n", (unsigned long long)sb->phys);
	printf("  size      %s, room to grow to %s\n", show_size(sb->size, a),
	       show_size(sb->chunk_cap * SG_CHUNK, b));
	printf("  free      %s; %s for metadata, %u areas for each of %u systems\n",
	       show_size(sb->free_base * SG_PAGE, a), show_size(sb->data_off, c), sb->areas,
	       sb->slots);
}

/* A dry run formats a private copy: what it shows is what would be made. */
static int make(struct request *r)
{
	struct target t;
	struct sg_super sb;
	char why[200] = "";
	int err;

	if (r->size)
		err = target_create(&t, r->path, r->size, r->sparse, r->dry);
	else
		err = target_open(&t, r->path, r->dry ? TARGET_LOOK : TARGET_CHANGE);
	if (err)
		return err;
	err = refuse_existing(r, &t);
	if (!err)
		err = find_phys(r, &t);
	if (!err) {
		err = sg_format(t.base, t.size, &r->opts, why);
		if (err)
			tool_error("%s: %s", r->path, why);
	}
	if (!err)
		memcpy(&sb, t.base, sizeof(sb));
	if (target_close(&t) && !err)
		err = -EIO;
	if (!err)
		summary(r, &sb);
	return err;
}

/* --- command line -------------------------------------------------------------------------- */

enum { OPT_PHYS = 256, OPT_SIZE, OPT_SPARSE, OPT_AREAS, OPT_MAX, OPT_OWNER, OPT_MODE, OPT_PARAM,
	OPT_LIVE, OPT_JSON, OPT_HELP, OPT_VERSION };

static const struct option options[] = {
	{ "label", required_argument, NULL, 'L' },
	{ "uuid", required_argument, NULL, 'U' },
	{ "phys", required_argument, NULL, OPT_PHYS },
	{ "base", required_argument, NULL, OPT_PHYS },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "sparse", no_argument, NULL, OPT_SPARSE },
	{ "areas", required_argument, NULL, OPT_AREAS },
	{ "max-size", required_argument, NULL, OPT_MAX },
	{ "root-owner", required_argument, NULL, OPT_OWNER },
	{ "root-mode", required_argument, NULL, OPT_MODE },
	{ "param", required_argument, NULL, OPT_PARAM },
	{ "force", no_argument, NULL, 'f' },
	{ "force-live", no_argument, NULL, OPT_LIVE },
	{ "dry-run", no_argument, NULL, 'n' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ 0 }
};

static bool parse_owner(struct request *r, const char *text)
{
	char rest;

	return sscanf(text, "%u:%u%c", &r->opts.root_uid, &r->opts.root_gid, &rest) == 2;
}

static bool parse_mode(struct request *r, const char *text)
{
	char *end;
	unsigned long mode = strtoul(text, &end, 8);

	r->opts.root_mode = (u32)mode;
	return *text && !*end && mode && mode <= 07777;
}

static bool parse_param(struct request *r, const char *text)
{
	if (strcmp(text, "host-splice"))
		return false;
	r->opts.params |= SG_PARAM_HOST_SPLICE;
	return true;
}

/* One option. False: its argument makes no sense. */
static bool take_option(struct request *r, int opt, const char *arg)
{
	u64 n = 0;

	switch (opt) {
	case 'L':
		r->opts.label = arg;
		return true;
	case 'U':
		r->opts.uuid = r->uuid;
		return parse_uuid(arg, r->uuid);
	case OPT_PHYS:
		r->phys_given = true;
		return parse_size(arg, &r->opts.phys);
	case OPT_SIZE:
		return parse_size(arg, &r->size) && r->size;
	case OPT_AREAS:
		r->opts.areas = parse_size(arg, &n) && n <= SG_AREAS_MAX ? (u32)n : 0;
		return r->opts.areas;
	case OPT_MAX:
		r->opts.chunk_cap = parse_size(arg, &n) ? n / SG_CHUNK : 0;
		return r->opts.chunk_cap;
	case OPT_OWNER:
		return parse_owner(r, arg);
	case OPT_MODE:
		return parse_mode(r, arg);
	case OPT_PARAM:
		return parse_param(r, arg);
	case OPT_SPARSE:
		return r->sparse = true;
	case OPT_LIVE:
		return r->force_live = true;
	case OPT_JSON:
		return r->json = true;
	case 'f':
		return r->force = true;
	case 'n':
		return r->dry = true;
	case 'q':
		return r->quiet = true;
	}
	return false;
}

int main(int argc, char **argv)
{
	struct request r = { .path = NULL };
	int opt;

	tool_begin("mkfs.stargatefs", argv);
	while ((opt = getopt_long(argc, argv, "L:U:fnqV", options, NULL)) != -1) {
		if (opt == OPT_HELP)
			return fputs(usage, stdout) < 0;
		if (opt == OPT_VERSION || opt == 'V')
			return tool_version();
		if (opt == '?')
			return tool_usage_hint();
		if (!take_option(&r, opt, optarg))
			return tool_usage_error("'%s' makes no sense there", optarg);
	}
	if (optind + 1 != argc)
		return tool_usage_error(optind < argc ? "one volume at a time" :
					"which device or file?");
	r.path = argv[optind];
	return make(&r) ? 1 : 0;
}
