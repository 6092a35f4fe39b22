// SPDX-License-Identifier: Apache-2.0
/*
 * volume qemu-args, libvirt-xml: prints the arguments with which a VM has a volume at the volume's
 * own address (D3). QEMU reports an impossible address late, and with a message of its own. So this
 * code computes QEMU's address space as QEMU does (hw/i386/pc.c), and refuses such an address
 * earlier.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "volume.h"

#define GIB		(1ULL << 30)
#define LOW_MOST	(11 * GIB / 4)	/* up to this size, all memory is below 4 GiB */
#define LOW (2 * GIB) /* if there is more memory, this part of it is below 4 GiB (q35) */
#define SLOTS 2ULL /* each slot adds 1 GiB of addresses, for alignment */
#define PCI_WINDOW (32 * GIB) /* QEMU reserves these addresses after all memory */
#define AMD_HOLE (1012 * GIB) /* QEMU moves memory that would reach this address to 1 TiB */

/**
 * struct recipe - a machine with a volume. @base, @size: those of the volume. @memory: the
 * machine's memory. @most: QEMU's maxmem. @uuid: UUID of a machine that the host fences, because it
 * opens region by that name; or empty.
 */
struct recipe {
	struct call *c;
	const struct volume *v;
	u64 base, size, memory, most;
	char region[PATH_MAX], uuid[37];
};

/* Refuses the host's own ID as a machine, because the host would have to fence itself. */
static bool is_host(const u8 machine[16])
{
	struct sg_identity self;

	member_identity(&self);
	return !memcmp(self.machine, machine, sizeof(self.machine));
}

int before_vm_args(struct call *c)
{
	char id[37];

	if (c->machine && is_host(c->machine_id))
		return tool_usage_error("--machine %s: is this host's UUID; give the VM its own, as uuidgen prints them",
					show_uuid(c->machine_id, id));
	if (!c->memory)
		return tool_usage_error("--memory is missing: the size of the VM's own memory");
	return before_volume(c);
}

/* --- the fit ------------------------------------------------------------------------------- */

/* Returns the start of addresses for memory devices, after the machine's own memory. */
static u64 devices_start(u64 memory)
{
	u64 above = memory >= LOW_MOST ? memory - LOW : 0;

	return (4 * GIB + above + GIB - 1) & ~(GIB - 1);
}

/* Reads "address sizes : 46 bits physical, ..." and the vendor's line, which precedes it. */
static u64 host_bits(bool *amd)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	unsigned int bits = 0;
	char line[512];

	*amd = false;
	while (f && !bits && fgets(line, sizeof(line), f)) {
		*amd |= !strncmp(line, "vendor_id", 9) && strstr(line, "AuthenticAMD");
		sscanf(line, "address sizes : %u bits", &bits);
	}
	if (f)
		fclose(f);
	return bits;
}

static int refuse_memory(const struct recipe *r)
{
	char a[32], b[32], c[32];
	u64 room = r->base >= 4 * GIB ? (r->base & ~(GIB - 1)) - 4 * GIB : 0;

	if (r->base < 4 * GIB)
		tool_error("%s: lies at 0x%llx, where VMs have their own memory or devices: reserve memory from 4 GiB on for the zone",
			   r->v->lv,
			   (unsigned long long)r->base);
	else
		tool_error("%s: lies at %s, and a VM with %s has memory there: give it at "
			   "most %s (--memory)", r->v->lv, show_size(r->base, a),
			   show_size(r->memory, b),
			   show_size(room ? room + LOW : LOW_MOST - (2ULL << 20), c));
	return -EINVAL;
}

static int refuse_bits(const struct recipe *r, u64 end)
{
	u64 given = r->c->phys_bits, bits;
	char a[32], b[32];
	bool amd;

	bits = host_bits(&amd);
	bits = given ? given : bits;
	if (bits && end > 1ULL << bits) {
		tool_error("%s: a VM with this volume has addresses up to %s, and %llu bits for them (%s) reach to %s: use a processor with more, or reserve memory "
			   "further down for the zone", r->v->lv, show_size(end, a),
			   (unsigned long long)bits, given ? "--phys-bits" : "as this processor has",
			   show_size(1ULL << bits, b));
		return -EINVAL;
	}
	if (amd && end > AMD_HOLE) {
		tool_error("%s: a VM with this volume has addresses up to %s, and on this processor "
			   "all of its memory moves to 1 TiB when they reach 1012 GiB: reserve "
			   "memory further down for the zone", r->v->lv, show_size(end, a));
		return -EINVAL;
	}
	return 0;
}

static int fit(struct recipe *r)
{
	u64 start = devices_start(r->memory), end = r->base + r->size;

	if (start > r->base)
		return refuse_memory(r);
	r->most = r->memory + (end - start);
	end = (end + SLOTS * GIB + GIB - 1) & ~(GIB - 1);
	return refuse_bits(r, end + PCI_WINDOW);
}

/* --- output -------------------------------------------------------------------------------- */

static bool is_read_only(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ro = fd >= 0 && device_read_only(fd);

	if (fd >= 0)
		close(fd);
	return ro;
}

/*
 * Without --read-only, QEMU could not open region for writing, or would store into a volume that
 * must not change.
 */
static int refuse_read_only(const struct recipe *r, const char *where)
{
	if (r->c->read_only)
		return 0;
	if (mounted_read_only(r->region))
		tool_error("%s: is mounted read-only at %s: give --read-only for a VM that only reads, or mount -o remount,rw %s",
			   r->v->lv, where, where);
	else if (is_read_only(r->v->path))
		tool_error("%s: is a read-only device: give --read-only for a VM that only reads, or blockdev --setrw %s",
			   r->v->lv, r->v->path);
	else
		return 0;
	return -EROFS;
}

static int find_region(struct recipe *r)
{
	char where[PATH_MAX];
	struct stat st;

	if (!engine_mounted(r->v->path, where)) {
		tool_error("%s: is not mounted here, but its VM needs that: mount -t "
			   "stargatefs %s DIRECTORY", r->v->lv, r->v->path);
		return -ENOENT;
	}
	if (r->c->machine)
		show_uuid(r->c->machine_id, r->uuid);
	if (snprintf(r->region, sizeof(r->region), "%s/.stargate/region%s%s", where,
		     *r->uuid ? "@" : "", r->uuid) >= (int)sizeof(r->region) ||
	    stat(r->region, &st)) {
		tool_error("%s: its mount at %s has no .stargate/region", r->v->lv, where);
		return -ENOENT;
	}
	r->base = r->v->piece->base;
	r->size = (u64)st.st_size;
	return refuse_read_only(r, where);
}

/* Doubles commas, because in QEMU's syntax a comma ends a value. */
static void put_value(FILE *out, const char *text)
{
	for (; *text; text++)
		fprintf(out, *text == ',' ? ",,"  : "%c", *text);
}

static void option(struct recipe *r, const char *name, const char *value)
{
	if (!r->c->json) {
		printf("%s %s\n", name, value);
		return;
	}
	json_str(&r->c->j, NULL, name);
	json_str(&r->c->j, NULL, value);
}

static char *backend(const struct recipe *r)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	fprintf(f, "memory-backend-file,id=stargate-%s,mem-path=", r->v->name);
	put_value(f, r->region);
	fprintf(f, ",size=%llu,align=2M,share=on,prealloc=off%s", (unsigned long long)r->size,
		r->c->read_only ? ",readonly=on" : "");
	fclose(f);
	return text;
}

/* Prints sizes in MiB, because QEMU rounds memory sizes up to its pages. */
static int qemu_args(struct recipe *r)
{
	char memory[96], device[SHOW_MAX + 64], *object = backend(r);

	if (!object)
		return -ENOMEM;
	snprintf(memory, sizeof(memory), "size=%lluM,slots=%llu,maxmem=%lluM",
		 (unsigned long long)(r->memory >> 20), SLOTS,
		 (unsigned long long)(r->most >> 20));
	snprintf(device, sizeof(device), "nvdimm,id=stargate-nv-%s,memdev=stargate-%s,addr=0x%llx%s",
		 r->v->name, r->v->name, (unsigned long long)r->base,
		 r->c->read_only ? ",unarmed=on" : "");
	if (r->c->json) {
		json_begin(&r->c->j, stdout, false);
		json_array(&r->c->j, "args");
	}
	if (*r->uuid)
		option(r, "-uuid", r->uuid);
	option(r, "-machine", "nvdimm=on");
	option(r, "-m", memory);
	option(r, "-object", object);
	option(r, "-device", device);
	if (r->c->json) {
		json_close(&r->c->j, ']');
		json_end(&r->c->j);
	}
	free(object);
	return 0;
}

static void put_xml(const char *text)
{
	for (; *text; text++)
		switch (*text) {
		case '&':
			fputs("&amp;", stdout);
			break;
		case '<':
			fputs("&lt;", stdout);
			break;
		default:
			putchar(*text);
		}
}

/*
 * libvirt allows memory devices only in machines with a NUMA cell. So the XML has one cell with all
 * memory.
 */
static int libvirt_xml(struct recipe *r)
{
	printf("<!-- in <domain>, in place of <memory> and <currentMemory>; let the cell have all "
	       "processors -->\n");
	if (*r->uuid)
		printf("<uuid>%s</uuid>\n", r->uuid);
	printf("<maxMemory slots='%llu' unit='KiB'>%llu</maxMemory>\n"
	       "<cpu mode='host-passthrough'>\n"
	       "  <numa>\n"
	       "    <cell id='0' memory='%llu' unit='KiB'/>\n"
	       "  </numa>\n"
	       "</cpu>\n", SLOTS, (unsigned long long)(r->most >> 10),
	       (unsigned long long)(r->memory >> 10));
	printf("<!-- in <devices> -->\n"
	       "<memory model='nvdimm' access='shared'>\n"
	       "  <source>\n"
	       "    <path>");
	put_xml(r->region);
	printf("</path>\n"
	       "    <alignsize unit='KiB'>2048</alignsize>\n"
	       "  </source>\n"
	       "  <target>\n"
	       "    <size unit='KiB'>%llu</size>\n"
	       "    <node>0</node>\n"
	       "%s"
	       "  </target>\n"
	       "  <address type='dimm' slot='0' base='0x%llx'/>\n"
	       "</memory>\n", (unsigned long long)(r->size >> 10),
	       r->c->read_only ? "    <readonly/>\n" : "", (unsigned long long)r->base);
	return 0;
}

static int tell(struct call *c, int (*how)(struct recipe *r))
{
	static struct recipe r;
	struct volume v;
	int err;

	if (volume_open(&v, c->volume))
		return 1;
	r = (struct recipe){ .c = c, .v = &v, .memory = c->memory };
	err = v.piece && !zone_tagged(v.piece->tags, SNAPSHOT_TAG) ? find_region(&r) :
		volume_need(&v);
	if (!err)
		err = fit(&r) ?: how(&r);
	volume_close(&v);
	return err ? 1 : 0;
}

int cmd_volume_qemu_args(struct call *c)
{
	return tell(c, qemu_args);
}

int cmd_volume_libvirt_xml(struct call *c)
{
	return tell(c, libvirt_xml);
}
