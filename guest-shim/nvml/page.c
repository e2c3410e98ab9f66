/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page: the transport to the host, and reading without a torn value
 *
 * The transport and its mapping belong to the lock; reads are short, and hold it. A
 * forked child has no mapping, so it starts without a transport.
 *
 * The end of a host at a socket is told by the socket. The memory of a virtual machine
 * remains as it was, and its host may go on: there the heartbeat tells.
 */

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "vgpu/log.h"

#include "nvml/page.h"
#include "wire/clock.h"
#include "wire/reason.h"
#include "wire/sentence.h"
#include "wire/transport.h"

/* The first worker starts the host's driver, which takes some seconds. */
#define FIRST_TIMEOUT_NS 10000000000ull
#define FIRST_LOOK_NS 10000000ull
/* As long as a call of libcuda waits for a host whose heartbeat has stopped. */
#define SILENCE_NS 3000000000ull
/* A broker that died while it wrote is replaced by one that writes again. */
#define TORN_TIMEOUT_NS 5000000000ull
#define TORN_LOOK_NS 1000000ull
#define REOPEN_PAUSE_NS 1000000000ull

#define NO_GPU                                                                           \
	"the host has found no GPU so far: its driver does not start, or has none; "     \
	"vgpud's log says more"

static_assert(sizeof(struct nvml_page_head) == NVML_PAGE_HEAD, "they are the same");

static struct {
	pthread_mutex_t lock;
	bool is_wanted; /* from open to close */
	bool is_open;
	struct shim_transport transport;
	const struct vgpu_status *status;
	uint64_t tried_ns; /* when the host was last looked for */
} page = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The heartbeat of a host that reaches this process by a device; under the lock. */
static struct {
	bool is_known;
	uint64_t seen;
	uint64_t ns; /* when it was first seen to have that value */
} beat;

static bool said; /* why there is no host, under the lock */

static void nap(uint64_t ns)
{
	struct timespec pause = { .tv_nsec = (long)ns };

	nanosleep(&pause, NULL);
}

static void say(const char *reason)
{
	vgpu_log(said ? VGPU_LOG_INFO : VGPU_LOG_ERROR,
		"nvmlInit fails with NVML_ERROR_DRIVER_NOT_LOADED (9): %s", reason);
	said = true;
}

static void drop(void)
{
	if (page.is_open)
		shim_transport_close(&page.transport);
	page.is_open = false;
	page.status = NULL;
}

static int look_up(void)
{
	const struct vgpu_shm_header *header = page.transport.header;
	uint64_t off = header->status_off;

	if (!off || off % sizeof(uint64_t) || off > page.transport.header_size ||
		page.transport.header_size - off < sizeof(struct vgpu_status)) {
		shim_reason_note(SHIM_REASON_TRANSPORT,
			"the host publishes no state of its GPUs: its vgpud is older "
			"than "
			"this library, use the same release on both sides");
		return -ENODATA;
	}
	page.status = (const void *)((const uint8_t *)header + off);
	return 0;
}

static bool is_silent(void)
{
	uint64_t silence = page.transport.ops->silence_ns(&page.transport);

	return silence == SHIM_GONE || silence > SILENCE_NS;
}

/*
 * Whether the host is there, and not only what it has left in the memory: its heartbeat
 * was seen to change lately, by this page or one before it. Clocks of host and guest
 * differ, so no time in the memory says it.
 */
static bool is_alive(void)
{
	const uint64_t heartbeat =
		__atomic_load_n(&page.transport.header->heartbeat, __ATOMIC_RELAXED);
	const uint64_t now = shim_clock_ns();

	if (page.transport.ops == &shim_transport_socket)
		return true;
	if (!beat.is_known)
		beat.ns = now - SILENCE_NS;
	else if (heartbeat != beat.seen)
		beat.ns = now;
	beat.seen = heartbeat;
	beat.is_known = true;
	return now - beat.ns < SILENCE_NS;
}

static int wait_for_first(void)
{
	uint64_t start = shim_clock_ns();

	while (!__atomic_load_n(&page.status->sequence, __ATOMIC_ACQUIRE) ||
		!is_alive()) {
		const bool silent = is_silent();

		if (silent || shim_clock_ns() - start > FIRST_TIMEOUT_NS) {
			shim_reason_note(SHIM_REASON_SILENT, "%s",
				silent ? shim_sentence_no_answer : NO_GPU);
			return -ETIMEDOUT;
		}
		nap(FIRST_LOOK_NS);
	}
	return 0;
}

/* Under the lock. */
static int open_page(void)
{
	int r;

	page.tried_ns = shim_clock_ns();
	shim_reason_forget();
	r = shim_transport_open(&page.transport);
	if (r)
		return r;
	page.is_open = true;
	r = look_up();
	if (!r)
		r = wait_for_first();
	if (r)
		drop();
	return r;
}

nvmlReturn_t nvml_page_open(void)
{
	nvmlReturn_t result = NVML_SUCCESS;
	const char *reason;
	int r;

	pthread_mutex_lock(&page.lock);
	r = open_page();
	if (r) {
		reason = shim_reason_noted();
		say(reason ? reason : strerror(-r));
		result = NVML_ERROR_DRIVER_NOT_LOADED;
	}
	page.is_wanted = !r;
	pthread_mutex_unlock(&page.lock);
	return result;
}

void nvml_page_close(void)
{
	pthread_mutex_lock(&page.lock);
	drop();
	page.is_wanted = false;
	pthread_mutex_unlock(&page.lock);
}

/* Under the lock. Returns: whether the host is there, perhaps again. */
static bool is_there(void)
{
	const uint64_t silence = page.is_open
					 ? page.transport.ops->silence_ns(&page.transport)
					 : SHIM_GONE;

	if (silence != SHIM_GONE)
		return silence <= SILENCE_NS;
	if (page.tried_ns && shim_clock_ns() - page.tried_ns < REOPEN_PAUSE_NS)
		return false;
	drop();
	return page.is_wanted && !open_page();
}

static void copy_words(void *to, const void *from, size_t size)
{
	const uint64_t *word = from;
	uint8_t *out = to;

	for (size_t i = 0; i < size / sizeof(*word); i++) {
		uint64_t value = __atomic_load_n(&word[i], __ATOMIC_RELAXED);

		memcpy(out + i * sizeof(value), &value, sizeof(value));
	}
}

/* Pairs with the host's writing in vgpud's status.c. Returns: whether the copy is of one
 * time. */
static bool copy_once(const struct nvml_piece *pieces, size_t n_pieces)
{
	uint32_t before = __atomic_load_n(&page.status->sequence, __ATOMIC_ACQUIRE);

	if (before % 2)
		return false;
	for (size_t i = 0; i < n_pieces; i++)
		copy_words(pieces[i].to, (const uint8_t *)page.status + pieces[i].off,
			pieces[i].size);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&page.status->sequence, __ATOMIC_RELAXED) == before;
}

nvmlReturn_t nvml_page_read(const struct nvml_piece *pieces, size_t n_pieces)
{
	uint64_t start = shim_clock_ns();
	bool is_done = false;

	pthread_mutex_lock(&page.lock);
	while (!is_done && is_there()) {
		is_done = copy_once(pieces, n_pieces);
		if (is_done || shim_clock_ns() - start > TORN_TIMEOUT_NS)
			break;
		nap(TORN_LOOK_NS);
	}
	pthread_mutex_unlock(&page.lock);
	return is_done ? NVML_SUCCESS : NVML_ERROR_GPU_IS_LOST;
}

nvmlReturn_t nvml_page_read_head(struct nvml_page_head *head)
{
	const struct nvml_piece piece = { .to = head, .size = NVML_PAGE_HEAD };
	nvmlReturn_t result = nvml_page_read(&piece, 1);

	if (result == NVML_SUCCESS)
		nvml_page_bound(head);
	return result;
}

void nvml_page_before_fork(void)
{
	pthread_mutex_lock(&page.lock);
}

void nvml_page_after_fork(bool is_child)
{
	if (is_child) {
		drop();
		page.tried_ns = 0;
	}
	pthread_mutex_unlock(&page.lock);
}
