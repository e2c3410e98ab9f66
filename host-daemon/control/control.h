/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Control: the protocol between vgpud and one of its workers
 *
 * A worker is started, long before it is needed, as
 *
 *	vgpu-worker --control FD --stats FD --log-level LEVEL
 *		--driver auto|nvidia|soft|null|PATH --softgpu PATH --null-driver PATH
 *		[--devices LIST]
 *		[--softgpu-name NAME] [--softgpu-cc MAJOR.MINOR]
 *		[--softgpu-memory BYTES] [--softgpu-threads N]
 *		[--softgpu-timeout MILLISECONDS] [--softgpu-schedule long|fair]
 *		[--softgpu-check yes]
 *
 * with descriptors 0-2 (it logs to 2) and these two, no others. The control descriptor is
 * a SOCK_SEQPACKET socket; a packet is one struct control_message. The worker exits when
 * it reads end-of-file. The messages, in order ("->" is vgpud to worker):
 *
 *	<- READY	version; driver opened, window candidates reserved, cuInit done.
 *			With a reason other than NONE the worker is unusable, and exits
 *	-> RECORD	before ASSIGN, or never: the socket into which the session is to
 *be recorded (recording.h)
 *	-> ASSIGN	version; the channel to serve, with descriptors; once in its life
 *	<- OPENED	NONE: it serves. WINDOW: that window is not free. Any other
 *			reason: it cannot serve, and exits
 *	-> WINDOW	another window; answered by OPENED again
 *	<- WANT		more arena; at most one request at a time, with a unique cookie:
 *			a repeated request gets the same extents
 *	-> GRANT	the answer, with the same cookie. With another cookie it is late,
 *			but its extents belong to the channel nevertheless. It may arrive
 *			twice, because the broker was replaced
 *	<- FIND		request for an image that its VM may have sent before, by digest
 *	-> IMAGE	the answer, with the same cookie: the image's descriptor, or none.
 *			With another cookie it is late or repeated, and ignored
 *	<- FILE		request for a memory file for an image of that size, answered like
 *			FIND. A worker cannot create one that has content
 *	<- KEEP		an image for other processes of the VM, with its descriptor: a
 *			file of FILE, sealed against all changes. It replaces any image
 *			with the same digest. Not answered
 *	<- DROP		the file of the FILE with this cookie is not needed; it is
 *			emptied. Not answered
 *	<- SHARE	device memory for other processes of the VM: its descriptor; or
 *			none, then vgpud makes a memory file of that size and
 *			CONTROL_LABEL_SIZE more
 *	<- TAKE		request for memory that another process shares, by token
 *	-> SHARED	the answer to both, with the same cookie: the token, the size, and
 *			the descriptor unless it came with SHARE; or a size of 0
 *	<- LEAVE	the worker has released the memory of the SHARE or TAKE with this
 *			cookie. Not answered
 *	<- ENDED	the reason why the worker exits by itself; its last message
 *	-> STOP		end the session and exit; SIGKILL follows after CONTROL_STOP_MS
 *	<- ROOM		vgpud is to look at the worker's room (room.h). Not answered by a
 *			message; only if the room is on
 *	-> MOVE		the worker is to look there
 *
 * The broker peeks a message, handles it, and removes it then; it may be killed in
 * between, and the next broker sees the message again. So all messages and answers are
 * idempotent: see docs/architecture.md.
 *
 * Each side's first message ends with the version of this protocol, whose place never
 * changes. If the versions differ, the receiver logs it and refuses: vgpud the worker, or
 * the worker the channel. Builds before there was a version have 0 there.
 *
 * A worker is assumed to be compromised by its guest: vgpud checks size, type and every
 * number of its messages, and reads the counters by pread(2).
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "control/call-times.h"
#include "softgpu/softgpu.h"
#include "vgpu/device-info.h"
#include "vgpu/handle.h"

/* Changes with anything in this file that the other side would misread. */
#define CONTROL_VERSION 5

#define CONTROL_STOP_MS 1000
#define CONTROL_VM_NAME_MAX 64 /* including the NUL */
#define CONTROL_FDS_MAX 4
/* Threads of a worker: one for each blocking guest thread, and those of a driver. */
#define CONTROL_THREADS_MAX 1536
/* SHA-256 of an image's bytes. */
#define CONTROL_DIGEST_SIZE 32
/* A random number that stands for shared memory: who knows it may use the memory. */
#define CONTROL_TOKEN_SIZE 16
/* Bytes of a memory file after the shared memory, for what softgpu writes about it. */
#define CONTROL_LABEL_SIZE 4096u
/* Limit of one image: the largest fat binaries of NVIDIA's libraries have some hundred
 * MiB. */
#define CONTROL_IMAGE_SIZE_MAX (1ull << 30)

enum control_type {
	_CONTROL_NONE,
	/* worker to vgpud */
	CONTROL_READY,
	CONTROL_OPENED,
	CONTROL_WANT,
	CONTROL_ENDED,
	CONTROL_FIND,
	CONTROL_KEEP,
	CONTROL_FILE,
	CONTROL_DROP,
	CONTROL_SHARE,
	CONTROL_TAKE,
	CONTROL_LEAVE,
	/* vgpud to worker */
	CONTROL_ASSIGN,
	CONTROL_WINDOW,
	CONTROL_GRANT,
	CONTROL_IMAGE,
	CONTROL_SHARED,
	CONTROL_STOP,
	CONTROL_RECORD,
	/* Later ones, of either side; sent only where the other side has said by other
	 * means that it knows them. */
	CONTROL_ROOM,
	CONTROL_MOVE,
	_CONTROL_N,
};

enum {
	/* There are no doorbells: poll the ring with a growing pause. */
	CONTROL_ASSIGN_POLL = 1u << 0,
	/* Ask the kernel for huge pages wherever the shared memory is mapped. */
	CONTROL_ASSIGN_HUGEPAGES = 1u << 1,
};

struct control_ready {
	uint32_t reason; /* enum vgpu_channel_reason; NONE: the worker is usable */
	int32_t driver_version;
	uint32_t n_devices;
	uint32_t protocol_minor; /* of the calls that it knows, see vgpu/version.h */
	char driver[64];	 /* its name, for the log */
};

/*
 * Descriptors, in this order: the shared memory; the VM's quota page (quota.h); the
 * channel's doorbell (an eventfd that the guest rings, absent with POLL); the channel's
 * interrupt (an eventfd that raises the channel's MSI-X vector in the guest, absent if
 * the guest sleeps on futexes).
 */
struct control_assign {
	char vm[CONTROL_VM_NAME_MAX];
	uint32_t channel;
	uint32_t flags; /* CONTROL_ASSIGN_* */
	uint64_t shm_size;
	uint64_t area_off;
	uint64_t extents_off;
	uint32_t first_extent; /* of the first grant, n_extents long */
	uint32_t n_extents;
	uint64_t window_base;
	uint64_t window_size;
	uint64_t image_memory; /* limit of loaded code, bytes; 0: the worker's default */
	uint32_t handles;      /* limit of objects; 0: the worker's default */
	uint32_t quota_slot;   /* its slot in the page, from 1 */
	uint32_t guest_pid;
	uint32_t guest_api_version;
	uint32_t launch_timeout; /* seconds that a launch has on softgpu; 0: no limit */
	uint32_t reserved;
	char guest_comm[16]; /* printable, for the log */
};

struct control_window {
	uint64_t base;
	uint64_t size;
};

struct control_opened {
	uint32_t reason; /* enum vgpu_channel_reason */
	uint32_t reserved;
};

struct control_want {
	uint32_t n_extents; /* in one run */
	uint32_t cookie;
};

struct control_grant {
	uint32_t first_extent;
	uint32_t n_extents;
	uint32_t cookie;
	int32_t error; /* 0, or -errno and no extents */
};

struct control_ended {
	uint32_t reason; /* enum vgpu_channel_reason */
	uint32_t reserved;
};

struct control_image {
	uint8_t digest[CONTROL_DIGEST_SIZE];
	uint64_t size;	 /* of the file that comes with KEEP and IMAGE, or with FILE's
			    answer */
	uint32_t cookie; /* of FIND, FILE, DROP and IMAGE */
	uint32_t reserved;
};

struct control_share {
	uint8_t token[CONTROL_TOKEN_SIZE]; /* of TAKE and SHARED */
	uint64_t size;			   /* bytes, of SHARE; of SHARED 0: refused */
	uint32_t cookie;		   /* unique among a worker's SHARE and TAKE */
	uint32_t device; /* of SHARE: the worker's number of it, plus 1; 0: unknown */
};

/* The end of READY and of ASSIGN. */
struct control_greeting {
	uint8_t others[244];
	uint32_t version; /* CONTROL_VERSION */
};

struct control_message {
	uint32_t type;	/* enum control_type */
	uint32_t n_fds; /* descriptors that travel with it */
	union {
		struct control_ready ready;
		struct control_assign assign;
		struct control_window window;
		struct control_opened opened;
		struct control_want want;
		struct control_grant grant;
		struct control_ended ended;
		struct control_image image;
		struct control_share share;
		struct control_greeting greeting;
		uint8_t bytes[248]; /* for future messages */
	};
};

static_assert(sizeof(struct control_message) == 256, "fixed size");
static_assert(offsetof(struct control_message, greeting.version) == 252, "never changes");
static_assert(sizeof(struct control_ready) <= 244, "leaves room for the version");
static_assert(sizeof(struct control_assign) <= 244, "leaves room for the version");

/*
 * What both sides know of one worker, at the start of a sealed memfd that they share:
 * counters, to which the worker adds and which vgpud reads, also after the worker was
 * killed; what its session does on each device; its share of the device's time; and its
 * devices, which the worker writes before READY. At the end of the file: how long its
 * calls took (call-times.h).
 */
struct worker_stats {
	uint64_t launches;
	uint64_t copies_h2d;
	uint64_t copies_d2h;
	uint64_t copies_d2d;
	uint64_t memsets;
	uint64_t bytes_h2d;
	uint64_t bytes_d2h;
	uint64_t calls;
	uint64_t refused_async; /* refused calls that had no reply */
	/* driver calls that held the dispatcher over 1 ms; of calls without a reply, up
	 * to 16 in a row together */
	uint64_t slow_calls;
	uint64_t device_memory; /* in use now, bytes */
	uint64_t images_sent;	/* loads whose bytes were sent */
	uint64_t images_found;	/* loads whose bytes were stored already */
	uint64_t image_bytes;	/* of those sent */
	/* Memory that made room on the device, and came back (room.h). */
	uint64_t evictions;
	uint64_t returns;
	uint64_t evicted_bytes;
	uint64_t returned_bytes;
	uint64_t reserved[14];
};

static_assert(sizeof(struct worker_stats) == 256, "fixed size");

#define WORKER_FAULTS 16u

/* What the session does on each device; written by the worker. */
struct worker_use {
	uint64_t devices;		   /* bits: on which it has, or had, a context */
	uint64_t memory[VGPU_DEVICES_MAX]; /* in use now, bytes */
	/* Faults of contexts: how many so far, and the last of them in a ring. The entry
	 * is written before it is counted. */
	uint64_t n_faults;
	struct {
		uint32_t device;
		int32_t result; /* a CUresult */
	} faults[WORKER_FAULTS];
};

#define WORKER_USE_OFF 1024u

static_assert(sizeof(struct worker_stats) <= WORKER_USE_OFF, "they have room");

/* The session's share of the device's time: a struct softgpu_allowance, whatever the
 * driver is. */
#define WORKER_ALLOWANCE_OFF 2048u
#define WORKER_ALLOWANCE_END 3072u

static_assert(WORKER_USE_OFF + sizeof(struct worker_use) <= WORKER_ALLOWANCE_OFF,
	"they have room");
static_assert(
	WORKER_ALLOWANCE_OFF + sizeof(struct softgpu_allowance) <= WORKER_ALLOWANCE_END,
	"it has room");

enum {
	WORKER_DEVICES_SOFTGPU = 1u << 0, /* they are software */
};

struct worker_devices {
	uint32_t n;
	uint32_t flags;	  /* WORKER_DEVICES_* */
	uint32_t n_units; /* of software that work at the same time */
	uint32_t reserved;
	struct vgpu_device_info infos[VGPU_DEVICES_MAX];
	uint8_t peers[VGPU_DEVICES_MAX][VGPU_DEVICES_MAX]; /* VGPU_STATUS_PEER_* */
};

#define WORKER_DEVICES_OFF 4096u

static_assert(WORKER_USE_OFF + sizeof(struct worker_use) <= WORKER_DEVICES_OFF,
	"they have room");
#define WORKER_STATS_SIZE (68u << 10)

static_assert(WORKER_DEVICES_OFF + sizeof(struct worker_devices) <= WORKER_STATS_SIZE,
	"they have room");

/* Length of the file: after these is the memory that softgpu maps at addresses of
 * the guest's choice. Only pages in use take memory, which vgpud counts by the size of
 * the file, mapped or not. */
#define WORKER_MEMORY_SIZE (1ull << 40)

/* What needs more room than the first pages have is behind that memory: how long calls
 * took (struct call_times), and the last calls (struct flight). A file of an earlier
 * build is shorter, and has none of it. */
#define WORKER_TIMES_OFF (WORKER_STATS_SIZE + WORKER_MEMORY_SIZE)
#define WORKER_FLIGHT_OFF (WORKER_TIMES_OFF + (8ull << 20))
#define WORKER_FILE_SIZE (WORKER_FLIGHT_OFF + (8ull << 20))

static_assert(WORKER_TIMES_OFF + sizeof(struct call_times) <= WORKER_FLIGHT_OFF,
	"they have room");

enum {
	_CONTROL_E_SUCCESS,
	CONTROL_E_EOF,	   /* the other side is gone */
	CONTROL_E_AGAIN,   /* no message to receive, or the socket is full */
	CONTROL_E_INVALID, /* not a message of this protocol */
};

/*
 * Sends one message with its n_fds descriptors, which remain owned by the caller. Never
 * raises SIGPIPE. Blocks only on a blocking socket.
 *
 * Return: 0, CONTROL_E_EOF, CONTROL_E_AGAIN or -errno.
 */
int control_send(int fd, const struct control_message *message, const int *fds);

/*
 * Receives one message. The caller then owns the first n_fds of fds[CONTROL_FDS_MAX]
 * (close-on-exec), all others are -1. Size, type and number of descriptors are checked,
 * and strings are NUL-terminated; nothing else is checked.
 *
 * control_peek() leaves the message in the socket, with its descriptors; those in fds are
 * duplicates.
 *
 * Return: 0, CONTROL_E_EOF, CONTROL_E_AGAIN, CONTROL_E_INVALID or -errno.
 */
int control_receive(int fd, struct control_message *message, int *fds);
int control_peek(int fd, struct control_message *message, int *fds);
