/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Page: what the host says about the GPUs, in the shared memory
 *
 * Any thread may read it while the library is initialised. If the host has gone, a read
 * looks for it again, at most once a second.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vgpu/nvml.h"
#include "vgpu/status.h"

/* The size of the head. */
#define NVML_PAGE_HEAD offsetof(struct vgpu_status, devices)

/* A piece of struct vgpu_status that a reader wants; whole words. */
struct nvml_piece {
	void *to;
	size_t off;
	size_t size;
};

/* Waits until the host has found its devices. Says why there is no host. */
nvmlReturn_t nvml_page_open(void);
void nvml_page_close(void);

/* Copies the pieces as they were at one time. Return: NVML_ERROR_GPU_IS_LOST without a
 * host. */
nvmlReturn_t nvml_page_read(const struct nvml_piece *pieces, size_t n_pieces);

/* What struct vgpu_status has before the devices. */
struct nvml_page_head {
	uint32_t sequence;
	uint32_t flags;
	uint64_t updated_us;
	uint32_t n_devices;
	uint32_t n_processes;
	int32_t cuda_version;
	uint32_t reserved0;
	char driver_version[80];
	uint64_t memory_limit;
	uint64_t memory_used;
	uint64_t reserved1[8];
};

/* The head alone, with numbers that are within bounds and a text that ends. */
nvmlReturn_t nvml_page_read_head(struct nvml_page_head *head);

/* Bounds the numbers of a head that was read as a piece. */
void nvml_page_bound(struct nvml_page_head *head);

void nvml_page_before_fork(void);
void nvml_page_after_fork(bool is_child);
