/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A guest process that only opens channels, for tests of vgpud
 */

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/ring-layout.h"

struct guest {
	int socket;
	int shm;
	uint64_t size;
	uint8_t *map;
	struct vgpu_shm_header *header;
	int doorbells[VGPU_IVSHMEM_VECTORS];
	int interrupts[VGPU_IVSHMEM_VECTORS];
	unsigned int n_doorbells;
	unsigned int n_interrupts;
	int64_t peer;
};

#define GUEST_WINDOW_1 0x100000000000ull
#define GUEST_WINDOW_1_SIZE 0x400000000000ull
#define GUEST_WINDOW_2 0x550000000000ull
#define GUEST_WINDOW_2_SIZE 0x005000000000ull

/* Connects like a process of this machine, like QEMU, or by an existing file. */
void guest_connect(struct guest *guest, const char *path);
void guest_connect_qemu(struct guest *guest, const char *path);
void guest_connect_plain(struct guest *guest, const char *path);
void guest_disconnect(struct guest *guest);

/* Connects a stream socket. Returns: the descriptor, or -1. */
int guest_try_connect(const char *path);

struct vgpu_channel_entry *guest_entry(const struct guest *guest, unsigned int channel);
uint8_t *guest_area(const struct guest *guest, unsigned int channel);
uint8_t *guest_extent(const struct guest *guest, unsigned int extent);

/* Claims an entry and fills in a valid hello; comm selects the fake worker's
 * behaviour. */
void guest_claim(struct guest *guest, unsigned int channel, const char *comm);

/* Writes a state and rings. */
void guest_ask(struct guest *guest, unsigned int channel, uint32_t state);
void guest_ring(struct guest *guest);

/* Waits until the state is that one; it fails the test if that takes very long. */
void guest_wait(struct guest *guest, unsigned int channel, uint32_t state);

/* Claims, opens and waits until it is open. */
void guest_open(struct guest *guest, unsigned int channel, const char *comm);

/* Opens and waits until it is refused. Returns: the reason. */
uint32_t guest_open_refused(struct guest *guest, unsigned int channel, const char *comm);

/* Closes and waits until the entry is free. */
void guest_close(struct guest *guest, unsigned int channel);

/* The place in the area where the fake worker counts grants, refusals and findings. */
#define GUEST_GRANTS_OFF (VGPU_WORDS_OFF + VGPU_CACHE_LINE)

/* Where it finds, and leaves, the token of shared memory, and what that contains. */
#define GUEST_TOKEN_OFF (GUEST_GRANTS_OFF + VGPU_CACHE_LINE)
#define GUEST_SHARED_OFF (GUEST_TOKEN_OFF + VGPU_CACHE_LINE)

uint64_t guest_count_grants(const struct guest *guest, unsigned int channel);

/* Waits until a condition holds. */
#define guest_wait_for(_condition)                                                       \
	do {                                                                             \
		for (int ms_ = 0; !(_condition); ms_++) {                                \
			if (ms_ > 30000)                                                 \
				test_fail(__FILE__, __LINE__, "never so: %s",            \
					#_condition);                                    \
			usleep(1000);                                                    \
		}                                                                        \
	} while (0)
