// SPDX-License-Identifier: Apache-2.0
/*
 * stargatectl: accesses a StargateFS that is not mounted here, copies files in and out, and manages
 * zones and their volumes.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include "ctl.h"
#include "uapi/bells.h"

static const char usage[] =
"Usage: stargatectl [OPTION]... COMMAND VOLUME [ARGUMENT]...\n"
"Read a StargateFS on a device or in a file; copy files in and out of one that\n"
"nobody uses. Make a zone from a node's reserved memory, and volumes in it.\n"
"\n"
"  info V                 label, UUID, size, address and state\n"
"  df V                   space and inodes\n"
"  systems V              the systems that use it: alive or silent, and how much\n"
"                         memory each keeps from reuse\n"
"  systems --open V       the files that each system has open\n"
"  systems V fence NAME   fence a system; NAME is its name, the number of its\n"
"                         slot, or its VM's UUID\n"
"  slots V                the mount table\n"
"  look V...              info, df, and number of used slots, of many volumes\n"
"  top V                  semaphores that are locked, or for which threads wait;\n"
"                         V must be mounted here, or is any path of the mount\n"
"  ls [-l] [-r] V [PATH]  names in a directory\n"
"  stat V PATH            attributes, and where the bytes are\n"
"  cat V PATH...          contents of files\n"
"  get [-r] V PATH [TO]   copy a file, or a complete tree, out of the volume\n"
"  put [-r] V FROM [PATH] copy a file (-: standard input), or a complete tree,\n"
"                         into it\n"
"  get --tar V PATH [FILE], put --tar V FILE [PATH]\n"
"                         the same as a tar archive (-: standard output, input),\n"
"                         with owners, ACLs and extended attributes\n"
"  mkdir [-p] V PATH...   make directories\n"
"  rm [-r] V PATH...      remove files or trees\n"
"  mv [-nT] V FROM... TO  rename, or move into the directory TO\n"
"  ln [-sT] V FROM... TO  make a hard link, or (-s) a symbolic link\n"
"  chmod [-R] V MODE PATH...\n"
"  chown [-R] V OWNER[:GROUP] PATH...\n"
"  attr V [data=atomic|data=inplace] PATH...\n"
"                         show or set whether writes to a file are atomic; for a\n"
"                         directory: writes to new files in it; V may be mounted,\n"
"                         or a directory of the mount\n"
"  seal [--digest] V PATH...\n"
"                         make contents and size of files final; with --digest,\n"
"                         keep a digest of the contents; V may be mounted, or a\n"
"                         directory of the mount\n"
"  unseal V PATH...       remove the seal\n"
"  verify V PATH...       compare contents of sealed files with their digests\n"
"  find V [PATH] [TEST]...\n"
"                         names in a tree that pass all tests: -name PATTERN,\n"
"                         -type T, -inum N, -size N, -user U, -group G, -links N;\n"
"                         also -maxdepth N, -print0\n"
"  du [-ash] V [PATH]     how much space a tree takes, in KiB\n"
"  label V [LABEL]        show or set the label\n"
"  grow V                 make it larger, to the end of its device or to\n"
"                         SIZE; V may be mounted, or a directory of the mount\n"
"  snapshot V FILE        copy its state at one moment, also while it is in use;\n"
"                         V may be mounted, or a directory of the mount\n"
"  clone V FILE --base ADDRESS\n"
"                         copy a volume or a snapshot as an independent volume,\n"
"                         with another base and another UUID\n"
"  image V FILE           copy only its metadata, for a bug report; without\n"
"                         contents of files; names, link targets and extended\n"
"                         attributes are replaced\n"
"  tune V                 show or set parameters of a volume, also in use; UUID\n"
"                         and label only of an unused one\n"
"  bad V                  show its bad memory, and the files with data there\n"
"  bad V add ADDRESS [SIZE], bad V remove ADDRESS [SIZE]\n"
"                         mark memory as bad, or remove the mark\n"
"  relocate V             adapt the addresses in it to its present address\n"
"  guard V... -- COMMAND  run a virtual machine; when it ends, fence its systems\n"
"                         immediately, so that other systems continue\n"
"  bells SOCKET [V]       connect the doorbells of VMs (QEMU's ivshmem-doorbell),\n"
"                         for systems of the volume V, or of any volume\n"
"  dump V super | hot | slots | journal | ledger | chunks [FIRST [COUNT]] |\n"
"         inode PATH | dir PATH | bucket OFFSET | table PATH | xattr PATH\n"
"\n"
"  zone create Z DEVICE...  make a zone of DAX block devices, like /dev/pmem0\n"
"  zone show [Z]            its volumes, and the size of the largest new volume\n"
"  zone extend Z DEVICE...  add devices; without DEVICE, add the new space of its\n"
"                           own devices\n"
"  zone destroy Z           destroy a zone that has no volumes\n"
"  volume create V --size N [--align N] [-- OPTION OF MKFS...]\n"
"                           V is NAME, or ZONE/NAME if there are several zones\n"
"  volume list [Z]          the volumes of a zone, or of all zones\n"
"  volume show V            a volume, with its file system\n"
"  volume resize V --size N make it larger, in place\n"
"  volume rename V NAME     change its name; refused while any system uses it\n"
"  volume delete V          wipe and remove it; refused while any system uses it\n"
"  volume snapshot V NAME   a read-only copy of its state at one moment;\n"
"                           NAME may be a /FILE, which holds only used pages\n"
"  volume clone V NAME      a new volume from V: a volume, a snapshot or\n"
"                           a /FILE with a snapshot\n"
"  volume check V [-- OPTION OF FSCK...]\n"
"  volume relocate V        adapt the addresses in it to its present address\n"
"  volume activate V        make its device, after a boot without udev\n"
"  volume qemu-args V --memory N [--phys-bits N]\n"
"  volume libvirt-xml V --memory N [--phys-bits N]\n"
"                           arguments for a VM with the volume at its address\n"
"\n"
"  -j, --json             (info, df, systems, slots, look, top, ls, stat, attr,\n"
"                         seal, verify, find, du, label, grow, snapshot, clone,\n"
"                         image, tune, bad, relocate, dump) print JSON;\n"
"                         (zone, volume) also with the reason of a failure\n"
"  -l, --long             (ls) long listing\n"
"  -r, --recursive        (ls, get, put, rm, chmod, chown; the last two: -R, too)\n"
"                         include everything below a directory\n"
"  -n, --no-clobber       (mv) replace nothing\n"
"  -T, --no-target-directory\n"
"                         (mv, ln) TO is the new name, even of a directory\n"
"  -s, --symbolic         (ln) make a symbolic link\n"
"  -a, --all              (du) list files, too\n"
"  -s, --summarize        (du) print only the sum\n"
"  -h, --human-readable   (du) print sizes with units, like 2.5M\n"
"      --digest           (seal) keep a digest of the contents, and print it\n"
"      --tar              (get, put) write or read an archive\n"
"  -p, --parents          (mkdir) make missing parents\n"
"      --force            (put, mkdir, rm, mv, ln, chmod, chown, attr, seal,\n"
"                         unseal, label, relocate)\n"
"                         fence other systems; (systems fence) fence even one\n"
"                         that this host cannot stop, or whose heartbeat moves;\n"
"                         (zone create, extend)\n"
"                         overwrite content; (volume delete, rename) also a\n"
"                         damaged volume, if nobody uses it; (volume rename)\n"
"                         also from, or to, a name of the CSI driver\n"
"      --export           (info) print UUID, label, type as KEY=value, for udev\n"
"      --open             (systems) list the files that they have open\n"
"      --keep-names       (image) keep names and attributes\n"
"      --watch SECONDS    (systems, top) print a table every SECONDS\n"
"      --lease SECONDS    (tune) silence after which a system without a guard is\n"
"                         fenced\n"
"      --stall MS         (snapshot, clone, volume snapshot, volume clone) for\n"
"                         how long the copy may pause all systems\n"
"      --base ADDRESS     (relocate) its present address; detected for devices\n"
"      --dry-run          (relocate) only test it, in a private copy\n"
"      --pid PID          (guard) watch a running VM, instead of COMMAND\n"
"      --machine UUID     (guard) the VM's UUID, if its command line has none;\n"
"                         (qemu-args, libvirt-xml) the host guards this VM\n"
"      --pause-limit N    (guard) kill the VM if it is silent for N seconds\n"
"      --peers N          (bells) for at most N VMs: 2 to 64; default 16\n"
"      --size SIZE        (grow, clone, volume create, resize, clone) new size\n"
"      --align SIZE       (volume create, clone) its address is a multiple of\n"
"                         SIZE, 2M to 1G\n"
"      --reserve SIZE     (volume create, clone) memory behind it that is\n"
"                         reserved for its growth\n"
"      --label LABEL      (clone, volume clone) its label; by default none, or\n"
"                         its name; (tune) the new label\n"
"      --uuid UUID        (tune) the new UUID, or the word random\n"
"      --memory SIZE      (qemu-args, libvirt-xml) the VM's own memory\n"
"      --phys-bits N      (...) physical address bits of its processor, if\n"
"                         other than on this machine\n"
"      --read-only        (...) the VM can only read\n"
"  -h, --help\n"
"  -V, --version\n"
"\n"
"SIZE takes K, M, G, T. PATH is /a/b, or <N> for inode number N. Commands that\n"
"only read work on a private copy, even of a volume in use. The volume may change\n"
"while they read it.\n"
"See stargatectl(8).\n";

/*
 * @name: one word or two. @options: letters of its options. @arguments: its arguments, for the
 * usage message. @before: checks before the volume is opened; returns an exit status. @min, @max:
 * number of arguments after the volume; -1: it does not need the volume either. CHANGE: with
 * arguments, the command joins the volume. ALONE: the command opens the volume itself.
 */
enum use { LOOK, CHANGE, ALONE };

static const struct command {
	const char *name, *options, *arguments;
	int (*run)(struct call *c);
	int (*before)(struct call *c);
	int min, max;
	enum use use;
} commands[] = {
	{ "info", "jX", "VOLUME", cmd_info, before_info, 0, 0, ALONE },
	{ "df", "j", "VOLUME", cmd_df, NULL, 0, 0, LOOK },
	{ "slots", "j", "VOLUME", cmd_slots, NULL, 0, 0, LOOK },
	{ "look", "j", "VOLUME...", cmd_look, NULL, 0, INT_MAX, ALONE },
	{ "systems", "jwFY", SYSTEMS_TAKES, cmd_systems, before_systems, 0, 2, ALONE },
	{ "top", "jw", "VOLUME", cmd_top, NULL, 0, 0, ALONE },
	{ "ls", "jlr", "VOLUME [PATH]", cmd_ls, NULL, 0, 1, LOOK },
	{ "stat", "j", "VOLUME PATH", cmd_stat, NULL, 1, 1, LOOK },
	{ "cat", "", "VOLUME PATH...", cmd_cat, NULL, 1, INT_MAX, LOOK },
	{ "get", "rt", "VOLUME PATH [TO]", cmd_get, NULL, 1, 2, LOOK },
	{ "put", "rtF", "VOLUME FROM [PATH]", cmd_put, before_put, 1, 2, CHANGE },
	{ "mkdir", "pF", "VOLUME PATH...", cmd_mkdir, NULL, 1, INT_MAX, CHANGE },
	{ "rm", "rF", "VOLUME PATH...", cmd_rm, NULL, 1, INT_MAX, CHANGE },
	{ "mv", "ndF", "VOLUME FROM... TO", cmd_mv, before_mv, 2, INT_MAX, CHANGE },
	{ "ln", "ydF", "VOLUME FROM... TO", cmd_ln, before_mv, 2, INT_MAX, CHANGE },
	{ "chmod", "rF", "VOLUME MODE PATH...", cmd_chmod, before_chmod, 2, INT_MAX, CHANGE },
	{ "chown", "rF", "VOLUME OWNER[:GROUP] PATH...", cmd_chown, before_chown, 2, INT_MAX,
	  CHANGE },
	{ "attr", "jF", "VOLUME [data=atomic|data=inplace] PATH...", cmd_attr, before_attr, 1,
	  INT_MAX, ALONE },
	{ "seal", "jDF", "VOLUME PATH...", cmd_seal, NULL, 1, INT_MAX, ALONE },
	{ "unseal", "F", "VOLUME PATH...", cmd_unseal, NULL, 1, INT_MAX, ALONE },
	{ "verify", "j", "VOLUME PATH...", cmd_verify, NULL, 1, INT_MAX, ALONE },
	{ "find", "j", "VOLUME [PATH] [TEST]...", cmd_find, before_find, 0, 1, LOOK },
	{ "du", "jazu", "VOLUME [PATH]", cmd_du, before_du, 0, 1, LOOK },
	{ "label", "jF", "VOLUME [LABEL]", cmd_label, before_label, 0, 1, CHANGE },
	{ "tune", "jLTI", "VOLUME", cmd_tune, NULL, 0, 0, ALONE },
	{ "bad", "j", BAD_TAKES, cmd_bad, before_bad, 0, 3, ALONE },
	{ "grow", "jZ", "VOLUME", cmd_grow, NULL, 0, 0, ALONE },
	{ "snapshot", "js", "VOLUME FILE", cmd_snapshot, NULL, 1, 1, ALONE },
	{ "clone", "jsZBT", "VOLUME FILE", cmd_clone, before_clone, 1, 1, ALONE },
	{ "image", "jk", "VOLUME FILE", cmd_image, NULL, 1, 1, ALONE },
	{ "relocate", "jBNF", "VOLUME", cmd_relocate, NULL, 0, 0, ALONE },
	{ "guard", "PMS", GUARD_TAKES, cmd_guard, before_guard, 0, INT_MAX, ALONE },
	{ "bells", "Q", "SOCKET [VOLUME]", cmd_bells, NULL, 0, 1, ALONE },
	{ "dump", "j", "VOLUME STRUCTURE [ARGUMENT]...", cmd_dump, before_dump, 1, INT_MAX, LOOK },
	{ "zone create", "jF", "ZONE DEVICE...", cmd_zone_create, before_zone, 1, INT_MAX, ALONE },
	{ "zone show", "j", "[ZONE]", cmd_zone_show, before_zone, -1, 0, ALONE },
	{ "zone extend", "jF", "ZONE [DEVICE...]", cmd_zone_extend, before_zone, 0, INT_MAX, ALONE },
	{ "zone destroy", "j", "ZONE", cmd_zone_destroy, before_zone, 0, 0, ALONE },
	{ "volume create", "jZAE", CREATE_TAKES, cmd_volume_create, before_create, 0, INT_MAX,
	  ALONE },
	{ "volume list", "j", "[ZONE]", cmd_volume_list, before_zone, -1, 0, ALONE },
	{ "volume show", "j", "VOLUME", cmd_volume_show, before_volume, 0, 0, ALONE },
	{ "volume resize", "jZ", RESIZE_TAKES, cmd_volume_resize, before_resize, 0, 0, ALONE },
	{ "volume rename", "jF", "VOLUME NAME", cmd_volume_rename, before_volume_rename, 1, 1, ALONE },
	{ "volume delete", "jF", "VOLUME", cmd_volume_delete, before_volume, 0, 0, ALONE },
	{ "volume snapshot", "js", "VOLUME NAME|FILE", cmd_volume_snapshot,
	  before_volume_snapshot, 1, 1, ALONE },
	{ "volume clone", "jsZAET", "VOLUME|FILE NAME", cmd_volume_clone, before_volume_clone,
	  1, 1, ALONE },
	{ "volume check", "", CHECK_TAKES, cmd_volume_check, before_check, 0, INT_MAX, ALONE },
	{ "volume relocate", "j", "VOLUME", cmd_volume_relocate, before_volume, 0, 0, ALONE },
	{ "volume activate", "j", "VOLUME", cmd_volume_activate, before_volume, 0, 0, ALONE },
	{ "volume qemu-args", "jmbRM", "VOLUME --memory=SIZE", cmd_volume_qemu_args, before_vm_args,
	  0, 0, ALONE },
	{ "volume libvirt-xml", "mbRM", "VOLUME --memory=SIZE", cmd_volume_libvirt_xml,
	  before_vm_args, 0, 0, ALONE },
};

static const struct option options[] = {
	{ "json", no_argument, NULL, 'j' }, { "force", no_argument, NULL, 'F' },
	{ "long", no_argument, NULL, 'l' }, { "recursive", no_argument, NULL, 'r' },
	{ "parents", no_argument, NULL, 'p' }, { "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' }, { "watch", required_argument, NULL, 'w' },
	{ "lease", required_argument, NULL, 'L' }, { "pid", required_argument, NULL, 'P' },
	{ "machine", required_argument, NULL, 'M' },
	{ "base", required_argument, NULL, 'B' }, { "dry-run", no_argument, NULL, 'N' },
	{ "pause-limit", required_argument, NULL, 'S' }, { "peers", required_argument, NULL, 'Q' },
	{ "size", required_argument, NULL, 'Z' }, { "align", required_argument, NULL, 'A' },
	{ "reserve", required_argument, NULL, 'E' },
	{ "memory", required_argument, NULL, 'm' }, { "phys-bits", required_argument, NULL, 'b' },
	{ "read-only", no_argument, NULL, 'R' }, { "stall", required_argument, NULL, 's' },
	{ "label", required_argument, NULL, 'T' }, { "uuid", required_argument, NULL, 'I' },
	{ "tar", no_argument, NULL, 't' }, { "open", no_argument, NULL, 'Y' },
	{ "no-clobber", no_argument, NULL, 'n' },
	{ "no-target-directory", no_argument, NULL, 'd' }, { "symbolic", no_argument, NULL, 'y' },
	{ "keep-names", no_argument, NULL, 'k' }, { "digest", no_argument, NULL, 'D' },
	{ "all", no_argument, NULL, 'a' }, { "summarize", no_argument, NULL, 'z' },
	{ "human-readable", no_argument, NULL, 'u' }, { "export", no_argument, NULL, 'X' },
	{ 0 }
};

static const char *long_name(int opt)
{
	const struct option *o = options;

	while (o->val != opt)
		o++;
	return o->name;
}

/* Finds a command by its first word or first two words. *@words: number of these words. */
static const struct command *find_command(char **argv, int argc, int *words)
{
	size_t first = strlen(argv[0]);
	const struct command *cmd;
	unsigned int i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		cmd = &commands[i];
		*words = strchr(cmd->name, ' ') ? 2 : 1;
		if (*words == 1 ? !strcmp(cmd->name, argv[0]) :
		    argc > 1 && !strncmp(cmd->name, argv[0], first) &&
		    cmd->name[first] == ' ' && !strcmp(cmd->name + first + 1, argv[1]))
			return cmd;
	}
	return NULL;
}

/* Rejects a command that does not exist, or of which only the first of two words is given. */
static void no_command(char **argv, int argc)
{
	bool two = !strcmp(argv[0], "zone") || !strcmp(argv[0], "volume");

	if (two && argc > 1)
		tool_usage_error("there is no command '%s %s'", argv[0], argv[1]);
	else if (two)
		tool_usage_error("%s: the command is missing", argv[0]);
	else
		tool_usage_error("there is no command '%s'", argv[0]);
}

/* Describes the allowed values of an option, for a message. */
static const char *allowed(int opt)
{
	switch (opt) {
	case 'L': return LEASE_RULE;
	case 'P': return "the number of a process";
	case 's': return "1 to 10000 (milliseconds)";
	case 'Z': return "1 to 64T (bytes, or with K, M, G or T)";
	case 'B': return BASE_RULE;
	case 'M': return "32 hexadecimal digits, not all the same";
	case 'A': return "2M to 1G, a power of two";
	case 'E': return "2M to 64T, a multiple of 2M";
	case 'm': return "1M to 64T, a multiple of 1M";
	case 'b': return "32 to 52 (bits)";
	case 'Q': return "2 to 64 (systems)";
	case 'T': return LABEL_RULE;
	case 'I': return "the word random, or 32 hexadecimal digits, not all of them 0";
	}
	return "1 to 86400 (seconds)";
}

/* Firmware reports all zeroes or all ones for a machine without an ID. */
static bool parse_machine(const char *text, u8 id[16])
{
	return parse_uuid(text, id) && memcmp(id, id + 1, 15);
}

static bool take_uuid(struct call *c, const char *text)
{
	static const u8 none[16];

	c->uuid = true;
	if (strcmp(text, "random"))
		return parse_uuid(text, c->uuid_id) && memcmp(c->uuid_id, none, sizeof(none));
	sg_make_uuid(c->uuid_id);
	return true;
}

static bool take_range(const char *arg, u64 least, u64 unit, u64 *out)
{
	return parse_size(arg, out) && *out >= least && *out <= SG_VOLUME_MAX && !(*out % unit);
}

static bool take_argument(struct call *c, int opt, const char *arg)
{
	switch (opt) {
	case 'L':
		c->lease = true;
		return parse_lease(arg, &c->lease_ms);
	case 'P':
		return parse_number(arg, 10, INT_MAX, &c->pid) && c->pid;
	case 's':
		return parse_number(arg, 10, SG_FREEZE_MAX_MS, &c->stall) && c->stall;
	case 'B':
		c->base_given = true;
		return parse_base(arg, &c->base);
	case 'M':
		c->machine = true;
		return parse_machine(arg, c->machine_id);
	case 'S':
		return parse_number(arg, 10, 86400, &c->pause_limit) && c->pause_limit;
	case 'Z':
		return parse_size(arg, &c->size) && c->size && c->size <= SG_VOLUME_MAX;
	case 'A':
		return take_range(arg, SG_VOLUME_ALIGN, SG_VOLUME_ALIGN, &c->align) &&
		       c->align <= 1ULL << 30 && !(c->align & (c->align - 1));
	case 'E':
		return take_range(arg, SG_VOLUME_ALIGN, SG_VOLUME_ALIGN, &c->reserve);
	case 'm':
		return take_range(arg, 1 << 20, 1 << 20, &c->memory);
	case 'T':
		c->label = arg;
		return label_valid(arg);
	case 'I':
		return take_uuid(c, arg);
	case 'b':
		return parse_number(arg, 10, 52, &c->phys_bits) && c->phys_bits >= 32;
	case 'Q':
		return parse_number(arg, 10, SG_BELLS_PEERS_MAX, &c->peers) && c->peers >= 2;
	}
	return parse_number(arg, 10, 86400, &c->watch) && c->watch;
}

static void take_flag(struct call *c, int opt)
{
	switch (opt) {
	case 'j':
		c->json = true;
		break;
	case 'l':
		c->longer = true;
		break;
	case 'r':
		c->recursive = true;
		break;
	case 'p':
		c->parents = true;
		break;
	case 'F':
		c->force = true;
		break;
	case 't':
		c->tar = true;
		break;
	case 'Y':
		c->open = true;
		break;
	case 'X':
		c->export = true;
		break;
	case 'N':
		c->dry = true;
		break;
	case 'R':
		c->read_only = true;
		break;
	case 'k':
		c->plain = true;
		break;
	case 'n':
		c->keep = true;
		break;
	case 'd':
		c->exact = true;
		break;
	case 'y':
		c->symbolic = true;
		break;
	case 'a':
		c->all = true;
		break;
	case 'z':
		c->total = true;
		break;
	case 'u':
		c->human = true;
		break;
	case 'D':
		c->digest = true;
		break;
	}
}

/* Reports whether the next argument is the option's value. The option may be abbreviated. */
static bool takes_next(const char *arg)
{
	const struct option *o;
	size_t len = strlen(arg);

	if (len < 3 || strncmp(arg, "--", 2))
		return false;
	for (o = options; o->name; o++)
		if (!strncmp(o->name, arg + 2, len - 2))
			return o->has_arg == required_argument;
	return false;
}

/*
 * Returns the position of the command, or @argc. It must be found first, because some commands have
 * different options with the same letter.
 */
static int find_word(int argc, char **argv)
{
	int i = 1;

	while (i < argc && argv[i][0] == '-' && argv[i][1])
		i += takes_next(argv[i]) ? 2 : 1;
	return SG_MIN(i, argc);
}

/* Returns the long option for a letter, or the letter itself. */
static int meaning_of(int letter, const char *command)
{
	switch (letter) {
	case 'R':
		return 'r';
	case 'T':
		return 'd';
	case 's':
		return strcmp(command, "du") ? 'y' : 'z';
	case 'h':
		return strcmp(command, "du") ? 'h' : 'u';
	}
	return letter;
}

/*
 * For find, all arguments from the first test on are tests. Returns the number of arguments before
 * them. @at: the position of the command.
 */
static int split_tests(struct call *c, int argc, char **argv, int at)
{
	int i;

	if (at == argc || strcmp(argv[at], "find"))
		return argc;
	for (i = at + 1; i < argc; i++) {
		if (takes_next(argv[i])) {
			i++;
			continue;
		}
		if (argv[i][0] != '-' || argv[i][1] == '-' || !argv[i][1] || !argv[i][2])
			continue;
		c->tests = argv + i;
		c->ntests = argc - i;
		return i;
	}
	return argc;
}

static int run(struct call *c, const struct command *cmd)
{
	bool change = cmd->use == CHANGE && c->argc;
	int err;

	err = cmd->before ? cmd->before(c) : 0;
	if (err)
		return err;
	if (cmd->use == ALONE)
		return tool_end(cmd->run(c));
	if (change)	/* a closed pipe must not interrupt a change */
		signal(SIGPIPE, SIG_IGN);
	if (member_open(&c->m, c->volume, change, c->force))
		return 1;
	err = cmd->run(c);
	free(c->met);
	err = tool_end(err ? 1 : 0);
	return member_close(&c->m) ? 1 : err;
}

/* Returns the command, with its volume and arguments, or NULL after a message. */
static const struct command *read_words(struct call *c, int argc, char **argv, const char *given)
{
	const struct command *cmd;
	int words;

	if (optind == argc) {
		tool_usage_error("which command?");
		return NULL;
	}
	cmd = find_command(argv + optind, argc - optind, &words);
	if (!cmd) {
		no_command(argv + optind, argc - optind);
		return NULL;
	}
	c->volume = argv[optind + words];
	c->argc = argc - optind - words - 1;
	c->argv = argv + optind + words + 1;
	given += strspn(given, cmd->options);
	if (*given)
		tool_usage_error("%s: takes no --%s", cmd->name, long_name(*given));
	else if (c->argc < cmd->min || c->argc > cmd->max)
		tool_usage_error("%s: takes %s", cmd->name, cmd->arguments);
	else
		return cmd;
	return NULL;
}

/* getopt_long() moves arguments to the end and removes the "--". */
static int behind_dashes(int argc, char **argv)
{
	int i = 1;

	while (i < argc && strcmp(argv[i], "--"))
		i++;
	return i < argc ? argc - i - 1 : 0;
}

int main(int argc, char **argv)
{
	static struct call c;
	int word = find_word(argc, argv), opt, at = -1;
	const char *first = word < argc ? argv[word] : "";
	const struct command *cmd;
	char given[40] = "";

	tool_begin("stargatectl", argv);
	argc = split_tests(&c, argc, argv, word);
	c.tail = behind_dashes(argc, argv);
	opterr = 0;
	for (; (opt = getopt_long(argc, argv, ":jlrpfhVRTsna", options, &at)) != -1; at = -1) {
		if (at < 0)
			opt = meaning_of(opt, first);
		if (opt == 'h')
			return tool_help(usage);
		if (opt == 'V')
			return tool_version();
		if (opt == 'f')	/* users often type rm -f, which here has another meaning */
			return tool_usage_error("-f: give --force to fence other systems");
		if (opt == '?' || opt == ':')
			return tool_option_error(opt, argv);
		if (!strchr(given, opt))
			given[strlen(given)] = (char)opt;
		if (!optarg)
			take_flag(&c, opt);
		else if (!take_argument(&c, opt, optarg))
			return tool_value_error(long_name(opt), optarg, strchr("ABZm", opt),
						allowed(opt));
	}
	cmd = read_words(&c, argc, argv, given);
	return cmd ? run(&c, cmd) : 2;
}
