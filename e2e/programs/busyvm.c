// SPDX-License-Identifier: Apache-2.0
/*
 * Runs a VM with a few instructions, whose vCPUs compute all the time. Another thread of this
 * process sends interrupts to the VM's APIC, as a device does.
 *
 *   busyvm -name NAME hog             the VM computes, with interrupts disabled
 *   busyvm -name NAME io SOCKET       the VM sleeps until an interrupt, and answers it
 *   busyvm -name NAME mixed SOCKET    the VM computes, and answers interrupts
 *   busyvm -name NAME chain SOCKET    the first vCPU passes interrupts to the second one, which
 *                                     answers; both compute
 *   busyvm -name NAME liar            the VM computes, and gets an interrupt each millisecond
 *   busyvm ask SOCKET SECONDS         sends one request at a time to a VM of kind io, mixed or
 *                                     chain; prints the requests per second, the median and the
 *                                     99th percentile of their times in microseconds
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MEMORY		0x4000
#define CODE		0x1000
#define TAKE		0x1100	/* the handler of vector 0x40 */
#define PASSED		0x1200	/* the handler of vector 0x41 */
#define STACK		0x3000
#define ANSWER_PORT	0x10
#define MOST		1000000

/*
 * In real mode, prefix 0x66 makes operands 32 bits wide. MSRs from 0x800 on are the APIC's
 * registers.
 */
#define MSR(msr, eax, edx)								\
	0x66, 0xb9, (msr) & 0xff, (msr) >> 8, 0, 0,	/* mov ecx, msr */		\
	0x66, 0xb8, (eax) & 0xff, (eax) >> 8, 0, 0,	/* mov eax, ... */		\
	0x66, 0xba, (edx), 0, 0, 0,			/* mov edx, ... */		\
	0x0f, 0x30					/* wrmsr */
#define SPURIOUS	0x80f
#define EOI		0x80b
#define COMMAND		0x830

static const unsigned char compute[] = { 0xeb, 0xfe };		/* jmp here */
static const unsigned char enable[] = { MSR(SPURIOUS, 0x1ff, 0), 0xfb };	/* sti */
static const unsigned char halt[] = { 0xf4, 0xeb, 0xfd };		/* hlt; jmp there */
static const unsigned char answer[] = { 0xe6, ANSWER_PORT, MSR(EOI, 0, 0), 0xcf };	/* iret */
static const unsigned char pass[] = { MSR(COMMAND, 0x41, 1), MSR(EOI, 0, 0), 0xcf };
static const unsigned char ignore[] = { MSR(EOI, 0, 0), 0xcf };

static int kvm, vm, answered;

static void die(const char *what)
{
	fprintf(stderr, "busyvm: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void *run_cpu(void *arg)
{
	int cpu = (int)(intptr_t)arg;
	uint64_t one = 1;
	struct kvm_run *run = mmap(NULL, (size_t)ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0),
				   PROT_READ | PROT_WRITE, MAP_SHARED, cpu, 0);

	if (run == MAP_FAILED)
		die("mmap");
	for (;;) {
		if (ioctl(cpu, KVM_RUN, 0)) {
			if (errno != EINTR && errno != EAGAIN)
				die("KVM_RUN");
			continue;
		}
		if (run->exit_reason != KVM_EXIT_IO || run->io.port != ANSWER_PORT) {
			fprintf(stderr, "busyvm: exit %u\n", run->exit_reason);
			exit(1);
		}
		if (write(answered, &one, sizeof(one)) != sizeof(one))
			die("eventfd");
	}
}

static void start_cpu(unsigned int id, const struct kvm_cpuid2 *leaves)
{
	struct kvm_regs regs = { .rip = CODE, .rflags = 2, .rsp = STACK - 0x400 * id };
	struct kvm_mp_state runnable = { KVM_MP_STATE_RUNNABLE };
	int cpu = ioctl(vm, KVM_CREATE_VCPU, id);
	struct kvm_sregs sregs;
	pthread_t thread;

	if (cpu < 0 || ioctl(cpu, KVM_SET_CPUID2, leaves) || ioctl(cpu, KVM_GET_SREGS, &sregs))
		die("KVM_CREATE_VCPU");
	sregs.cs.base = sregs.cs.selector = 0;
	sregs.apic_base |= 0xc00;	/* x2APIC, which MSRs reach in real mode */
	if (ioctl(cpu, KVM_SET_SREGS, &sregs) || ioctl(cpu, KVM_SET_REGS, &regs) ||
	    ioctl(cpu, KVM_SET_MP_STATE, &runnable))
		die("KVM_SET_SREGS");
	if (pthread_create(&thread, NULL, run_cpu, (void *)(intptr_t)cpu))
		die("a thread");
}

static void start(const char *kind)
{
	int hog = !strcmp(kind, "hog"), chain = !strcmp(kind, "chain");
	struct kvm_cpuid2 *leaves = calloc(1, sizeof(*leaves) + 256 * sizeof(*leaves->entries));
	struct kvm_userspace_memory_region region = { .memory_size = MEMORY };
	unsigned char *mem = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint16_t vectors[] = { TAKE, 0, PASSED, 0 };
	unsigned char *code;

	kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	vm = kvm < 0 ? -1 : ioctl(kvm, KVM_CREATE_VM, 0);
	answered = eventfd(0, EFD_CLOEXEC);
	if (vm < 0 || answered < 0 || mem == MAP_FAILED || !leaves)
		die("/dev/kvm");
	region.userspace_addr = (uintptr_t)mem;
	leaves->nent = 256;
	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) || ioctl(vm, KVM_CREATE_IRQCHIP, 0) ||
	    ioctl(kvm, KVM_GET_SUPPORTED_CPUID, leaves))
		die("KVM_CREATE_IRQCHIP");
	memcpy(mem + 0x40 * 4, vectors, sizeof(vectors));
	code = mem + CODE;
	if (!hog)
		code = mempcpy(code, enable, sizeof(enable));
	if (!strcmp(kind, "io"))
		memcpy(code, halt, sizeof(halt));
	else
		memcpy(code, compute, sizeof(compute));
	if (chain)
		memcpy(mem + TAKE, pass, sizeof(pass));
	else if (!strcmp(kind, "liar"))
		memcpy(mem + TAKE, ignore, sizeof(ignore));
	else
		memcpy(mem + TAKE, answer, sizeof(answer));
	memcpy(mem + PASSED, answer, sizeof(answer));
	start_cpu(0, leaves);
	if (chain)
		start_cpu(1, leaves);
}

static void interrupt(void)
{
	struct kvm_msi msi = { .address_lo = 0xfee00000, .data = 0x40 };

	if (ioctl(vm, KVM_SIGNAL_MSI, &msi) < 0)
		die("KVM_SIGNAL_MSI");
}

static int less(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(double seconds, int out)
{
	static double took[MOST];
	struct pollfd wait = { .fd = answered, .events = POLLIN };
	double begin = now(), sent;
	uint64_t count;
	size_t n = 0;

	do {
		sent = now();
		interrupt();
		if (poll(&wait, 1, 30000) != 1) {
			dprintf(out, "the VM does not answer within 30 s\n");
			return;
		}
		if (read(answered, &count, sizeof(count)) != sizeof(count))
			die("eventfd");
		took[n++] = now() - sent;
	} while (now() < begin + seconds * 1e6 && n < MOST);
	begin = now() - begin;
	qsort(took, n, sizeof(*took), less);
	dprintf(out, "%.1f %.0f %.0f\n", n / begin * 1e6, took[n / 2], took[n * 99 / 100]);
}

static int connection(const char *path, int listens)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	if (fd < 0 || (listens ? bind(fd, (void *)&at, sizeof(at)) || listen(fd, 1) :
		       connect(fd, (void *)&at, sizeof(at))))
		die(path);
	return fd;
}

static void serve(const char *path)
{
	int fd = connection(path, 1);

	for (;;) {
		int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		char line[32] = "";

		if (client < 0)
			die("accept");
		if (read(client, line, sizeof(line) - 1) > 0)
			measure(atof(line), client);
		close(client);
	}
}

static int ask(const char *path, const char *seconds)
{
	int fd = connection(path, 0);
	char line[128];
	ssize_t got;

	dprintf(fd, "%s\n", seconds);
	got = read(fd, line, sizeof(line));
	if (got <= 0)
		die("the VM's process gives no figures");
	return fwrite(line, 1, got, stdout) != (size_t)got || line[0] < '0' || line[0] > '9';
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "ask"))
		return ask(argv[2], argv[3]);
	if (argc < 4 || strcmp(argv[1], "-name") || argc > 5) {
		fprintf(stderr, "usage: busyvm -name NAME hog|liar|io|mixed|chain [SOCKET]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN); /* `busyvm ask` may exit */
	start(argv[3]);
	if (argc == 5)
		serve(argv[4]);
	while (!strcmp(argv[3], "liar")) {
		interrupt();
		usleep(1000);
	}
	for (;;)
		pause();
}
