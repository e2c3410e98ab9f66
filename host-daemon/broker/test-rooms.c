/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rooms: what the workers of all VMs may have on the device, with workers that are files
 */

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/quota-watch.h"
#include "broker/rooms.h"
#include "broker/state.h"
#include "broker/vm.h"
#include "broker/worker.h"
#include "control/room.h"
#include "test.h"
#include "vgpud/clock.h"

#define MIB (UINT64_C(1) << 20)
/* Without slack: with it grants are larger than needs while there is plenty. */
#define TOTAL (100 * MIB)
#define N_VMS 2u
#define N_WORKERS 3u
#define IDLE_S 5u

/* Two workers of the first VM, one of the second. */
static struct config config;
static struct config_vm sections[N_VMS];
static struct account accounts[N_VMS];
static struct vm vms[N_VMS];
static struct ledger_channel records[N_WORKERS];
static struct channel channels[N_WORKERS];
static struct worker workers[N_WORKERS];
static struct worker_room *rooms[N_WORKERS]; /* as the workers have them */
static int controls[N_WORKERS];		     /* their ends */
static struct broker broker;
static int keeper;

static void begin_worker(uint32_t i)
{
	struct worker *worker = &workers[i];
	struct vm *vm = &vms[i / 2];
	int pair[2];

	check_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	controls[i] = pair[1];
	records[i] = (struct ledger_channel){ .phase = CHANNEL_OPEN };
	channels[i] = (struct channel){ .vm = vm, .record = &records[i], .index = i };
	*worker = (struct worker){
		.broker = &broker,
		.state = WORKER_BUSY,
		.id = i + 1,
		.control = pair[0],
		.stats = memfd_create("test", MFD_CLOEXEC),
		.channel = &channels[i],
	};
	channels[i].worker = worker;
	check_eq(ftruncate(worker->stats, WORKER_STATS_SIZE), 0);
	check_eq(room_map(&rooms[i], worker->stats), 0);
	check_eq(room_state_open(&worker->room, worker->stats, vm->account,
			 config.device_memory_total),
		0);
	TAILQ_INSERT_TAIL(&broker.pool.workers, worker, entry);
}

static void begin(uint64_t total)
{
	int pair[2];

	check_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	keeper = pair[1];
	config = (struct config){
		.n_vms = N_VMS,
		.device_memory_total = total,
		.evict_idle = IDLE_S,
	};
	broker = (struct broker){
		.config = &config,
		.accounts = accounts,
		.link = pair[0],
	};
	TAILQ_INIT(&broker.loop.timers);
	TAILQ_INIT(&broker.pool.workers);
	TAILQ_INIT(&broker.vms);
	for (uint32_t i = 0; i < N_VMS; i++) {
		sections[i] = (struct config_vm){ .name = "vm", .evictable = true };
		accounts[i] = (struct account){ .config = &sections[i] };
		/* Enough, and then none. */
		budget_init(&accounts[i].log, 4, 3600000, clock_now());
		vms[i] = (struct vm){
			.broker = &broker,
			.config = &sections[i],
			.account = &accounts[i],
		};
	}
	for (uint32_t i = 0; i < N_WORKERS; i++)
		begin_worker(i);
}

static void end(void)
{
	for (uint32_t i = 0; i < N_WORKERS; i++) {
		room_state_close(&workers[i].room);
		rooms[i] = room_unmap(rooms[i]);
		close(workers[i].stats);
		close(workers[i].control);
		close(controls[i]);
	}
	loop_clear_timer(&broker.rooms);
	close(broker.link);
	close(keeper);
}

/* A worker asks, and vgpud looks. Return: the answer. */
static enum room_answer ask_for(uint32_t i, uint64_t need, bool is_back)
{
	uint32_t request;

	if (room_need(rooms[i], need))
		return ROOM_GRANTED;
	request = room_ask(rooms[i], is_back);
	rooms_look(&broker);
	return room_look(rooms[i], request);
}

static enum room_answer ask(uint32_t i, uint64_t need)
{
	enum room_answer answer = ask_for(i, need, false);

	if (answer != ROOM_WAITS)
		room_end_ask(rooms[i]);
	return answer;
}

/* The driver refuses it so much. */
static enum room_answer lack(uint32_t i, uint64_t lacking)
{
	const uint32_t request = room_ask_lacking(rooms[i], lacking, false);
	enum room_answer answer;

	rooms_look(&broker);
	answer = room_look(rooms[i], request);
	if (answer != ROOM_WAITS)
		room_end_ask(rooms[i]);
	return answer;
}

/* Has had no calls for so long. */
static void rest(uint32_t i, int64_t ms)
{
	rooms[i]->idle_since = (uint64_t)(clock_now() - ms) * 1000000u;
}

/* Return: whether it was told to go, which it reads. */
static bool was_told(uint32_t i)
{
	struct control_message message;
	int fds[CONTROL_FDS_MAX];

	return !control_receive(controls[i], &message, fds) &&
	       message.type == CONTROL_MOVE;
}

static void answer_move(uint32_t i, uint64_t need)
{
	room_need(rooms[i], need);
	rooms[i]->moved = rooms[i]->move;
	rooms_look(&broker);
}

TEST(what_is_there_is_granted_and_no_more)
{
	begin(TOTAL);
	check_eq(ask(0, 60 * MIB), ROOM_GRANTED);
	check_eq(ask(2, 40 * MIB), ROOM_GRANTED);
	check_eq(ask(2, 41 * MIB), ROOM_REFUSED);
	/* What it had remains. */
	check(workers[2].room.granted >= 40 * MIB);
	check(workers[0].room.granted + workers[2].room.granted <= TOTAL);
	room_need(rooms[2], 40 * MIB);
	check_eq(ask(1, 1), ROOM_REFUSED);
	room_need(rooms[1], 0);
	/* What one has released another gets. */
	room_need(rooms[0], 10 * MIB);
	check_eq(ask(1, 50 * MIB), ROOM_GRANTED);
	check(workers[0].room.granted + workers[1].room.granted +
			workers[2].room.granted <=
		TOTAL);
	/* Nobody waits any more. */
	check(!broker.rooms.loop);
	end();
}

TEST(an_idle_one_makes_room)
{
	uint32_t request;

	begin(TOTAL);
	check_eq(ask(0, 70 * MIB), ROOM_GRANTED);
	check_eq(ask(1, 10 * MIB), ROOM_GRANTED);
	rest(0, IDLE_S * 1000 + 1000);
	/* The other one of the first VM has calls. */
	check_eq(ask(2, 60 * MIB), ROOM_WAITS);
	request = rooms[2]->asked;
	check(was_told(0));
	check(!was_told(1));
	check(room_wish(rooms[0]));
	/* Until it has gone vgpud looks again, and tells it once. */
	check(broker.rooms.loop);
	rooms_look(&broker);
	check(!was_told(0));
	check_eq(room_look(rooms[2], request), ROOM_WAITS);
	answer_move(0, 0);
	check_eq(room_look(rooms[2], request), ROOM_GRANTED);
	room_end_ask(rooms[2]);
	check(workers[1].room.granted >= 10 * MIB);
	check(workers[0].room.granted + workers[1].room.granted +
			workers[2].room.granted <=
		TOTAL);
	end();
}

TEST(nobody_goes_in_vain)
{
	begin(TOTAL);
	check_eq(ask(0, 50 * MIB), ROOM_GRANTED);
	check_eq(ask(1, 40 * MIB), ROOM_GRANTED);
	rest(0, IDLE_S * 1000 + 1000);
	/* What the idle one has is not enough, or more than there is at all. */
	check_eq(ask(2, 80 * MIB), ROOM_REFUSED);
	check_eq(ask(2, TOTAL + 1), ROOM_REFUSED);
	room_need(rooms[2], 0);
	check(!was_told(0));
	/* Its administrator does not allow it. */
	sections[0].evictable = false;
	check_eq(ask(2, 40 * MIB), ROOM_REFUSED);
	check(!was_told(0));
	sections[0].evictable = true;
	/* It has not been idle for long enough, or says that it is since the future. */
	rest(0, 0);
	check_eq(ask(2, 40 * MIB), ROOM_REFUSED);
	rest(0, -3600000);
	check_eq(ask(2, 40 * MIB), ROOM_REFUSED);
	check(!was_told(0));
	end();
}

TEST(one_that_could_not_go_is_left_alone_for_a_while)
{
	uint32_t request;

	begin(TOTAL);
	check_eq(ask(0, 70 * MIB), ROOM_GRANTED);
	rest(0, IDLE_S * 1000 + 1000);
	check_eq(ask(2, 60 * MIB), ROOM_WAITS);
	request = rooms[2]->asked;
	check(was_told(0));
	/* It has calls now, and answers so. */
	answer_move(0, workers[0].room.granted);
	check_eq(room_look(rooms[2], request), ROOM_REFUSED);
	room_end_ask(rooms[2]);
	check(!was_told(0));
	check_eq(ask(2, 60 * MIB), ROOM_REFUSED);
	check(!was_told(0));
	/* Later it may go. */
	workers[0].room.busy_until = 0;
	check_eq(ask(2, 60 * MIB), ROOM_WAITS);
	check(was_told(0));
	end();
}

TEST(one_that_could_not_go_and_was_granted_more_is_left_alone)
{
	uint32_t request;

	begin(1024 * MIB);
	check_eq(ask(0, 600 * MIB), ROOM_GRANTED);
	check(workers[0].room.granted > 600 * MIB);
	rest(0, IDLE_S * 1000 + 1000);
	check_eq(ask(2, 500 * MIB), ROOM_WAITS);
	request = rooms[2]->asked;
	check(was_told(0));
	answer_move(0, 600 * MIB);
	check(!was_told(0));
	check_eq(room_look(rooms[2], request), ROOM_REFUSED);
	end();
}

TEST(one_that_never_answers_is_not_waited_for_for_ever)
{
	uint32_t request;

	begin(TOTAL);
	check_eq(ask(0, 70 * MIB), ROOM_GRANTED);
	rest(0, IDLE_S * 1000 + 1000);
	check_eq(ask(2, 60 * MIB), ROOM_WAITS);
	request = rooms[2]->asked;
	check(was_told(0));
	/* The number of another wish is no answer. */
	rooms[0]->moved = rooms[0]->move + 7;
	rooms_look(&broker);
	check_eq(room_look(rooms[2], request), ROOM_WAITS);
	workers[0].room.going -= 3600000;
	rooms_look(&broker);
	check_eq(room_look(rooms[2], request), ROOM_REFUSED);
	check(!was_told(0));
	end();
}

TEST(an_idle_one_makes_room_for_what_the_driver_refuses)
{
	uint32_t request;

	begin(TOTAL);
	check_eq(ask(0, 30 * MIB), ROOM_GRANTED);
	check_eq(ask(2, 20 * MIB), ROOM_GRANTED);
	/* Nobody is idle. */
	check_eq(lack(2, 20 * MIB), ROOM_REFUSED);
	rest(0, IDLE_S * 1000 + 1000);
	check_eq(lack(2, 20 * MIB), ROOM_WAITS);
	request = rooms[2]->asked;
	check(was_told(0));
	check(broker.rooms.loop);
	rooms_look(&broker);
	check(!was_told(0));
	check_eq(room_look(rooms[2], request), ROOM_WAITS);
	answer_move(0, 0);
	check_eq(room_look(rooms[2], request), ROOM_GRANTED);
	room_end_ask(rooms[2]);
	check_eq(workers[2].room.granted, 20 * MIB);
	/* It may come back, but only if it is granted. */
	check_eq(workers[0].room.granted, 0);
	check_eq(accounts[1].lacked, 30 * MIB);
	check_eq(lack(2, 20 * MIB), ROOM_REFUSED);
	check_eq(ask(0, 30 * MIB), ROOM_GRANTED);
	check_eq(accounts[1].lacked, 0);
	end();
}

TEST(a_vm_that_says_it_lacks_memory_moves_as_much_as_it_may_have)
{
	begin(TOTAL);
	sections[1].device_memory = 20 * MIB;
	check_eq(ask(0, 15 * MIB), ROOM_GRANTED);
	check_eq(ask(1, 15 * MIB), ROOM_GRANTED);
	check_eq(ask(2, 10 * MIB), ROOM_GRANTED);
	rest(0, IDLE_S * 1000 + 2000);
	rest(1, IDLE_S * 1000 + 1000);
	/* No more at once than it has. */
	check_eq(lack(2, UINT64_MAX), ROOM_WAITS);
	check(was_told(0) && !was_told(1));
	answer_move(0, 0);
	check_eq(accounts[1].lacked, 15 * MIB);
	check_eq(lack(2, 10 * MIB), ROOM_WAITS);
	check(was_told(1));
	answer_move(1, 0);
	check_eq(room_look(rooms[2], rooms[2]->asked), ROOM_GRANTED);
	check_eq(accounts[1].lacked, 30 * MIB);
	/* Others are there by now, of which it gets none. */
	check_eq(ask(0, 5 * MIB), ROOM_GRANTED);
	rest(0, IDLE_S * 1000 + 1000);
	check_eq(lack(2, 10 * MIB), ROOM_REFUSED);
	check(!was_told(0));
	/* What it has itself does not help, and what others have does. */
	check_eq(ask(2, 20 * MIB), ROOM_GRANTED);
	check_eq(accounts[1].lacked, 25 * MIB);
	check_eq(lack(2, 10 * MIB), ROOM_REFUSED);
	check_eq(ask(1, 15 * MIB), ROOM_GRANTED);
	rest(1, 1);
	check_eq(lack(2, 10 * MIB), ROOM_WAITS);
	check(was_told(0));
	end();
}

TEST(processes_of_one_vm_make_room_for_each_other)
{
	begin(TOTAL);
	sections[0].device_memory = 20 * MIB;
	check_eq(ask(0, 10 * MIB), ROOM_GRANTED);
	check_eq(ask(1, 10 * MIB), ROOM_GRANTED);
	for (int i = 0; i < 5; i++) {
		rest(0, IDLE_S * 1000 + 1000);
		check_eq(lack(1, 10 * MIB), ROOM_WAITS);
		check(was_told(0));
		answer_move(0, 0);
		check_eq(room_look(rooms[1], rooms[1]->asked), ROOM_GRANTED);
		room_end_ask(rooms[1]);
		check_eq(accounts[0].lacked, 0);
		check_eq(ask(0, 10 * MIB), ROOM_GRANTED);
	}
	end();
}

TEST(one_that_could_not_go_for_what_the_driver_refuses_is_left_alone)
{
	uint32_t request;

	begin(TOTAL);
	check_eq(ask(0, 30 * MIB), ROOM_GRANTED);
	check_eq(ask(2, 20 * MIB), ROOM_GRANTED);
	rest(0, IDLE_S * 1000 + 1000);
	check_eq(lack(2, 20 * MIB), ROOM_WAITS);
	request = rooms[2]->asked;
	check(was_told(0));
	answer_move(0, 30 * MIB);
	/* The driver is asked again, and then there is nobody. */
	check_eq(room_look(rooms[2], request), ROOM_GRANTED);
	room_end_ask(rooms[2]);
	check_eq(accounts[1].lacked, 0);
	check_eq(lack(2, 20 * MIB), ROOM_REFUSED);
	check(!was_told(0));
	/* Nor is one whose answer does not come waited for. */
	workers[0].room.busy_until = 0;
	check_eq(lack(2, 20 * MIB), ROOM_WAITS);
	check(was_told(0));
	workers[0].room.going -= 3600000;
	rooms_look(&broker);
	check_eq(room_look(rooms[2], rooms[2]->asked), ROOM_GRANTED);
	end();
}

TEST(a_request_that_changes_its_kind_passes_no_limit)
{
	begin(TOTAL);
	sections[1].device_memory = 20 * MIB;
	check_eq(ask(0, 30 * MIB), ROOM_GRANTED);
	check_eq(ask(2, 20 * MIB), ROOM_GRANTED);
	rest(0, IDLE_S * 1000 + 1000);
	check_eq(lack(2, 20 * MIB), ROOM_WAITS);
	check(was_told(0));
	/* The same number, for room that its VM may not have. */
	rooms[2]->lacking = 0;
	rooms[2]->need = 40 * MIB;
	answer_move(0, 0);
	check_eq(workers[2].room.granted, 20 * MIB);
	check_eq(rooms[2]->refused, rooms[2]->asked);
	end();
}

TEST(a_vm_has_no_more_than_its_limit_of_it)
{
	begin(TOTAL);
	sections[0].device_memory = 50 * MIB;
	check_eq(ask(0, 30 * MIB), ROOM_GRANTED);
	check_eq(ask(1, 21 * MIB), ROOM_REFUSED);
	check_eq(ask(1, 20 * MIB), ROOM_GRANTED);
	/* Of the other one there is no limit. */
	check_eq(ask(2, 50 * MIB), ROOM_GRANTED);
	end();
}

TEST(any_numbers_of_a_worker_grant_it_nothing)
{
	uint64_t random = 1, sum;

	begin(TOTAL);
	check_eq(ask(2, 20 * MIB), ROOM_GRANTED);
	for (int n = 0; n < 2000; n++) {
		for (size_t i = 0; i < sizeof(*rooms[0]); i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			((uint8_t *)rooms[0])[i] = (uint8_t)(random >> 56);
		}
		rooms_look(&broker);
		rest(1, n);
		ask(1, n % 40 * MIB);
		sum = 0;
		for (uint32_t i = 0; i < N_WORKERS; i++)
			sum += workers[i].room.granted;
		check(sum <= TOTAL);
		check(workers[2].room.granted >= 20 * MIB);
		was_told(0);
	}
	end();
}

/* Return: whether the keeper was told to kill it. */
static bool was_killed(void)
{
	struct link_message message;
	int fds[LINK_FDS_MAX];
	size_t n_fds;

	return !link_receive(keeper, &message, fds, &n_fds) && message.type == LINK_KILL;
}

TEST(one_that_is_seen_to_have_more_is_ended)
{
	begin(TOTAL);
	check_eq(ask(0, 30 * MIB), ROOM_GRANTED);
	workers[0].memory_seen = workers[0].room.granted + QUOTA_WATCH_SLACK;
	for (int i = 0; i < 3; i++)
		rooms_watch(&broker);
	check(!was_killed());
	/* It may have been on its way out at one look. */
	workers[0].memory_seen++;
	rooms_watch(&broker);
	workers[0].memory_seen--;
	rooms_watch(&broker);
	check(!was_killed());
	workers[0].memory_seen++;
	for (int i = 0; i < 2; i++)
		rooms_watch(&broker);
	check(was_killed());
	check(workers[0].is_condemned);
	check_eq(records[0].reason, VGPU_REASON_HOST);
	/* Once. */
	rooms_watch(&broker);
	check(!was_killed());
	end();
}

TEST(without_a_total_nobody_is_limited)
{
	begin(0);
	check(!room_is_on(rooms[0]));
	room_ask(rooms[0], false);
	rooms_look(&broker);
	check(!broker.rooms.loop);
	check_eq(workers[0].room.granted, 0);
	workers[0].memory_seen = UINT64_MAX;
	for (int i = 0; i < 3; i++)
		rooms_watch(&broker);
	check(!was_killed());
	end();
}
