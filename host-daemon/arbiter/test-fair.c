/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fair sharing, decided about simulated devices
 *
 * The device has units, each of which runs one kernel at a time, to its end. Units take
 * kernels of the processes in turn, as long as these are within their limits. Time is
 * simulated, so results do not depend on this machine; only the cost of a decision, which
 * is printed, does.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arbiter/fair.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

#define UNITS_MAX 8u

/* A guest process. */
struct process {
	struct fair_member member;
	uint64_t kernel_ns; /* duration of its kernels: the middle one */
	uint64_t pause_ns;  /* after each, before it launches the next one; 0: none */
	uint32_t n_streams; /* kernels that it has at a time */

	bool claims; /* to have work for all units, without using any */

	uint32_t n_running;
	uint64_t rests_until;
	uint64_t used_ns, held_ns;
	uint64_t n_kernels;
	bool was_held;
	uint64_t counted_to; /* held_ns is */
	uint64_t waits[64];  /* times from launch to start, by the power of two of ns */
	uint64_t wants_since;
};

struct unit {
	struct process *process; /* NULL: idle */
	uint64_t began, ends;
};

struct simulation {
	struct fair fair;
	struct fair_group *groups;
	struct process *processes;
	uint32_t n_groups, n_processes;
	struct unit units[UNITS_MAX];
	uint64_t now;
	uint64_t random;
	uint32_t turn; /* the process that a unit looks at first */
	uint64_t n_rounds, n_decisions, cost_ns, n_kernels;
};

static uint64_t real_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * S + (uint64_t)now.tv_nsec;
}

/* Durations vary between half and one and a half of the middle. */
static uint64_t vary(struct simulation *s, uint64_t ns)
{
	s->random = s->random * 6364136223846793005u + 1442695040888963407u;
	return ns / 2 + (s->random >> 33) % (ns + 1);
}

static void simulation_init(
	struct simulation *s, uint32_t n_units, uint32_t n_groups, uint32_t n_processes)
{
	memset(s, 0, sizeof(*s));
	fair_init(&s->fair, n_units, FAIR_QUANTUM_NS);
	s->groups = calloc(n_groups, sizeof(*s->groups));
	s->processes = calloc(n_groups * n_processes, sizeof(*s->processes));
	check(s->groups && s->processes);
	s->n_groups = n_groups;
	s->n_processes = n_groups * n_processes;
	for (uint32_t i = 0; i < n_groups; i++)
		fair_add_group(&s->fair, &s->groups[i], FAIR_WEIGHT_DEFAULT);
	for (uint32_t i = 0; i < s->n_processes; i++) {
		s->processes[i].kernel_ns = 100000;
		s->processes[i].n_streams = n_units;
		fair_add_member(&s->groups[i / n_processes], &s->processes[i].member);
	}
}

static void simulation_deinit(struct simulation *s)
{
	free(s->groups);
	free(s->processes);
}

static bool has_work(const struct simulation *s, const struct process *process)
{
	return process->n_running < process->n_streams && s->now >= process->rests_until;
}

/* What it has used with the part of its kernels that has run. */
static uint64_t used_now(const struct simulation *s, const struct process *process)
{
	uint64_t used = process->used_ns;

	for (uint32_t i = 0; i < s->fair.n_units; i++)
		if (s->units[i].process == process)
			used += s->now - s->units[i].began;
	return used;
}

static bool is_within(const struct simulation *s, const struct process *process)
{
	return process->member.limit_ns == UINT64_MAX ||
	       used_now(s, process) < process->member.limit_ns;
}

/* Counts for how long the process was held. */
static void count(const struct simulation *s, struct process *process)
{
	uint64_t from = process->counted_to;

	process->counted_to = s->now;
	if (from < process->rests_until)
		from = process->rests_until;
	if (process->was_held && from < s->now)
		process->held_ns += s->now - from;
}

/* Streams that have a kernel, whether a unit runs it or not. */
static uint32_t count_busy(const struct simulation *s, const struct process *process)
{
	return process->was_held || s->now < process->rests_until ? process->n_running
								  : process->n_streams;
}

static void note_held(const struct simulation *s, struct process *process, bool is_held)
{
	count(s, process);
	process->was_held = is_held;
}

static void note_wait(const struct simulation *s, struct process *process)
{
	const uint64_t wait = s->now - process->wants_since;

	process->waits[wait ? 63 - __builtin_clzll(wait) : 0]++;
}

static struct process *next_process(struct simulation *s)
{
	for (uint32_t i = 0; i < s->n_processes; i++) {
		struct process *process = &s->processes[(s->turn + i) % s->n_processes];

		if (!has_work(s, process))
			continue;
		if (!is_within(s, process)) {
			if (!process->was_held)
				note_held(s, process, true);
			continue;
		}
		s->turn = (s->turn + i + 1) % s->n_processes;
		return process;
	}
	return NULL;
}

static void start(struct simulation *s, struct unit *unit)
{
	struct process *process = next_process(s);

	if (!process)
		return;
	note_held(s, process, false);
	if (process->pause_ns)
		note_wait(s, process);
	process->n_running++;
	process->n_kernels++;
	s->n_kernels++;
	unit->process = process;
	unit->began = s->now;
	unit->ends = s->now + vary(s, process->kernel_ns);
}

static void end(struct simulation *s, struct unit *unit)
{
	struct process *process = unit->process;

	count(s, process);
	process->used_ns += s->now - unit->began;
	process->n_running--;
	if (process->pause_ns)
		process->rests_until = s->now + vary(s, process->pause_ns);
	process->wants_since = process->pause_ns ? process->rests_until : s->now;
	unit->process = NULL;
}

static void read_process(struct simulation *s, struct process *process)
{
	count(s, process);
	process->member.reading = (struct fair_reading){
		.used_ns = used_now(s, process),
		.held_ns = process->held_ns,
		.n_busy = process->claims ? s->fair.n_units : count_busy(s, process),
		.is_held = process->was_held,
	};
}

static uint64_t decide(struct simulation *s, uint64_t elapsed)
{
	uint64_t began, next;

	for (uint32_t i = 0; i < s->n_processes; i++)
		read_process(s, &s->processes[i]);
	began = real_ns();
	next = fair_round(&s->fair, elapsed);
	s->cost_ns += real_ns() - began;
	/* A limit that was raised holds nothing any more. */
	for (uint32_t i = 0; i < s->n_processes; i++)
		if (s->processes[i].was_held && is_within(s, &s->processes[i]))
			note_held(s, &s->processes[i], false);
	s->n_rounds++;
	s->n_decisions += s->n_processes;
	return next;
}

/* When a unit ends its kernel, or a process its pause, before `until`. */
static uint64_t next_event(const struct simulation *s, uint64_t until)
{
	bool is_idle = false;

	for (uint32_t i = 0; i < s->fair.n_units; i++) {
		if (!s->units[i].process)
			is_idle = true;
		else if (s->units[i].ends < until)
			until = s->units[i].ends;
	}
	for (uint32_t i = 0; is_idle && i < s->n_processes; i++) {
		const uint64_t rests = s->processes[i].rests_until;

		if (rests > s->now && rests < until)
			until = rests;
	}
	return until;
}

static void run(struct simulation *s, uint64_t duration)
{
	const uint64_t end_ns = s->now + duration;
	uint64_t before = s->now, round = s->now;

	while (s->now < end_ns) {
		if (s->now >= round) {
			round = s->now + decide(s, s->now - before);
			before = s->now;
		}
		for (uint32_t i = 0; i < s->fair.n_units; i++)
			if (s->units[i].process && s->units[i].ends <= s->now)
				end(s, &s->units[i]);
		for (uint32_t i = 0; i < s->fair.n_units; i++)
			if (!s->units[i].process)
				start(s, &s->units[i]);
		s->now = next_event(s, round < end_ns ? round : end_ns);
	}
}

static uint64_t used_by_group(const struct simulation *s, uint32_t group)
{
	const uint32_t n = s->n_processes / s->n_groups;
	uint64_t used = 0;

	for (uint32_t i = group * n; i < (group + 1) * n; i++)
		used += used_now(s, &s->processes[i]);
	return used;
}

static uint64_t used_by_all(const struct simulation *s)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < s->n_groups; i++)
		used += used_by_group(s, i);
	return used;
}

/* The largest deviation of a group from the share of its weight, in 1/1000 of that. */
static uint64_t worst_deviation(const struct simulation *s)
{
	const double all = (double)used_by_all(s);
	double weights = 0, worst = 0;

	for (uint32_t i = 0; i < s->n_groups; i++)
		weights += s->groups[i].weight;
	for (uint32_t i = 0; i < s->n_groups; i++) {
		const double share = all * s->groups[i].weight / weights;
		const double off = ((double)used_by_group(s, i) - share) / share;

		if (off > worst || -off > worst)
			worst = off > 0 ? off : -off;
	}
	return (uint64_t)(worst * 1000 + 0.5);
}

/* Of what the units could have done, in 1/1000. */
static uint64_t utilisation(const struct simulation *s)
{
	return used_by_all(s) * 1000 / (s->fair.n_units * s->now);
}

static void report(const char *what, const struct simulation *s)
{
	printf("# %s: deviation %llu/1000, device busy %llu/1000, %llu launches, "
	       "%llu rounds in %llu ms\n",
		what, (unsigned long long)worst_deviation(s),
		(unsigned long long)utilisation(s), (unsigned long long)s->n_kernels,
		(unsigned long long)s->n_rounds, (unsigned long long)(s->now / MS));
}

TEST(equal_machines_have_equal_shares)
{
	for (uint32_t n_units = 1; n_units <= 4; n_units *= 2) {
		struct simulation s;

		simulation_init(&s, n_units, 4, 1);
		/* Short kernels, and ones that are longer than a quantum. */
		s.processes[0].kernel_ns = 5000;
		s.processes[1].kernel_ns = 100000;
		s.processes[2].kernel_ns = 2 * MS;
		s.processes[3].kernel_ns = 20 * MS;
		run(&s, 20 * S);
		report("four equal machines, kernels of 5 us to 20 ms", &s);
		check(worst_deviation(&s) <= 20);
		check(utilisation(&s) >= 970);
		simulation_deinit(&s);
	}
}

TEST(weights_are_kept)
{
	static const uint32_t weights[] = { 100, 200, 400 };

	for (uint32_t n_units = 1; n_units <= 4; n_units *= 2) {
		struct simulation s;

		simulation_init(&s, n_units, 3, 1);
		for (uint32_t i = 0; i < 3; i++) {
			s.groups[i].weight = weights[i];
			s.processes[i].kernel_ns = i == 1 ? 3 * MS : 50000;
		}
		run(&s, 20 * S);
		report("weights 1:2:4", &s);
		check(worst_deviation(&s) <= 50);
		check(utilisation(&s) >= 970);
		simulation_deinit(&s);
	}
}

TEST(extreme_weights_are_kept)
{
	struct simulation s;

	simulation_init(&s, 2, 2, 1);
	s.groups[0].weight = 1;
	s.groups[1].weight = FAIR_WEIGHT_MAX / 10;
	run(&s, 60 * S);
	report("weights 1:1000", &s);
	check(used_by_group(&s, 1) >= 400 * used_by_group(&s, 0));
	check(used_by_group(&s, 0) > 0);
	check(utilisation(&s) >= 970);
	simulation_deinit(&s);
}

TEST(processes_of_a_machine_have_equal_shares)
{
	struct simulation s;
	uint64_t first, second;

	simulation_init(&s, 2, 2, 2);
	s.processes[0].kernel_ns = 5 * MS;
	s.processes[1].kernel_ns = 20000;
	run(&s, 20 * S);
	report("two processes in each of two machines", &s);
	check(worst_deviation(&s) <= 20);
	first = used_now(&s, &s.processes[0]);
	second = used_now(&s, &s.processes[1]);
	check(first * 100 >= second * 95 && second * 100 >= first * 95);
	simulation_deinit(&s);
}

/* One alone has all of it, and so has one beside others that do nothing. */
TEST(nothing_is_kept_from_one_alone)
{
	struct simulation s;

	simulation_init(&s, 2, 4, 1);
	for (uint32_t i = 1; i < 4; i++)
		s.processes[i].n_streams = 0;
	run(&s, S);
	check(utilisation(&s) >= 999);
	check_eq(s.processes[0].member.limit_ns, UINT64_MAX);
	simulation_deinit(&s);
}

/* A machine that cannot fill the device leaves the rest to others, whatever its weight.
 */
TEST(idle_units_are_given_away)
{
	struct simulation s;

	simulation_init(&s, 4, 2, 1);
	s.groups[0].weight = 1000;
	s.processes[0].n_streams = 1;
	run(&s, 10 * S);
	report("a heavy machine of one kernel at a time", &s);
	check(utilisation(&s) >= 930);
	check(used_by_group(&s, 0) >= 9 * S);
	simulation_deinit(&s);
}

/* Time that was not used cannot be saved up. */
TEST(an_idle_machine_has_no_claim_to_the_past)
{
	struct simulation s;
	uint64_t before, other;

	simulation_init(&s, 1, 2, 1);
	s.processes[1].n_streams = 0;
	run(&s, 10 * S);
	s.processes[1].n_streams = 1;
	before = used_by_group(&s, 0);
	run(&s, S);
	other = used_by_group(&s, 1);
	check(other >= 450 * MS && other <= 550 * MS);
	check(used_by_group(&s, 0) - before >= 450 * MS);
	simulation_deinit(&s);
}

/* Returns the time below which so many of 1000 waits are, to a power of two. */
static uint64_t wait_of(const struct process *process, uint64_t of_1000)
{
	uint64_t n = 0, so_far = 0;

	for (uint32_t i = 0; i < 64; i++)
		n += process->waits[i];
	for (uint32_t i = 0; i < 64; i++) {
		so_far += process->waits[i];
		if (so_far * 1000 >= n * of_1000)
			return UINT64_C(2) << i;
	}
	return UINT64_MAX;
}

/* A machine that does little is not delayed by more than kernels under way and a quantum
 * of each other machine, although those have any number of launches queued. */
TEST(a_machine_that_does_little_is_served_soon)
{
	struct simulation s;

	simulation_init(&s, 1, 4, 1);
	s.processes[0].kernel_ns = 50000;
	s.processes[0].pause_ns = 5 * MS;
	for (uint32_t i = 1; i < 4; i++)
		s.processes[i].n_streams = 512;
	run(&s, 20 * S);
	printf("# beside three busy machines a launch waits less than %llu us in half, "
	       "%llu us in 99/100\n",
		(unsigned long long)wait_of(&s.processes[0], 500) / 1000,
		(unsigned long long)wait_of(&s.processes[0], 990) / 1000);
	check(wait_of(&s.processes[0], 990) <= 8 * MS);
	simulation_deinit(&s);
}

TEST(higher_priorities_go_first)
{
	struct simulation s;

	simulation_init(&s, 2, 3, 1);
	s.groups[0].priority = 2;
	s.groups[1].priority = 1;
	s.groups[2].priority = 1;
	s.processes[0].n_streams = 1;
	run(&s, 10 * S);
	report("priorities 2, 1, 1 of which the first fills half", &s);
	check(used_by_group(&s, 0) >= 9 * S);
	check(utilisation(&s) >= 900);
	/* What is left is shared. */
	check(used_by_group(&s, 1) * 100 >= used_by_group(&s, 2) * 80);
	check(used_by_group(&s, 2) * 100 >= used_by_group(&s, 1) * 80);
	simulation_deinit(&s);
}

TEST(a_paused_machine_has_nothing)
{
	struct simulation s;
	uint64_t before;

	simulation_init(&s, 1, 2, 1);
	run(&s, S);
	s.groups[0].is_paused = true;
	run(&s, 20 * MS);
	before = used_by_group(&s, 0);
	run(&s, S);
	check_eq(used_by_group(&s, 0), before);
	s.groups[0].is_paused = false;
	run(&s, S);
	/* What it missed is not made up for. */
	check(used_by_group(&s, 0) - before >= 450 * MS);
	check(used_by_group(&s, 0) - before <= 550 * MS);
	simulation_deinit(&s);
}

/* In 1/1000 of one unit's time. */
static uint64_t used_in(struct simulation *s, uint32_t group, uint64_t duration)
{
	const uint64_t before = used_by_group(s, group);

	run(s, duration);
	return (used_by_group(s, group) - before) * 1000 / duration;
}

static void check_near(uint64_t part, uint64_t wanted, uint64_t off)
{
	if (part + off < wanted || part > wanted + off)
		test_fail(__FILE__, __LINE__, "%llu/1000, wanted %llu/1000",
			(unsigned long long)part, (unsigned long long)wanted);
}

TEST(a_percentage_is_not_exceeded_by_one_alone)
{
	static const struct {
		uint32_t n_units, n_processes, percent;
		uint64_t kernel_ns;
	} cases[] = { { 1, 1, 50, 100000 }, { 1, 1, 50, 20 * MS }, { 2, 1, 150, MS },
		{ 2, 1, 50, 5000 }, { 4, 3, 110, 300000 }, { 1, 1, 1, 100000 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct simulation s;
		uint64_t part;

		simulation_init(&s, cases[i].n_units, 1, cases[i].n_processes);
		for (uint32_t k = 0; k < cases[i].n_processes; k++)
			s.processes[k].kernel_ns = cases[i].kernel_ns;
		s.groups[0].percent = cases[i].percent;
		run(&s, S);
		part = used_in(&s, 0, 10 * S);
		printf("# %u units, %u processes, %u %%: %llu/1000 of a unit\n",
			cases[i].n_units, cases[i].n_processes, cases[i].percent,
			(unsigned long long)part);
		check_near(part, 10 * cases[i].percent, 5);
		simulation_deinit(&s);
	}
}

TEST(others_have_what_a_percentage_leaves)
{
	struct simulation s;

	simulation_init(&s, 1, 3, 1);
	s.groups[0].percent = 10;
	run(&s, S);
	check_near(used_in(&s, 0, 10 * S), 100, 10);
	check_near(used_in(&s, 1, 10 * S), 450, 10);
	check(utilisation(&s) >= 980);
	/* One that is above the share has no effect. */
	s.groups[0].percent = 80;
	run(&s, S);
	check_near(used_in(&s, 0, 10 * S), 333, 10);
	s.groups[0].percent = 0;
	s.groups[1].is_paused = s.groups[2].is_paused = true;
	run(&s, S);
	check(used_in(&s, 0, S) >= 980);
	simulation_deinit(&s);
}

/* After a pause it has a bucket at most, and after a long kernel nothing until that is
 * paid for. */
TEST(a_percentage_saves_little_and_pays_debts)
{
	struct simulation s;
	uint64_t before;

	simulation_init(&s, 1, 1, 1);
	s.groups[0].percent = 20;
	s.groups[0].is_paused = true;
	run(&s, 10 * S);
	s.groups[0].is_paused = false;
	before = used_by_group(&s, 0);
	run(&s, 100 * MS);
	check(used_by_group(&s, 0) - before <= 20 * MS + 50 * MS);
	s.processes[0].kernel_ns = S;
	run(&s, 20 * S);
	check_near(used_in(&s, 0, 60 * S), 200, 20);
	simulation_deinit(&s);
}

/* A process that hides what it uses takes from the machine that it is in: the others are
 * at most as far behind as without a limit on anybody. */
TEST(lies_do_no_harm_to_counters)
{
	struct simulation s;
	struct fair_member *liar;

	simulation_init(&s, 1, 3, 1);
	liar = &s.processes[0].member;
	for (uint64_t i = 0; i < 1000; i++) {
		s.random = s.random * 6364136223846793005u + 1442695040888963407u;
		liar->reading = (struct fair_reading){
			.used_ns = s.random,
			.held_ns = s.random * 7,
			.n_busy = (uint32_t)(s.random >> 32),
			.is_held = s.random >> 41 & 1,
		};
		for (uint32_t j = 1; j < 3; j++)
			read_process(&s, &s.processes[j]);
		check(fair_round(&s.fair, MS) >= FAIR_TURN_NS);
	}
	s.processes[0].n_streams = 0;
	run(&s, 10 * S);
	/* The two that are left share as ever. */
	check(used_by_group(&s, 1) * 100 >= used_by_group(&s, 2) * 98);
	check(used_by_group(&s, 2) * 100 >= used_by_group(&s, 1) * 98);
	simulation_deinit(&s);
}

/* A process that claims to have work for all units, and to use nothing, is charged for
 * that, so that the others are not held for ever. */
TEST(a_claim_without_use_does_not_hold_the_others)
{
	struct simulation s;
	uint64_t used;

	simulation_init(&s, 2, 2, 1);
	s.processes[0].n_streams = 0;
	s.processes[0].claims = true;
	run(&s, 10 * S);
	used = used_by_group(&s, 1);
	printf("# beside a claim one machine has %llu of 20000 ms\n",
		(unsigned long long)(used / MS));
	check(used >= S);
	simulation_deinit(&s);
}

TEST(thousand_machines_launch_a_million_kernels_a_second)
{
	struct simulation s;

	simulation_init(&s, UNITS_MAX, 1000, 1);
	for (uint32_t i = 0; i < s.n_processes; i++) {
		s.processes[i].kernel_ns = 4000 + i % 8000;
		s.processes[i].n_streams = 8;
	}
	run(&s, 10 * S);
	report("1000 machines, kernels of 4 to 12 us", &s);
	printf("# %llu launches and %llu decisions a second; %llu ns each decision on "
	       "this machine\n",
		(unsigned long long)(s.n_kernels * S / s.now),
		(unsigned long long)(s.n_decisions * S / s.now),
		(unsigned long long)(s.cost_ns / s.n_decisions));
	check(s.n_kernels * S / s.now >= 900000);
	check(utilisation(&s) >= 970);
	check(worst_deviation(&s) <= 50);
	simulation_deinit(&s);
}

/*
 * A device that several work on at the same time, and say for how long they had work
 * there
 */

#define STEP_NS 50000u
#define SHARERS 3

/* Of what is not said yet the reader adds so much, as the arbiter does. */
#define EXPECTED_MAX_NS MS

struct sharer {
	struct fair_group group;
	struct fair_member member;
	uint64_t real_ns; /* what the device has done for it */
	uint64_t said_ns; /* all that its gate knows */
	uint64_t unsaid_ns;
};

static bool is_at_work(const struct sharer *sharer)
{
	return sharer->said_ns < sharer->member.limit_ns;
}

/* A step in which so many are at work. */
static void share_step(struct sharer *sharer, uint32_t n, uint64_t said_every_ns)
{
	struct fair_reading *reading = &sharer->member.reading;

	reading->is_held = !is_at_work(sharer);
	reading->n_busy = !reading->is_held;
	if (reading->is_held) {
		reading->held_ns += STEP_NS;
	} else {
		sharer->real_ns += STEP_NS / n;
		sharer->unsaid_ns += STEP_NS;
	}
	if (sharer->unsaid_ns >= said_every_ns) {
		sharer->said_ns += sharer->unsaid_ns;
		sharer->unsaid_ns = 0;
	}
	reading->used_ns =
		sharer->said_ns + (sharer->unsaid_ns < EXPECTED_MAX_NS ? sharer->unsaid_ns
								       : EXPECTED_MAX_NS);
}

/* All have work all the time; readings grow in steps. */
static void share_device(
	struct fair *fair, struct sharer *sharers, uint64_t ns, uint64_t said_every_ns)
{
	uint64_t last = 0, next = 0;

	for (uint64_t now = 0; now < ns; now += STEP_NS) {
		uint32_t n = 0;

		for (int i = 0; i < SHARERS; i++)
			n += is_at_work(&sharers[i]);
		for (int i = 0; i < SHARERS; i++)
			share_step(&sharers[i], n, said_every_ns);
		if (now < next)
			continue;
		next = now + fair_round(fair, now - last);
		last = now;
	}
}

static void check_overlap(uint64_t said_every_ns, uint64_t percent)
{
	struct sharer sharers[SHARERS] = {};
	struct fair fair;
	uint64_t sum = 0;

	fair_init(&fair, 1, FAIR_QUANTUM_NS);
	fair.overlaps = true;
	for (int i = 0; i < SHARERS; i++) {
		fair_add_group(&fair, &sharers[i].group, 100u << i);
		fair_add_member(&sharers[i].group, &sharers[i].member);
	}
	share_device(&fair, sharers, 10 * S, said_every_ns);
	for (int i = 0; i < SHARERS; i++) {
		const uint64_t share = (10 * S / 7) << i, off = share * percent / 100;
		const uint64_t used = sharers[i].member.used_ns;

		printf("# weight %u, said every %u us: %.3f of %.3f s, counted %.3f s\n",
			100u << i, (unsigned int)said_every_ns / 1000,
			(double)sharers[i].real_ns / 1e9, (double)share / 1e9,
			(double)used / 1e9);
		check(sharers[i].real_ns > share - off);
		check(sharers[i].real_ns < share + off);
		check(used > share - off);
		check(used < share + off);
		sum += used;
	}
	check(sum <= 10 * S + 10 * FAIR_QUANTUM_NS);
}

TEST(time_that_overlaps_is_shared)
{
	check_overlap(STEP_NS, 1);
	check_overlap(5 * STEP_NS, 1);
	check_overlap(10 * STEP_NS, 1);
	/* Those who measure get no processor for a while. */
	check_overlap(100 * STEP_NS, 15);
	check_overlap(400 * STEP_NS, 5);
}
