/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduler: the threads
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "vgpu/error.h"
#include "vgpu/wake.h"

#include "sched/sched.h"

/* The interval at which an awaited word is read. */
#define SCHED_POLL_NS 50000
/* And its maximum, when nothing happens for long. */
#define SCHED_POLL_MAX_NS 1000000

int sched_init(struct sched *sched, uint32_t n_threads)
{
	pthread_condattr_t monotonic;

	*sched = (struct sched){ .n_threads = n_threads };
	/* Ids start above what a program could take for one of the special streams. */
	sched->next_stream_id = 16;
	TAILQ_INIT(&sched->kicked);
	TAILQ_INIT(&sched->copies);
	TAILQ_INIT(&sched->hosts);
	STAILQ_INIT(&sched->errands);
	TAILQ_INIT(&sched->polling);
	sched->poll_ns = SCHED_POLL_NS;
	TAILQ_INIT(&sched->begun);
	for (uint32_t i = 0; i < SCHED_LEVELS; i++)
		TAILQ_INIT(&sched->grids[i]);
	TAILQ_INIT(&sched->held);
	sched->top = SCHED_LEVELS;
	STAILQ_INIT(&sched->spare);
	pthread_mutex_init(&sched->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&sched->copy_work, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_cond_init(&sched->kernel_work, NULL);
	pthread_cond_init(&sched->host_work, NULL);
	pthread_cond_init(&sched->mark_done, NULL);
	pthread_cond_init(&sched->stopped, NULL);
	return 0;
}

void sched_stop(struct sched *sched)
{
	struct vgpu_nap nap = {};

	sched_lock(sched);
	sched->n_stops++;
	sched_tasks_publish(sched);
	while (sched->n_at_work)
		vgpu_nap_cond(&nap, &sched->stopped, &sched->lock);
}

bool sched_is_idle(struct sched *sched)
{
	bool is_idle;

	sched_lock(sched);
	is_idle = !sched->n_ops && !sched->n_at_work;
	sched_unlock(sched);
	return is_idle;
}

void sched_resume(struct sched *sched)
{
	if (!--sched->n_stops)
		sched->n_wanted = sched->n_idle;
	sched_unlock(sched);
}

void sched_work_begin(struct sched *sched)
{
	sched->n_at_work++;
}

void sched_work_end(struct sched *sched)
{
	if (!--sched->n_at_work && sched->n_stops)
		vgpu_wake_all(&sched->stopped);
}

static void *kernel_main(void *argument)
{
	struct sched_worker worker = *(struct sched_worker *)argument;
	struct sched *sched = worker.sched;
	struct vgpu_nap nap = {};
	char name[16];

	free(argument);
	snprintf(name, sizeof(name), "softgpu-sm%u", worker.smid % 1000);
	prctl(PR_SET_NAME, name);
	worker.account.allowance = sched->allowance;
	sched_account_wake(&worker.account);
	sched_lock(sched);
	for (;;) {
		while (!sched_task_is_there(&worker) || sched->n_stops) {
			sched_account_sleep(&worker.account);
			sched->n_idle++;
			vgpu_nap_cond(&nap, &sched->kernel_work, &sched->lock);
			sched->n_idle--;
			sched_account_wake(&worker.account);
		}
		nap = (struct vgpu_nap){};
		if (__builtin_expect(sched_account_is_over(&worker.account), 0)) {
			sched_unlock(sched);
			sched_account_hold(&worker.account);
			sched_lock(sched);
			continue;
		}
		sched_task_serve(&worker);
		sched_account_charge(&worker.account);
		/* The completed operation may release work for other threads. */
		sched_unlock(sched);
		sched_lock(sched);
	}
	return NULL;
}

/* Return: whether what a stream waits for has come: a word, or the turn of a loop. */
static bool is_met(struct sched_op *op)
{
	if (op->kind != SCHED_CHOICE)
		return sched_word_is_met(&op->word);
	op->choice.is_due = true;
	return true;
}

/* With the lock: reads every word that a stream waits for. */
static void sched_poll(struct sched *sched)
{
	struct sched_stream *stream;

	TAILQ_FOREACH(stream, &sched->polling, wait_link)
		if (is_met(STAILQ_FIRST(&stream->ops)))
			sched_kick(stream);
}

/* A write of such a word by the device wakes this thread; for one that a processor writes
 * it polls, less often the longer nothing happens: a process that was stopped may never
 * write it. */
static void sched_poll_wait(struct sched *sched)
{
	uint64_t then = sched_now_ns() + sched->poll_ns;
	struct timespec until = {
		.tv_sec = then / 1000000000,
		.tv_nsec = then % 1000000000,
	};

	if (!pthread_cond_timedwait(&sched->copy_work, &sched->lock, &until))
		sched->poll_ns = SCHED_POLL_NS;
	else if (sched->poll_ns < SCHED_POLL_MAX_NS)
		sched->poll_ns += sched->poll_ns / 8;
	sched_poll(sched);
}

static void *copy_main(void *argument)
{
	struct sched *sched = argument;
	struct sched_stream *stream;
	struct vgpu_nap nap = {};

	prctl(PR_SET_NAME, "softgpu-copy");
	sched_lock(sched);
	for (;;) {
		stream = sched->n_stops ? NULL : TAILQ_FIRST(&sched->copies);
		if (stream) {
			const struct sched_op *op = STAILQ_FIRST(&stream->ops);

			TAILQ_REMOVE(&sched->copies, stream, wait_link);
			stream->state = SCHED_STREAM_RUNNING;
			sched_work_begin(sched);
			sched_unlock(sched);
			if (!sched_context_fault(stream->context))
				sched_op_run(op, stream);
			sched_lock(sched);
			sched_work_end(sched);
			sched_stream_complete(stream);
			sched_poll(sched);
		} else if (!TAILQ_EMPTY(&sched->polling)) {
			sched_poll_wait(sched);
		} else {
			sched->poll_ns = SCHED_POLL_NS;
			vgpu_nap_cond(&nap, &sched->copy_work, &sched->lock);
			continue;
		}
		nap = (struct vgpu_nap){};
		sched_unlock(sched);
		sched_lock(sched);
	}
	return NULL;
}

void sched_errand_add(struct sched *sched, struct sched_errand *errand)
{
	STAILQ_INSERT_TAIL(&sched->errands, errand, link);
}

/* With the lock. Return: whether there was one. */
static bool host_run_errand(struct sched *sched)
{
	struct sched_errand *errand = STAILQ_FIRST(&sched->errands);

	if (!errand)
		return false;
	STAILQ_REMOVE_HEAD(&sched->errands, link);
	sched_unlock(sched);
	errand->run(errand);
	sched_lock(sched);
	return true;
}

static void *host_main(void *argument)
{
	struct sched *sched = argument;
	struct sched_stream *stream;
	struct vgpu_nap nap = {};
	const struct sched_op *op;
	struct sched_host host;
	int fault;

	prctl(PR_SET_NAME, "softgpu-host");
	sched_lock(sched);
	for (;;) {
		if (host_run_errand(sched)) {
			nap = (struct vgpu_nap){};
			continue;
		}
		stream = TAILQ_FIRST(&sched->hosts);
		if (!stream) {
			vgpu_nap_cond(&nap, &sched->host_work, &sched->lock);
			continue;
		}
		nap = (struct vgpu_nap){};
		TAILQ_REMOVE(&sched->hosts, stream, wait_link);
		stream->state = SCHED_STREAM_RUNNING;
		op = STAILQ_FIRST(&stream->ops);
		host = op->host;
		fault = stream->context->fault;
		sched_unlock(sched);
		if (!fault || host.even_after_fault) {
			sched_op_note(op, false);
			host.function(&host, fault);
			sched_op_note(op, true);
		}
		sched_lock(sched);
		sched_stream_complete(stream);
		sched_unlock(sched);
		sched_lock(sched);
	}
	return NULL;
}

/* Threads of the library take no signals: those are the program's. Each names itself:
 * naming another thread would open a file, which a sandbox refuses. */
static int sched_thread(void *(*main)(void *), void *argument)
{
	sigset_t all, before;
	pthread_t thread;
	int r;

	sigfillset(&all);
	/* Raised by a thread's own refused system call: blocked, it would kill. */
	sigdelset(&all, SIGSYS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, NULL, main, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r)
		return vgpu_error_origin(-r);
	pthread_detach(thread);
	return 0;
}

/* With the lock. */
static int sched_kernel_thread(struct sched *sched)
{
	struct sched_worker *worker = malloc(sizeof(*worker));
	uint32_t smid = sched->n_alive;
	int r;

	if (!worker)
		return vgpu_error_origin(-ENOMEM);
	*worker = (struct sched_worker){
		.sched = sched,
		.smid = smid,
	};
	if (softgpu_scratch_new(&worker->scratch, smid)) {
		free(worker);
		return vgpu_error_origin(-ENOMEM);
	}
	r = sched_thread(kernel_main, worker);
	if (r) {
		softgpu_scratch_free(worker->scratch);
		free(worker);
		return r;
	}
	sched->n_alive++;
	return 0;
}

static int sched_one_thread(struct sched *sched, bool *hasp, void *(*main)(void *))
{
	int r = *hasp ? 0 : sched_thread(main, sched);

	if (!r)
		*hasp = true;
	return r;
}

int sched_staff(struct sched *sched, enum sched_kind kind)
{
	switch (kind) {
	case SCHED_COPY:
	case SCHED_FILL:
	case SCHED_WAIT_VALUE:
	case SCHED_CHOICE:
		return sched_one_thread(sched, &sched->has_copy_thread, copy_main);
	case SCHED_HOST:
		return sched_one_thread(sched, &sched->has_host_thread, host_main);
	case SCHED_LAUNCH:
		/* One multiprocessor is enough to make progress. */
		return sched->n_alive ? 0 : sched_kernel_thread(sched);
	default:
		return 0;
	}
}

void sched_staff_kernels(struct sched *sched, uint32_t n_min)
{
	while (sched->n_alive < sched->n_threads &&
		(sched->n_alive < sched->n_useful || sched->n_alive < n_min))
		if (sched_kernel_thread(sched))
			return;
}
