/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the share of each function in the executed instructions. QEMU's icount clock advances by
 * instructions, so the function that runs at a tick is one sample. If interrupts are disabled at
 * the tick, the sample shows the function that enables them.
 */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SAMPLES_PAGES	256	/* a power of two */
#define SAMPLES_LEAST	10007	/* ns; the kernel's minimum is 10 000 */

struct symbol {
	uint64_t at;
	unsigned int seen;
	char name[56], of[24];
};

static struct {
	int fd;
	struct perf_event_mmap_page *ring;
	struct symbol *symbol;
	size_t symbols;
	unsigned int all, program;
} samples = { .fd = -1 };

static int samples_by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int samples_by_number(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->seen > y->seen ? -1 : x->seen < y->seen;
}

static void samples_setting(const char *path, const char *value)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(value, f) < 0 || fclose(f)) {
		perror(path);
		exit(1);
	}
}

/* Reads the symbols of the kernel and its modules. */
static void samples_load(void)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[512], type, of[24];
	size_t room = 0;

	while (f && fgets(line, sizeof(line), f)) {
		struct symbol s = { 0 };

		of[0] = '\0';
		if (sscanf(line, "%lx %c %55s [%23[^]]", &s.at, &type, s.name, of) < 3 ||
		    !strchr("tTwW", type))
			continue;
		snprintf(s.of, sizeof(s.of), "%s", of[0] ? of : "kernel");
		/* The compiler may split a function into NAME and NAME.PART. Both count as NAME. */
		s.name[strcspn(s.name, ".")] = '\0';
		if (samples.symbols == room) {
			room = room ? 2 * room : 65536;
			samples.symbol = realloc(samples.symbol, room * sizeof(s));
		}
		samples.symbol[samples.symbols++] = s;
	}
	if (!f || !samples.symbols || !samples.symbol[samples.symbols / 2].at) {
		fprintf(stderr, "samples: /proc/kallsyms shows no addresses\n");
		exit(1);
	}
	fclose(f);
	qsort(samples.symbol, samples.symbols, sizeof(samples.symbol[0]), samples_by_address);
}

/* Each turn has another period, so that ticks do not always hit a loop at the same instruction. */
static void samples_open(unsigned int turn)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = SAMPLES_LEAST + 202 * (turn % 32), .sample_type = PERF_SAMPLE_IP,
		.disabled = 1,
	};

	if (!samples.symbol) {
		samples_load();
		samples_setting("/proc/sys/kernel/perf_cpu_time_max_percent", "0");
	}
	samples.fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	if (samples.fd < 0) {
		perror("perf_event_open");
		exit(1);
	}
	samples.ring = mmap(NULL, (1 + SAMPLES_PAGES) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED,
			    samples.fd, 0);
	if (samples.ring == MAP_FAILED) {
		perror("the ring of samples");
		exit(1);
	}
}

static void samples_on(void)
{
	ioctl(samples.fd, PERF_EVENT_IOC_ENABLE, 0);
}

static void samples_count(uint64_t ip)
{
	size_t from = 0, to = samples.symbols;

	samples.all++;
	if (ip < samples.symbol[0].at) {
		samples.program++;
		return;
	}
	while (to - from > 1) {
		size_t middle = (from + to) / 2;

		if (samples.symbol[middle].at <= ip)
			from = middle;
		else
			to = middle;
	}
	samples.symbol[from].seen++;
}

static void samples_close(void)
{
	const char *data = (const char *)samples.ring + 4096;
	uint64_t at = 0, end;

	ioctl(samples.fd, PERF_EVENT_IOC_DISABLE, 0);
	end = __atomic_load_n(&samples.ring->data_head, __ATOMIC_ACQUIRE);
	while (at + 16 <= end) {	/* 8 aligned bytes do not cross the ring's end */
		struct perf_event_header h;
		uint64_t ip;

		memcpy(&h, data + at % (SAMPLES_PAGES * 4096), sizeof(h));
		memcpy(&ip, data + (at + sizeof(h)) % (SAMPLES_PAGES * 4096), sizeof(ip));
		if (h.type == PERF_RECORD_SAMPLE)
			samples_count(ip);
		if (h.type == PERF_RECORD_LOST || !h.size) {
			fprintf(stderr, "samples: the ring was too small\n");
			exit(1);
		}
		at += h.size;
	}
	munmap(samples.ring, (1 + SAMPLES_PAGES) * 4096);
	close(samples.fd);
}

/* Prints "where NAME SAMPLES MODULE FUNCTION" for each function, in order of falling SAMPLES. */
static void samples_print(const char *name)
{
	struct symbol *s = samples.symbol;

	printf("where %s %u all -\nwhere %s %u program -\n", name, samples.all, name, samples.program);
	for (size_t i = 1; i < samples.symbols; i++)
		if (!strcmp(s[i].name, s[i - 1].name) && !strcmp(s[i].of, s[i - 1].of)) {
			s[i].seen += s[i - 1].seen;
			s[i - 1].seen = 0;
		}
	qsort(s, samples.symbols, sizeof(s[0]), samples_by_number);
	for (size_t i = 0; i < samples.symbols && s[i].seen; i++)
		printf("where %s %u %s %s\n", name, s[i].seen, s[i].of, s[i].name);
	for (size_t i = 0; i < samples.symbols; i++)
		s[i].seen = 0;
	samples.all = samples.program = 0;
	qsort(s, samples.symbols, sizeof(s[0]), samples_by_address);
}

#endif
