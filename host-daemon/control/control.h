/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Control: the conversation of vgpud and one of its workers
 *
 * A worker is started, long before it is needed, as
 *
 *	vgpu-worker --control FD --stats FD --log-level LEVEL
 *		--driver auto|nvidia|soft|null|PATH --softgpu PATH --null-driver PATH
 *		[--softgpu-name NAME] [--softgpu-cc MAJOR.MINOR]
 *		[--softgpu-memory BYTES] [--softgpu-threads N]
 *		[--softgpu-timeout MILLISECONDS] [--softgpu-schedule long|fair]
 *		[--softgpu-check yes]
 *
 * with descriptors 0-2 (its log goes to 2) and the two named, nothing else. The
 * control descriptor is a SOCK_SEQPACKET socket; a packet is one struct
 * control_message, whole. The worker ends when it reads end-of-file there. What
 * is said, in order ("->" is vgpud to worker):
 *
 *	<- READY	version; driver opened, window candidates reserved, cuInit done;
 *			a reason other than NONE says why this worker will never work, it
 *			exits
 *	-> ASSIGN	version; the channel it serves, with descriptors; once in its life
 *	<- OPENED	NONE: it serves. WINDOW: that window is not to be had, and
 *	-> WINDOW	names another, which is answered by OPENED again. Any other
 *			reason: it never will, and exits
 *	<- WANT		more arena, at most one request at a time, each with a cookie of
 *			its own: the same request, seen again, gets the same extents
 *	-> GRANT	its answer with the same cookie; one with another cookie than the
 *			open request's came late: its extents are the channel's all the
 *			same. It may come twice, because the broker was replaced
 *	<- FIND		an image that its VM may have sent before, by its digest
 *	-> IMAGE	its answer with the same cookie: the image's descriptor, or none;
 *			one with another cookie came late, or twice, and is of no use
 *	<- FILE		a memory file for an image of that size: answered like FIND. A
 *			worker cannot make one that holds anything
 *	<- KEEP		an image for the next process of the VM, with its descriptor: a
 *			file that FILE brought, sealed against all change. It takes the
 *			place of what has the same digest. Not answered
 *	<- DROP		the file that the FILE with this cookie brought is not needed; it
 *			is emptied. Not answered
 *	<- ENDED	last words: why it ends by itself
 *	-> STOP		give up the session and exit; SIGKILL follows CONTROL_STOP_MS
 *			later
 *
 * The broker peeks a message, acts on it, and takes it out then; it may be killed in
 * between, and the next one sees the message again. So each message means the same when
 * it is handled twice, and each answer when it arrives twice: see docs/architecture.md.
 *
 * Each side's first message ends with the version of this protocol, which never changes
 * its place. Whoever meets another one than its own says so in the log and goes no
 * further: vgpud takes no such worker, and a worker no such channel. Before there was a
 * version it was 0 there.
 *
 * A worker is assumed to be taken over by its guest: vgpud checks size, type and
 * every number of what it receives, and reads the counters by pread(2).
 */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* Changes with anything in this file that the other side would misread. */
#define CONTROL_VERSION 1

#define CONTROL_STOP_MS 1000
#define CONTROL_VM_NAME_MAX 64 /* with the final NUL */
#define CONTROL_FDS_MAX 4
/* Threads of a worker: one for each guest thread that blocks, and what a driver takes. */
#define CONTROL_THREADS_MAX 1536
/* SHA-256 of an image's bytes. */
#define CONTROL_DIGEST_SIZE 32
/* Of one image: the largest fat binaries of NVIDIA's libraries have some hundred MiB. */
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
	/* vgpud to worker */
	CONTROL_ASSIGN,
	CONTROL_WINDOW,
	CONTROL_GRANT,
	CONTROL_IMAGE,
	CONTROL_STOP,
	_CONTROL_N,
};

enum {
	/* There are no doorbells: look at the ring with a growing pause. */
	CONTROL_ASSIGN_POLL = 1u << 0,
};

struct control_ready {
	uint32_t reason; /* enum vgpu_channel_reason: NONE, or why not */
	int32_t driver_version;
	uint32_t n_devices;
	uint32_t reserved;
	char driver[64]; /* which one, for the log */
};

/*
 * Descriptors, in this order: the shared memory; the VM's quota page (quota.h); the
 * channel's doorbell (eventfd that
 * the guest rings, absent with POLL); the channel's interrupt (eventfd that raises
 * the channel's MSI-X vector in the guest, absent where the guest sleeps on futexes).
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
	uint64_t image_memory; /* bytes of code it may hold, 0: what the worker thinks */
	uint32_t handles;      /* objects it may have, 0: what the worker thinks */
	uint32_t quota_slot;   /* its own in the page, from 1 */
	uint32_t guest_pid;
	uint32_t guest_api_version;
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
		struct control_greeting greeting;
		uint8_t bytes[248]; /* room to grow */
	};
};

static_assert(sizeof(struct control_message) == 256, "fixed size");
static_assert(offsetof(struct control_message, greeting.version) == 252, "never changes");
static_assert(sizeof(struct control_ready) <= 244, "leaves room for the version");
static_assert(sizeof(struct control_assign) <= 244, "leaves room for the version");

/*
 * Counters of one worker, in a sealed memfd of at least one page that both sides
 * hold. The worker adds, vgpud reads, also after the worker was killed.
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
	uint64_t images_sent;	/* loads that came with their bytes */
	uint64_t images_found;	/* loads whose bytes were there already */
	uint64_t image_bytes;	/* of those that came */
	uint64_t reserved[18];
};

static_assert(sizeof(struct worker_stats) == 256, "fixed size");

/* Length of the memfd. */
#define WORKER_STATS_SIZE 4096u

enum {
	_CONTROL_E_SUCCESS,
	CONTROL_E_EOF,	   /* the other side is gone */
	CONTROL_E_AGAIN,   /* no message to receive, or no room to send one */
	CONTROL_E_INVALID, /* not a message of this protocol */
};

/*
 * Sends one message with its n_fds descriptors, which stay the caller's. Never raises
 * SIGPIPE. Blocks only on a blocking socket.
 *
 * Return: 0, CONTROL_E_EOF, CONTROL_E_AGAIN or -errno.
 */
int control_send(int fd, const struct control_message *message, const int *fds);

/*
 * Receives one message. The first n_fds of fds[CONTROL_FDS_MAX] are then the caller's
 * (close-on-exec), all others are -1. Sizes, type and number of descriptors are
 * checked; strings are made to end; nothing else is.
 *
 * control_peek() leaves the message in the socket, with its descriptors; those in fds are
 * further ones.
 *
 * Return: 0, CONTROL_E_EOF, CONTROL_E_AGAIN, CONTROL_E_INVALID or -errno.
 */
int control_receive(int fd, struct control_message *message, int *fds);
int control_peek(int fd, struct control_message *message, int *fds);
