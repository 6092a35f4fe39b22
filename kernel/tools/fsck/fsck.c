// SPDX-License-Identifier: Apache-2.0
/* fsck.stargatefs: checks a StargateFS, and repairs it. */
#define _GNU_SOURCE
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "paths.h"
#include "tool.h"

/* Bits of the exit status, as in e2fsck; several may be set. */
enum {
	EXIT_CLEAN = 0,
	EXIT_FIXED = 1,
	EXIT_UNFIXED = 4,
	EXIT_TROUBLE = 8,
	EXIT_USAGE = 16,
	EXIT_CANCELED = 32,
};

#define FEW_PAGES 16 /* with fewer free pages, fsck cannot add names or rebuild directories */
#define SHOWN_MAX 1000 /* prints this many findings; counts the others */

struct job {
	const char *path;
	enum sg_check_mode mode;
	bool mode_given, force_live, force_foreign, json, progress, quiet;
	u64 shown;
	const char *phase;
	struct target *target;
	struct paths *paths;
	struct beater beater;
	struct json j;
};

static const char usage[] =
"Usage: fsck.stargatefs [OPTION]... DEVICE|FILE\n"
"Check a StargateFS that nobody uses, and repair it.\n"
"\n"
"  -n                change nothing, answer no (the default)\n"
"  -p, -a            recover, and make the repairs that cannot lose data\n"
"  -y                repair everything\n"
"  -f                ignored: every run checks (for users of e2fsck)\n"
"      --force-live  (with -p or -y) fence all systems that use it, even live\n"
"                    ones, which lose all later writes\n"
"      --force-foreign  (with -p or -y) repair it from its backup superblock,\n"
"                    even if another file system has overwritten it\n"
"  -C, --progress    show the progress\n"
"  -q, --quiet       print no summary of a volume without findings\n"
"      --json        print findings and summary as JSON\n"
"  -h, --help\n"
"  -V, --version\n"
"\n"
"Exit status: 0 clean, 1 all repaired, 4 damage left, 8 could not check,\n"
"16 usage, 32 interrupted. See fsck.stargatefs(8).\n";

/* --- findings and progress ----------------------------------------------------------------- */

static void end_progress(struct job *job)
{
	if (job->phase)
		fprintf(stderr, "\r\033[K");
	job->phase = NULL;
}

static void show_progress(void *ctx, const char *phase, u64 done, u64 total)
{
	struct job *job = ctx;

	if (!job->progress)
		return;
	job->phase = phase;
	fprintf(stderr, "\r\033[K%s %llu%%", phase,
		(unsigned long long)(total ? done * 100 / total : 0));
}

static void report_json(struct job *job, const char *what, u64 ino, const char *path, u64 off,
			bool fixed)
{
	json_row(&job->j, NULL);
	json_str(&job->j, "what", what);
	if (ino)
		json_u64(&job->j, "inode", ino);
	if (path)
		json_str(&job->j, "path", path);
	json_hex(&job->j, "offset", off);
	json_bool(&job->j, "repaired", fixed);
	json_close(&job->j, '}');
}

static void report_text(const char *what, u64 ino, const char *path, u64 off, bool fixed)
{
	if (ino)
		printf("inode %llu", (unsigned long long)ino);
	if (path) {
		fputs(" (", stdout);
		print_text(path);
		putchar(')');
	}
	printf("%s%s (at 0x%llx)%s\n", ino ? ": " : "", what, (unsigned long long)off,
	       fixed ? ": repaired" : "");
}

static void report(void *ctx, const char *what, u64 ino, u64 off, bool fixed)
{
	struct job *job = ctx;
	char *path;

	end_progress(job);
	if (job->shown++ >= SHOWN_MAX)
		return;
	path = ino ? paths_find(job->paths, ino) : NULL;
	if (job->json)
		report_json(job, what, ino, path, off, fixed);
	else
		report_text(what, ino, path, off, fixed);
	free(path);
}

/* Does not need memory for a private copy of a volume without findings. */
static int change(void *ctx, char why[200])
{
	return target_change(((struct job *)ctx)->target, why);
}

/*
 * Keeps the heartbeat, because a repair, or storing it, may take longer than other systems wait for
 * a heartbeat.
 */
static int holding(void *ctx, struct sg_vol *vol)
{
	struct job *job = ctx;
	int err;

	if (!vol) {
		device_drain(job->target);	/* the last call, which also reports errors */
		beater_stop(&job->beater);
		return 0;
	}
	err = device_hold(job->target, vol, vol->why);
	if (!err)
		beater_start(&job->beater, vol, job->target);
	return err;
}

static int flush(void *ctx)
{
	return target_drain(((struct job *)ctx)->target);
}

static int relieve(void *ctx, u64 bytes)
{
	return device_relieve(((struct job *)ctx)->target, bytes);
}

/* --- summary ------------------------------------------------------------------------------- */

static int status(const struct job *job, const struct sg_check_result *res)
{
	if (res->found > res->fixed)
		return EXIT_UNFIXED | (res->fixed ? EXIT_FIXED : 0);
	return res->fixed || (res->unclean && job->mode != SG_CHECK_ONLY) ? EXIT_FIXED : EXIT_CLEAN;
}

static void summary_json(struct job *job, const struct sg_check_result *res, int code)
{
	struct json *j = &job->j;

	json_close(j, ']');
	json_bool(j, "truncated", job->shown > SHOWN_MAX);
	json_u64(j, "files", res->files);
	json_u64(j, "directories", res->directories);
	json_u64(j, "others", res->others);
	json_u64(j, "pages", res->pages);
	json_u64(j, "pages_used", res->pages_used);
	json_u64(j, "found", res->found);
	json_u64(j, "repaired", res->fixed);
	json_u64(j, "beyond_repair", res->beyond);
	json_u64(j, "lost", res->lost);
	json_u64(j, "lost_files", res->lost_files);
	json_u64(j, "lost_directories", res->lost_dirs);
	json_u64(j, "in_lost_found", res->adopted);
	json_bool(j, "unclean", res->unclean);
	json_bool(j, "replayed", res->replayed);
	json_u64(j, "status", (u64)code);
	json_end(j);
}

static const char *verdict(const struct job *job, const struct sg_check_result *res)
{
	static const char *const damaged[] = {
		[SG_CHECK_ONLY] = "damaged; repair it with -y",
		[SG_CHECK_PREEN] = "some damage needs a decision, and is not repaired; use -y",
		[SG_CHECK_REPAIR] = "damage is left that could not be repaired",
	};

	if (res->beyond)	/* does not advise a repair that cannot succeed */
		return "damaged beyond repair; restore it from a backup (all its pages are kept)";
	if (res->no_space)
		return "damage is left because no pages are free; remove files, then repair again";
	if (res->found && job->mode == SG_CHECK_ONLY && res->pages - res->pages_used < FEW_PAGES)
		return "damaged, and full; remove files if you can, then repair it with -y";
	if (res->found > res->fixed)
		return damaged[job->mode];
	if (res->fixed)
		return "repaired";
	if (!res->unclean)
		return "clean";
	return job->mode == SG_CHECK_ONLY ? "clean after recovery (the next mount recovers)" :
	       "clean, recovered";
}

/* Always prints a message if the repair has reduced the number of files. */
static void show_losses(const struct sg_check_result *res)
{
	u64 rest = res->lost - res->lost_files - res->lost_dirs;

	if (res->lost)
		printf("%llu inodes %s: %llu files, %llu directories, %llu of other or unknown kind\n",
		       (unsigned long long)res->lost, res->beyond ? "cannot be reached" : "are lost",
		       (unsigned long long)res->lost_files, (unsigned long long)res->lost_dirs,
		       (unsigned long long)rest);
	if (res->adopted)
		printf("%llu inodes had no name left and are in /lost+found\n",
		       (unsigned long long)res->adopted);
}

/* @code: the check's exit status. */
static void summary(struct job *job, const struct sg_check_result *res, int code)
{
	u64 all = res->files + res->directories + res->others;

	end_progress(job);
	if (job->json) {
		summary_json(job, res, code);
		return;
	}
	if (job->shown > SHOWN_MAX)
		printf("... and %llu more findings\n", (unsigned long long)job->shown - SHOWN_MAX);
	if (job->quiet && !res->found && !res->unclean)
		return;
	show_losses(res);
	print_text(job->path);
	printf(": %s; %llu inodes, %llu/%llu pages in use", verdict(job, res),
	       (unsigned long long)all, (unsigned long long)res->pages_used,
	       (unsigned long long)res->pages);
	if (res->found)
		printf("; %llu found, %llu repaired", (unsigned long long)res->found,
		       (unsigned long long)res->fixed);
	printf("\n");
}

/* --- the check ----------------------------------------------------------------------------- */

/*
 * Returns the size of the volume to check: that of @t, or of a smaller volume in it whose first
 * superblock is lost.
 */
static u64 search(const struct job *job, const struct target *t, struct sg_probe *probe)
{
	u64 size = sg_search(t->base, t->size, probe);

	if (size != t->size)
		tool_warn("%s: its first superblock is missing; using the backup superblock of a volume of %llu MiB",
			  job->path, (unsigned long long)size >> 20);
	return size;
}

/*
 * A check needs one intact superblock. Without one, reports the content of the device, and the
 * action to take.
 */
static bool hopeless(const struct job *job, const struct target *t, const struct sg_probe *probe)
{
	const char *foreign = foreign_signature(t->base, t->size);

	if (probe->from_backup && foreign && job->mode != SG_CHECK_ONLY &&
	    !job->force_foreign) {
		tool_error("%s: holds %s, and remains of an older StargateFS; give --force-foreign to repair the StargateFS, which destroys the other content",
			   job->path, foreign);
		return true;
	}
	if (probe->valid)
		return false;
	if (probe->whole)
		tool_error("%s: cut short: the volume has %llu MiB, and only %llu are here; give it its full size again",
			   job->path, (unsigned long long)probe->whole >> 20,
			   (unsigned long long)t->size >> 20);
	else if (probe->stargate)
		tool_error("%s: superblock and backup are damaged; restore the volume from a backup",
			   job->path);
	else if (foreign)
		tool_error("%s: holds %s, not a StargateFS; nothing was changed",
			   job->path, foreign);
	else
		tool_error("%s: holds no superblock of a StargateFS; check the name of the device",
			   job->path);
	return true;
}

/* Reports the result of a repair after the repair is stored. */
static int conclude(struct job *job, const struct target *t, const struct sg_check_result *res,
		    int err)
{
	int code = err ? EXIT_TROUBLE : status(job, res), flushed = 0;

	if (job->mode != SG_CHECK_ONLY)
		flushed = target_flush(t);
	if (flushed)
		code |= EXIT_TROUBLE;
	if (!err || job->json)
		summary(job, res, code);
	end_progress(job);
	if (err && !(err == -EBUSY && !res->why[0] && device_has_told(t)))
		tool_error("%s: %s", job->path, res->why[0] ? res->why : strerror(-err));
	if (flushed && flushed != -EBUSY)	/* device_store() has reported the other system */
		tool_error("%s: the repair cannot be stored: %s", job->path, strerror(-flushed));
	return code;
}

static int check(struct job *job, struct target *t)
{
	struct sg_check_result res = { 0 };
	struct sg_identity id;
	struct sg_check_opts opts = {
		.mode = job->mode, .id = &id, .wait_ms = MEMBER_WAIT_MS, .force = job->force_live,
		.change = change, .holding = holding, .flush = flush, .relieve = relieve,
		.report = report, .progress = show_progress, .ctx = job,
	};
	struct sg_probe probe;
	u64 size = search(job, t, &probe);
	int err;

	job->target = t;
	member_identity(&id);
	if (hopeless(job, t, &probe))
		return EXIT_TROUBLE;
	if (job->mode != SG_CHECK_ONLY && job->force_live)
		tool_warn("%s: fences all systems that use it, also live ones: they lose all later writes",
			  job->path);
	if (job->mode != SG_CHECK_ONLY && t->kind == TARGET_BLOCK && probe.valid) {
		err = member_watch(t, &probe.sb, job->force_live ? 0 : MEMBER_WAIT_MS, res.why);
		opts.force = true;	/* heartbeats do not change in the mapping */
		if (err) {
			tool_error("%s: %s", job->path, res.why);
			return EXIT_TROUBLE;
		}
	}
	if (job->json) {
		json_begin(&job->j, stdout, false);
		json_str(&job->j, "path", job->path);
		json_array(&job->j, "findings");
	}
	job->paths = paths_begin(t->base, size);
	err = sg_check(t->base, size, &opts, &res);
	paths_end(job->paths);
	return conclude(job, t, &res, err);
}

/* The exit status is valid only if all findings could be printed. */
static int end(int code)
{
	return tool_output_whole() ? code : code | EXIT_TROUBLE;
}

/* A repair can be interrupted at any point, and the next run continues. */
static void interrupted(int sig)
{
	static const char text[] = "\nfsck.stargatefs: interrupted; run it again\n";

	(void)sig;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(EXIT_CANCELED | EXIT_TROUBLE);
	_exit(EXIT_CANCELED);
}

static int run(struct job *job)
{
	struct target t;
	int code;

	tool_quiet = true;	/* suppresses the engine's messages, which are among the findings */
	signal(SIGINT, interrupted);
	signal(SIGTERM, interrupted);
	if (job->mode != SG_CHECK_ONLY)
		signal(SIGPIPE, SIG_IGN);	/* a closed pipe does not stop a repair */
	if (target_open(&t, job->path, job->mode == SG_CHECK_ONLY ? TARGET_READ : TARGET_CHECK))
		return EXIT_TROUBLE;
	code = check(job, &t);
	if (target_close(&t))
		code |= EXIT_TROUBLE;
	return code;
}

/* --- command line -------------------------------------------------------------------------- */

enum { OPT_JSON = 256, OPT_VERSION, OPT_FORCE_LIVE, OPT_FORCE_FOREIGN };

static const struct option options[] = {
	{ "progress", no_argument, NULL, 'C' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "force-live", no_argument, NULL, OPT_FORCE_LIVE },
	{ "force-foreign", no_argument, NULL, OPT_FORCE_FOREIGN },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ 0 }
};

static bool take_mode(struct job *job, enum sg_check_mode mode)
{
	bool ok = !job->mode_given || job->mode == mode;

	job->mode = mode;
	job->mode_given = true;
	return ok;
}

int main(int argc, char **argv)
{
	struct job job = { .mode = SG_CHECK_ONLY };
	bool ok = true;
	int opt;

	tool_begin("fsck.stargatefs", argv);
	tool_trouble = EXIT_TROUBLE;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":npayfCqhV", options, NULL)) != -1) {
		switch (opt) {
		case 'n':
			ok &= take_mode(&job, SG_CHECK_ONLY);
			break;
		case 'p': case 'a':
			ok &= take_mode(&job, SG_CHECK_PREEN);
			break;
		case 'y':
			ok &= take_mode(&job, SG_CHECK_REPAIR);
			break;
		/*
		 * No effect. With -f, other fsck programs also check a file system that is
		 * marked clean. This one always checks.
		 */
		case 'f':
			break;
		case OPT_FORCE_LIVE:
			job.force_live = true;
			break;
		case OPT_FORCE_FOREIGN:
			job.force_foreign = true;
			break;
		case 'C':
			job.progress = isatty(STDERR_FILENO);
			break;
		case 'q':
			job.quiet = true;
			break;
		case OPT_JSON:
			job.json = true;
			break;
		case 'h':
			return tool_help(usage) ? EXIT_TROUBLE : 0;
		case OPT_VERSION: case 'V':
			return tool_version() ? EXIT_TROUBLE : 0;
		default:
			tool_option_error(opt, argv);
			return EXIT_USAGE;
		}
	}
	if (!ok || optind + 1 != argc) {
		tool_usage_error(!ok ? "give only one of -n, -p and -y" : optind < argc ?
				 "one volume at a time" : "which device or file?");
		return EXIT_USAGE;
	}
	job.path = argv[optind];
	return end(run(&job));
}
