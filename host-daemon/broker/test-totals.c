/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Totals: sums of the sessions of a section, which outlive them
 */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arbiter/arbiter.h"
#include "broker/state.h"
#include "broker/totals.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "control/quota.h"
#include "test.h"

static struct config config;
static struct config_vm section;
static struct account account;
static struct vm vm;
static struct worker worker;
static struct broker broker;

static int make_file(off_t size)
{
	const int fd = memfd_create("test", MFD_CLOEXEC);

	check(fd >= 0);
	check_eq(ftruncate(fd, size), 0);
	return fd;
}

/* A section with one session. */
static void begin(int quota_fd)
{
	account = (struct account){ .config = &section, .quota_fd = quota_fd };
	vm = (struct vm){ .account = &account };
	vm.channels[0].vm = &vm;
	worker = (struct worker){
		.channel = &vm.channels[0],
		.stats = make_file(WORKER_FILE_SIZE),
	};
	broker = (struct broker){ .config = &config, .accounts = &account };
	TAILQ_INIT(&broker.pool.workers);
	TAILQ_INSERT_TAIL(&broker.pool.workers, &worker, entry);
}

static void count(uint64_t launches, uint64_t faults)
{
	const struct worker_stats stats = {
		.launches = launches,
		.device_memory = 4096,
	};

	check_eq(pwrite(worker.stats, &stats, sizeof(stats), 0), sizeof(stats));
	worker.use.n_faults = faults;
}

/* The worker says so of the device's time, and what an arbiter has counted of it. */
static void use_device(uint64_t used_ns, uint64_t held_ns, uint64_t counted_ns)
{
	const struct softgpu_allowance allowance = {
		.used_ns = used_ns,
		.held_ns = held_ns,
		.counted_ns = counted_ns,
		.counted_until_ns = counted_ns ? used_ns : 0,
	};

	check_eq(
		pwrite(worker.stats, &allowance, sizeof(allowance), WORKER_ALLOWANCE_OFF),
		sizeof(allowance));
}

/* A broker begins, which has one session. */
static void begin_sharing(void)
{
	static const struct arbiter_share share = { .weight = 100, .priority = 1 };

	check_eq(arbiter_new(&broker.arbiter, 5000000), 0);
	check_eq(arbiter_add_vm(broker.arbiter, &account.arbiter, &share), 0);
	check_eq(arbiter_add_worker(account.arbiter, &worker.share, worker.stats, NULL),
		0);
}

static void end_sharing(void)
{
	worker.share = arbiter_remove_worker(worker.share);
	account.arbiter = arbiter_remove_vm(account.arbiter);
	broker.arbiter = arbiter_free(broker.arbiter);
}

/* Its worker ends; another one begins to work. */
static void replace_worker(void)
{
	close(worker.stats);
	worker.stats = make_file(WORKER_FILE_SIZE);
	worker.use.n_faults = 0;
}

TEST(sessions_that_run_and_those_that_have_ended_add_up)
{
	struct totals totals;
	int fd;

	check_eq(quota_make(&fd), 0);
	begin(fd);
	totals_note_open(&account);
	count(5, 1);
	totals = totals_of(&broker, &account);
	check_eq(totals.sessions, 1);
	check_eq(totals.stats.launches, 5);
	check_eq(totals.faults, 1);
	check_eq(totals.ended[VGPU_REASON_PROTOCOL], 0);

	totals_note_end(&account, &worker, VGPU_REASON_PROTOCOL);
	replace_worker();
	totals_note_open(&account);
	count(2, 0);
	/* As the next broker sees it, which has the file alone. */
	totals = totals_of(&broker, &account);
	check_eq(totals.sessions, 2);
	check_eq(totals.stats.launches, 7);
	check_eq(totals.stats.device_memory, 0);
	check_eq(totals.faults, 1);
	check_eq(totals.ended[VGPU_REASON_PROTOCOL], 1);
	close(worker.stats);
	close(fd);
}

TEST(device_time_outlives_session_and_broker)
{
	struct totals totals;
	int fd;

	check_eq(quota_make(&fd), 0);
	begin(fd);
	use_device(700, 30, 0);
	begin_sharing();
	totals = totals_of(&broker, &account);
	check_eq(totals.device_ns, 700);
	check_eq(totals.held_ns, 30);
	totals_note_end(&account, &worker, VGPU_REASON_NONE);
	end_sharing();

	replace_worker();
	use_device(50, 1, 0);
	begin_sharing();
	totals = totals_of(&broker, &account);
	check_eq(totals.device_ns, 750);
	check_eq(totals.held_ns, 31);
	/* One that is not limited any more says nothing. */
	end_sharing();
	totals = totals_of(&broker, &account);
	check_eq(totals.device_ns, 700);

	/* Of one that shared its time with others only a part counts. */
	use_device(90, 1, 20);
	begin_sharing();
	check_eq(totals_of(&broker, &account).device_ns, 720);
	use_device(100, 1, 20);
	totals_note_end(&account, &worker, VGPU_REASON_NONE);
	end_sharing();
	replace_worker();
	check_eq(totals_of(&broker, &account).device_ns, 730);
	close(worker.stats);
	close(fd);
}

TEST(refusals_are_counted_by_their_reason)
{
	struct totals totals;
	int fd;

	check_eq(quota_make(&fd), 0);
	begin(fd);
	totals_note_refusal(&account, VGPU_REASON_WORKERS);
	totals_note_refusal(&account, VGPU_REASON_WORKERS);
	totals_note_refusal(&account, VGPU_REASON_VERSION);
	totals_note_refusal(&account, UINT32_MAX);
	totals = totals_of(&broker, &account);
	check_eq(totals.refused[VGPU_REASON_WORKERS], 2);
	check_eq(totals.refused[VGPU_REASON_VERSION], 1);
	check_eq(totals.sessions, 0);
	close(worker.stats);
	close(fd);
}

TEST(a_file_of_an_earlier_build_has_totals_of_what_runs)
{
	const int fd = make_file(sizeof(struct quota_page));
	struct totals totals;

	begin(fd);
	totals_note_open(&account);
	count(5, 0);
	totals = totals_of(&broker, &account);
	check_eq(totals.sessions, 0);
	check_eq(totals.stats.launches, 5);
	totals_note_end(&account, &worker, VGPU_REASON_NONE);
	replace_worker();
	check_eq(totals_of(&broker, &account).stats.launches, 0);
	close(worker.stats);
	close(fd);
}

TEST(numbers_of_a_compromised_worker_do_not_overflow)
{
	struct totals totals;
	int fd;

	check_eq(quota_make(&fd), 0);
	begin(fd);
	for (int i = 0; i < 3; i++) {
		count(UINT64_MAX - 1, UINT64_MAX);
		totals_note_end(&account, &worker, VGPU_REASON_NONE);
		replace_worker();
	}
	totals = totals_of(&broker, &account);
	check(totals.stats.launches == UINT64_MAX);
	check(totals.faults == UINT64_MAX);
	check_eq(totals.ended[VGPU_REASON_NONE], 3);
	/* Totals of another layout are none. */
	check_eq(pwrite(fd, &(uint32_t){ 77 }, 4, QUOTA_TOTALS_OFF), 4);
	check_eq(totals_of(&broker, &account).ended[VGPU_REASON_NONE], 0);
	close(worker.stats);
	close(fd);
}

TEST(ends_by_the_kernel_count_once_for_each_group)
{
	const int fd = make_file(QUOTA_FILE_SIZE);

	begin(fd);
	check(!totals_take_oom_kill(&account, 0));
	check(totals_take_oom_kill(&account, 2));
	check(totals_take_oom_kill(&account, 2));
	check(!totals_take_oom_kill(&account, 2));
	check(totals_take_oom_kill(&account, 3));
	/* Another group: the broker died before it had noted the end of the last one. */
	check(totals_take_oom_kill(&account, 1));
	check(!totals_take_oom_kill(&account, 1));
	totals_forget_group(&account);
	check(totals_take_oom_kill(&account, 1));
	check_eq(totals_of(&broker, &account).oom_kills, 5);
	check_eq(ftruncate(fd, sizeof(struct quota_page)), 0);
	check(!totals_take_oom_kill(&account, 7));
	close(worker.stats);
	close(fd);
}
