// SPDX-License-Identifier: GPL-2.0
/*
 * Pages: struct pages over the parts of the BAR that are in use, and their
 * mappings
 *
 * Only a mapping by struct pages is cached in every firmware's address map.
 * They cost 1/64 of the memory, so a chunk gets them when the first extent of
 * it is granted, and keeps them until the device is removed.
 *
 * A page in a pipe or in a transfer outlives its mapping. So a channel's
 * memory goes back to the host only when its pages have no users but this
 * driver, and a device is unmapped only then.
 */

#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "vgpu.h"

/* Pages that are inserted at once. */
#define BATCH 64
#define WAIT_MS 10
#define WAITS_BEFORE_WARNING 500

static int add_chunk(struct vgpu *vgpu, unsigned int chunk)
{
	const u64 from = chunk * VGPU_CHUNK_SIZE;
	const u64 size =
		min_t(u64, VGPU_CHUNK_SIZE, vgpu->layout.shm_size - from);
	struct dev_pagemap *map;
	void *r;

	if (vgpu->chunks[chunk])
		return 0;
	map = kzalloc(sizeof(*map), GFP_KERNEL);
	if (!map)
		return -ENOMEM;
	map->type = MEMORY_DEVICE_GENERIC;
	map->nr_range = 1;
	map->range.start = vgpu->bar + from;
	map->range.end = vgpu->bar + from + size - 1;
	r = memremap_pages(map, dev_to_node(&vgpu->pci->dev));
	if (IS_ERR(r)) {
		kfree(map);
		return PTR_ERR(r);
	}
	vgpu->chunks[chunk] = map;
	return 0;
}

int vgpu_pages_add(struct vgpu *vgpu, u64 off, u64 size)
{
	unsigned int chunk = off / VGPU_CHUNK_SIZE;
	int r = 0;

	mutex_lock(&vgpu->chunk_lock);
	for (; !r && chunk <= (off + size - 1) / VGPU_CHUNK_SIZE; chunk++)
		r = add_chunk(vgpu, chunk);
	mutex_unlock(&vgpu->chunk_lock);
	return r;
}

static struct page *page_at(struct vgpu *vgpu, u64 off)
{
	return pfn_to_page(PHYS_PFN(vgpu->bar + off));
}

int vgpu_pages_map_head(struct vgpu *vgpu)
{
	const unsigned int n = vgpu->layout.extents_off >> PAGE_SHIFT;
	struct page **pages;

	pages = kvmalloc_array(n, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	for (unsigned int i = 0; i < n; i++)
		pages[i] = page_at(vgpu, (u64)i << PAGE_SHIFT);
	/* Not the address that memremap_pages() returns: that one is uncached
	 * where the firmware says so.
	 */
	vgpu->head = vmap(pages, n, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	return vgpu->head ? 0 : -ENOMEM;
}

bool vgpu_pages_are_idle(struct vgpu *vgpu, u64 off, u64 size)
{
	for (u64 end = off + size; off < end; off += PAGE_SIZE) {
		/* The one reference is that of the struct page itself. */
		if (page_ref_count(page_at(vgpu, off)) > 1)
			return false;
		if (!(off % VGPU_EXTENT_SIZE))
			cond_resched();
	}
	return true;
}

static void wait_until_idle(struct vgpu *vgpu, struct dev_pagemap *map)
{
	const u64 off = map->range.start - vgpu->bar;
	unsigned int n = 0;

	while (!vgpu_pages_are_idle(vgpu, off, range_len(&map->range))) {
		if (++n == WAITS_BEFORE_WARNING)
			pci_warn(vgpu->pci, "waits for its pages\n");
		msleep(WAIT_MS);
	}
}

void vgpu_pages_wait(struct vgpu *vgpu)
{
	for (unsigned int i = 0; i < vgpu->n_chunks; i++)
		if (vgpu->chunks[i])
			wait_until_idle(vgpu, vgpu->chunks[i]);
}

void vgpu_pages_remove(struct vgpu *vgpu)
{
	if (vgpu->head)
		vunmap(vgpu->head);
	vgpu->head = NULL;
	for (unsigned int i = 0; i < vgpu->n_chunks; i++) {
		if (!vgpu->chunks[i])
			continue;
		memunmap_pages(vgpu->chunks[i]);
		kfree(vgpu->chunks[i]);
		vgpu->chunks[i] = NULL;
	}
}

void vgpu_pages_zap(struct file *file, u64 off, u64 size)
{
	unmap_mapping_range(file->f_mapping, off, size, 1);
}

/* Inserts what is not there yet of n pages. */
static int insert(struct vgpu *vgpu, struct vm_area_struct *vma,
		  unsigned long address, u64 off, unsigned long n)
{
	struct page *pages[BATCH];
	unsigned long i, count, left;
	int r;

	while (n) {
		count = min_t(unsigned long, n, BATCH);
		for (i = 0; i < count; i++)
			pages[i] = page_at(vgpu, off + (i << PAGE_SHIFT));
		left = count;
		r = vm_insert_pages(vma, address, pages, &left);
		if (r && r != -EBUSY)
			return r;
		/* EBUSY: the first that is left is there already. */
		count -= left - (r == -EBUSY);
		n -= count;
		off += count << PAGE_SHIFT;
		address += count << PAGE_SHIFT;
	}
	return 0;
}

static vm_fault_t fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct vgpu_client *client = vma->vm_private_data;
	const u64 first = (u64)vmf->pgoff << PAGE_SHIFT;
	const u64 vma_off = (u64)vma->vm_pgoff << PAGE_SHIFT;
	struct vgpu *vgpu = client->vgpu;
	unsigned long address;
	u64 from, to;
	int r = -ENODEV;

	/* As far as the extent, or area, goes to both sides. */
	from = max(round_down(first, VGPU_EXTENT_SIZE), vma_off);
	to = min(round_down(first, VGPU_EXTENT_SIZE) + VGPU_EXTENT_SIZE,
		 vma_off + vma->vm_end - vma->vm_start);
	address = vma->vm_start + (from - vma_off);

	down_read(&vgpu->map_lock);
	if (!vgpu->dead && !client->revoked)
		r = insert(vgpu, vma, address, from, (to - from) >> PAGE_SHIFT);
	up_read(&vgpu->map_lock);
	if (r)
		return r == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_SIGBUS;
	return VM_FAULT_NOPAGE;
}

static const struct vm_operations_struct vm_ops = {
	.fault = fault,
};

/* Parts that every process may read. */
static bool is_public(struct vgpu *vgpu, u64 off, u64 size)
{
	const u64 status = vgpu->layout.status_off;

	if (!off && size == PAGE_SIZE)
		return true;
	return status && off >= status && off - status < VGPU_STATUS_SIZE &&
	       size <= VGPU_STATUS_SIZE - (off - status);
}

static void set_flags(struct vm_area_struct *vma, bool is_writable)
{
	unsigned long clear = VM_MAYEXEC;

	if (!is_writable)
		clear |= VM_MAYWRITE;
#ifdef VGPU_HAVE_VM_FLAGS_MOD
	vm_flags_mod(vma,
		     VM_MIXEDMAP | VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP,
		     clear);
#else
	vma->vm_flags |=
		VM_MIXEDMAP | VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP;
	vma->vm_flags &= ~clear;
#endif
}

static int check(struct vgpu_client *client, struct vm_area_struct *vma)
{
	const u64 size = vma->vm_end - vma->vm_start;
	struct vgpu *vgpu = client->vgpu;
	u64 off;

	if (!(vma->vm_flags & VM_MAYSHARE) || (vma->vm_flags & VM_EXEC))
		return -EINVAL;
	if (vma->vm_pgoff >= vgpu->layout.shm_size >> PAGE_SHIFT)
		return -EINVAL;
	off = (u64)vma->vm_pgoff << PAGE_SHIFT;
	if (size > vgpu->layout.shm_size - off)
		return -EINVAL;
	if (is_public(vgpu, off, size)) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		set_flags(vma, false);
		return 0;
	}
	if (!(client->file->f_mode & FMODE_WRITE) ||
	    !vgpu_channel_has(client, off, size))
		return -EACCES;
	set_flags(vma, true);
	return 0;
}

int vgpu_pages_mmap(struct vgpu_client *client, struct vm_area_struct *vma)
{
	int r;

	mutex_lock(&client->vgpu->lock);
	r = check(client, vma);
	mutex_unlock(&client->vgpu->lock);
	if (r)
		return r;
	vma->vm_private_data = client;
	vma->vm_ops = &vm_ops;
	return 0;
}
