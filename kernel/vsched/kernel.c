// SPDX-License-Identifier: Apache-2.0
/* Loads, attaches and ends the BPF programs. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "vsched.h"
#include "vsched.skel.h"

#define ROOT	"/sys/kernel/sched_ext/"

static struct vsched_bpf *skel;
static struct bpf_link *scheduler, *entries, *programs[2];
static char said[4096];

/* Keeps only the first line of a message of libbpf or of the verifier, which can be very long. */
static int keep(enum libbpf_print_level level, const char *fmt, va_list args)
{
	if (level == LIBBPF_WARN && !said[0]) {
		vsnprintf(said, sizeof(said), fmt, args);
		said[strcspn(said, "\n")] = 0;
	}
	return 0;
}

static int trouble(const char *what, int err)
{
	fprintf(stderr, "stargate-vsched: %s: %s%s%s%s\n", what, strerror(-err), said[0] ? " (" : "",
		said, said[0] ? ")" : "");
	return VS_TROUBLE;
}

/* Returns whether the kernel already has another scheduler of sched_ext, with its name in @name. */
static bool another(char *name, size_t size)
{
	FILE *file = fopen(ROOT "root/ops", "re");
	bool there = file && fgets(name, size, file);

	if (file)
		fclose(file);
	if (there)
		name[strcspn(name, "\n")] = 0;
	return there;
}

static int possible(const struct vs_options *o)
{
	char name[128];

	if (!o->watch && access(ROOT "state", F_OK)) {
		fprintf(stderr, "stargate-vsched: this kernel has no sched_ext, so its own "
			"scheduler runs the vCPUs; boot a kernel with CONFIG_SCHED_CLASS_EXT, "
			"or use 'watch'\n");
		return VS_NO_SCHED_EXT;
	}
	if (!o->watch && another(name, sizeof(name))) {
		fprintf(stderr, "stargate-vsched: the scheduler '%s' is loaded, and the kernel "
			"allows only one: end that scheduler first\n", name);
		return VS_TROUBLE;
	}
	if (access("/sys/module/kvm", F_OK)) {
		fprintf(stderr, "stargate-vsched: KVM is not loaded: modprobe kvm-amd or kvm-intel "
			"first\n");
		return VS_TROUBLE;
	}
	return VS_OK;
}

static int attach(const struct vs_options *o)
{
	programs[0] = bpf_program__attach(skel->progs.on_interrupt);
	if (!programs[0])
		return trouble("cannot trace KVM's interrupts", -errno);
	if (o->watch) {
		programs[1] = bpf_program__attach(skel->progs.on_switch);
		return programs[1] ? VS_OK : trouble("cannot trace context switches", -errno);
	}
	scheduler = bpf_map__attach_struct_ops(skel->maps.vsched);
	return scheduler ? VS_OK : trouble("the kernel refused the scheduler", -errno);
}

int vs_kernel_start(const struct vs_options *o, struct vs_kernel *k)
{
	struct bpf_program *p;
	int status = possible(o), err;

	if (status)
		return status;
	libbpf_set_print(keep);
	skel = vsched_bpf__open();
	if (!skel)
		return trouble("cannot open the BPF programs", -errno);
	skel->rodata->watch_only = o->watch;
	bpf_program__set_autoload(skel->progs.on_switch, o->watch);
	if (o->watch) {
		bpf_map__set_autocreate(skel->maps.vsched, false);
		bpf_object__for_each_program(p, skel->obj)
			if (bpf_program__type(p) == BPF_PROG_TYPE_STRUCT_OPS)
				bpf_program__set_autoload(p, false);
	}
	skel->bss->cfg = o->cfg;
	err = vsched_bpf__load(skel);
	if (err)
		return trouble("the kernel refused the BPF programs", err);
	*k = (struct vs_kernel){
		.cfg = &skel->bss->cfg, .vms = skel->bss->vms, .vcpus = skel->bss->vcpus,
		.clock = &skel->bss->clock, .ended = &skel->bss->ended,
		.by_tid = bpf_map__fd(skel->maps.by_tid),
		.by_vcpu = bpf_map__fd(skel->maps.by_vcpu),
		.found = bpf_map__fd(skel->maps.found),
		.strays = bpf_map__fd(skel->maps.strays),
	};
	return attach(o);
}

void vs_kernel_look(bool on)
{
	if (on && !entries) {
		entries = bpf_program__attach(skel->progs.on_entry);
	} else if (!on && entries) {
		bpf_link__destroy(entries);
		entries = NULL;
	}
}

void vs_kernel_stop(void)
{
	vs_kernel_look(false);
	bpf_link__destroy(scheduler);
	bpf_link__destroy(programs[0]);
	bpf_link__destroy(programs[1]);
	vsched_bpf__destroy(skel);
}
