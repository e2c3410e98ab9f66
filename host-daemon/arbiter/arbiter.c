/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbiter: a thread that shares the device's time among the workers of all VMs
 */

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "arbiter/arbiter.h"
#include "arbiter/fair.h"
#include "control/control.h"
#include "vgpu/error.h"
#include "vgpu/wake.h"
#include "vgpud/helper.h"

/* The page of a worker's file that has the allowance. */
#define PAGE_SIZE 4096u

/* Devices that are shared apart; of further ones one has the place of another. */
#define FAIRS_MAX VGPU_DEVICES_MAX
/* Work that was seen is taken to go on for so long; then whoever looks is late. */
#define UNSEEN_MAX_NS UINT64_C(1000000)

struct arbiter_worker {
	struct fair_member member;
	struct arbiter_vm *vm;
	uint8_t *page;
	uint64_t limit_ns; /* as published */
	uint32_t fair;	   /* by which it is shared */
	struct arbiter_devices devices;
	bool is_counted;  /* its part of overlapping times is known */
	uint64_t told_ns; /* as last read; the caller's thread */
};

struct arbiter_vm {
	struct arbiter *arbiter;
	struct fair_group groups[FAIRS_MAX]; /* one in each */
	TAILQ_ENTRY(arbiter_vm) entry;
	uint32_t percent;
};

struct arbiter {
	pthread_t thread;
	pthread_mutex_t lock; /* for the rest */
	pthread_cond_t changed;
	bool ends;
	bool is_new; /* since the last round something was added or removed */
	uint32_t n_workers;
	TAILQ_HEAD(, arbiter_vm) vms;
	uint32_t n_limited; /* workers of VMs with a percentage */
	/* With softgpu the first one is all devices, which are the same processors. Else
	 * each is a device, and workers say for how long it had work of theirs. */
	struct fair fairs[FAIRS_MAX];
	uint32_t n_fairs;
	bool overlaps;
	uint64_t last_ns;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static struct softgpu_allowance *allowance_of(const struct arbiter_worker *worker)
{
	return (struct softgpu_allowance *)(void *)(worker->page + WORKER_ALLOWANCE_OFF);
}

static struct arbiter_worker *worker_of(const struct fair_member *member)
{
	return (struct arbiter_worker *)(void *)member; /* its first field */
}

static uint64_t read_used(const struct softgpu_allowance *allowance, uint64_t now)
{
	const uint64_t used = __atomic_load_n(&allowance->used_ns, __ATOMIC_RELAXED);
	const uint64_t seen = __atomic_load_n(&allowance->seen_ns, __ATOMIC_RELAXED);

	/* Otherwise those who look less often would seem to work less. */
	if (!seen || now < seen)
		return used;
	return used + (now - seen < UNSEEN_MAX_NS ? now - seen : UNSEEN_MAX_NS);
}

static void read_worker(struct arbiter_worker *worker, uint64_t now)
{
	const struct softgpu_allowance *allowance = allowance_of(worker);
	const uint32_t n_held = __atomic_load_n(&allowance->n_held, __ATOMIC_RELAXED);
	const uint64_t before = worker->member.reading.used_ns;
	uint32_t n_busy = __atomic_load_n(&allowance->n_busy, __ATOMIC_RELAXED);
	uint64_t used;

	if (worker->vm->arbiter->overlaps) {
		used = read_used(allowance, now);
		/* The work had not gone on. */
		if (used < before)
			used = before;
		n_busy = n_busy > 0;
	} else {
		used = __atomic_load_n(&allowance->used_ns, __ATOMIC_RELAXED);
		/* softgpu's threads that are held have work. */
		n_busy -= n_held < n_busy ? n_held : n_busy;
	}
	worker->member.reading = (struct fair_reading){
		.used_ns = used,
		.held_ns = __atomic_load_n(&allowance->held_ns, __ATOMIC_RELAXED),
		.n_busy = n_busy,
		.is_held = n_held,
	};
}

/* Of several devices of a worker the first one counts. */
static uint32_t fair_of(const struct arbiter_worker *worker)
{
	const struct arbiter *arbiter = worker->vm->arbiter;
	const uint64_t devices =
		__atomic_load_n(&allowance_of(worker)->devices, __ATOMIC_RELAXED);

	if (!arbiter->overlaps || !devices)
		return 0;
	return worker->devices.numbers[__builtin_ctzll(devices)] % arbiter->n_fairs;
}

/* It is of processors, which only softgpu's devices are. */
static void set_percent(struct arbiter_vm *vm)
{
	vm->groups[0].percent = vm->arbiter->overlaps ? 0 : vm->percent;
}

static void enter_fair(struct arbiter_worker *worker, uint32_t fair)
{
	worker->fair = fair;
	fair_add_member(&worker->vm->groups[fair], &worker->member);
}

/* The worker has work on another device: it begins there as a new one does. */
static void change_fair(struct arbiter_worker *worker, uint32_t fair)
{
	const uint64_t used_ns = worker->member.used_ns;

	fair_remove_member(&worker->member);
	enter_fair(worker, fair);
	worker->member.used_ns = used_ns;
}

static uint32_t limit_of(const struct arbiter_worker *worker)
{
	if (worker->member.group->is_paused)
		return SOFTGPU_ALLOWANCE_PAUSED;
	return worker->limit_ns == UINT64_MAX ? SOFTGPU_ALLOWANCE_UNLIMITED
					      : SOFTGPU_ALLOWANCE_LIMITED;
}

/* For the next arbiter, which would take all that it has used for its own. */
static void note_counted(struct arbiter_worker *worker)
{
	struct softgpu_allowance *allowance = allowance_of(worker);

	worker->is_counted |= worker->vm->arbiter->overlaps;
	if (!worker->is_counted)
		return;
	/* If this one dies in between, the time of one round counts twice. */
	__atomic_store_n(
		&allowance->counted_ns, worker->member.used_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&allowance->counted_until_ns, worker->member.last.used_ns,
		__ATOMIC_RELAXED);
}

/* What the last arbiter has noted; the worker can write there, too. */
static void resume_counting(struct arbiter_worker *worker)
{
	const struct softgpu_allowance *allowance = allowance_of(worker);
	const uint64_t counted =
		__atomic_load_n(&allowance->counted_ns, __ATOMIC_RELAXED);
	const uint64_t until =
		__atomic_load_n(&allowance->counted_until_ns, __ATOMIC_RELAXED);
	const uint64_t used = worker->member.reading.used_ns;

	if (!until)
		return;
	worker->is_counted = true;
	worker->member.used_ns = counted < until ? counted : until;
	if (used > until)
		worker->member.used_ns += used - until;
}

static void publish(struct arbiter_worker *worker, uint64_t now)
{
	struct softgpu_allowance *allowance = allowance_of(worker);
	const uint64_t limit = worker->member.limit_ns;
	const uint32_t before = __atomic_load_n(&allowance->is_limited, __ATOMIC_RELAXED);
	bool is_raised = limit > worker->limit_ns;

	worker->limit_ns = limit;
	note_counted(worker);
	is_raised |= before > limit_of(worker);
	__atomic_store_n(&allowance->beat_ns, now, __ATOMIC_RELAXED);
	__atomic_store_n(&allowance->limit_ns, limit, __ATOMIC_RELAXED);
	/* Release: the limit belongs to it. Partner: sched_account_is_over(). */
	__atomic_store_n(&allowance->is_limited, limit_of(worker), __ATOMIC_RELEASE);
	if (!is_raised)
		return;
	/* Partner: sched_account_hold() reads the number before it looks at the limit. */
	__atomic_fetch_add(&allowance->n_changes, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&allowance->n_held, __ATOMIC_SEQ_CST))
		vgpu_wake_shared_word(&allowance->n_changes, INT_MAX);
}

static void publish_all(struct arbiter *arbiter, uint64_t now)
{
	struct fair_group *group;
	struct fair_member *member;

	for (uint32_t i = 0; i < arbiter->n_fairs; i++)
		TAILQ_FOREACH(group, &arbiter->fairs[i].groups, entry)
			TAILQ_FOREACH(member, &group->members, entry)
				publish(worker_of(member), now);
}

static void read_all(struct arbiter *arbiter, uint64_t now)
{
	struct fair_group *group;
	struct fair_member *member, *next;

	for (uint32_t i = 0; i < arbiter->n_fairs; i++)
		TAILQ_FOREACH(group, &arbiter->fairs[i].groups, entry)
			for (member = TAILQ_FIRST(&group->members); member;
				member = next) {
				struct arbiter_worker *worker = worker_of(member);
				const uint32_t fair = fair_of(worker);

				next = TAILQ_NEXT(member, entry);
				if (fair != worker->fair)
					change_fair(worker, fair);
				read_worker(worker, now);
			}
}

/* With the lock. Return: ns until the next round. */
static uint64_t decide(struct arbiter *arbiter)
{
	const uint64_t now = now_ns();
	uint64_t next = UINT64_MAX;

	read_all(arbiter, now);
	for (uint32_t i = 0; i < arbiter->n_fairs; i++) {
		const uint64_t ns =
			fair_round(&arbiter->fairs[i], now - arbiter->last_ns);

		next = ns < next ? ns : next;
	}
	arbiter->last_ns = now;
	publish_all(arbiter, now);
	return next;
}

/* With the lock: waits until something has changed, or that much time is over. */
static void rest(struct arbiter *arbiter, uint64_t ns)
{
	const uint64_t then = now_ns() + ns;
	const struct timespec until = {
		.tv_sec = (time_t)(then / 1000000000),
		.tv_nsec = (long)(then % 1000000000),
	};
	struct vgpu_nap nap = {};

	while (!arbiter->is_new && !arbiter->ends)
		if (vgpu_nap_cond_until(&nap, &arbiter->changed, &arbiter->lock, &until))
			return;
}

/* With the lock: one process has nobody to share with. */
static bool has_rounds(const struct arbiter *arbiter)
{
	return arbiter->n_workers > 1 || arbiter->n_limited;
}

static void sleep_until_shared(struct arbiter *arbiter)
{
	struct vgpu_nap nap = {};

	while (!has_rounds(arbiter) && !arbiter->is_new && !arbiter->ends)
		vgpu_nap_cond(&nap, &arbiter->changed, &arbiter->lock);
}

static void *run(void *data)
{
	struct arbiter *arbiter = data;
	uint64_t next;

	pthread_mutex_lock(&arbiter->lock);
	while (!arbiter->ends) {
		arbiter->is_new = false;
		next = decide(arbiter);
		if (has_rounds(arbiter))
			rest(arbiter, next);
		else
			sleep_until_shared(arbiter);
	}
	pthread_mutex_unlock(&arbiter->lock);
	return NULL;
}

/* With the lock. */
static void tell(struct arbiter *arbiter)
{
	arbiter->is_new = true;
	vgpu_wake_all(&arbiter->changed);
}

int arbiter_new(struct arbiter **arbiterp, uint64_t quantum_ns)
{
	struct arbiter *arbiter = calloc(1, sizeof(*arbiter));
	pthread_condattr_t monotonic;
	int r;

	if (!arbiter)
		return vgpu_error_origin(-ENOMEM);
	for (uint32_t i = 0; i < FAIRS_MAX; i++)
		fair_init(&arbiter->fairs[i], 1, quantum_ns);
	arbiter->n_fairs = 1;
	TAILQ_INIT(&arbiter->vms);
	arbiter->last_ns = now_ns();
	pthread_mutex_init(&arbiter->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&arbiter->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	r = helper_start(&arbiter->thread, run, arbiter);
	if (r) {
		free(arbiter);
		return vgpu_error_trace(r);
	}
	*arbiterp = arbiter;
	return 0;
}

struct arbiter *arbiter_free(struct arbiter *arbiter)
{
	if (!arbiter)
		return NULL;
	pthread_mutex_lock(&arbiter->lock);
	arbiter->ends = true;
	tell(arbiter);
	pthread_mutex_unlock(&arbiter->lock);
	pthread_join(arbiter->thread, NULL);
	pthread_cond_destroy(&arbiter->changed);
	pthread_mutex_destroy(&arbiter->lock);
	free(arbiter);
	return NULL;
}

void arbiter_set_units(struct arbiter *arbiter, uint32_t n_units, bool overlaps)
{
	struct fair_group *group;
	struct fair_member *member;
	struct arbiter_vm *vm;

	if (!n_units)
		n_units = 1;
	pthread_mutex_lock(&arbiter->lock);
	/* Back to the first one, from which they find theirs. */
	for (uint32_t i = 1; i < arbiter->n_fairs; i++)
		TAILQ_FOREACH(group, &arbiter->fairs[i].groups, entry)
			while ((member = TAILQ_FIRST(&group->members)))
				change_fair(worker_of(member), 0);
	arbiter->overlaps = overlaps;
	arbiter->n_fairs = !overlaps ? 1 : n_units < FAIRS_MAX ? n_units : FAIRS_MAX;
	for (uint32_t i = 0; i < FAIRS_MAX; i++) {
		arbiter->fairs[i].n_units = overlaps ? 1 : n_units;
		arbiter->fairs[i].overlaps = overlaps;
	}
	TAILQ_FOREACH(vm, &arbiter->vms, entry)
		set_percent(vm);
	pthread_mutex_unlock(&arbiter->lock);
}

int arbiter_add_vm(struct arbiter *arbiter, struct arbiter_vm **vmp,
	const struct arbiter_share *share)
{
	struct arbiter_vm *vm = calloc(1, sizeof(*vm));

	if (!vm)
		return vgpu_error_origin(-ENOMEM);
	vm->arbiter = arbiter;
	pthread_mutex_lock(&arbiter->lock);
	for (uint32_t i = 0; i < FAIRS_MAX; i++) {
		struct fair_group *group = &vm->groups[i];

		fair_add_group(&arbiter->fairs[i], group, share->weight);
		group->priority = share->priority;
		group->is_paused = share->is_paused;
	}
	vm->percent = share->percent;
	set_percent(vm);
	TAILQ_INSERT_TAIL(&arbiter->vms, vm, entry);
	pthread_mutex_unlock(&arbiter->lock);
	*vmp = vm;
	return 0;
}

struct arbiter_vm *arbiter_remove_vm(struct arbiter_vm *vm)
{
	if (!vm)
		return NULL;
	pthread_mutex_lock(&vm->arbiter->lock);
	TAILQ_REMOVE(&vm->arbiter->vms, vm, entry);
	for (uint32_t i = 0; i < FAIRS_MAX; i++)
		fair_remove_group(&vm->arbiter->fairs[i], &vm->groups[i]);
	pthread_mutex_unlock(&vm->arbiter->lock);
	free(vm);
	return NULL;
}

int arbiter_add_worker(struct arbiter_vm *vm, struct arbiter_worker **workerp, int stats,
	const struct arbiter_devices *devices)
{
	struct arbiter_worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		return vgpu_error_origin(-ENOMEM);
	/* The size of the file is sealed. */
	worker->page =
		mmap(NULL, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, stats, 0);
	if (worker->page == MAP_FAILED) {
		free(worker);
		return vgpu_error_origin(-errno);
	}
	worker->limit_ns = UINT64_MAX;
	worker->vm = vm;
	for (uint8_t i = 0; i < VGPU_DEVICES_MAX; i++)
		worker->devices.numbers[i] = devices ? devices->numbers[i] : i;
	pthread_mutex_lock(&vm->arbiter->lock);
	read_worker(worker, now_ns());
	enter_fair(worker, fair_of(worker));
	resume_counting(worker);
	publish(worker, now_ns());
	vm->arbiter->n_workers++;
	vm->arbiter->n_limited += vm->percent > 0;
	tell(vm->arbiter);
	pthread_mutex_unlock(&vm->arbiter->lock);
	*workerp = worker;
	return 0;
}

/* The part of its reading that counts. */
static uint64_t counted_ns(const struct arbiter_worker *worker, uint64_t used_ns)
{
	struct arbiter *arbiter = worker->vm->arbiter;
	const struct fair_member *member = &worker->member;

	pthread_mutex_lock(&arbiter->lock);
	/* What it has used since the last round is not compared to that of others yet. */
	if (arbiter->overlaps || worker->is_counted)
		used_ns = member->used_ns +
			  (used_ns > member->last.used_ns ? used_ns - member->last.used_ns
							  : 0);
	pthread_mutex_unlock(&arbiter->lock);
	return used_ns;
}

void arbiter_read_worker(struct arbiter_worker *worker, struct arbiter_use *use)
{
	const struct softgpu_allowance *allowance = allowance_of(worker);
	const uint64_t used_ns = __atomic_load_n(&allowance->used_ns, __ATOMIC_RELAXED);
	const uint64_t counted = counted_ns(worker, used_ns);

	/* A round may leave it less than that. */
	if (worker->told_ns < counted)
		worker->told_ns = counted;
	*use = (struct arbiter_use){
		.used_ns = worker->told_ns,
		.held_ns = __atomic_load_n(&allowance->held_ns, __ATOMIC_RELAXED),
		.n_pending = __atomic_load_n(&allowance->n_pending, __ATOMIC_RELAXED),
		.is_held = __atomic_load_n(&allowance->n_held, __ATOMIC_RELAXED),
	};
}

struct arbiter_worker *arbiter_remove_worker(struct arbiter_worker *worker)
{
	struct arbiter_vm *vm;

	if (!worker)
		return NULL;
	vm = worker->vm;
	pthread_mutex_lock(&vm->arbiter->lock);
	fair_remove_member(&worker->member);
	vm->arbiter->n_workers--;
	vm->arbiter->n_limited -= vm->percent > 0;
	tell(vm->arbiter);
	pthread_mutex_unlock(&vm->arbiter->lock);
	munmap(worker->page, PAGE_SIZE);
	free(worker);
	return NULL;
}
