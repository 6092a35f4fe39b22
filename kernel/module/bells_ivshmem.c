// SPDX-License-Identifier: GPL-2.0
/*
 * The driver for QEMU's ivshmem-doorbell device (docs/doorbells.md). `stargatectl bells` connects
 * the devices of VMs. A store into the device's doorbell register sends an interrupt to another VM,
 * without help of a VMM if the machine has KVM.
 *
 * The server gives each sender a vector of its own at each receiver. So the driver knows who has
 * rung, and mutes only a sender that rings too often. A peer cannot change this. The device's
 * memory describes the exchange. Peers can store there, so the driver reads it once and checks it.
 * The driver leaves devices alone that have no such description, as other programs use ivshmem,
 * too.
 */
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/pci.h>

#include "bells.h"

#define IVSHMEM_VENDOR	0x1af4
#define IVSHMEM_DEVICE	0x1110
#define BAR_REGISTERS	0
#define BAR_MEMORY	2
#define BARS		(1 << BAR_REGISTERS | 1 << BAR_MEMORY)
#define REGISTER_ID	8	/* this VM's number; -1: none */
#define REGISTER_RING	12	/* receiver's number << 16 | vector */

/* An emulated machine may be too slow for a storm. */
static unsigned int ring_weight = 1;
module_param(ring_weight, uint, 0600);
MODULE_PARM_DESC(ring_weight, "how many rings one doorbell ring counts as; for tests (1)");

/**
 * struct sgfs_ring_line - the vector of one sender
 * @unmute: ends a mute; while it is pending, the interrupt is disabled.
 */
struct sgfs_ring_line {
	struct sgfs_ivshmem *device;
	int irq;
	struct sg_ring_rate rate;
	struct delayed_work unmute;
};

struct sgfs_ivshmem {
	struct sgfs_exchange x;
	struct pci_dev *pdev;
	void __iomem *registers;
	unsigned int peers, requested;
	struct sgfs_ring_line line[SG_BELLS_PEERS_MAX];
};

static void sgfs_ivshmem_ring(struct sgfs_exchange *x, u16 id)
{
	struct sgfs_ivshmem *d = container_of(x, struct sgfs_ivshmem, x);

	/* this VM has one vector at each other one: the server has chosen which */
	if (id < d->peers)
		writel((u32)id << 16, d->registers + REGISTER_RING);
}

/* --- interrupts ------------------------------------------------------------------------------- */

/* Return for how long to ignore the sender, in ms. */
static unsigned int sgfs_ivshmem_count(struct sgfs_ring_line *line)
{
	unsigned int left = min(READ_ONCE(ring_weight), SG_RING_BURST), ms = 0;
	u64 now = ktime_get_ns();

	while (left-- && !ms)
		ms = sg_ring_count(&line->rate, now);
	return ms;
}

static irqreturn_t sgfs_ivshmem_irq(int irq, void *data)
{
	struct sgfs_ring_line *line = data;
	unsigned int ms = sgfs_ivshmem_count(line);

	if (ms) {
		/* a ring that comes meanwhile stays pending in the device */
		disable_irq_nosync(irq);
		sgfs_exchange_mute(&line->device->x, 1);
		queue_delayed_work(sgfs_wq, &line->unmute, msecs_to_jiffies(ms));
	}
	sgfs_exchange_rung(&line->device->x);
	return IRQ_HANDLED;
}

static void sgfs_ivshmem_unmute(struct work_struct *work)
{
	struct sgfs_ring_line *line = container_of(to_delayed_work(work), struct sgfs_ring_line,
						   unmute);

	sgfs_exchange_mute(&line->device->x, -1);
	enable_irq(line->irq);
}

static void sgfs_ivshmem_free_irqs(struct sgfs_ivshmem *d)
{
	unsigned int i;

	for (i = 0; i < d->requested; i++) {
		disable_irq(d->line[i].irq);	/* so that no mute begins any more */
		if (cancel_delayed_work_sync(&d->line[i].unmute))
			enable_irq(d->line[i].irq);
		free_irq(d->line[i].irq, &d->line[i]);
	}
	pci_free_irq_vectors(d->pdev);
}

static int sgfs_ivshmem_request_irqs(struct sgfs_ivshmem *d)
{
	struct sgfs_ring_line *line;
	int err;

	err = pci_alloc_irq_vectors(d->pdev, d->peers, d->peers, PCI_IRQ_MSIX);
	if (err < 0)
		return err;
	while (d->requested < d->peers) {
		line = &d->line[d->requested];
		line->device = d;
		line->irq = pci_irq_vector(d->pdev, d->requested);
		INIT_DELAYED_WORK(&line->unmute, sgfs_ivshmem_unmute);
		err = request_irq(line->irq, sgfs_ivshmem_irq, 0, SGFS_NAME "-bell", line);
		if (err) {
			sgfs_ivshmem_free_irqs(d);
			return err;
		}
		d->requested++;
	}
	return 0;
}

/* --- the device ------------------------------------------------------------------------------- */

/* Read the description once: peers may change it at any time. */
static int sgfs_ivshmem_describe(struct sgfs_ivshmem *d)
{
	struct sg_bells_page page;
	void __iomem *memory;

	if (pci_resource_len(d->pdev, BAR_MEMORY) < sizeof(page))
		return -ENODEV;
	memory = pci_iomap(d->pdev, BAR_MEMORY, sizeof(page));
	if (!memory)
		return -ENOMEM;
	memcpy_fromio(&page, memory, sizeof(page));
	pci_iounmap(d->pdev, memory);
	if (page.magic != SG_BELLS_MAGIC)
		return -ENODEV;		/* another program's device */
	if (page.version != SG_BELLS_VERSION || !page.exchange || page.peers < 2 ||
	    page.peers > SG_BELLS_PEERS_MAX) {
		dev_warn(&d->pdev->dev, "its memory describes no exchange of doorbells of version %u: restart the VM with a current stargatectl bells\n",
			 SG_BELLS_VERSION);
		return -ENODEV;
	}
	d->peers = page.peers;
	d->x.number = page.exchange;
	memcpy(d->x.uuid, page.uuid, sizeof(d->x.uuid));
	return 0;
}

static int sgfs_ivshmem_identify(struct sgfs_ivshmem *d)
{
	u32 id = readl(d->registers + REGISTER_ID);
	int vectors = pci_msix_vec_count(d->pdev);

	if (vectors < (int)d->peers) {
		dev_warn(&d->pdev->dev, "has %d vectors, but the exchange connects %u systems: start the VM with vectors=%u\n",
			 vectors, d->peers, d->peers);
		return -ENODEV;
	}
	if (id >= d->peers)
		return -ENODEV;
	d->x.id = id;
	return 0;
}

static int sgfs_ivshmem_probe(struct pci_dev *pdev, const struct pci_device_id *match)
{
	struct sgfs_ivshmem *d = kzalloc(sizeof(*d), GFP_KERNEL);
	int err;

	if (!d)
		return -ENOMEM;
	d->pdev = pdev;
	sgfs_exchange_init(&d->x);
	d->x.kind = "ivshmem";
	d->x.ring = sgfs_ivshmem_ring;
	err = pci_enable_device_mem(pdev);
	if (err)
		goto no_device;
	err = pci_request_selected_regions(pdev, BARS, SGFS_NAME);
	if (err)
		goto no_regions;
	err = sgfs_ivshmem_describe(d);
	if (err)
		goto no_registers;
	d->registers = pci_iomap(pdev, BAR_REGISTERS, 0);
	err = d->registers ? sgfs_ivshmem_identify(d) : -ENOMEM;
	if (err)
		goto no_irqs;
	pci_set_master(pdev);
	err = sgfs_ivshmem_request_irqs(d);
	if (err)
		goto no_irqs;
	pci_set_drvdata(pdev, d);
	sgfs_exchange_add(&d->x);
	return 0;
no_irqs:
	if (d->registers)
		pci_iounmap(pdev, d->registers);
no_registers:
	pci_release_selected_regions(pdev, BARS);
no_regions:
	pci_disable_device(pdev);
no_device:
	kfree(d);
	return err;
}

static void sgfs_ivshmem_remove(struct pci_dev *pdev)
{
	struct sgfs_ivshmem *d = pci_get_drvdata(pdev);

	sgfs_exchange_remove(&d->x);
	sgfs_ivshmem_free_irqs(d);
	pci_iounmap(pdev, d->registers);
	pci_release_selected_regions(pdev, BARS);
	pci_disable_device(pdev);
	kfree(d);
}

/*
 * Not in the module's own table: the module must not be loaded because of another program's
 * ivshmem device.
 */
static const struct pci_device_id sgfs_ivshmem_ids[] = {
	{ PCI_DEVICE(IVSHMEM_VENDOR, IVSHMEM_DEVICE) },
	{ }
};

static struct pci_driver sgfs_ivshmem_driver = {
	.name		= SGFS_NAME "-bells",
	.id_table	= sgfs_ivshmem_ids,
	.probe		= sgfs_ivshmem_probe,
	.remove		= sgfs_ivshmem_remove,
};

int sgfs_ivshmem_init(void)
{
	return pci_register_driver(&sgfs_ivshmem_driver);
}

void sgfs_ivshmem_exit(void)
{
	pci_unregister_driver(&sgfs_ivshmem_driver);
}
