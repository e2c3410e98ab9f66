/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once

/*
 * Layout of the shared memory
 *
 * One memfd per virtual machine, made by vgpud and seen by the guest as BAR2 of
 * its ivshmem device (over the socket transport: one memfd per connection, passed
 * as a descriptor). This file defines everything that both sides share;
 * numbers are little-endian, all offsets count bytes from the start of the memory.
 *
 *	0		header, one page
 *	4 KiB		channel table, n_channels entries
 *	status_off	what the GPUs are and do, for NVML: see status.h
 *	owners_off	for the guest's kernel: the owner of each extent
 *	area_off	n_channels channel areas of VGPU_AREA_SIZE bytes
 *	extents_off	the arena: n_extents extents of VGPU_EXTENT_SIZE bytes
 *
 * A channel belongs to one guest process and one worker. Its area:
 *
 *	0		control page: ring indices and flags, struct vgpu_channel_control
 *	256 KiB		submission ring, VGPU_RING_SIZE bytes
 *	512 KiB		completion words, one cache line each
 *	1 MiB		reply slots, one per guest thread that is calling
 *	3 MiB		words of records of events, VGPU_RECORDS_MAX of 8 bytes
 *
 * Trust: the host trusts nothing it reads here. It reads each word once into a
 * local, and keeps its state in private memory; fields marked
 * "host" are output only. A guest process trusts the host with its own memory; the
 * guest's kernel driver trusts nobody. It includes this file too, hence the second
 * licence.
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define VGPU_CACHE_LINE 64

/* The major version: changes whenever anything in this file or in frame.h changes its
 * meaning. For additions see version.h. */
#define VGPU_PROTOCOL_VERSION 3u

#define VGPU_SHM_MAGIC 0x314d485355504756ull /* "VGPUSHM1" in memory order */
#define VGPU_SHM_TABLE_OFF 4096u

/* MSI-X vectors, equally many doorbells each way: QEMU's vectors= must be this. */
#define VGPU_IVSHMEM_VECTORS 32u
/* Doorbell 0 wakes the broker, doorbell 1 + n the worker of channel n. */
#define VGPU_DOORBELL_CONTROL 0u
#define VGPU_DOORBELL_CHANNEL(_n) (1u + (_n))
#define VGPU_CHANNELS_MAX (VGPU_IVSHMEM_VECTORS - 1)

#define VGPU_EXTENT_SIZE (2u << 20)
#define VGPU_AREA_SIZE (4u << 20)
#define VGPU_RING_OFF (256u << 10)
#define VGPU_RING_SIZE (256u << 10)
#define VGPU_WORDS_OFF (512u << 10)
#define VGPU_WORDS_MAX 8192u
#define VGPU_SLOTS_OFF (1u << 20)
#define VGPU_SLOTS_MAX 1024u
#define VGPU_SLOT_SIZE 2048u
#define VGPU_RECORDS_OFF (3u << 20)
#define VGPU_RECORDS_MAX 32768u

/* The status takes at most this, and shares no page with anything else: processes map it.
 */
#define VGPU_STATUS_SIZE (448u << 10)
#define VGPU_STATUS_ALIGN 4096u
/* From the start of the memory; a byte for each extent follows. */
#define VGPU_OWNERS_OFF (1u << 20)
/* All but the extents is at most this long. */
#define VGPU_HEAD_SIZE_MAX (VGPU_EXTENT_SIZE + VGPU_CHANNELS_MAX * VGPU_AREA_SIZE)

/* Smallest memory: all of one channel and one run of 16 extents. */
#define VGPU_SHM_SIZE_MIN (64u << 20)

struct vgpu_shm_header {
	/* Host, constant while the generation stays. */
	uint64_t magic;
	uint32_t protocol_version;
	uint32_t n_channels;
	uint64_t shm_size;
	uint64_t area_off;
	uint64_t extents_off;
	uint32_t n_extents;
	/* The host's minor version and features when it made this memory; those of a
	 * session are in its entry. */
	uint32_t protocol_minor;
	uint64_t features;
	uint64_t status_off; /* of struct vgpu_status, see status.h; 0: there is none */

	/* Host, alive: grows at least every VGPU_HEARTBEAT_MS; generation grows when
	 * the host side starts afresh and knows no channel of the old one. */
	uint64_t heartbeat;
	uint64_t generation;
	/* Constant while the generation stays: of the table of owners, n_extents bytes,
	 * each 0, or 1 + the channel to which that extent is granted. It is complete
	 * before a grant is announced, and erased before the channel is FREE. 0: there is
	 * no table. */
	uint64_t owners_off;
	/* n_requests as it was when the host last began to look at all channels. */
	uint32_t n_served;
	uint32_t reserved1;
	uint64_t reserved2[4];

	/* Guest: what its kernel driver calls this boot, 0 without a driver; a channel of
	 * another boot is dead. */
	uint8_t boot_id[16];
	/* Guest: grows before doorbell 0. */
	uint32_t n_requests;
	/* Guest: not 0 once its kernel driver is being removed. The host sends no more
	 * interrupts: the device may be gone. */
	uint32_t is_leaving;
	uint64_t reserved4[5];
};

#define VGPU_HEARTBEAT_MS 200

static_assert(offsetof(struct vgpu_shm_header, heartbeat) == 64, "own cache line");
static_assert(offsetof(struct vgpu_shm_header, boot_id) == 128, "own cache line");
static_assert(sizeof(struct vgpu_shm_header) == 192, "fixed size");

/*
 * Life of a channel; only the side named makes the step:
 *
 *	FREE --guest (compare-and-swap)--> CLAIMED --guest (the same)--> OPENING
 *	CLAIMED --host, after some seconds--> FREE (its process was killed)
 *	OPENING --host--> OPEN or REFUSED
 *	REFUSED --guest--> OPENING (with another window) or CLOSING
 *	OPEN --host--> DEAD (the worker ended; result: why)
 *	OPEN, DEAD --guest--> CLOSING, also on behalf of a process that has ended
 *	CLOSING --host, once the channel is released--> FREE
 */
enum vgpu_channel_state {
	VGPU_CHANNEL_FREE,
	VGPU_CHANNEL_CLAIMED,
	VGPU_CHANNEL_OPENING,
	VGPU_CHANNEL_OPEN,
	VGPU_CHANNEL_REFUSED,
	VGPU_CHANNEL_DEAD,
	VGPU_CHANNEL_CLOSING,
	_VGPU_CHANNEL_STATE_N,
};

/* Why the host refused or ended a channel. */
enum vgpu_channel_reason {
	VGPU_REASON_NONE,
	VGPU_REASON_VERSION,   /* protocol versions differ */
	VGPU_REASON_WINDOW,    /* the window is taken in the worker: try another */
	VGPU_REASON_NO_DEVICE, /* the host's driver does not start, or shows no device */
	VGPU_REASON_LIMIT,     /* the shared memory has no room for one more process */
	VGPU_REASON_HOST,      /* a failure of the host: its log has it */
	VGPU_REASON_PROTOCOL,  /* the guest broke the protocol */
	VGPU_REASON_WORKER_DIED, /* crashed or was killed; detail: the signal, or 0 */
	VGPU_REASON_SHUTDOWN,	 /* vgpud is shutting down */
	VGPU_REASON_PROCESSES,	 /* max-processes is reached; detail: its value */
	VGPU_REASON_WORKERS,	 /* max-workers is reached; detail: its value */
	VGPU_REASON_HOST_MEMORY, /* host-memory is passed; detail: MiB */
	VGPU_REASON_NO_DRIVER,	 /* the host's driver library is not there */
	_VGPU_REASON_N,
};

struct vgpu_channel_entry {
	uint32_t state; /* enum vgpu_channel_state */
	/* Guest: the process that claimed it, not 0; 0 while it is free. Compared and
	 * swapped together with the state, so that a process whose claim was revoked
	 * cannot continue with it. */
	uint32_t claim;
	uint32_t reserved0[14];

	/* Guest, before OPENING: the hello. */
	uint32_t protocol_version;
	uint32_t api_version; /* as cuDriverGetVersion */
	uint64_t features;
	uint32_t pid;
	uint32_t uid;
	uint64_t start_time; /* field 22 of /proc/PID/stat: detects a reused pid */
	uint8_t boot_id[16];
	uint64_t window_base; /* of the address window, see hello.h */
	uint64_t window_size;

	uint8_t comm[16];
	uint64_t pid_namespace;	 /* inode of /proc/self/ns/pid: whose pid that is */
	uint32_t protocol_minor; /* see version.h */
	uint32_t reserved1;
	uint64_t reserved2[4];

	/* Host, before OPEN or REFUSED. */
	uint32_t host_protocol_version;
	uint32_t host_api_version;
	uint64_t host_features;
	uint32_t reason; /* enum vgpu_channel_reason */
	uint32_t worker_pid;
	uint64_t area_off;
	uint32_t first_extent; /* the first grant of arena, see VgpuArenaGrow */
	uint32_t n_extents;
	uint64_t detail; /* a number that belongs to the reason */
	uint32_t host_protocol_minor;
	uint32_t reserved3;
	uint64_t reserved4;
};

static_assert(offsetof(struct vgpu_channel_entry, claim) == 4, "one 64-bit word");
static_assert(offsetof(struct vgpu_channel_entry, protocol_version) == 64, "own line");
static_assert(offsetof(struct vgpu_channel_entry, comm) == 128, "own line");
static_assert(
	offsetof(struct vgpu_channel_entry, protocol_minor) == 152, "part of the hello");
static_assert(
	offsetof(struct vgpu_channel_entry, host_protocol_version) == 192, "own line");
static_assert(sizeof(struct vgpu_channel_entry) == 256, "fixed size");
static_assert(
	VGPU_SHM_TABLE_OFF + VGPU_CHANNELS_MAX * sizeof(struct vgpu_channel_entry) <=
		VGPU_EXTENT_SIZE,
	"the table ends before the first area");

/*
 * Control page of a channel. Indices are free-running byte counts and are masked
 * on use; the masks are private constants of each side.
 */
#define VGPU_CAPTURES_NONE (1u << 31)

struct vgpu_channel_control {
	/* Guest: end of the submitted frames. Partner: the consumer's acquire load. */
	uint64_t tail;
	/* Guest: a number that it changes, followed by a doorbell, to check whether the
	 * worker is alive while the host's heartbeat has stopped. */
	uint32_t asked;
	uint32_t reserved0[13];

	/* Host: end of the consumed frames. Partner: the producer's acquire load. */
	uint64_t head;
	uint64_t reserved1[7];

	/* Host: nonzero while the dispatcher sleeps and wants its doorbell rung. */
	uint32_t consumer_sleeping;
	/* Host: nonzero for at least VGPU_RING_SETTLE_NS before consumer_sleeping is set.
	 * While it is 0 a producer need not look any further, see ring.c. */
	uint32_t consumer_idle;
	/* Host: the value of `asked` when the dispatcher was last idle. */
	uint32_t answered;
	uint32_t reserved2[13];

	/* Host: how many faults work of the process met so far. When it has grown, a
	 * guest asks which of its contexts are concerned (vgpuContextFault). */
	uint32_t n_faults;
	/* Host: captures of streams that are live. While there are any, the guest asks
	 * for a reply to each call and answers none from a completion word. It changes
	 * before the reply to the call that begins or ends a capture. The bit
	 * VGPU_CAPTURES_NONE asks for the replies alone; a guest of before that does more
	 * than it has to. */
	uint32_t n_captures;
	uint32_t reserved3[14];

	/* Host: bytes of text of kernels so far, see vgpuPrintFetch. Grows before the
	 * reply to the call that waited for the kernels. */
	uint64_t printed;
	/* Host: nonzero once code was loaded that may print or assert: a wait that ends
	 * by a completion word then owes the driver a synchronising call. */
	uint32_t may_print;
	uint32_t reserved4[13];
};

static_assert(offsetof(struct vgpu_channel_control, head) == 64, "own line");
static_assert(
	offsetof(struct vgpu_channel_control, consumer_sleeping) == 128, "own line");
static_assert(offsetof(struct vgpu_channel_control, n_faults) == 192, "own line");
static_assert(offsetof(struct vgpu_channel_control, printed) == 256, "own line");
static_assert(sizeof(struct vgpu_channel_control) == 320, "fixed size");

/*
 * Completion word: a 64-bit number that only grows, written by the device (or by the
 * worker on its behalf) when the work before it is complete. The guest chose the number
 * and the slot when it submitted that work.
 */
struct vgpu_word {
	uint64_t value;
	uint64_t reserved[7];
};

static_assert(sizeof(struct vgpu_word) == VGPU_CACHE_LINE, "own line");

/*
 * Record of an event: a number that the guest chose, not 0, and that the device writes to
 * one of VGPU_RECORDS_MAX words of 8 bytes when the work before the record is complete.
 * Its low bits select the word; the others make it greater than all earlier ones there.
 * Eight words share a cache line, so that the search for free ones is cheap; neighbours
 * are consecutive records.
 */
#define VGPU_RECORD_SLOT_BITS 16u

static inline uint32_t vgpu_record_slot(uint64_t record)
{
	return (uint32_t)(record & ((1u << VGPU_RECORD_SLOT_BITS) - 1));
}

/*
 * Reply slot. A guest thread takes one at its first call and releases it when it ends;
 * the slot's number is the frame's lane. A call has the next sequence of its slot; the
 * reply is valid once `sequence` equals it, so a reply that arrives after its caller gave
 * up is never mistaken for the reply to another call.
 *
 * A short reply, as nearly all are, is in the cache line of its sequence: a reader that
 * sees the sequence has the reply.
 */
struct vgpu_reply_slot {
	/* Host writes, the size first, the sequence last (release). */
	uint32_t sequence;
	uint32_t size; /* of the packed reply message in body */
	/* Guest: nonzero while it sleeps on `sequence` and the host can wake it. */
	uint32_t waiting;
	/* Host, with the size, where the call failed: enum vgpu_reply_reason. */
	uint32_t reason;
	uint8_t body[VGPU_SLOT_SIZE - 16];
};

static_assert(offsetof(struct vgpu_reply_slot, body) == 16, "in the first line");
static_assert(VGPU_SLOT_SIZE % VGPU_CACHE_LINE == 0, "slots share no line");
static_assert(sizeof(struct vgpu_reply_slot) == VGPU_SLOT_SIZE, "fixed size");

static_assert(VGPU_RING_OFF + VGPU_RING_SIZE <= VGPU_WORDS_OFF, "no overlap");
static_assert(
	VGPU_WORDS_OFF + VGPU_WORDS_MAX * sizeof(struct vgpu_word) <= VGPU_SLOTS_OFF,
	"no overlap");
static_assert(VGPU_SLOTS_OFF + VGPU_SLOTS_MAX * VGPU_SLOT_SIZE <= VGPU_RECORDS_OFF,
	"no overlap");
static_assert(VGPU_RECORDS_OFF + VGPU_RECORDS_MAX * sizeof(uint64_t) <= VGPU_AREA_SIZE,
	"records fit the area");
static_assert(VGPU_RECORDS_MAX < 1u << VGPU_RECORD_SLOT_BITS, "some name no slot");
static_assert(VGPU_AREA_SIZE % VGPU_EXTENT_SIZE == 0, "extents stay aligned");

/* Packed reply messages are at most this long: longer data uses the arena. */
#define VGPU_REPLY_MAX (VGPU_SLOT_SIZE - 16)
