/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and ending the channel
 *
 * The guest's side of the states of ring-layout.h. An entry is claimed by
 * compare-and-swap, filled with the hello and offered; the host answers OPEN or REFUSED.
 * If a window is not free in the worker it is refused, and the next candidate is offered
 * on the same entry. On failure the entry is returned by CLOSING.
 */

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "vgpu/checked.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"

#include "wire/channel.h"
#include "wire/clock.h"
#include "wire/reason.h"
#include "wire/sentence.h"
#include "wire/sweep.h"

struct shim_channel shim_channel;

/* The version of the driver API that this library offers, as cuDriverGetVersion. */
#define API_VERSION 13000u

/* A host whose heartbeat has stopped for this long is gone: far longer than it takes to
 * replace the broker, even twice and on an overloaded machine. */
#define OPEN_SILENCE_NS 10000000000ull
/* One that lives may be starting workers for many processes at once. */
#define OPEN_TIMEOUT_NS 60000000000ull
#define OPEN_LOOK_US 20000u
/* A host that is silent for so long is gone if its worker is silent too, which is asked
 * some time before, and for as long. */
#define HOST_SILENCE_NS 3000000000ull
#define HOST_DOUBT_NS 1000000000ull
#define WORKER_SILENCE_NS 2000000000ull

/* SHIM_ERROR_HOST_GONE in words. */
#define END_OF_SESSION "%s; calls fail with CUDA_ERROR_UNKNOWN (999) from here on"

static void read_comm(uint8_t comm[16])
{
	_vgpu_cleanup_(vgpu_closep) int fd =
		open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	memset(comm, 0, 16);
	n = fd < 0 ? -1 : read(fd, comm, 15);
	if (n > 0 && comm[n - 1] == '\n')
		comm[n - 1] = '\0';
}

/* State and claim are compared and swapped as one word, from FREE and to OPENING. */
static bool step(struct shim_channel *channel, struct vgpu_channel_entry *entry,
	uint32_t from_state, uint32_t from_claim, uint32_t to_state)
{
	uint64_t from = from_state | (uint64_t)from_claim << 32;
	uint64_t to = to_state | (uint64_t)channel->claim << 32;

	/* Partner: the host's store of FREE, after all of the old was cleaned, and its
	 * acquire load of OPENING. */
	return __atomic_compare_exchange_n((uint64_t *)(void *)entry, &from, to, false,
		__ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static int note_full(const struct shim_channel *channel)
{
	shim_reason_note(SHIM_REASON_REFUSED,
		"all %u places for processes of this virtual machine are taken: end one, "
		"or raise max-processes = and size = in its section of vgpud.conf on the "
		"host",
		channel->transport.header->n_channels);
	return -EAGAIN;
}

static int claim(struct shim_channel *channel)
{
	struct vgpu_channel_entry *table;

	if (channel->transport.ops->offer) {
		/* The kernel claims one with the first offer. */
		channel->entry = &channel->transport.entry;
		return 0;
	}
	channel->claim = (uint32_t)(shim_clock_ns() ^ (uint64_t)getpid() << 16) | 1;
	table = shim_transport_table(&channel->transport);
	for (uint32_t i = 0; i < channel->transport.header->n_channels; i++) {
		if (step(channel, &table[i], VGPU_CHANNEL_FREE, 0,
			    VGPU_CHANNEL_CLAIMED)) {
			channel->number = i;
			channel->entry = &table[i];
			return 0;
		}
	}
	return note_full(channel);
}

/* The constant part of all hellos of this process. */
static void make_hello(struct vgpu_channel_entry *hello)
{
	*hello = (struct vgpu_channel_entry){
		.protocol_version = VGPU_PROTOCOL_VERSION,
		.protocol_minor = vgpu_version.minor,
		.features = vgpu_version.features,
		.api_version = API_VERSION,
		.uid = getuid(),
	};
	shim_sweep_identify(hello);
	read_comm(hello->comm);
}

/* Written at the end and at once: a process that is killed between claim and hello leaves
 * an empty entry. */
static void copy_hello(
	struct vgpu_channel_entry *entry, const struct vgpu_channel_entry *hello)
{
	const size_t from = offsetof(struct vgpu_channel_entry, protocol_version);
	const size_t to = offsetof(struct vgpu_channel_entry, host_protocol_version);

	memcpy((char *)entry + from, (const char *)hello + from, to - from);
}

static void set_state(struct shim_channel *channel, enum vgpu_channel_state state)
{
	/* Partner: the broker's acquire load of the state. */
	__atomic_store_n(&channel->entry->state, state, __ATOMIC_RELEASE);
	channel->transport.ops->doorbell(&channel->transport, VGPU_DOORBELL_CONTROL);
}

static uint32_t get_state(struct shim_channel *channel)
{
	const struct shim_transport_ops *ops = channel->transport.ops;

	if (ops->read_entry)
		ops->read_entry(&channel->transport, channel->entry);
	return __atomic_load_n(&channel->entry->state, __ATOMIC_ACQUIRE);
}

static uint64_t get_heartbeat(const struct shim_channel *channel)
{
	return __atomic_load_n(&channel->transport.header->heartbeat, __ATOMIC_RELAXED);
}

/* Waits for the host's answer. Return: 0 with a state, -ETIMEDOUT, -ECONNRESET. */
static int await_answer(struct shim_channel *channel, uint64_t deadline)
{
	struct shim_transport *transport = &channel->transport;
	uint64_t beat = get_heartbeat(channel), beat_ns = shim_clock_ns();

	while (get_state(channel) == VGPU_CHANNEL_OPENING) {
		uint64_t now = shim_clock_ns();

		if (transport->ops->silence_ns(transport) == SHIM_GONE) {
			shim_reason_note(
				SHIM_REASON_SILENT, "%s", shim_sentence_no_answer);
			return vgpu_error_origin(-ECONNRESET);
		}
		if (get_heartbeat(channel) != beat) {
			beat = get_heartbeat(channel);
			beat_ns = now;
		}
		if (now - beat_ns > OPEN_SILENCE_NS || now > deadline) {
			shim_reason_note(
				SHIM_REASON_SILENT, "%s", shim_sentence_no_answer);
			return vgpu_error_origin(-ETIMEDOUT);
		}
		/* The host wakes those it can; others look this often. */
		transport->ops->sleep(transport, &channel->entry->state,
			VGPU_CHANNEL_OPENING, OPEN_LOOK_US / 20);
	}
	return 0;
}

static int refusal(struct shim_channel *channel)
{
	const struct vgpu_channel_entry *entry = channel->entry;
	char text[SHIM_SENTENCE_SIZE];

	shim_sentence_of_channel(text, entry);
	shim_reason_note(SHIM_REASON_REFUSED, "%s", text);
	/* Read once more: at worst the process gets a different error code. */
	switch (entry->reason) {
	case VGPU_REASON_WINDOW:
		return -EBUSY;
	case VGPU_REASON_VERSION:
		shim_reason_of_version(entry->host_protocol_version);
		return -EPROTO;
	case VGPU_REASON_NO_DEVICE:
		return -ENODEV;
	case VGPU_REASON_LIMIT:
	case VGPU_REASON_PROCESSES:
	case VGPU_REASON_WORKERS:
		return -EAGAIN;
	default:
		return -EIO;
	}
}

/* Return: 0, or as offer(). */
static int send_hello(
	struct shim_channel *channel, const struct vgpu_channel_entry *hello)
{
	struct shim_transport *transport = &channel->transport;
	const uint32_t state = get_state(channel);
	int r;

	if (transport->ops->offer) {
		r = transport->ops->offer(transport, hello, &channel->number);
		return r == -EAGAIN ? note_full(channel) : r;
	}
	copy_hello(channel->entry, hello);
	if (!step(channel, channel->entry, state, channel->claim, VGPU_CHANNEL_OPENING)) {
		channel->entry = NULL;
		return -ESTALE;
	}
	transport->ops->doorbell(transport, VGPU_DOORBELL_CONTROL);
	return 0;
}

/*
 * Offers one window.
 *
 * Return: 0 when open, -EBUSY for the next candidate, -ESTALE if the entry is no longer
 * this process's, another -errno.
 */
static int offer(struct shim_channel *channel, struct vgpu_channel_entry *hello,
	unsigned int candidate, uint64_t deadline)
{
	int r;

	r = shim_window_reserve(&channel->window, candidate, channel->transport.shm_size);
	if (r)
		return r;
	hello->window_base = channel->window.base;
	hello->window_size = channel->window.size;
	r = send_hello(channel, hello);
	if (!r)
		r = await_answer(channel, deadline);
	if (!r && get_state(channel) != VGPU_CHANNEL_OPEN)
		r = refusal(channel);
	if (r)
		shim_window_release(&channel->window);
	return r;
}

static int negotiate(struct shim_channel *channel, struct vgpu_channel_entry *hello)
{
	uint64_t deadline = shim_clock_ns() + OPEN_TIMEOUT_NS;
	int r = -EBUSY, worst = -EBUSY;

	for (unsigned int i = 0; i < shim_window_n_candidates(); i++) {
		r = offer(channel, hello, i, deadline);
		if (r != -EBUSY && r != -ENOMEM)
			return r;
		if (r == -ENOMEM)
			worst = r;
	}
	shim_reason_note(SHIM_REASON_ADDRESSES,
		"no range of addresses for device memory is free in this process%s",
		worst == -ENOMEM ? ": raise its limit of address space (ulimit -v)"
				 : " and on the host: please report it");
	return worst == -ENOMEM ? -ENOMEM : vgpu_error_origin(-EADDRINUSE);
}

/* The host's numbers are believed but for those that would map beyond the memory. */
static int map_area(struct shim_channel *channel)
{
	uint64_t area_off = channel->entry->area_off;
	uint8_t *area;
	int r;

	if (area_off % VGPU_EXTENT_SIZE ||
		!vgpu_range_within(area_off, VGPU_AREA_SIZE, 0, channel->window.shm_size))
		return vgpu_error_origin(-EBADMSG);
	r = shim_window_map(
		&channel->window, channel->transport.shm_fd, area_off, VGPU_AREA_SIZE);
	if (r)
		return vgpu_error_trace(r);

	area = shim_window_pointer(&channel->window, area_off);
	channel->control = (struct vgpu_channel_control *)area;
	channel->words = (struct vgpu_word *)(area + VGPU_WORDS_OFF);
	channel->records = (uint64_t *)(area + VGPU_RECORDS_OFF);
	channel->slots = area + VGPU_SLOTS_OFF;
	channel->first_extent = channel->entry->first_extent;
	channel->n_extents = channel->entry->n_extents;
	return shim_channel_map_extents(
		channel, channel->first_extent, channel->n_extents);
}

int shim_channel_map_extents(struct shim_channel *channel, uint32_t first, uint32_t n)
{
	const struct shim_transport_ops *ops = channel->transport.ops;
	const struct vgpu_shm_header *header = channel->transport.header;
	int r;

	if (!vgpu_range_within(first, n, 0, header->n_extents) ||
		!vgpu_range_within(
			header->extents_off + (uint64_t)first * VGPU_EXTENT_SIZE,
			(uint64_t)n * VGPU_EXTENT_SIZE, 0, channel->window.shm_size))
		return vgpu_error_origin(-EBADMSG);
	r = ops->accept && n ? ops->accept(&channel->transport, first, n) : 0;
	if (r)
		return vgpu_error_trace(r);
	return shim_window_map(&channel->window, channel->transport.shm_fd,
		header->extents_off + (uint64_t)first * VGPU_EXTENT_SIZE,
		(uint64_t)n * VGPU_EXTENT_SIZE);
}

static void take_version(struct shim_channel *channel)
{
	const uint32_t host_minor = channel->entry->host_protocol_minor;

	channel->version = vgpu_version_agree(host_minor, channel->entry->host_features);
	vgpu_log_info("this library speaks protocol version %u.%u, the host %u.%u: %u.%u "
		      "is in force, with features %#llx",
		VGPU_PROTOCOL_VERSION, vgpu_version.minor, VGPU_PROTOCOL_VERSION,
		host_minor, VGPU_PROTOCOL_VERSION, channel->version.minor,
		(unsigned long long)channel->version.features);
}

int shim_channel_open(struct shim_channel *channel)
{
	struct vgpu_channel_entry hello;
	int r;

	*channel = (struct shim_channel){};
	r = shim_transport_open(&channel->transport);
	if (r)
		return vgpu_error_trace(r);
	shim_sweep(&channel->transport);
	make_hello(&hello);
	do {
		r = claim(channel);
		if (!r)
			r = negotiate(channel, &hello);
	} while (r == -ESTALE);
	if (!r)
		r = map_area(channel);
	if (r) {
		shim_channel_abandon(channel);
		return vgpu_error_trace(r);
	}
	take_version(channel);
	vgpu_log_info("channel %u is open, worker %u, window at %#llx, %u MiB of arena",
		channel->number, channel->entry->worker_pid,
		(unsigned long long)channel->window.base,
		channel->n_extents * (VGPU_EXTENT_SIZE >> 20));
	return 0;
}

void shim_channel_close(struct shim_channel *channel)
{
	/* The kernel does it when the process has ended. */
	if (!channel->transport.ops->offer)
		set_state(channel, VGPU_CHANNEL_CLOSING);
}

void shim_channel_abandon(struct shim_channel *channel)
{
	if (channel->entry)
		shim_channel_close(channel);
	shim_window_release(&channel->window);
	shim_transport_close(&channel->transport);
}

/* The host gives a reason when it ends a session; a host that is gone gives none. */
static void tell_end(struct shim_channel *channel)
{
	char text[SHIM_SENTENCE_SIZE];

	if (channel->transport.is_removed) {
		shim_reason_tell(
			SHIM_REASON_ENDED, END_OF_SESSION, shim_sentence_removed);
		return;
	}
	if (get_state(channel) != VGPU_CHANNEL_DEAD) {
		shim_reason_tell(
			SHIM_REASON_ENDED, END_OF_SESSION, shim_sentence_no_answer);
		return;
	}
	shim_sentence_of_channel(text, channel->entry);
	shim_reason_tell(SHIM_REASON_ENDED, END_OF_SESSION, text);
}

/* Asks the worker whether it lives, again and again. Threads race here harmlessly: what
 * each stores is true. Returns: whether it has answered lately. */
static bool ask_worker(struct shim_channel *channel)
{
	struct vgpu_channel_control *control = channel->control;
	const uint64_t head = __atomic_load_n(&control->head, __ATOMIC_RELAXED);
	/* Partner: the stores of another thread, below. */
	const uint32_t asked = __atomic_load_n(&control->asked, __ATOMIC_ACQUIRE);
	const uint64_t now = shim_clock_ns();
	uint64_t since;

	if (head != __atomic_load_n(&channel->answered_head, __ATOMIC_ACQUIRE) ||
		/* Partner: vgpu_ring_answer(). */
		asked == __atomic_load_n(&control->answered, __ATOMIC_RELAXED)) {
		__atomic_store_n(&channel->answered_ns, now, __ATOMIC_RELAXED);
		/* Who sees these sees that time, or a later one. */
		__atomic_store_n(&channel->answered_head, head, __ATOMIC_RELEASE);
		__atomic_store_n(&control->asked, asked + 1, __ATOMIC_RELEASE);
		channel->transport.ops->doorbell(
			&channel->transport, VGPU_DOORBELL_CHANNEL(channel->number));
		return true;
	}
	since = __atomic_load_n(&channel->answered_ns, __ATOMIC_RELAXED);
	return now < since || now - since < WORKER_SILENCE_NS;
}

/*
 * A session is its worker's. A broker that is being replaced, hangs, or belongs to a host
 * with more to do than it can leaves it as it is: so that one is silent is no reason as
 * long as the other answers.
 */
static bool find_lost(struct shim_channel *channel)
{
	const struct shim_transport_ops *ops = channel->transport.ops;
	uint64_t silence_ns;

	if (get_state(channel) != VGPU_CHANNEL_OPEN)
		return true;
	silence_ns = ops->silence_ns(&channel->transport);
	if (silence_ns == SHIM_GONE)
		return true;
	return silence_ns > HOST_DOUBT_NS && !ask_worker(channel) &&
	       silence_ns > HOST_SILENCE_NS;
}

bool shim_channel_find_dead(struct shim_channel *channel)
{
	if (__atomic_load_n(&channel->dead, __ATOMIC_RELAXED))
		return true;
	if (!find_lost(channel))
		return false;
	if (!__atomic_exchange_n(&channel->dead, 1, __ATOMIC_RELAXED))
		tell_end(channel);
	return true;
}
