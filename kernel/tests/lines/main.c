// SPDX-License-Identifier: Apache-2.0
/*
 * lines [-v] [BASELINE]: counts the cache lines that systems and threads take from each other in
 * each operation, and compares the counts with committed figures (kernel/tests/lines/baseline).
 * UPDATE=1 writes new figures instead: commit them together with the change that altered the cost,
 * and give the reason. -v: also prints the objects whose lines move. docs/performance explains the
 * columns.
 */
#include <stdlib.h>
#include "lines.h"

#define TRANSFER_NS	145	/* one line from core to core: measured on two cores of a Xeon */
#define SHOWN		8	/* number of objects that -v prints */
#define SLACK		0.05	/* a count may be higher by this number plus */
#define SLACK_WAITS	0.0005	/* the same for waits, which are rare but long */
#define PERCENT		2	/* this percentage: a compiler may load a word once or twice */

extern u64 (*sg_ticks_hook)(void);
extern void (*sg_sleep_hook)(u64 ns);

/*
 * --- time: only the engine's reads advance the clock, so that counts repeat ---------------------
 */

static u64 now = 1000000000ULL;

static u64 ticks(void)
{
	return now += 100;
}

static void sleep_ns(u64 ns)
{
	now += ns;
}

/* Drops log lines. The engine reports that systems acknowledge epochs seldom here. */
static void say_nothing(void *owner, enum sg_level level, const char *line)
{
	(void)owner;
	(void)level;
	(void)line;
}

/*
 * --- one operation -----------------------------------------------------------------------------
 */

enum { RMWS, MOVED, INVAL, FENCES, BACKS, GRACES, MOST, COLUMNS };
static const char *const column[COLUMNS] = {
	"atomic operations", "transfers", "invalidations", "fences", "lines written back",
	"grace periods", "transfers of one line",
};

/**
 * struct count - the average cost of an operation of a set of systems
 * @most: the object with the line that moved most.
 */
struct count {
	char set[24], op[24], most[LINES_NAME];
	double of[COLUMNS];
};

static void maintain_all(void)
{
	unsigned int c;

	for (c = 0; c < (lines.threads ? 1 : lines.n); c++) {
		lines_play(c);
		CHECK(sg_maintain(lines_vol(c)) >= 0);
	}
}

static void rounds(const struct lines_op *op, unsigned int from, unsigned int to)
{
	unsigned int c, i;

	for (i = from; i < to; i++)
		for (c = 0; c < lines.n; c++) {
			lines_play(c);
			op->once(c, i);
		}
}

static unsigned int rounds_of(const struct lines_op *op)
{
	return op->together ? op->together / lines.n : op->rounds;
}

static void count_op(const struct lines_op *op, struct count *out)
{
	const struct lines_sum *s = lines_sum();
	double n = (double)rounds_of(op) * lines.n;
	const void *line;
	u64 moves;

	maintain_all();
	rounds(op, 0, op->warm);
	maintain_all();
	lines_count(true);
	rounds(op, op->warm, op->warm + rounds_of(op));
	lines_count(false);
	sprintf(out->set, "%u-%s", lines.n, lines.threads ? "threads" :
		lines.n > 1 ? "systems" : "system");
	sprintf(out->op, "%s", op->name);
	out->of[RMWS] = (double)s->rmws / n;
	out->of[MOVED] = (double)s->moved / n;
	out->of[INVAL] = (double)s->inval / n;
	out->of[FENCES] = (double)s->fences / n;
	out->of[BACKS] = (double)s->backs / n;
	out->of[GRACES] = (double)s->graces / n;
	line = lines_most(&moves);
	out->of[MOST] = (double)moves / n;
	lines_names_learn();
	strcpy(out->most, "");
	if (line)
		lines_name(line, out->most);
}

/*
 * --- printing ----------------------------------------------------------------------------------
 */

static void print_head(void)
{
	printf("%-11s %-20s %7s %9s %7s %6s %6s %6s %9s  %s\n", "", "", "atomic", "transfers",
	       "inval.", "fences", "lines", "waits", "most on", "at most, all together: millions/s");
	printf("%-11s %-20s %7s %9s %7s %6s %6s %6s %9s\n", "", "", "", "", "", "", "back",
	       "/1,000", "one line");
}

/*
 * Prints a count, and the bound of throughput: with any number of cores, a line is in one cache at
 * a time.
 */
static void print_count(const struct count *c)
{
	printf("%-11s %-20s %7.2f %9.2f %7.2f %6.2f %6.1f %6.1f %9.2f", c->set, c->op,
	       c->of[RMWS], c->of[MOVED], c->of[INVAL], c->of[FENCES], c->of[BACKS],
	       1000 * c->of[GRACES], c->of[MOST]);
	if (c->of[MOST] >= 0.01)
		printf("  %8.2f (%s)", 1000 / (c->of[MOST] * TRANSFER_NS), c->most);
	printf("\n");
}

static struct object {
	char name[LINES_NAME];
	u64 moved, rmws;
} object[512];
static unsigned int objects;

static void add_line(const void *line, u64 moved, u64 rmws)
{
	char name[LINES_NAME];
	unsigned int i;

	lines_name(line, name);
	for (i = 0; i < objects && strcmp(object[i].name, name); i++)
		;
	if (i == SG_ARRAY_SIZE(object))
		return;
	if (i == objects)
		strcpy(object[objects++].name, name);
	object[i].moved += moved;
	object[i].rmws += rmws;
}

static int by_moves(const void *a, const void *b)
{
	const struct object *x = a, *y = b;

	if (x->moved != y->moved)
		return x->moved < y->moved ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void print_objects(double n)
{
	unsigned int i;

	objects = 0;
	memset(object, 0, sizeof(object));
	lines_each(add_line);
	qsort(object, objects, sizeof(*object), by_moves);
	for (i = 0; i < objects && i < SHOWN; i++)
		if ((double)object[i].moved / n >= 0.01 || (double)object[i].rmws / n >= 0.1)
			printf("%40s %9.2f transfers, %6.2f atomic: %s\n", "",
			       (double)object[i].moved / n, (double)object[i].rmws / n,
			       object[i].name);
}

/*
 * --- the baseline ------------------------------------------------------------------------------
 */

static struct count was[256];
static unsigned int nwas;

static void baseline_read(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[256];

	if (!f) {
		fprintf(stderr, "lines: cannot read %s: run lines in the project's folder\n", path);
		exit(2);
	}
	while (fgets(line, sizeof(line), f)) {
		struct count *c = &was[nwas];
		double *v = c->of;

		if (line[0] == '#')
			continue;
		CHECK(nwas < SG_ARRAY_SIZE(was));
		if (sscanf(line, "%23s %23s %lf %lf %lf %lf %lf %lf %lf", c->set, c->op, &v[RMWS],
			   &v[MOVED], &v[INVAL], &v[FENCES], &v[BACKS], &v[GRACES], &v[MOST]) != 9) {
			fprintf(stderr, "lines: %s: a line without nine columns: %s", path, line);
			exit(2);
		}
		nwas++;
	}
	fclose(f);
}

static void baseline_write(const char *path, const struct count *now_is, unsigned int n)
{
	FILE *f = fopen(path, "w");
	unsigned int i;

	if (!f) {
		perror(path);
		exit(2);
	}
	fprintf(f, "# SPDX-License-Identifier: Apache-2.0\n#\n"
		"# Counts of one operation, by `make test SUITE=lines` (UPDATE=1 writes them): atomic\n"
		"# operations, transfers, invalidations, fences, lines written back, grace periods,\n"
		"# transfers of the line that moved most.\n");
	for (i = 0; i < n; i++) {
		const double *v = now_is[i].of;

		fprintf(f, "%s %s %.3f %.3f %.3f %.3f %.3f %.4f %.4f\n", now_is[i].set, now_is[i].op,
			v[RMWS], v[MOVED], v[INVAL], v[FENCES], v[BACKS], v[GRACES], v[MOST]);
	}
	if (fclose(f)) {
		perror(path);
		exit(2);
	}
}

static bool is_worse(unsigned int column_of, double is, double before)
{
	return is > before * (1 + PERCENT / 100.0) + (column_of == GRACES ? SLACK_WAITS : SLACK);
}

/* Compares a count with the baseline. Prints the first worse column of an operation. */
static bool compare(const struct count *c)
{
	unsigned int i, k;

	for (i = 0; i < nwas; i++)
		if (!strcmp(was[i].set, c->set) && !strcmp(was[i].op, c->op))
			break;
	if (i == nwas) {
		fprintf(stderr, "lines: failed: %s %s is not in the baseline: UPDATE=1 writes it\n",
			c->set, c->op);
		return false;
	}
	for (k = 0; k < COLUMNS; k++) {
		test_counted();
		if (!is_worse(k, c->of[k], was[i].of[k]))
			continue;
		fprintf(stderr, "lines: failed: %s %s: %.2f %s, the baseline has %.2f%s%s; "
			"if this is intended, write the baseline with UPDATE=1\n", c->set, c->op,
			c->of[k], column[k], was[i].of[k],
			c->most[0] ? "; the line with most transfers: " : "", c->most);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	static const struct { unsigned int n; bool threads; } sets[] = {
		{ 1, false }, { 8, false }, { 64, false }, { 16, true },
	};
	static struct count counts[256];
	bool loud = argc > 1 && !strcmp(argv[1], "-v"), update = getenv("UPDATE"), good = true;
	const char *path = argc > 1 + loud ? argv[1 + loud] : "kernel/tests/lines/baseline";
	unsigned int i, k, n = 0;

	if (!update)
		baseline_read(path);
	sg_ticks_hook = ticks;
	sg_sleep_hook = sleep_ns;
	sg_log_hook = say_nothing;
	print_head();
	for (i = 0; i < SG_ARRAY_SIZE(sets); i++) {
		lines_init();
		lines_make(sets[i].n, sets[i].threads);
		for (k = 0; k < lines_nops; k++, n++) {
			CHECK(n < SG_ARRAY_SIZE(counts));
			count_op(&lines_ops[k], &counts[n]);
			print_count(&counts[n]);
			if (loud)
				print_objects((double)rounds_of(&lines_ops[k]) * lines.n);
			if (!update && !compare(&counts[n]))
				good = false;
		}
		lines_drop();
	}
	if (update)
		baseline_write(path, counts, n);
	return good ? test_done() : 1;
}
