// SPDX-License-Identifier: Apache-2.0
/*
 * Runs a VM with one page of code, and one page of FILE as memory, mapped as a VMM maps it. So the
 * program tests what a hostile kernel in the VM can do. The guest loads a byte from the page at the
 * offset AT of FILE, and stores to it.
 *
 *   tinyvm rw FILE AT          FILE is open for writing
 *   tinyvm ro FILE AT          FILE is open for reading, and KVM gets a read-only slot
 *   tinyvm lie FILE AT         FILE is open for reading, but KVM gets a writable slot
 *   tinyvm loop FILE AT STOP   as rw, but the guest stores all the time, until STOP exists
 *
 * The program prints the loaded byte, and the result of the store: "stored", "mmio" (KVM treats the
 * store as an access to a device), or "fault" (KVM finds no writable page).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE		4096
#define CODE_AT		0x1000
#define MEMORY_AT	0x10000	/* the address of segment 0x1000 */
#define SAW_PORT	0x10
#define STORED_PORT	0x11

/* The guest's code sends the byte to SAW_PORT, and then stores 'X' and writes to STORED_PORT. */
static const unsigned char code[] = {
	0xb8, 0x00, 0x10,		/* mov ax, 0x1000 */
	0x8e, 0xd8,			/* mov ds, ax */
	0xa0, 0x00, 0x00,		/* mov al, [0] */
	0xe6, SAW_PORT,			/* out SAW_PORT, al */
	0xc6, 0x06, 0x00, 0x00, 'X',	/* mov byte [0], 'X' */
	0xe6, STORED_PORT,		/* out STORED_PORT, al */
	0xeb, 0xf7,			/* jmp to the store */
};

static void die(const char *what)
{
	fprintf(stderr, "tinyvm: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *map_file(const char *path, unsigned long at, int write)
{
	int fd = open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	void *mem;

	if (fd < 0)
		die(path);
	mem = mmap(NULL, PAGE, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd, (off_t)at);
	if (mem == MAP_FAILED)
		die("mmap");
	close(fd);
	return mem;
}

static void give(int vm, unsigned int slot, unsigned long at, void *mem, unsigned int flags)
{
	struct kvm_userspace_memory_region r = {
		.slot = slot, .flags = flags, .guest_phys_addr = at, .memory_size = PAGE,
		.userspace_addr = (uintptr_t)mem,
	};

	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &r))
		die("KVM_SET_USER_MEMORY_REGION");
}

static int make_cpu(int vm)
{
	struct kvm_regs regs = { .rip = CODE_AT, .rflags = 2 };
	int cpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	struct kvm_sregs sregs;

	if (cpu < 0 || ioctl(cpu, KVM_GET_SREGS, &sregs))
		die("KVM_CREATE_VCPU");
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	if (ioctl(cpu, KVM_SET_SREGS, &sregs) || ioctl(cpu, KVM_SET_REGS, &regs))
		die("KVM_SET_REGS");
	return cpu;
}

/* Runs the VM until its next exit. If that ends the VM, prints the reason and returns 0. */
static int goes_on(int cpu, struct kvm_run *run, const char *stop)
{
	if (ioctl(cpu, KVM_RUN, 0)) {
		if (errno != EFAULT)
			die("KVM_RUN");
		puts("fault");
		return 0;
	}
	switch (run->exit_reason) {
	case KVM_EXIT_IO:
		if (run->io.port == SAW_PORT) {
			printf("read %c\n", *((char *)run + run->io.data_offset));
			fflush(stdout);
			return 1;
		}
		if (stop && access(stop, F_OK))
			return 1;
		puts("stored");
		return 0;
	case KVM_EXIT_MMIO:
		puts(run->mmio.is_write ? "mmio" : "mmio when reading");
		return 0;
	}
	printf("exit %u\n", run->exit_reason);
	return 0;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 3 ? argv[1] : "";
	int write = !strcmp(verb, "rw") || !strcmp(verb, "loop");
	int kvm, vm, cpu;
	struct kvm_run *run;
	void *own;

	if (argc < 4 || (!write && strcmp(verb, "ro") && strcmp(verb, "lie"))) {
		fprintf(stderr, "tinyvm: rw|ro|lie FILE AT, or loop FILE AT STOP\n");
		return 2;
	}
	kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	vm = kvm < 0 ? -1 : ioctl(kvm, KVM_CREATE_VM, 0);
	own = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (vm < 0 || own == MAP_FAILED)
		die("KVM_CREATE_VM");
	memcpy(own, code, sizeof(code));
	give(vm, 0, CODE_AT, own, 0);
	give(vm, 1, MEMORY_AT, map_file(argv[2], strtoul(argv[3], NULL, 0), write),
	     strcmp(verb, "ro") ? 0 : KVM_MEM_READONLY);
	cpu = make_cpu(vm);
	run = mmap(NULL, (size_t)ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), PROT_READ | PROT_WRITE,
		   MAP_SHARED, cpu, 0);
	if (run == MAP_FAILED)
		die("the processor's state");
	while (goes_on(cpu, run, argc > 4 ? argv[4] : NULL))
		;
	return 0;
}
