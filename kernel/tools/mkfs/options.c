// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the command line of mkfs.stargatefs, and checks each argument as far as this is possible
 * without the others.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include "mkfs.h"

static const char usage[] =
"Usage: mkfs.stargatefs [OPTION]... DEVICE|FILE\n"
"Make a StargateFS on a DAX device, or in a file that VMs map at one address.\n"
"\n"
"  -L, --label LABEL      name of the volume (up to 63 bytes)\n"
"  -U, --uuid UUID        its UUID (default: random)\n"
"      --phys ADDRESS     physical address of its first byte; detected for\n"
"                         devices, needed for files (--base is the same)\n"
"      --size SIZE        make FILE this large, e.g. 256M; use only this part of\n"
"                         a device\n"
"      --sparse           with --size: do not allocate the file's memory now\n"
"      --areas N          number of transactions that one system can have in\n"
"                         progress (1-16)\n"
"      --max-size SIZE    the size to which the volume can grow in place\n"
"      --root-owner U:G   owner of the root directory (default 0:0)\n"
"      --root-mode MODE   its permissions (default 0755)\n"
"      --lease SECONDS    silence after which a system without a guard is fenced;\n"
"                         never by default\n"
"      --param NAME       host-splice: the host may use map=splice;\n"
"                         data-atomic: writes to all new files are atomic\n"
"  -f, --force            overwrite existing content\n"
"      --force-live       overwrite even a StargateFS that some system uses\n"
"  -n, --dry-run          print the result without making a volume\n"
"  -q, --quiet            print only errors\n"
"      --json             describe the volume as JSON\n"
"  -h, --help\n"
"  -V, --version\n"
"\n"
"Sizes take K, M, G, T. See mkfs.stargatefs(8).\n";

enum { OPT_PHYS = 256, OPT_BASE, OPT_SIZE, OPT_SPARSE, OPT_AREAS, OPT_MAX, OPT_OWNER, OPT_MODE,
	OPT_PARAM, OPT_LEASE, OPT_LIVE, OPT_JSON };

static const struct option options[] = {
	{ "label", required_argument, NULL, 'L' },
	{ "uuid", required_argument, NULL, 'U' },
	{ "phys", required_argument, NULL, OPT_PHYS },
	{ "base", required_argument, NULL, OPT_BASE },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "sparse", no_argument, NULL, OPT_SPARSE },
	{ "areas", required_argument, NULL, OPT_AREAS },
	{ "max-size", required_argument, NULL, OPT_MAX },
	{ "root-owner", required_argument, NULL, OPT_OWNER },
	{ "root-mode", required_argument, NULL, OPT_MODE },
	{ "lease", required_argument, NULL, OPT_LEASE },
	{ "param", required_argument, NULL, OPT_PARAM },
	{ "force", no_argument, NULL, 'f' },
	{ "force-live", no_argument, NULL, OPT_LIVE },
	{ "dry-run", no_argument, NULL, 'n' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 }
};

/* Describes the allowed values of an option, for a message. */
static const char *allowed(int opt)
{
	switch (opt) {
	case 'L': return LABEL_RULE;
	case 'U': return "32 hexadecimal digits, as uuidgen prints them";
	case OPT_PHYS:
	case OPT_BASE: return BASE_RULE;
	case OPT_SIZE: return "16M to 64T, a multiple of 2M";
	case OPT_AREAS: return "1 to 16";
	case OPT_MAX: return "the volume's size to 64T, a multiple of 2M";
	case OPT_OWNER: return "UID:GID, each from 0 to 4294967294";
	case OPT_MODE: return "permissions in octal, 1 to 7777";
	case OPT_LEASE: return LEASE_RULE;
	}
	return "host-splice or data-atomic";
}

static const char *name_of(int opt)
{
	const struct option *o = options;

	while (o->val != opt)
		o++;
	return o->name;
}

static bool take_range(const char *arg, u64 least, u64 most, u64 *out)
{
	return parse_size(arg, out) && *out >= least && *out <= most && !(*out % SG_VOLUME_ALIGN);
}

static bool is_size(int opt)
{
	return opt == OPT_PHYS || opt == OPT_BASE || opt == OPT_SIZE || opt == OPT_MAX;
}

static bool take_owner(struct request *r, const char *arg)
{
	size_t n = strcspn(arg, ":");
	u64 uid, gid;
	char user[16];

	if (n >= sizeof(user) || !arg[n])
		return false;
	memcpy(user, arg, n);
	user[n] = 0;
	if (!parse_number(user, 10, UINT32_MAX - 1, &uid) ||
	    !parse_number(arg + n + 1, 10, UINT32_MAX - 1, &gid))
		return false;
	r->opts.root_uid = (u32)uid;
	r->opts.root_gid = (u32)gid;
	return true;
}

static bool take_param(struct request *r, const char *arg)
{
	if (!strcmp(arg, "host-splice"))
		r->opts.params |= SG_PARAM_HOST_SPLICE;
	else if (!strcmp(arg, "data-atomic"))
		r->opts.params |= SG_PARAM_DATA_ATOMIC;
	else
		return false;
	return true;
}

/* Reads an option with an argument. Returns false if allowed() does not list the value. */
static bool take_argument(struct request *r, int opt, const char *arg)
{
	u64 n = 0;

	switch (opt) {
	case 'L':
		r->opts.label = arg;
		return label_valid(arg);
	case 'U':
		r->opts.uuid = r->uuid;
		return parse_uuid(arg, r->uuid);
	case OPT_PHYS:
	case OPT_BASE:
		r->phys_given = name_of(opt);
		return parse_base(arg, &r->opts.phys);
	case OPT_SIZE:
		return take_range(arg, SG_VOLUME_MIN, SG_VOLUME_MAX, &r->size);
	case OPT_AREAS:
		if (!parse_size(arg, &n) || !n || n > SG_AREAS_MAX)
			return false;
		r->opts.areas = (u32)n;
		return true;
	case OPT_MAX:
		if (!take_range(arg, SG_VOLUME_MIN, SG_VOLUME_MAX, &n))
			return false;
		r->opts.chunk_cap = n / SG_CHUNK;
		return true;
	case OPT_OWNER:
		return take_owner(r, arg);
	case OPT_MODE:
		if (!parse_number(arg, 8, 07777, &n) || !n)
			return false;
		r->opts.root_mode = (u32)n;
		return true;
	case OPT_LEASE:
		return parse_lease(arg, &r->opts.lease_ms);
	}
	return take_param(r, arg);
}

static void take_flag(struct request *r, int opt)
{
	switch (opt) {
	case OPT_SPARSE:
		r->sparse = true;
		break;
	case OPT_LIVE:
		r->force_live = true;
		break;
	case OPT_JSON:
		r->json = true;
		break;
	case 'f':
		r->force = true;
		break;
	case 'n':
		r->dry = true;
		break;
	case 'q':
		r->quiet = true;
		break;
	}
}

static bool rest_is_right(struct request *r, int argc, char **argv)
{
	if (optind + 1 != argc) {
		tool_usage_error(optind < argc ? "one volume at a time" : "which device or file?");
		return false;
	}
	r->path = argv[optind];
	if (!*r->path)
		tool_usage_error("the name of the device or file is empty");
	else if (r->sparse && !r->size)
		tool_usage_error("--sparse needs --size");
	else
		return true;
	return false;
}

bool read_options(struct request *r, int argc, char **argv, int *status)
{
	int opt;

	*status = 2;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":L:U:fnqhV", options, NULL)) != -1) {
		if (opt == 'h' || opt == 'V') {
			*status = opt == 'V' ? tool_version() : tool_help(usage);
			return false;
		}
		if (opt == '?' || opt == ':') {
			tool_option_error(opt, argv);
			return false;
		}
		if (!optarg) {
			take_flag(r, opt);
		} else if (!take_argument(r, opt, optarg)) {
			tool_value_error(name_of(opt), optarg, is_size(opt), allowed(opt));
			return false;
		}
	}
	return rest_is_right(r, argc, argv);
}
