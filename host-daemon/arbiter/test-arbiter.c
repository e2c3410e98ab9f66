/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arbiter and workers that are no processes
 */

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arbiter/arbiter.h"
#include "arbiter/fair.h"
#include "control/control.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define VMS 2

static struct arbiter *arbiter;
static struct arbiter_vm *vms[VMS];

/* The file of a worker, and its allowance. */
struct fake {
	int fd;
	uint8_t *page;
	struct softgpu_allowance *allowance;
	struct arbiter_worker *worker;
};

static void fake_init(struct fake *fake, struct arbiter_vm *vm)
{
	fake->fd = memfd_create("fake", MFD_CLOEXEC);
	check(fake->fd >= 0);
	check_eq(ftruncate(fake->fd, WORKER_STATS_SIZE), 0);
	fake->page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fake->fd, 0);
	check(fake->page != MAP_FAILED);
	fake->allowance = (void *)(fake->page + WORKER_ALLOWANCE_OFF);
	check_eq(arbiter_add_worker(vm, &fake->worker, fake->fd, NULL), 0);
}

static void fake_deinit(struct fake *fake)
{
	fake->worker = arbiter_remove_worker(fake->worker);
	munmap(fake->page, 4096);
	close(fake->fd);
}

static uint32_t limit_of(const struct fake *fake)
{
	return __atomic_load_n(&fake->allowance->is_limited, __ATOMIC_ACQUIRE);
}

static bool is_over(const struct fake *fake)
{
	return limit_of(fake) != SOFTGPU_ALLOWANCE_UNLIMITED &&
	       __atomic_load_n(&fake->allowance->used_ns, __ATOMIC_RELAXED) >=
		       __atomic_load_n(&fake->allowance->limit_ns, __ATOMIC_RELAXED);
}

/* A worker that has more work than it may do. */
static void work(struct fake *fake, uint64_t ns)
{
	const bool is_held = is_over(fake);

	__atomic_store_n(&fake->allowance->n_busy, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&fake->allowance->n_held, is_held, __ATOMIC_RELAXED);
	if (is_held)
		__atomic_fetch_add(&fake->allowance->held_ns, ns, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(&fake->allowance->used_ns, ns, __ATOMIC_RELAXED);
}

static void start(const struct arbiter_share *first, const struct arbiter_share *second)
{
	check_eq(arbiter_new(&arbiter, FAIR_QUANTUM_NS), 0);
	check_eq(arbiter_add_vm(arbiter, &vms[0], first), 0);
	check_eq(arbiter_add_vm(arbiter, &vms[1], second), 0);
}

static void end(void)
{
	for (int i = 0; i < VMS; i++)
		vms[i] = arbiter_remove_vm(vms[i]);
	arbiter = arbiter_free(arbiter);
}

static const struct arbiter_share normal = { .weight = 100, .priority = 1 };

TEST(one_worker_is_not_limited)
{
	struct fake fake;

	start(&normal, &normal);
	fake_init(&fake, vms[0]);
	for (int i = 0; i < 100; i++) {
		work(&fake, MS);
		usleep(1000);
		check_eq(limit_of(&fake), SOFTGPU_ALLOWANCE_UNLIMITED);
	}
	fake_deinit(&fake);
	end();
}

/* Time passes in each for as long as it may work: by the arbiter's clock more than there
 * is, which it takes for lies beyond what the device can do. */
TEST(two_that_work_are_limited_until_one_is_gone)
{
	struct fake fakes[2];
	struct arbiter_use use;
	uint32_t n_changes;

	start(&normal, &normal);
	for (int i = 0; i < 2; i++)
		fake_init(&fakes[i], vms[i]);
	while (limit_of(&fakes[0]) != SOFTGPU_ALLOWANCE_LIMITED ||
		limit_of(&fakes[1]) != SOFTGPU_ALLOWANCE_LIMITED ||
		!fakes[0].allowance->held_ns || !fakes[1].allowance->held_ns)
		for (int i = 0; i < 2; i++)
			work(&fakes[i], MS / 100);
	check(fakes[0].allowance->beat_ns > 0);
	arbiter_read_worker(fakes[1].worker, &use);
	check_eq(use.used_ns, fakes[1].allowance->used_ns);
	check_eq(use.held_ns, fakes[1].allowance->held_ns);
	n_changes = fakes[0].allowance->n_changes;
	fake_deinit(&fakes[1]);
	while (limit_of(&fakes[0]) != SOFTGPU_ALLOWANCE_UNLIMITED)
		sched_yield();
	check(fakes[0].allowance->n_changes != n_changes);
	fake_deinit(&fakes[0]);
	end();
}

TEST(one_with_a_percentage_is_limited_although_it_is_alone)
{
	static const struct arbiter_share half = {
		.weight = 100,
		.priority = 1,
		.percent = 50,
	};
	struct fake fake;

	start(&half, &normal);
	fake_init(&fake, vms[0]);
	while (!fake.allowance->held_ns)
		work(&fake, MS / 100);
	check_eq(limit_of(&fake), SOFTGPU_ALLOWANCE_LIMITED);
	/* More work becomes due. */
	while (is_over(&fake))
		sched_yield();
	fake_deinit(&fake);
	end();
}

TEST(a_paused_machine_is_paused_from_the_first_moment)
{
	static const struct arbiter_share paused = {
		.weight = 100,
		.priority = 1,
		.is_paused = true,
	};
	struct fake first, second;

	start(&paused, &normal);
	fake_init(&first, vms[0]);
	check_eq(limit_of(&first), SOFTGPU_ALLOWANCE_PAUSED);
	fake_init(&second, vms[1]);
	for (int i = 0; i < 50; i++) {
		work(&second, MS);
		usleep(1000);
		check_eq(limit_of(&first), SOFTGPU_ALLOWANCE_PAUSED);
	}
	fake_deinit(&first);
	fake_deinit(&second);
	end();
}

/* The last arbiter ended before it could lift a limit. */
TEST(an_old_limit_is_lifted)
{
	struct fake fake;

	start(&normal, &normal);
	fake_init(&fake, vms[0]);
	fake.worker = arbiter_remove_worker(fake.worker);
	fake.allowance->is_limited = SOFTGPU_ALLOWANCE_LIMITED;
	check_eq(arbiter_add_worker(vms[0], &fake.worker, fake.fd, NULL), 0);
	while (limit_of(&fake) != SOFTGPU_ALLOWANCE_UNLIMITED)
		sched_yield();
	fake_deinit(&fake);
	end();
}

static uint64_t counted_until(const struct fake *fake)
{
	return __atomic_load_n(&fake->allowance->counted_until_ns, __ATOMIC_RELAXED);
}

#define STEPS 50
#define STEP_NS (100 * MS)

/* Two that say each for how long a device had work of theirs, while it had the other's:
 * more than there is, of which a part counts. */
static uint64_t overlap(struct fake fakes[2], uint64_t before)
{
	struct arbiter_use use;

	for (int n = 0; n < STEPS; n++) {
		for (int i = 0; i < 2; i++) {
			__atomic_store_n(
				&fakes[i].allowance->n_busy, 1, __ATOMIC_RELAXED);
			__atomic_fetch_add(
				&fakes[i].allowance->used_ns, STEP_NS, __ATOMIC_RELAXED);
		}
		arbiter_read_worker(fakes[0].worker, &use);
		check(use.used_ns >= before);
		before = use.used_ns;
		for (int i = 0; i < 2; i++)
			while (counted_until(&fakes[i]) != fakes[i].allowance->used_ns)
				sched_yield();
	}
	return before;
}

TEST(the_part_of_overlapping_times_never_becomes_less)
{
	struct fake fakes[2];
	struct arbiter_use use;
	uint64_t before = 0;

	start(&normal, &normal);
	arbiter_set_units(arbiter, 1, true);
	for (int i = 0; i < 2; i++)
		fake_init(&fakes[i], vms[i]);
	before = overlap(fakes, before);
	check(before < STEPS * STEP_NS / 2);
	/* The next arbiter, which does not know yet that times overlap. */
	for (int i = 0; i < 2; i++)
		fakes[i].worker = arbiter_remove_worker(fakes[i].worker);
	end();
	start(&normal, &normal);
	for (int i = 0; i < 2; i++)
		check_eq(arbiter_add_worker(vms[i], &fakes[i].worker, fakes[i].fd, NULL),
			0);
	arbiter_read_worker(fakes[0].worker, &use);
	check(use.used_ns < STEPS * STEP_NS / 2);
	check(use.used_ns + STEP_NS >= before);
	arbiter_set_units(arbiter, 1, true);
	before = overlap(fakes, use.used_ns);
	check(before < STEPS * STEP_NS);
	for (int i = 0; i < 2; i++)
		fake_deinit(&fakes[i]);
	end();
}

TEST(any_numbers_of_a_worker_do_no_harm)
{
	struct fake fakes[2];
	uint64_t random = 1;

	start(&normal, &normal);
	for (int i = 0; i < 2; i++)
		fake_init(&fakes[i], vms[i]);
	for (int n = 0; n < 200; n++) {
		for (size_t i = 0; i < sizeof(*fakes[0].allowance); i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			((uint8_t *)fakes[0].allowance)[i] = (uint8_t)(random >> 56);
		}
		work(&fakes[1], MS);
		usleep(1000);
	}
	for (int i = 0; i < 2; i++)
		fake_deinit(&fakes[i]);
	end();
}
