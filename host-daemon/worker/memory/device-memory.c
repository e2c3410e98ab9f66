/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory: linear allocations at addresses in the window
 */

#include <errno.h>
#include <sched.h>
#include <time.h>

#include "vgpu/checked.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/log.h"
#include "vgpu/rate.h"
#include "worker/base/call.h"
#include "worker/base/context.h"
#include "worker/base/lane.h"
#include "worker/base/ranges.h"
#include "worker/base/reason.h"
#include "worker/base/session.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/ipc.h"
#include "worker/memory/placement.h"
#include "worker/memory/residency.h"

/* Two workers that charge memory at the same time may see each other and both withdraw:
 * then they try again. */
#define CHARGE_TRIES 64

/* Memory of sessions that end is waited for: until vgpud would have killed a worker, and
 * given up on it. Meanwhile a nap ends by itself, since any wake-up may be lost. */
#define ENDING_WAIT_MS (CONTROL_STOP_MS + 6000u)
#define ENDING_NAP_MS 100u

/* Whether the last charge of this thread was refused for the sake of other VMs. */
static __thread bool has_no_room;

void device_memory_init(struct session *session)
{
	pthread_mutex_init(&session->memory->lock, NULL);
	/* softgpu and the null driver place memory in the window themselves. */
	if (!session->driver->set_window)
		session->memory->placement = placement_new(session);
}

void device_memory_deinit(struct session *session)
{
	session->memory->placement = placement_free(session->memory->placement);
	session->memory->page = quota_unmap(session->memory->page);
	pthread_mutex_destroy(&session->memory->lock);
}

int device_memory_share(struct session *session, int fd, uint32_t slot)
{
	_vgpu_cleanup_(vgpu_closep) int own = fd;
	int r;

	if (own < 0)
		return 0;
	if (!slot || slot > QUOTA_SLOTS)
		return vgpu_error_origin(-EINVAL);
	r = quota_map(&session->memory->page, own);
	session->memory->slot = slot;
	return r ? vgpu_error_trace(r) : 0;
}

static void apply_limits(struct session *session, const struct quota_limits *limits)
{
	const uint64_t *values = limits->values;
	const uint64_t timeout_ms = values[QUOTA_LAUNCH_TIMEOUT] - 1;

	if (values[QUOTA_HANDLES])
		__atomic_store_n(&session->totals.n_max,
			values[QUOTA_HANDLES] < OBJECTS_MAX
				? (uint32_t)values[QUOTA_HANDLES]
				: OBJECTS_MAX,
			__ATOMIC_RELAXED);
	if (values[QUOTA_THREADS])
		session->lanes_max = values[QUOTA_THREADS] < VGPU_SLOTS_MAX
					     ? (uint32_t)values[QUOTA_THREADS]
					     : VGPU_SLOTS_MAX;
	if (values[QUOTA_IMAGE_MEMORY])
		__atomic_store_n(&session->totals.image_bytes_max,
			values[QUOTA_IMAGE_MEMORY], __ATOMIC_RELAXED);
	if (values[QUOTA_LAUNCH_TIMEOUT] && session->driver->limit_launches)
		session->driver->limit_launches(
			timeout_ms < UINT32_MAX ? (uint32_t)timeout_ms : UINT32_MAX);
	__atomic_store_n(&session->memory->copy_bandwidth, values[QUOTA_COPY_BANDWIDTH],
		__ATOMIC_RELAXED);
}

void device_memory_follow_limits(struct session *session)
{
	struct device_memory *memory = session->memory;
	struct quota_limits limits;

	if (!memory->page || !quota_limits_changed(memory->page, memory->n_changes))
		return;
	memory->n_changes = quota_read_limits(memory->page, &limits);
	apply_limits(session, &limits);
}

void device_memory_pace_copy(struct session *session, uint64_t size)
{
	struct device_memory *memory = session->memory;
	const uint64_t bandwidth =
		__atomic_load_n(&memory->copy_bandwidth, __ATOMIC_RELAXED);
	struct timespec now;
	uint64_t wait;

	if (!bandwidth || !size)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	wait = quota_charge_copy(memory->page,
		(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, size,
		bandwidth);
	if (wait)
		nanosleep(&(struct timespec){ .tv_sec = (time_t)(wait / 1000000000u),
				  .tv_nsec = (long)(wait % 1000000000u) },
			NULL);
}

uint64_t device_memory_quota(const struct session *session)
{
	const struct quota_page *page = session->memory->page;
	uint64_t limit = page ? quota_limit(page) : 0;

	return limit ? limit : UINT64_MAX;
}

uint64_t device_memory_limit(const struct session *session, uint64_t total)
{
	const uint64_t limit = device_memory_quota(session);

	return limit < total ? limit : total;
}

static void set_locked(struct device_memory *memory, uint64_t used)
{
	memory->used = used;
	if (memory->page)
		quota_set(memory->page, memory->slot, used);
}

static uint64_t of_others(const struct device_memory *memory)
{
	return memory->page ? quota_of_others(memory->page, memory->slot) : 0;
}

/* Whether this size and the total of the others are within the limit. Without a limit,
 * invalid totals of other workers have no effect. */
static bool fits(const struct session *session, uint64_t used, uint64_t limit)
{
	uint64_t sum;

	return limit == UINT64_MAX ||
	       (vgpu_add_u64(used, of_others(session->memory), &sum) && sum <= limit);
}

enum charge {
	CHARGE_DONE,
	CHARGE_REFUSED,
	CHARGE_AGAIN, /* another worker raced for the same memory and withdrew */
};

static enum charge charge_locked(struct session *session, uint64_t size)
{
	struct device_memory *memory = session->memory;
	const uint64_t before = memory->used;
	uint64_t used, limit;

	if (!vgpu_add_u64(before, size, &used) || used > device_memory_quota(session))
		return CHARGE_REFUSED;
	set_locked(memory, used);
	/* Read after the charge is visible: either this is the limit of now, or whoever
	 * lowers it counts the charge. Partner: quota_set_limit(). */
	limit = device_memory_quota(session);
	if (fits(session, used, limit))
		return CHARGE_DONE;
	set_locked(memory, before);
	return fits(session, used, limit) ? CHARGE_AGAIN : CHARGE_REFUSED;
}

/* For the host: in all, and on each device. */
static void count(struct session *session, CUdevice device, uint64_t size)
{
	session_count(session, device_memory, size);
	__atomic_fetch_add(&session->use->memory[device], size, __ATOMIC_RELAXED);
}

static bool try_to_charge(struct session *session, uint64_t size)
{
	enum charge charge = CHARGE_AGAIN;

	for (int i = 0; i < CHARGE_TRIES && charge == CHARGE_AGAIN; i++) {
		pthread_mutex_lock(&session->memory->lock);
		charge = charge_locked(session, size);
		pthread_mutex_unlock(&session->memory->lock);
		if (charge == CHARGE_AGAIN)
			sched_yield();
	}
	return charge == CHARGE_DONE;
}

static uint64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

/* Whether it would fit without what sessions have that end. */
static bool will_fit(const struct session *session, uint64_t size)
{
	const struct device_memory *memory = session->memory;
	const uint64_t ending = quota_of_ending(memory->page, memory->slot);
	uint64_t sum;

	if (!ending)
		return false;
	if (!vgpu_add_u64(__atomic_load_n(&memory->used, __ATOMIC_RELAXED), size, &sum))
		return false;
	if (!vgpu_add_u64(sum, of_others(memory), &sum))
		return false;
	/* Less than that: one of them has ended meanwhile. */
	return sum < ending || sum - ending <= device_memory_quota(session);
}

/* Takes it off the quota; waits for sessions that end, by which no other call is held up.
 * Return: whether there was so much. */
static bool charge_quota(struct session *session, uint64_t size)
{
	struct quota_page *page = session->memory->page;
	uint64_t until = 0;
	uint32_t n_ended;

	for (;;) {
		n_ended = page ? quota_n_ended(page) : 0;
		if (try_to_charge(session, size))
			return true;
		/* It may have ended between these two looks. */
		if (!page || (!will_fit(session, size) && quota_n_ended(page) == n_ended))
			return false;
		if (!until)
			until = clock_ms() + ENDING_WAIT_MS;
		if (clock_ms() >= until)
			return false;
		quota_nap_ended(page, n_ended, ENDING_NAP_MS);
	}
}

static void refund_quota(struct session *session, uint64_t size)
{
	pthread_mutex_lock(&session->memory->lock);
	set_locked(session->memory, session->memory->used - size);
	pthread_mutex_unlock(&session->memory->lock);
}

bool device_memory_charge(struct session *session, CUdevice device, uint64_t size)
{
	has_no_room = false;
	if (!charge_quota(session, size))
		return false;
	has_no_room = !residency_take(session, size);
	if (has_no_room) {
		refund_quota(session, size);
		return false;
	}
	count(session, device, size);
	return true;
}

void device_memory_refund(struct session *session, CUdevice device, uint64_t size)
{
	residency_give(session, size);
	refund_quota(session, size);
	count(session, device, -size);
}

/* Whether all that is charged for a device is within what the device has: otherwise no
 * memory of others is missing. */
static bool is_possible(const struct session *session, CUdevice device)
{
	const struct vgpu_driver *driver = &session->driver->table;
	size_t total = 0;

	return !driver->cuDeviceTotalMem_v2 ||
	       driver->cuDeviceTotalMem_v2(&total, device) != CUDA_SUCCESS ||
	       __atomic_load_n(&session->use->memory[device], __ATOMIC_RELAXED) <= total;
}

bool device_memory_may_retry(struct session *session, CUresult result, CUdevice device,
	uint64_t size, uint32_t *n_triesp)
{
	return result == CUDA_ERROR_OUT_OF_MEMORY &&
	       (*n_triesp)++ < RESIDENCY_LACK_TRIES && is_possible(session, device) &&
	       residency_ask_lacking(session, size, false);
}

int device_memory_charge_driver(void *data, uint32_t device, uint64_t size)
{
	struct session *session = data;

	if (device_memory_charge(session, (CUdevice)device, size))
		return 0;
	device_memory_refuse(session, size, true);
	return -1;
}

void device_memory_refund_driver(void *data, uint32_t device, uint64_t size)
{
	device_memory_refund(data, (CUdevice)device, size);
}

uint64_t device_memory_cost(const struct session *session, uint64_t size)
{
	const struct placement *placement = session->memory->placement;
	uint64_t cost;

	if (!vgpu_align_u64(size,
		    placement ? placement_unit(placement, size) : DEVICE_MEMORY_UNIT,
		    &cost))
		return UINT64_MAX;
	return cost;
}

/* The device memory that all workers of the VM use. */
static uint64_t used_by_all(struct session *session)
{
	uint64_t used;

	pthread_mutex_lock(&session->memory->lock);
	if (!vgpu_add_u64(session->memory->used, of_others(session->memory), &used))
		used = UINT64_MAX;
	pthread_mutex_unlock(&session->memory->lock);
	return used;
}

uint64_t device_memory_excess(struct session *session)
{
	const uint64_t limit = device_memory_quota(session);
	uint64_t used;

	if (limit == UINT64_MAX)
		return 0;
	used = used_by_all(session);
	return used > limit ? used - limit : 0;
}

static bool in_window(const struct session *session, uint64_t address, uint64_t size)
{
	return vgpu_range_within(address, size, session->window.base + session->shm_size,
		session->window.size - session->shm_size);
}

/* A call that captures may forbid. The driver invalidates these then; otherwise it has
 * waited for the context. */
static CUresult make_unsafe_call(const struct session *session)
{
	const struct vgpu_driver *driver = &session->driver->table;
	CUdeviceptr address;
	CUresult result;

	result = driver->cuMemAlloc_v2(&address, 1);
	return result == CUDA_SUCCESS ? driver->cuMemFree_v2(address) : result;
}

/* Whether memory may be allocated while streams are captured. Placement makes none of the
 * calls that the modes of a capture forbid, so one is made for the driver to refuse. */
static CUresult check_alloc(const struct call *call)
{
	return lane_is_forbidden_unsafe(call->lane) ? make_unsafe_call(call->session)
						    : CUDA_SUCCESS;
}

/* The same for memory that is freed. Unmapping does not wait for the work in flight, and
 * during a capture no other call may. */
static CUresult check_free(const struct call *call)
{
	return call->session->memory->placement && session_is_capturing(call->session)
		       ? make_unsafe_call(call->session)
		       : check_alloc(call);
}

static CUresult driver_free(struct session *session, uint64_t address)
{
	ipc_forget(session, address);
	if (!session->memory->placement)
		return session->driver->table.cuMemFree_v2(address);
	/* Unlike cuMemFree, unmapping does not wait: work that uses the memory must be
	 * complete. */
	if (!session_is_capturing(session))
		session->driver->table.cuCtxSynchronize();
	return placement_release(session->memory->placement, address);
}

static CUresult driver_alloc(struct call *call, uint64_t size, uint64_t *addressp)
{
	struct session *session = call->session;
	static struct rate rate;
	CUdeviceptr address;
	CUresult result;

	if (session->memory->placement) {
		result = check_alloc(call);
		return result == CUDA_SUCCESS
			       ? placement_take(session->memory->placement,
					 call->context->device, size, addressp)
			       : result;
	}
	result = session->driver->table.cuMemAlloc_v2(&address, size);
	if (result != CUDA_SUCCESS)
		return result;
	if (!in_window(session, address, size)) {
		session->driver->table.cuMemFree_v2(address);
		if (rate_allows(&rate))
			vgpu_log_error("the driver puts memory at %#llx, outside the "
				       "window: refused",
				address);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*addressp = address;
	return CUDA_SUCCESS;
}

CUresult device_memory_refuse(const struct session *session, uint64_t size, bool is_quota)
{
	if (is_quota && has_no_room)
		reason_say(VGPU_REPLY_REASON_LIMIT,
			"the device has no room for %llu bytes more at this moment: "
			"device-memory-total = in vgpud.conf on the host sets how much "
			"it has",
			(unsigned long long)size);
	else if (is_quota)
		reason_say(VGPU_REPLY_REASON_LIMIT,
			"%llu bytes more would pass the %llu bytes of device memory that "
			"this VM may have: device-memory = in vgpud.conf on the host "
			"sets that",
			(unsigned long long)size,
			(unsigned long long)device_memory_quota(session));
	else
		reason_say(VGPU_REPLY_REASON_LIMIT,
			"the device has no %llu bytes of free memory in a row: free "
			"some, or with softgpu set softgpu-memory = in vgpud.conf on the "
			"host",
			(unsigned long long)size);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Return: as ranges_add(), or RANGES_E_NO_OWNER if the context was destroyed. */
static int add_range(struct call *call, const struct range *range)
{
	struct session *session = call->session;
	int r = RANGES_E_NO_OWNER;

	pthread_mutex_lock(&session->contexts.lock);
	if (call_context_is_same(call)) {
		r = ranges_add(&session->ranges, range);
		/* The range of a variable whose module another thread unloaded while its
		 * address was being published: the driver has reused its memory. */
		if (r == RANGES_E_OVERLAP && !session->memory->placement) {
			ranges_remove_overlapping(&session->ranges, RANGE_GLOBAL,
				range->start, range->size);
			r = ranges_add(&session->ranges, range);
		}
	}
	pthread_mutex_unlock(&session->contexts.lock);
	return r;
}

CUresult device_memory_alloc(struct call *call, uint64_t size, uint64_t *addressp)
{
	struct session *session = call->session;
	struct range range = {
		.size = size,
		.kind = RANGE_MEMORY,
		.owner = call->context,
	};
	const uint64_t cost = device_memory_cost(session, size);
	const CUdevice device = call->context->device;
	uint32_t n_tries = 0;
	CUresult result;
	int r;

	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_memory_charge(session, device, cost))
		return device_memory_refuse(session, size, true);
	do
		result = driver_alloc(call, size, &range.start);
	while (device_memory_may_retry(session, result, device, cost, &n_tries));
	if (result == CUDA_ERROR_OUT_OF_MEMORY)
		device_memory_refuse(session, size, false);
	if (result != CUDA_SUCCESS)
		goto refund;
	r = add_range(call, &range);
	if (r) {
		/* A driver frees its own allocations with the context, but not those that
		 * were placed here. */
		if (r != RANGES_E_NO_OWNER || session->memory->placement)
			driver_free(session, range.start);
		result = r == RANGES_E_NO_OWNER ? CUDA_ERROR_CONTEXT_IS_DESTROYED
						: CUDA_ERROR_OUT_OF_MEMORY;
		goto refund;
	}
	*addressp = range.start;
	return CUDA_SUCCESS;

refund:
	device_memory_refund(session, device, cost);
	return result;
}

static void refund_range(
	struct session *session, const struct context *context, const struct range *range)
{
	device_memory_refund(
		session, context->device, device_memory_cost(session, range->size));
}

CUresult device_memory_free(struct call *call, uint64_t address)
{
	struct session *session = call->session;
	struct context *context;
	struct range range;
	CUresult result;

	if (!address)
		return CUDA_SUCCESS;
	result = check_free(call);
	if (result != CUDA_SUCCESS)
		return result;
	/* Remove the range before the driver can reuse the address. */
	if (ranges_remove(&session->ranges, RANGE_MEMORY, address, &range))
		return CUDA_ERROR_INVALID_VALUE;
	/* cuMemFree waits for the context of the memory, and returns its fault. */
	context = (struct context *)range.owner;
	call_names_context(call, context);
	result = driver_free(session, address);
	refund_range(session, context, &range);
	return result;
}

CUresult device_memory_publish_global(
	struct call *call, uint64_t address, uint64_t size, const void *parent)
{
	struct session *session = call->session;
	struct range range = {
		.start = address,
		.size = size,
		.kind = RANGE_GLOBAL,
		.owner = call->context,
		.parent = parent,
	};
	int r;

	if (!size)
		return CUDA_SUCCESS;
	r = add_range(call, &range);
	if (r == RANGES_E_NO_OWNER)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	/* The variable was published before. */
	if (r == RANGES_E_OVERLAP)
		return ranges_cover(&session->ranges, address, size)
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	return r ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult device_memory_info(struct call *call, size_t *freep, size_t *totalp)
{
	struct session *session = call->session;
	size_t free_size = 0, total = 0;
	uint64_t limit, used, left;
	CUresult result;

	result = call->driver->cuMemGetInfo_v2(&free_size, &total);
	if (result != CUDA_SUCCESS)
		return result;
	limit = device_memory_quota(session);
	*freep = free_size;
	*totalp = limit < total ? limit : total;
	/* A quota covers all devices together; without one each reports its own
	 * memory. */
	if (limit == UINT64_MAX)
		return CUDA_SUCCESS;
	used = used_by_all(session);
	left = used < limit ? limit - used : 0;
	if (left < free_size)
		*freep = left;
	return CUDA_SUCCESS;
}

void device_memory_free_all(struct session *session, const struct context *context)
{
	struct range range;

	while (!ranges_remove_owned(&session->ranges, context, &range)) {
		if (range.kind != RANGE_MEMORY)
			continue;
		driver_free(session, range.start);
		refund_range(session, context, &range);
	}
}

void device_memory_forget(struct session *session, const struct context *context)
{
	struct range range;

	while (!ranges_remove_owned(&session->ranges, context, &range)) {
		if (range.kind != RANGE_MEMORY)
			continue;
		ipc_forget(session, range.start);
		/* A driver frees its own allocations with the context, but not those that
		 * were placed here. */
		if (session->memory->placement)
			placement_release(session->memory->placement, range.start);
		refund_range(session, context, &range);
	}
}
