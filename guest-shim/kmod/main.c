// SPDX-License-Identifier: GPL-2.0
/*
 * The guest's driver of vGPU: one ivshmem device with vgpud behind it
 *
 * A device of QEMU's type ivshmem may serve anything: one whose memory has
 * another content than vgpud's is left to other drivers. Vector 0 tells that
 * an entry has changed, vector 1 + n that a reply of channel n has come. An
 * ivshmem-plain device has neither vectors nor doorbells.
 *
 * The host does not see that the guest is reset, and knows it by a number
 * that the driver makes up at each probe(): channels that were opened with
 * another one end.
 */

#include <linux/idr.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/srcu.h>

#include "vgpu.h"

#define BAR_REGISTERS 0
#define BAR_MEMORY 2
#define REGISTERS_SIZE 16

static DEFINE_IDA(numbers);
DEFINE_STATIC_SRCU(users);

bool vgpu_enter(struct vgpu *vgpu, int *idx)
{
	*idx = srcu_read_lock(&users);
	if (READ_ONCE(vgpu->dead)) {
		srcu_read_unlock(&users, *idx);
		return false;
	}
	/* For sparse: the caller releases it, if this returns true. */
	__release(&users);
	return true;
}

void vgpu_leave(int idx)
{
	__acquire(&users);
	srcu_read_unlock(&users, idx);
}

static void vgpu_free(struct kref *ref)
{
	struct vgpu *vgpu = container_of(ref, struct vgpu, ref);

	kvfree(vgpu->owners);
	kvfree(vgpu->chunks);
	if (vgpu->number >= 0)
		ida_free(&numbers, vgpu->number);
	pci_dev_put(vgpu->pci);
	kfree(vgpu);
}

void vgpu_put(struct vgpu *vgpu)
{
	kref_put(&vgpu->ref, vgpu_free);
}

/*
 * Interrupts
 */

static irqreturn_t handle_control(int irq, void *data)
{
	struct vgpu *vgpu = data;

	for (u32 i = 0; i < vgpu->layout.n_channels; i++)
		wake_up_all(&vgpu->channels[i].wait);
	return IRQ_HANDLED;
}

static irqreturn_t handle_channel(int irq, void *data)
{
	struct vgpu_channel *channel = data;

	atomic64_inc(&channel->n_interrupts);
	wake_up_all(&channel->wait);
	return IRQ_HANDLED;
}

static void free_interrupts(struct vgpu *vgpu, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		free_irq(pci_irq_vector(vgpu->pci, i),
			 i ? (void *)&vgpu->channels[i - 1] : vgpu);
	pci_free_irq_vectors(vgpu->pci);
	vgpu->n_vectors = 0;
}

static int request_interrupts(struct vgpu *vgpu, unsigned int n)
{
	unsigned int i;
	int r;

	for (i = 0; i < n; i++) {
		if (i)
			r = request_irq(pci_irq_vector(vgpu->pci, i),
					handle_channel, 0, vgpu->name,
					&vgpu->channels[i - 1]);
		else
			r = request_irq(pci_irq_vector(vgpu->pci, i),
					handle_control, 0, vgpu->name, vgpu);
		if (r) {
			free_interrupts(vgpu, i);
			return r;
		}
		if (i)
			vgpu->channels[i - 1].has_vector = true;
	}
	vgpu->n_vectors = n;
	return 0;
}

/* Fewer vectors than channels are no error: waits of the others poll. */
static int set_up_interrupts(struct vgpu *vgpu)
{
	int n;

	n = pci_alloc_irq_vectors(vgpu->pci, 1, 1 + vgpu->layout.n_channels,
				  PCI_IRQ_MSIX);
	if (n < 0) {
		pci_info(vgpu->pci, "no interrupts (%d): waits poll\n", n);
		return 0;
	}
	return request_interrupts(vgpu, n);
}

/*
 * The memory
 */

/* A private copy, from which all that is used is taken. */
static int read_header(struct pci_dev *pci, struct vgpu_shm_header *copy)
{
	void __iomem *page;

	page = ioremap(pci_resource_start(pci, BAR_MEMORY), PAGE_SIZE);
	if (!page)
		return -ENOMEM;
	memcpy_fromio(copy, page, sizeof(*copy));
	iounmap(page);
	return 0;
}

static int check_bars(struct pci_dev *pci)
{
	/* A BAR that firmware or kernel had no address for is "there". */
	if (!pci_resource_start(pci, BAR_MEMORY) ||
	    pci_resource_len(pci, BAR_MEMORY) < VGPU_SHM_SIZE_MIN ||
	    pci_resource_len(pci, BAR_REGISTERS) < REGISTERS_SIZE ||
	    !(pci_resource_flags(pci, BAR_MEMORY) & IORESOURCE_MEM) ||
	    pci_resource_flags(pci, BAR_MEMORY) & IORESOURCE_UNSET)
		return -ENODEV;
	return 0;
}

static int find_layout(struct vgpu *vgpu)
{
	struct pci_dev *pci = vgpu->pci;
	struct vgpu_shm_header copy;
	int r;

	r = check_bars(pci);
	if (!r)
		r = read_header(pci, &copy);
	if (r)
		return r;
	r = vgpu_layout_check(&vgpu->layout, &copy,
			      pci_resource_len(pci, BAR_MEMORY));
	if (r == -EPROTO)
		pci_err(pci,
			"protocol %u, but %u on the host: use one release\n",
			VGPU_PROTOCOL_VERSION, copy.protocol_version);
	else if (r == -EBADMSG)
		pci_err(pci, "the host's header is invalid\n");
	vgpu->generation = copy.generation;
	vgpu->bar = pci_resource_start(pci, BAR_MEMORY);
	return r;
}

static int map_memory(struct vgpu *vgpu)
{
	int r;

	vgpu->n_chunks = DIV_ROUND_UP(vgpu->layout.shm_size, VGPU_CHUNK_SIZE);
	vgpu->chunks =
		kvcalloc(vgpu->n_chunks, sizeof(*vgpu->chunks), GFP_KERNEL);
	vgpu->owners = kvzalloc(vgpu->layout.n_extents, GFP_KERNEL);
	if (!vgpu->chunks || !vgpu->owners)
		return -ENOMEM;
	r = vgpu_pages_add(vgpu, 0, vgpu->layout.extents_off);
	return r ? r : vgpu_pages_map_head(vgpu);
}

static int set_up_memory(struct vgpu *vgpu)
{
	struct pci_dev *pci = vgpu->pci;
	int r;

	/*
	 * Takes the device from processes that have mapped it by sysfs. Exclusive: else a
	 * kernel without CONFIG_IO_STRICT_DEVMEM would let them map it anew.
	 */
	r = pci_request_regions_exclusive(pci, "vgpu");
	if (r)
		return r;
	vgpu->registers = pci_iomap(pci, BAR_REGISTERS, 0);
	r = vgpu->registers ? map_memory(vgpu) : -ENOMEM;
	if (!r)
		return 0;
	vgpu_pages_remove(vgpu);
	if (vgpu->registers)
		pci_iounmap(pci, vgpu->registers);
	pci_release_regions(pci);
	return r;
}

static void release_memory(struct vgpu *vgpu)
{
	vgpu_pages_remove(vgpu);
	pci_iounmap(vgpu->pci, vgpu->registers);
	pci_release_regions(vgpu->pci);
}

/*
 * Probe and removal
 */

static struct vgpu *vgpu_new(struct pci_dev *pci)
{
	struct vgpu *vgpu;

	vgpu = kzalloc(sizeof(*vgpu), GFP_KERNEL);
	if (!vgpu)
		return NULL;
	kref_init(&vgpu->ref);
	vgpu->number = -1;
	vgpu->pci = pci_dev_get(pci);
	mutex_init(&vgpu->chunk_lock);
	mutex_init(&vgpu->lock);
	init_rwsem(&vgpu->map_lock);
	INIT_LIST_HEAD(&vgpu->clients);
	INIT_DELAYED_WORK(&vgpu->drain, vgpu_channel_drain);
	for (u32 i = 0; i < VGPU_CHANNELS_MAX; i++)
		init_waitqueue_head(&vgpu->channels[i].wait);
	get_random_bytes(vgpu->boot_id, sizeof(vgpu->boot_id));
	return vgpu;
}

static int register_device(struct vgpu *vgpu)
{
	vgpu->misc.minor = MISC_DYNAMIC_MINOR;
	vgpu->misc.name = vgpu->name;
	vgpu->misc.fops = &vgpu_fops;
	vgpu->misc.parent = &vgpu->pci->dev;
	vgpu->misc.mode = 0660;
	return misc_register(&vgpu->misc);
}

static int start(struct vgpu *vgpu)
{
	int r;

	vgpu->number = ida_alloc(&numbers, GFP_KERNEL);
	if (vgpu->number < 0)
		return vgpu->number;
	snprintf(vgpu->name, sizeof(vgpu->name), "vgpu%d", vgpu->number);
	r = set_up_memory(vgpu);
	if (r)
		return r;
	pci_set_master(vgpu->pci);
	r = set_up_interrupts(vgpu);
	if (r) {
		release_memory(vgpu);
		return r;
	}
	vgpu_channel_write_boot_id(vgpu, vgpu->boot_id);
	r = register_device(vgpu);
	if (r) {
		vgpu_channel_write_boot_id(vgpu, NULL);
		free_interrupts(vgpu, vgpu->n_vectors);
		release_memory(vgpu);
	}
	return r;
}

static int probe(struct pci_dev *pci, const struct pci_device_id *id)
{
	struct vgpu *vgpu;
	int r;

	BUILD_BUG_ON(PAGE_SIZE != VGPU_STATUS_ALIGN);
	vgpu = vgpu_new(pci);
	if (!vgpu)
		return -ENOMEM;
	r = pci_enable_device(pci);
	if (r) {
		vgpu_put(vgpu);
		return r;
	}
	/*
	 * If the device was enabled by sysfs before, the call above has not
	 * noted its state, which the last driver's removal made unknown; an
	 * unknown one gets no interrupts. The result is of no use: a device
	 * without power management has none.
	 */
	pci_set_power_state(pci, PCI_D0);
	r = find_layout(vgpu);
	if (!r)
		r = start(vgpu);
	if (r) {
		pci_disable_device(pci);
		vgpu_put(vgpu);
		return r;
	}
	pci_set_drvdata(pci, vgpu);
	pci_info(pci, "%s: %llu MiB, %u channels, %u vectors\n", vgpu->name,
		 vgpu->layout.shm_size >> 20, vgpu->layout.n_channels,
		 vgpu->n_vectors);
	return 0;
}

/* No page is inserted and nothing begins to wait after this. */
static void revoke(struct vgpu *vgpu)
{
	struct vgpu_client *client;

	mutex_lock(&vgpu->lock);
	down_write(&vgpu->map_lock);
	WRITE_ONCE(vgpu->dead, true);
	up_write(&vgpu->map_lock);
	vgpu_channel_close_all(vgpu);
	list_for_each_entry(client, &vgpu->clients, node)
		vgpu_pages_zap(client->file, 0, 0);
	mutex_unlock(&vgpu->lock);
	for (u32 i = 0; i < vgpu->layout.n_channels; i++)
		wake_up_all(&vgpu->channels[i].wait);
}

static void remove(struct pci_dev *pci)
{
	struct vgpu *vgpu = pci_get_drvdata(pci);

	misc_deregister(&vgpu->misc);
	revoke(vgpu);
	synchronize_srcu(&users);
	cancel_delayed_work_sync(&vgpu->drain);
	vgpu_pages_wait(vgpu);
	vgpu_channel_finish_all(vgpu);
	vgpu_channel_write_boot_id(vgpu, NULL);
	vgpu_channel_wait_for_host(vgpu);
	free_interrupts(vgpu, vgpu->n_vectors);
	release_memory(vgpu);
	pci_disable_device(pci);
	/* The next device may have the name while old files are open. */
	ida_free(&numbers, vgpu->number);
	vgpu->number = -1;
	vgpu_put(vgpu);
}

/* The next kernel may have no driver: its processes come by sysfs. */
static void shutdown(struct pci_dev *pci)
{
	struct vgpu *vgpu = pci_get_drvdata(pci);

	revoke(vgpu);
	vgpu_channel_write_boot_id(vgpu, NULL);
}

/*
 * Sleep. The host keeps the memory of a guest that is suspended; PCI's core
 * saves and restores registers and vectors. Interrupts may have been lost.
 */

static int resume(struct device *device)
{
	struct vgpu *vgpu = dev_get_drvdata(device);

	for (u32 i = 0; i < vgpu->layout.n_channels; i++)
		handle_channel(0, &vgpu->channels[i]);
	return 0;
}

/* Another QEMU, whose host knows none of these channels. */
static int restore(struct device *device)
{
	struct vgpu *vgpu = dev_get_drvdata(device);

	mutex_lock(&vgpu->lock);
	vgpu_channel_close_all(vgpu);
	get_random_bytes(vgpu->boot_id, sizeof(vgpu->boot_id));
	vgpu_channel_write_boot_id(vgpu, vgpu->boot_id);
	mutex_unlock(&vgpu->lock);
	return resume(device);
}

static const struct dev_pm_ops pm_ops = {
	.resume = resume,
	.thaw = resume,
	.restore = restore,
};

/*
 * Reset of the PCI function, which the host does not see. Meanwhile stores to
 * the memory and doorbells are lost: so the pages are taken out of all
 * processes, whose next access waits, as does each call that needs a lock.
 */

static void reset_prepare(struct pci_dev *pci)
{
	struct vgpu *vgpu = pci_get_drvdata(pci);
	struct vgpu_client *client;

	mutex_lock(&vgpu->lock);
	down_write(&vgpu->map_lock);
	list_for_each_entry(client, &vgpu->clients, node)
		vgpu_pages_zap(client->file, 0, 0);
}

static void reset_done(struct pci_dev *pci)
{
	struct vgpu *vgpu = pci_get_drvdata(pci);

	up_write(&vgpu->map_lock);
	/* A doorbell without a request does no harm. */
	vgpu_ring(vgpu, VGPU_DOORBELL_CONTROL);
	for (u32 i = 0; i < vgpu->layout.n_channels; i++)
		if (vgpu->channels[i].client)
			vgpu_ring(vgpu, VGPU_DOORBELL_CHANNEL(i));
	mutex_unlock(&vgpu->lock);
	resume(&pci->dev);
}

static const struct pci_error_handlers error_handlers = {
	.reset_prepare = reset_prepare,
	.reset_done = reset_done,
};

static const struct pci_device_id ids[] = {
	{PCI_DEVICE(0x1af4, 0x1110)}, /* ivshmem */
	{},
};
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver vgpu_driver = {
	.name = "vgpu",
	.id_table = ids,
	.probe = probe,
	.remove = remove,
	.shutdown = shutdown,
	.err_handler = &error_handlers,
	.driver.pm = pm_ptr(&pm_ops),
};

module_pci_driver(vgpu_driver);

MODULE_DESCRIPTION("Shared memory and doorbells of a vGPU host");
MODULE_AUTHOR("The vGPU authors");
MODULE_LICENSE("GPL");
