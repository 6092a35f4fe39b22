// SPDX-License-Identifier: Apache-2.0
/*
 * A virtual machine monitor without devices. The VM has one processor, 2 MiB of memory for a few
 * instructions and page tables, and a volume at the volume's own physical address.
 *
 *   vmm run KIND REGION ACTION...             runs a VM with these actions, in this order
 *   vmm fence KIND REGION@UUID ADDRESS WAY    starts a VM whose guest reads the whole volume, and
 *                                             then stores to ADDRESS all the time; fences the VM:
 *                                             kills it (WAY is kill), or writes to the file WAY
 *   vmm fence KIND REGION ADDRESS revoke      the same, but only takes the volume from the VM
 *   vmm revoke REGION PID                     takes the volume from the VM of the monitor PID, or
 *                                             from all VMs if PID is 0
 *
 * KIND is stock (a memory slot over a mapping of REGION), identity, or readonly. The last two use
 * an identity slot, so the monitor maps nothing. KIND:FROM,SIZE gives the VM only a part of the
 * volume, in MiB.
 *
 * ACTION is:
 *   write16|write32|write64 ADDRESS PAGES   the guest, in that mode, stores a pattern
 *                   to PAGES pages from ADDRESS on
 *   sum             the guest adds the first words of all pages; the monitor compares the sum with
 *                   REGION's
 *   prefault        calls KVM_PRE_FAULT_MEMORY for the whole slot
 *   churn           makes and removes mappings at addresses that an identity slot might use wrongly
 *   spin ADDRESS    the guest increments a word until an error ends the VM
 *   log             starts dirty logging
 *   dirty           prints the number of pages that were written since the last log or dirty
 *   drop            removes the slot
 *   slot            makes the slot again, and opens the volume to the VM if necessary
 *   pairing|out|in|exchange|tables ADDRESS  the guest makes KVM itself write there, read, write,
 *                   compare and exchange, or find the guest's topmost page table there
 *   leave           closes REGION permanently
 *   await FILE      waits until FILE exists
 *   stats           prints the numbers of faults and pages, and the size of the page tables
 *
 * Most actions print a line: the name, the time in us, and the result. fence prints two times in
 * us, both since it began to fence. The first is the time of the guest's last store, by the guest's
 * clock; it is negative if the store was earlier. The second is the time at which the mount table
 * shows that the VM's system is fenced; for revoke, the time at which the call returned.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "../../kernel/core/format/format.h"

/* Definitions of kvm-patches, and of kernels newer than the headers of the build system. */
#define MEM_IDENTITY		(1u << 15)
#define CAP_IDENTITY		1000
#define EXIT_MEMORY_FAULT	39
#define FAULT_REVOKED		(1ull << 32)
struct memory_fault {
	uint64_t flags, gpa, size;
};
struct pre_fault {
	uint64_t gpa, size, flags, padding[5];
};
#define PRE_FAULT		_IOWR(KVMIO, 0xd5, struct pre_fault)

/* As in kernel/core/uapi/ioctl.h. */
struct open_to_vm {
	int32_t vm_fd;
	uint32_t read_only;
};
#define IOC_OPEN		_IOW(0xd7, 2, struct open_to_vm)
#define IOC_REVOKE		_IO(0xd7, 3)

#define PAGE			4096ull
#define MIB			(1ull << 20)
#define GIB			(1ull << 30)
#define KEY			0x5347000000000000ull

/* Addresses of the guest in its first slot. */
enum { LOW_SIZE = 2 << 20, PML4 = 0x1000, PDPT = 0x2000, PAE_PDPT = 0x3000, PD_LOW = 0x4000,
       PD_WINDOW = 0x5000, CODE = 0x10000, PDS = 0x20000 };
#define WINDOW			0xc0000000u	/* where 16-bit and 32-bit code sees the volume */
#define GIBS_MAX		((LOW_SIZE - PDS) / 4096)

/* The first routines access ecx addresses from edi on, in steps of edx. They end with ecx = 0. */
asm(".pushsection .rodata\n"
    "write64: 1: lea (%rdi,%rsi), %rax; mov %rax, (%rdi); add %rdx, %rdi; dec %rcx; jnz 1b; hlt\n"
    "sum64: xor %eax, %eax; 1: add (%rdi), %rax; add %rdx, %rdi; dec %rcx; jnz 1b; hlt\n"
    "spin64: 1: incq (%rdi); jmp 1b\n"
    "stamp64: 1: rdtsc; shl $32, %rdx; or %rdx, %rax; mov %rax, (%rdi); jmp 1b\n"
    /* The next routines get the address in rdi. rcx is 1. */
    "pairing64: mov $9, %eax; mov %rdi, %rbx; xor %ecx, %ecx; vmmcall; hlt\n"
    "out64: mov %rdi, %rsi; mov $0x80, %dx; rep outsb; hlt\n"
    "in64: mov $0x80, %dx; rep insb; hlt\n"
    "exchange64: xor %eax, %eax; ud2; .ascii \"kvm\"; lock cmpxchgq %rcx, (%rdi); hlt\n"
    "tables64: mov %rdi, %rbx; mov %cr3, %rsi; mov $512, %ecx; rep movsq; mov %rbx, %cr3\n"
    "          mov $0x10000, %esi; mov $1, %ecx; mov $0x80, %dx; rep outsb; hlt\n"
    ".code32\n"
    "write32: 1: lea (%edi,%esi), %eax; mov %eax, (%edi); add %edx, %edi; dec %ecx; jnz 1b; hlt\n"
    ".code16\n"
    "write16: 1: mov %edi, %eax; add %esi, %eax; mov %eax, (%edi); add %edx, %edi; dec %ecx; jnz 1b; hlt\n"
    ".code64\n"
    "code_end: .popsection\n");
extern const char write64[], sum64[], spin64[], stamp64[], write32[], write16[], code_end[];
extern const char pairing64[], out64[], in64[], exchange64[], tables64[];

static struct machine {
	int kvm, vm, vcpu, region;
	char kind;			/* the first letter of KIND: s, i or r */
	uint64_t base;			/* physical address of the volume */
	uint64_t from, size;		/* offset of the slot in the volume */
	uint64_t volume;
	uint8_t *low, *mapping;
	struct kvm_run *run;
	uint32_t slot_flags;
} m;

static void die(const char *format, ...)
{
	int error = errno;
	va_list args;

	va_start(args, format);
	fprintf(stderr, "vmm: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, ": %s\n", strerror(error));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* --- the VM ----------------------------------------------------------------------------------- */

static void map_region(void)
{
	m.mapping = mmap(NULL, m.size, PROT_READ | PROT_WRITE, MAP_SHARED, m.region, m.from);
	if (m.mapping == MAP_FAILED)
		die("mapping the region");
}

static void open_to_machine(void)
{
	struct open_to_vm args = { .vm_fd = m.vm, .read_only = m.kind == 'r' };

	if (ioctl(m.region, IOC_OPEN, &args) && errno != EEXIST)
		die("opening the volume to the machine");
}

static int set_slot(uint64_t size)
{
	struct kvm_userspace_memory_region slot = {
		.slot = 1,
		.flags = m.slot_flags,
		.guest_phys_addr = m.base + m.from,
		.memory_size = size,
		.userspace_addr = m.kind == 's' ? (uintptr_t)m.mapping : 0,
	};

	return ioctl(m.vm, KVM_SET_USER_MEMORY_REGION, &slot);
}

static void make_slot(void)
{
	if (m.kind == 's') {
		m.slot_flags = 0;
		if (!m.mapping)
			map_region();
	} else {
		m.slot_flags = MEM_IDENTITY | (m.kind == 'r' ? KVM_MEM_READONLY : 0);
		open_to_machine();
	}
	if (set_slot(m.size))
		die("making the slot");
}

static void map_gib(unsigned int pd, uint64_t gpa)
{
	uint64_t *entries = (void *)(m.low + pd);
	int i;

	for (i = 0; i < 512; i++)
		entries[i] = (gpa + i * 2 * MIB) | 0x83;
}

/* Makes page tables that map the first GiB, and for 64-bit code the volume, to equal addresses. */
static void make_page_tables(void)
{
	uint64_t *pml4 = (void *)(m.low + PML4), *pdpt = (void *)(m.low + PDPT);
	uint64_t *pae = (void *)(m.low + PAE_PDPT), gib;
	unsigned int pd = PDS;

	map_gib(PD_LOW, 0);
	pml4[0] = PDPT | 3;
	pdpt[0] = PD_LOW | 3;
	for (gib = m.base / GIB; gib * GIB < m.base + m.volume; gib++, pd += PAGE) {
		map_gib(pd, gib * GIB);
		pdpt[gib] = pd | 3;
	}
	pae[0] = PD_LOW | 1;
	pae[3] = PD_WINDOW | 1;
}

static void set_cpuid(void)
{
	struct {
		struct kvm_cpuid2 head;
		struct kvm_cpuid_entry2 entries[256];
	} id = { .head.nent = 256 };

	if (ioctl(m.kvm, KVM_GET_SUPPORTED_CPUID, &id) || ioctl(m.vcpu, KVM_SET_CPUID2, &id))
		die("setting CPUID");
}

static void create(void)
{
	struct kvm_userspace_memory_region low = { .memory_size = LOW_SIZE };
	int run_size;

	m.kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (m.kvm < 0)
		die("/dev/kvm");
	m.vm = ioctl(m.kvm, KVM_CREATE_VM, 0);
	if (m.vm < 0)
		die("creating a machine");
	if (m.kind != 's' && ioctl(m.vm, KVM_CHECK_EXTENSION, CAP_IDENTITY) != 1) {
		errno = EOPNOTSUPP;
		die("identity slots");
	}
	m.low = mmap(NULL, LOW_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m.low == MAP_FAILED)
		die("memory");
	low.userspace_addr = (uintptr_t)m.low;
	if (ioctl(m.vm, KVM_SET_USER_MEMORY_REGION, &low))
		die("the guest's first slot");
	memcpy(m.low + CODE, write64, code_end - write64);
	make_page_tables();

	m.vcpu = ioctl(m.vm, KVM_CREATE_VCPU, 0);
	run_size = ioctl(m.kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (m.vcpu < 0 || run_size < 0)
		die("creating a processor");
	m.run = mmap(NULL, run_size, PROT_READ | PROT_WRITE, MAP_SHARED, m.vcpu, 0);
	if (m.run == MAP_FAILED)
		die("the processor's state");
	set_cpuid();
}

/* Lets the processor run @code in a mode of @bits, for @pages pages from @gpa on, with @pattern. */
static void prepare(const char *code, int bits, uint64_t gpa, uint64_t pages, uint64_t pattern)
{
	struct kvm_segment data = { .limit = ~0u, .type = 3, .present = 1, .s = 1, .db = 1, .g = 1,
				    .selector = 16 };
	struct kvm_segment text = { .limit = ~0u, .type = 11, .present = 1, .s = 1, .g = 1,
				    .selector = 8, .db = bits == 32, .l = bits == 64 };
	struct kvm_regs regs = { .rip = CODE + (code - write64), .rflags = 2, .rdi = gpa,
				 .rcx = pages, .rdx = PAGE, .rsi = pattern };
	struct kvm_sregs sregs;

	if (ioctl(m.vcpu, KVM_GET_SREGS, &sregs))
		die("reading registers");
	sregs.cs = text;
	sregs.ds = sregs.es = sregs.ss = data;
	sregs.cr0 = 0x80000011;
	sregs.cr4 = 0x20;
	sregs.cr3 = bits == 64 ? PML4 : PAE_PDPT;
	sregs.efer = bits == 64 ? 0x500 : 0;
	if (bits != 64) {
		map_gib(PD_WINDOW, gpa & -(2 * MIB));
		regs.rdi = WINDOW + gpa % (2 * MIB);
		regs.rsi = (uint32_t)(gpa + pattern - regs.rdi);
	}
	if (ioctl(m.vcpu, KVM_SET_SREGS, &sregs) || ioctl(m.vcpu, KVM_SET_REGS, &regs))
		die("setting registers");
}

static struct kvm_regs registers(void)
{
	struct kvm_regs regs;

	if (ioctl(m.vcpu, KVM_GET_REGS, &regs))
		die("reading registers");
	return regs;
}

/* Runs the guest. Returns NULL if it halts, and the reason if it cannot continue. */
static const char *run(void)
{
	const struct memory_fault *fault = (const void *)&m.run->hw;
	static char why[128];

	while (ioctl(m.vcpu, KVM_RUN, 0)) {
		if (errno == EINTR)
			continue;
		if (errno == EFAULT && m.run->exit_reason == EXIT_MEMORY_FAULT)
			snprintf(why, sizeof(why), "memory fault%s in the slot's page 0x%llx",
				 fault->flags == FAULT_REVOKED ? ", revoked," : "",
				 (unsigned long long)(fault->gpa - m.base) / PAGE);
		else
			snprintf(why, sizeof(why), "error %d", errno);
		return why;
	}
	switch (m.run->exit_reason) {
	case KVM_EXIT_HLT:
		return NULL;
	case KVM_EXIT_MMIO:
		snprintf(why, sizeof(why), "%s as of a device at 0x%llx",
			 m.run->mmio.is_write ? "write" : "read",
			 (unsigned long long)m.run->mmio.phys_addr);
		return why;
	case KVM_EXIT_SHUTDOWN:
		return "triple fault";
	case KVM_EXIT_INTERNAL_ERROR:
		return "emulation failed";
	default:
		snprintf(why, sizeof(why), "exit %u", m.run->exit_reason);
		return why;
	}
}

/* --- actions ---------------------------------------------------------------------------------- */

static uint64_t read_word(uint64_t at)
{
	uint64_t word;

	if (pread(m.region, &word, sizeof(word), at) != sizeof(word))
		die("reading the region");
	return word;
}

/* Checks, by reading REGION in the host, that the guest's pattern is in memory. */
static void verify(int bits, uint64_t gpa, uint64_t pages)
{
	uint64_t mask = bits == 64 ? ~0ull : ~0u, i, at;

	for (i = 0; i < pages; i++) {
		at = gpa + i * PAGE;
		if ((read_word(at - m.base) & mask) == ((at + KEY) & mask))
			continue;
		errno = EILSEQ;
		die("the page at 0x%llx has 0x%llx instead of the pattern", (unsigned long long)at,
		    (unsigned long long)read_word(at - m.base));
	}
}

static void do_write(const char *name, const char *code, int bits, uint64_t gpa, uint64_t pages)
{
	double start = now();
	const char *why;

	prepare(code, bits, gpa, pages, KEY);
	why = run();
	printf("%s %.0f %s\n", name, now() - start, why ?: "done");
	if (!why)
		verify(bits, gpa, pages);
}

static void do_sum(void)
{
	uint64_t sum = 0, at;
	const char *why;
	double start, us;

	prepare(sum64, 64, m.base + m.from, m.size / PAGE, 0);
	start = now();
	why = run();
	us = now() - start;
	for (at = m.from; !why && at < m.from + m.size; at += PAGE)
		sum += read_word(at);
	printf("sum %.0f %s\n", us, why ?: registers().rax == sum ? "same" : "other bytes");
}

static void do_prefault(void)
{
	struct pre_fault range = { .gpa = m.base + m.from, .size = m.size };
	double start = now();
	int r = 0;

	while (range.size && !r)
		r = ioctl(m.vcpu, PRE_FAULT, &range);
	printf("prefault %.0f %s\n", now() - start, r ? strerror(errno) : "done");
}

/*
 * An identity slot has the address 0, and KVM must not use the monitor's mappings for it. So this
 * makes mappings at the addresses that the slot would have.
 */
static void do_churn(void)
{
	double start = now();
	uint64_t at;
	int round;
	char *p;

	for (round = 0; round < 4; round++)
		for (at = MIB; at < m.size; at += 2 * MIB) {
			p = mmap((void *)at, PAGE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
			if (p == MAP_FAILED)
				continue; /* the program uses this address */
			*p = 1;
			munmap(p, PAGE);
		}
	printf("churn %.0f done\n", now() - start);
}

static void do_spin(uint64_t gpa)
{
	double start = now();

	prepare(spin64, 64, gpa, 1, 0);
	printf("spinning %d\n", getpid());
	fflush(stdout);
	printf("spin %.0f %s\n", now() - start, run() ?: "done");
}

/* Runs the guest with a port that accepts one write, or returns 0x5a for one read. */
static const char *run_with_port(void)
{
	const char *why = run();

	if (m.run->exit_reason != KVM_EXIT_IO)
		return why;
	if (m.run->io.direction == KVM_EXIT_IO_IN)
		((uint8_t *)m.run)[m.run->io.data_offset] = 0x5a;
	return run();
}

/*
 * KVM's emulator asks the monitor for bytes that it cannot read. This returns the value that the
 * guest expects, so that the emulator continues with the exchange.
 */
static const char *run_exchange(void)
{
	const char *why = run();

	if (!why || m.run->exit_reason != KVM_EXIT_MMIO || m.run->mmio.is_write)
		return why;
	memset(m.run->mmio.data, 0, sizeof(m.run->mmio.data));
	return run();
}

static void do_own_access(const char *name, uint64_t gpa)
{
	const char *code = !strcmp(name, "pairing") ? pairing64 :
			   !strcmp(name, "out") ? out64 :
			   !strcmp(name, "in") ? in64 :
			   !strcmp(name, "exchange") ? exchange64 : tables64;
	double start = now();
	const char *why;

	prepare(code, 64, gpa, 1, 0);
	why = code == exchange64 ? run_exchange() : run_with_port();
	printf("%s %.0f %s", name, now() - start, why ?: "done");
	if (!why && code == pairing64)
		printf(", %lld", (long long)registers().rax);
	printf("\n");
}

static void do_dirty(void)
{
	uint64_t words = (m.size / PAGE + 63) / 64, *bitmap = calloc(words, 8), i, n = 0;
	struct kvm_dirty_log log = { .slot = 1, .dirty_bitmap = bitmap };

	if (ioctl(m.vm, KVM_GET_DIRTY_LOG, &log))
		die("the dirty log");
	for (i = 0; i < words; i++)
		n += __builtin_popcountll(bitmap[i]);
	free(bitmap);
	printf("dirty 0 %llu pages\n", (unsigned long long)n);
}

static uint64_t statistic(const char *name)
{
	unsigned long long value = 0;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/kvm/%d-%d/%s", getpid(), m.vm, name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%llu", &value) != 1)
		die("%s", path);
	fclose(f);
	return value;
}

static uint64_t kib_of(const char *path, const char *name)
{
	unsigned long long value = 0;
	size_t len = strlen(name);
	char line[256];
	FILE *f = fopen(path, "r");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len))
			value = strtoull(line + len, NULL, 10);
	if (f)
		fclose(f);
	return value;
}

/* Makes each processor add its counters to the kernel's sums. */
static void refresh_sums(void)
{
	int fd = open("/proc/sys/vm/stat_refresh", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "1", 1) != 1)
		die("stat_refresh");
	close(fd);
}

static void do_stats(void)
{
	struct rusage usage;

	refresh_sums();
	getrusage(RUSAGE_SELF, &usage);
	printf("stats 0 guest-faults=%llu monitor-faults=%ld 4k=%llu 2m=%llu 1g=%llu "
	       "kvm-tables-KiB=%llu monitor-tables-KiB=%llu\n",
	       (unsigned long long)statistic("pf_taken"), usage.ru_minflt,
	       (unsigned long long)statistic("pages_4k"), (unsigned long long)statistic("pages_2m"),
	       (unsigned long long)statistic("pages_1g"),
	       (unsigned long long)kib_of("/proc/meminfo", "SecPageTables:"),
	       (unsigned long long)kib_of("/proc/self/status", "VmPTE:"));
}

/* --- commands --------------------------------------------------------------------------------- */

/* Opens the volume's file. @kind may contain FROM,SIZE in MiB. */
static void open_region(const char *kind, const char *path)
{
	const char *part = strchr(kind, ':');
	unsigned long long from = 0, size = 0;
	struct stat st;

	m.kind = kind[0];
	m.region = open(path, (m.kind == 'r' ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	if (m.region < 0 || fstat(m.region, &st))
		die("%s", path);
	if (part && sscanf(part, ":%llu,%llu", &from, &size) != 2) {
		errno = EINVAL;
		die("%s", kind);
	}
	m.volume = st.st_size;
	m.from = from * MIB;
	m.size = size ? size * MIB : m.volume - m.from;
	m.base = strtoull(getenv("VOLUME_BASE") ?: "0", NULL, 0);
	if (!m.base || m.base + m.volume > 512 * GIB || m.volume > (GIBS_MAX - 1) * GIB ||
	    m.from + m.size > m.volume) {
		errno = ERANGE;
		die("the address VOLUME_BASE, or the part FROM,SIZE, is outside the limits");
	}
}

static uint64_t number(char **argv)
{
	char *end;
	uint64_t value = strtoull(*argv ?: "", &end, 0);

	if (!*argv || *end) {
		errno = EINVAL;
		die("a number is missing");
	}
	return value;
}

static void change_log(void)
{
	m.slot_flags |= KVM_MEM_LOG_DIRTY_PAGES;
	if (set_slot(m.size))
		die("dirty logging");
}

static int act(char **argv)
{
	const char *name = argv[0];
	int words = 1;

	if (!strcmp(name, "write16") || !strcmp(name, "write32") || !strcmp(name, "write64")) {
		int bits = atoi(name + 5);

		do_write(name, bits == 64 ? write64 : bits == 32 ? write32 : write16, bits,
			 number(argv + 1), number(argv + 2));
		words = 3;
	} else if (!strcmp(name, "sum")) {
		do_sum();
	} else if (!strcmp(name, "prefault")) {
		do_prefault();
	} else if (!strcmp(name, "churn")) {
		do_churn();
	} else if (!strcmp(name, "spin")) {
		do_spin(number(argv + 1));
		words = 2;
	} else if (!strcmp(name, "pairing") || !strcmp(name, "out") || !strcmp(name, "in") ||
		   !strcmp(name, "exchange") || !strcmp(name, "tables")) {
		do_own_access(name, number(argv + 1));
		words = 2;
	} else if (!strcmp(name, "log")) {
		change_log();
	} else if (!strcmp(name, "dirty")) {
		do_dirty();
	} else if (!strcmp(name, "stats")) {
		do_stats();
	} else if (!strcmp(name, "drop")) {
		if (set_slot(0))
			die("deleting the slot");
	} else if (!strcmp(name, "slot")) {
		make_slot();
	} else if (!strcmp(name, "leave")) {
		close(m.region);
		printf("leave 0 done\n");
	} else if (!strcmp(name, "await")) {
		while (access(argv[1] ?: "", F_OK))
			usleep(10000);
		words = 2;
	} else {
		errno = EINVAL;
		die("%s", name);
	}
	fflush(stdout);
	return words;
}

static int run_machine(char **argv)
{
	double start = now();

	open_region(argv[0], argv[1]);
	create();
	make_slot();
	printf("create %.0f done\n", now() - start);
	for (argv += 2; *argv;)
		argv += act(argv);
	return 0;
}

/* Gives the guest the same time stamp counter as this process. */
static void share_clock(void)
{
	uint64_t none = 0;
	struct kvm_device_attr offset = { .group = KVM_VCPU_TSC_CTRL, .attr = KVM_VCPU_TSC_OFFSET,
					  .addr = (uintptr_t)&none };

	if (ioctl(m.vcpu, KVM_SET_DEVICE_ATTR, &offset))
		die("the guest's clock");
}

/* Starts a VM in a child process, and returns when the guest has begun to store the time. */
static pid_t start_writing(uint64_t at)
{
	uint64_t before = read_word(at), start = __rdtsc();
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (!child) {
		create();
		make_slot();
		share_clock();
		prepare(sum64, 64, m.base + m.from, m.size / PAGE, 0);
		if (run())
			die("reading all");
		prepare(stamp64, 64, m.base + at, 1, 0);
		run();
		pause();
	}
	while (read_word(at) == before)
		usleep(1000);
	if (read_word(at) < start || read_word(at) > __rdtsc()) {
		errno = ETIME;
		die("the guest's clock differs from the host's");
	}
	return child;
}

/* The slot of a VM's system in the mount table. */
struct member {
	unsigned int slot;
	uint64_t at, state;
};

static void parse_uuid(const char *text, uint8_t uuid[16])
{
	unsigned int i, byte;

	for (i = 0; i < 16; i++, text += 2) {
		text += *text == '-';
		if (sscanf(text, "%2x", &byte) != 1) {
			errno = EINVAL;
			die("REGION@UUID");
		}
		uuid[i] = byte;
	}
}

static struct member find_member(const char *path)
{
	uint64_t table = read_word(offsetof(struct sg_super, slot_off));
	struct member found = { 0 };
	uint8_t machine[16];
	struct sg_slot slot;

	parse_uuid(strrchr(path, '@') ? strrchr(path, '@') + 1 : "", machine);
	for (; found.slot < SG_SLOTS; found.slot++) {
		found.at = table + found.slot * sizeof(slot);
		if (pread(m.region, &slot, sizeof(slot), found.at) != sizeof(slot))
			die("the mount table");
		found.state = slot.state;
		if (SG_SLOT_STATE(slot.state) == SG_SLOT_LIVE &&
		    !memcmp(slot.machine, machine, sizeof(machine)))
			return found;
	}
	errno = ENOENT;
	die("no live system of that machine is in the mount table");
	return found;
}

/* Begins to fence a VM. When the state of its system changes, the VM must have stopped writing. */
static void begin_to_fence(const char *way, pid_t child, const struct member *member)
{
	int fd;

	if (!strcmp(way, "kill")) {
		kill(child, SIGKILL);
		return;
	}
	if (!strcmp(way, "revoke")) {
		if (ioctl(m.region, IOC_REVOKE, child) != 1)
			die("revoking");
		return;
	}
	fd = open(way, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || dprintf(fd, "%u %u\n", member->slot, SG_SLOT_INC(member->state)) < 0)
		die("fencing by %s", way);
	close(fd);
}

#define FENCED_WITHIN_US	10e6

/*
 * Waits until the state of the VM's system changes. It sleeps between its checks: on a machine with
 * one processor, the processes that must end need that processor.
 */
static double await_death(const struct member *member, double start)
{
	while (read_word(member->at) == member->state) {
		if (now() - start > FENCED_WITHIN_US) {
			errno = ETIME;
			die("the VM's system is not fenced after 10 s");
		}
		usleep(100);
	}
	return now() - start;
}

static int fence(const char *kind, const char *path, uint64_t gpa, const char *way)
{
	bool declared = strcmp(way, "revoke");
	struct member member = { 0 };
	uint64_t at, began, last;
	double start, dead, rate;
	pid_t child;

	open_region(kind, path);
	at = gpa - m.base;
	if (declared)
		member = find_member(path);
	child = start_writing(at);
	start = now();
	began = __rdtsc();
	begin_to_fence(way, child, &member);
	dead = declared ? await_death(&member, start) : now() - start;
	last = read_word(at);
	usleep(20000);
	rate = (__rdtsc() - began) / (now() - start);
	if (read_word(at) != last) {
		errno = EILSEQ;
		die("the guest still writes");
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	printf("fence %.0f %.0f\n", (int64_t)(last - began) / rate, dead);
	return 0;
}

static int take_back(const char *path, int pid)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), n;
	double start = now();

	if (fd < 0)
		die("%s", path);
	n = ioctl(fd, IOC_REVOKE, pid);
	if (n < 0)
		die("revoking");
	printf("revoke %.0f %d machines\n", now() - start, n);
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc >= 4 && !strcmp(argv[1], "run"))
		return run_machine(argv + 2);
	if (argc == 6 && !strcmp(argv[1], "fence"))
		return fence(argv[2], argv[3], number(argv + 4), argv[5]);
	if (argc == 4 && !strcmp(argv[1], "revoke"))
		return take_back(argv[2], atoi(argv[3]));
	fprintf(stderr, "usage: vmm run|fence|revoke ... (vmm.c lists the arguments)\n");
	return 2;
}
