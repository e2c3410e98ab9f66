/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Scheduler: streams of operations and the threads that carry them out
 *
 * Work is submitted to streams as operations. A stream runs its operations one by one in
 * order; three rules decide which operations may run concurrently:
 *
 *	- An operation WAIT holds its stream until a mark is done. A mark is a point in
 *	  a stream, made by an operation MARK; it is what an event records.
 *	- Each context has a legacy stream. Every operation of a context draws a
 *	  ticket; one in the legacy stream waits for all lower tickets in blocking
 *	  streams, one in a blocking stream for all lower tickets in the legacy stream.
 *	  Tickets are drawn in order of submission, so these waits cannot form a ring.
 *	- Operations WAIT_VALUE wait for a word in memory.
 *
 * Kernels of a stream may be confined to a set of kernel threads. Such a stream has
 * another legacy stream, with which the second rule applies to it.
 *
 * Threads: kernel threads, the multiprocessors, run blocks of launches, in turns if there
 * are more kernels than threads, those of a high priority first (task.c); one copy thread
 *copies and fills, so that a copy can end the wait of a kernel; one host thread calls
 *functions of the program. Each is started when it first has work, and as many kernel
 *threads as the launches in flight have blocks for: a process that launches little has
 *few. The caller does small copies into an idle stream and synchronous ones. Everything
 *else (marks, waits, words) is done at once by the thread that finds it at the head of a
 *stream.
 *
 * One lock guards streams, marks and contexts; it is never held while a kernel, a
 * copy or a host function runs. A change under the lock kicks the streams that it
 * may concern, sched_unlock() settles them all and wakes threads. Nothing recurses.
 *
 * A fault of a kernel is sticky in its context: `fault` keeps the CUDA result, later
 * operations are discarded as if done (words are not written, functions not called),
 * and every submission and wait returns the fault, until the context is cleared.
 *
 * Results are CUDA driver results as int, 0 is success.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "exec/engine.h"
#include "sched/allowance.h"
#include "softgpu.h"

/* Kernel threads of one scheduler. */
#define SCHED_THREADS_MAX 256

/* Operations that a stream takes before a submission blocks; real drivers hold about as
 * many. */
#define SCHED_QUEUE_MAX 1024

/* Copies and fills up to this size are done by the caller if the stream is idle: waking
 * a thread for them takes as long. */
#define SCHED_INLINE_MAX (512u << 10)

/* Rows of at least this size do not fit the caches, so they are copied past them. */
#define SCHED_PAST_CACHES_MIN (16u << 20)
/* So are pieces of at least this size, each of which continues the previous one in its
 * stream, once their total is this large. */
#define SCHED_PIECE_MIN (64u << 10)
#define SCHED_PIECES_MIN (4u << 20)

/* Parameters up to this size are kept in the operation itself. */
#define SCHED_PARAMS_INLINE 256

/* Scratches that are kept for reuse. */
#define SCHED_SPARE_SCRATCHES 16

/* Operations that are kept for reuse. */
#define SCHED_SPARE_MAX 4096

/* Lower numbers are higher priorities; the range is that of NVIDIA's devices. */
#define SCHED_PRIORITY_LEAST 0
#define SCHED_PRIORITY_GREATEST (-5)
#define SCHED_LEVELS (SCHED_PRIORITY_LEAST - SCHED_PRIORITY_GREATEST + 1)

/* Kernels share the kernel threads in slices of this length. */
#define SCHED_SLICE_NS 2000000
/* A block that polls memory or a clock has its turn for so long if others want it. */
#define SCHED_SLICE_POLLING_NS 200000
/* And for so long before blocks of the same grid are begun that it may wait for. */
#define SCHED_POLLING_NS 1000000
/* A turn ends after this at the latest: a block may wait for others without polling, or
 * keep the blocks of a lower priority from beginning. */
#define SCHED_TURN_NS 100000000
/* A grid that has waited as long, and was passed over as often, has a turn before those
 * of higher priority. */
#define SCHED_PASSES 16

/* Where so many blocks are set aside and hold so much memory, no others are begun before
 * one of them is done. */
#define SCHED_ASIDE_MANY 16
#define SCHED_ASIDE_SIZE_MANY (UINT64_C(256) << 20)

/* Where the blocks of a cooperative grid meet; so many of those are begun at a time. */
#define SCHED_WORKSPACE_SIZE 256
#define SCHED_WORKSPACES 128

struct sched;
struct sched_children; /* children.h */
struct sched_condition;
struct sched_context;
struct sched_graph;
struct sched_mark;
struct sched_stream;
struct sched_together;

enum sched_kind {
	SCHED_NOTHING, /* is done when its turn comes */
	SCHED_MARK,
	SCHED_WAIT,
	SCHED_WRITE,
	SCHED_WAIT_VALUE,
	SCHED_COPY,
	SCHED_FILL,
	SCHED_LAUNCH,
	SCHED_HOST,
	SCHED_GRAPH,
	SCHED_CHOICE, /* in graphs only */
	_SCHED_N,
};

/* depth slices of height rows of width bytes. */
struct sched_copy {
	uint64_t to, from;
	uint64_t width, height, depth;
	uint64_t to_pitch, from_pitch;
	uint64_t to_slice, from_slice;
};

/* height rows of width elements of 1, 2 or 4 bytes. */
struct sched_fill {
	uint64_t to;
	uint64_t width, height;
	uint64_t pitch; /* in bytes */
	uint32_t element;
	uint32_t value;
};

/* The comparisons of WAIT_VALUE, with the numbers of CUstreamWaitValue_flags. */
enum sched_compare {
	SCHED_COMPARE_GEQ,
	SCHED_COMPARE_EQ,
	SCHED_COMPARE_AND,
	SCHED_COMPARE_NOR,
	_SCHED_COMPARE_N,
};

/* A word of 4 or 8 bytes at an aligned address. */
struct sched_word {
	uint64_t address;
	uint64_t value;
	uint32_t size;
	uint32_t compare; /* enum sched_compare */
};

struct sched_host {
	/* status is the context's fault; without even_after_fault it is always 0. */
	void (*function)(const struct sched_host *host, int status);
	bool even_after_fault;
	void *target; /* the function's own */
	void *argument;
	void *data;
	void *owner; /* the context of the API */
};

/*
 * Work for a kernel thread: untaken blocks of a grid, or a block that was set aside
 * before it was complete.
 */
struct sched_task {
	struct sched_op *op;
	bool is_grid;	/* the grid's own: the untaken blocks */
	bool has_block; /* one is begun in scratch */
	struct softgpu_scratch *scratch;
	struct sched_together *together;
	uint64_t number;	      /* a lower one waits longer */
	TAILQ_ENTRY(sched_task) link; /* in sched.begun, grids or held */
};

TAILQ_HEAD(sched_tasks, sched_task);

/*
 * The time that a launch of the host has, with all that it starts: the grid and its
 * descendants, or the kernels of a graph. It passes while a thread works on any of them.
 */
struct sched_budget {
	bool is_limited;
	uint32_t n_working; /* grids on which threads are at work */
	uint64_t left_ns;   /* when the last of them began, at */
	uint64_t since_ns;
};

struct sched_grid {
	struct softgpu_launch launch;
	uint64_t n_blocks;
	uint32_t resident_max; /* blocks that may be begun and not done, on all threads */
	bool has_priority;     /* otherwise the stream's counts */
	int priority;
	/* Set where it begins: the threads that it may use, and of those the ones that it
	 * can keep busy; the blocks that may be begun and not done on them. */
	uint32_t n_sms;
	uint32_t n_useful;
	uint32_t begun_max;
	uint64_t next; /* atomic: first block not taken */
	uint32_t
		n_begun_aside; /* atomic: blocks that are begun and set aside; the lock */
	uint32_t n_aside;      /* its tasks in sched.begun; all the lock */
	uint32_t n_threads;    /* at work on it */
	uint32_t level;	       /* of its priority: 0 is the highest */
	uint64_t listed_ns;    /* when its own task took its place in the list */
	uint64_t n_turns;      /* sched.n_turns then */
	uint64_t idle_since_ns;
	uint64_t deadline_ns;	     /* by its own time limit; 0: none */
	struct sched_budget *budget; /* its launch's, which outlives it */
	struct sched_budget own_budget;
	bool is_listed; /* its own task is in sched.grids */
	bool is_begun;
	bool is_cooperative; /* all blocks side by side */
	uint32_t workspace;  /* of a cooperative grid, + 1; 0: none */
	struct sched_task task;
	struct sched_children *children; /* or NULL; the lock */
	bool is_over;			 /* its children are complete, too */
	void *long_params;		 /* to be freed, where they are not in params */
	uint8_t params[SCHED_PARAMS_INLINE] __attribute__((aligned(16)));
};

/* Who wants to know of work, or NULL; set before there is any. */
extern const struct softgpu_trace *sched_trace;

static inline bool sched_is_traced(void)
{
	return sched_trace && __atomic_load_n(sched_trace->is_wanted, __ATOMIC_RELAXED);
}

/* What the host thread does besides: it is called once, without the lock. */
struct sched_errand {
	void (*run)(struct sched_errand *errand);
	STAILQ_ENTRY(sched_errand) link;
};

/* A launch of a graph; graph.c's. */
struct sched_run {
	struct sched_graph *graph; /* a reference */
	struct sched_mark **marks; /* references, one for each event of the graph */
	bool is_listed;		   /* has its turn */
	bool is_done;
	struct sched_budget budget;
	TAILQ_ENTRY(sched_op) link; /* in the turns */
};

/* With the numbers of CUgraphConditionalNodeType. */
enum sched_choice_kind {
	SCHED_CHOICE_IF,
	SCHED_CHOICE_WHILE,
	SCHED_CHOICE_SWITCH,
	_SCHED_CHOICE_N,
};

/* A conditional node of a graph; graph.c's. */
struct sched_choice {
	struct sched_condition *condition; /* a reference */
	enum sched_choice_kind kind;
	uint32_t n_bodies;
	uint32_t *bodies; /* owned: the first node of each */

	/* the lock, in the launch under way */
	bool is_inside;	   /* a body has been begun */
	bool is_due;	   /* the next turn need not wait */
	uint64_t n_works;  /* sched_graph.n_works when it was */
	uint64_t begun_ns; /* the first one */
};

struct sched_op {
	enum sched_kind kind;
	bool is_pending; /* a launch that has not begun */
	uint64_t ticket;
	struct sched_stream *stream;
	uint64_t tag; /* of softgpu_trace; 0: unknown */
	STAILQ_ENTRY(sched_op) next;
	union {
		struct sched_mark *mark; /* MARK and WAIT: a reference */
		struct sched_copy copy;
		struct sched_fill fill;
		struct sched_word word;
		struct sched_host host;
		struct sched_run run;
		struct sched_choice choice;
		struct sched_grid grid;
	};
};

/* A set of kernel threads, by what %smid reads in them. */
struct sched_sms {
	uint64_t words[SCHED_THREADS_MAX / 64];
};

enum sched_state {
	SCHED_STREAM_IDLE,    /* empty, or kicked */
	SCHED_STREAM_HELD,    /* by the legacy rule, or by other launches of a graph */
	SCHED_STREAM_WAITING, /* for a mark: in its list */
	SCHED_STREAM_POLLING, /* waits for a word or a turn: in sched.polling */
	SCHED_STREAM_QUEUED,  /* for a thread: in sched.copies or sched.hosts */
	SCHED_STREAM_RUNNING,
};

struct sched_stream {
	struct sched_context *context;
	uint32_t n_refs;  /* atomic: who made it, and its place in the context */
	bool is_blocking; /* follows the legacy rule */
	bool is_legacy;
	struct sched_stream *legacy; /* with this one; a reference unless the context's */
	bool is_confined;	     /* kernels run on these threads alone */
	struct sched_sms sms;
	int priority;		  /* atomic; within the range */
	unsigned int flags;	  /* the caller's */
	unsigned int wait_policy; /* the caller's, CUsynchronizationPolicy; 0: not set */
	void *capture;		  /* the caller's */
	bool is_ended;		  /* the caller's: for captures */
	uint64_t id;
	struct sched_graph *graph;	 /* whose lane it is, or NULL */
	struct sched_children *children; /* whose lane it is, or NULL */

	/* used by the thread that runs the operation at the head: the end of the last
	 * piece of a copy, and the total so far */
	uint64_t piece_to;
	uint64_t piece_from;
	uint64_t pieces_size;

	/* the lock */
	STAILQ_HEAD(, sched_op) ops;
	uint32_t n_ops;
	uint64_t n_submitted;
	uint64_t n_completed;
	enum sched_state state;
	bool is_kicked;
	bool is_destroyed; /* takes no more, and leaves its context when it is empty */
	struct sched_mark *waits_for;
	uint32_t n_waiters;
	pthread_cond_t done;
	TAILQ_ENTRY(sched_stream) link;	     /* in the context, or lanes of a graph */
	TAILQ_ENTRY(sched_stream) kick_link; /* in sched.kicked */
	TAILQ_ENTRY(sched_stream) wait_link; /* where its state says */
};

TAILQ_HEAD(sched_streams, sched_stream);

/* Belongs to what refers to it; all but n_refs is fixed once it is done. */
struct sched_mark {
	struct sched *sched;
	uint32_t n_refs;
	bool is_done;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	struct sched_streams waiters;
};

struct sched_context {
	struct sched *sched;
	struct sched_stream legacy;
	struct sched_streams streams; /* all, legacy too */
	struct sched_streams lanes;   /* of graphs and grids, those that hold anything */
	uint64_t n_pending;	      /* operations in those of grids */
	uint64_t next_ticket;
	int fault;     /* sticky; written under the lock, read anywhere */
	uint32_t stop; /* what engine.h calls *stop */
	uint32_t n_waiters;
	pthread_cond_t done;
};

struct sched {
	uint32_t n_threads;  /* for kernels, at most */
	uint64_t timeout_ns; /* of a kernel, 0: none */
	uint64_t launch_ns;  /* of all that one launch starts, 0: none; atomic */
	uint64_t workspaces; /* device memory, of all of them */
	/* Where it is kept what nothing has written: operations write, too. */
	struct softgpu_space watched;
	struct softgpu_allowance *allowance; /* NULL: the device is not shared */
	/* As in struct softgpu_config. */
	void (*fault)(void *data, int result, const char *text);
	void *fault_data;

	pthread_mutex_t lock; /* for all below */
	uint64_t next_stream_id;
	uint64_t next_grid_id;
	struct sched_streams kicked;
	struct sched_streams copies;
	struct sched_streams hosts;
	STAILQ_HEAD(, sched_errand) errands;
	struct sched_streams polling;
	uint64_t poll_ns;	  /* until the next look at the words they wait for */
	struct sched_tasks begun; /* those first that wait longest; here, too: */
	struct sched_tasks grids[SCHED_LEVELS];
	struct sched_tasks held;	      /* cooperative grids without a workspace */
	bool has_workspace[SCHED_WORKSPACES]; /* which are taken */
	uint64_t n_tasks;		      /* so far */
	uint64_t n_turns;		      /* at grids, so far */
	uint32_t n_begun;
	bool was_grid;			     /* the last one that was taken */
	uint32_t n_idle_grids[SCHED_LEVELS]; /* at which no thread works */
	/*
	 * Read without the lock; sched_tasks_publish() writes. What could have the thread
	 * now; what could once no higher priority has blocks to begin; the highest level
	 * that has such. Partner: the engine, and turn_run(), whose turn ends by them.
	 */
	uint32_t n_waiting;
	uint32_t n_passed;
	uint32_t top;
	uint32_t n_aside;    /* tasks that are set aside with blocks in them */
	uint64_t aside_size; /* what those hold */
	struct softgpu_scratch *scratches[SCHED_SPARE_SCRATCHES];
	uint32_t n_scratches;
	STAILQ_HEAD(, sched_op) spare;
	uint32_t n_spare;

	pthread_cond_t kernel_work, copy_work, host_work, mark_done;
	uint32_t n_alive;  /* kernel threads */
	uint64_t n_useful; /* kernel threads that the launches under way can keep busy */
	uint32_t n_idle;   /* kernel threads that sleep */
	uint32_t n_wanted; /* kernel threads that sched_unlock() shall wake */
	uint32_t n_mark_waiters;
	uint64_t n_ops;	    /* in streams, until they are complete */
	uint32_t n_at_work; /* threads that run an operation, without the lock */
	uint32_t n_stops;   /* callers of sched_stop() */
	pthread_cond_t stopped;
	bool has_copy_thread, has_host_thread;
};

/* A kernel thread. */
struct sched_worker {
	struct sched *sched;
	struct softgpu_scratch *scratch;
	uint32_t smid;
	struct sched_account account;
};

/*
 * Scheduler
 */

int sched_init(struct sched *sched, uint32_t n_threads);

/*
 * With the lock: starts what an operation of that kind cannot do without, unless it
 * runs. Return: 0 or -errno.
 */
int sched_staff(struct sched *sched, enum sched_kind kind);

/* With the lock: starts kernel threads until there are enough and at least so many, or no
 * more can be created. */
void sched_staff_kernels(struct sched *sched, uint32_t n_min);

void sched_lock(struct sched *sched);
void sched_unlock(struct sched *sched);

/*
 * Stops all operations between sched_stop() and sched_resume(): nothing writes memory of
 * the device meanwhile. A kernel under way stops after its turn, a copy when it is done;
 * host functions go on. sched_stop() returns with the lock, which sched_resume()
 * releases.
 */
void sched_stop(struct sched *sched);
void sched_resume(struct sched *sched);

/* Return: whether all operations so far are complete. */
bool sched_is_idle(struct sched *sched);

/* With the lock: a thread is about to run an operation without it, and has done so. */
void sched_work_begin(struct sched *sched);
void sched_work_end(struct sched *sched);

/* With the lock: for the host thread, which the caller has made sure of (sched_staff()).
 */
void sched_errand_add(struct sched *sched, struct sched_errand *errand);

/* With the lock: look at the stream again before the lock is released. */
void sched_kick(struct sched_stream *stream);

/*
 * Contexts
 */

void sched_context_init(struct sched_context *context, struct sched *sched);

/* The same in two steps: a context that does not accept work yet, and one that does. */
void sched_context_new(struct sched_context *context, struct sched *sched);
void sched_context_open(struct sched_context *context);

/* Discards queued work, ends running work and destroys the streams. From then on the
 * context accepts nothing and returns the fault, until it is opened again. */
void sched_context_close(struct sched_context *context, int fault);

/* When it is closed and no call names it any more. */
void sched_context_free(struct sched_context *context);

/* Both. */
void sched_context_deinit(struct sched_context *context);

int sched_context_fault(const struct sched_context *context);

/* Makes a fault sticky and stops the kernels of the context; the first one counts. */
void sched_context_set_fault(struct sched_context *context, int fault);

/* Waits for all that was submitted before. Return: the context's fault. */
int sched_context_wait(struct sched_context *context);

/*
 * Streams
 */

/* Return: 0, -ENOMEM, or -ECANCELED: the context is closed. */
int sched_stream_new(struct sched_stream **streamp, struct sched_context *context,
	bool is_blocking, int priority);

/*
 * Confines the kernels of a stream, which has no operations yet.
 *
 * @legacy:	the stream with which the legacy rule applies to it; NULL: it is that
 *		stream for others
 */
void sched_stream_confine(struct sched_stream *stream, const struct sched_sms *sms,
	struct sched_stream *legacy);

/* Within the range: any other number is clamped to it. Counts for kernels that have not
 * reached the head of the stream. */
void sched_stream_set_priority(struct sched_stream *stream, int priority);
int sched_stream_priority(const struct sched_stream *stream);

/* Queued work is still done, and no more accepted. Other threads may wait for it
 * meanwhile. */
void sched_stream_end(struct sched_stream *stream);

/* Drops the reference of who made the stream. */
void sched_stream_unref(struct sched_stream *stream);

/* Both. */
void sched_stream_free(struct sched_stream *stream);

/* Return: whether all is done, for the legacy stream what it would wait for too. */
bool sched_stream_is_idle(struct sched_stream *stream);

int sched_stream_wait(struct sched_stream *stream);

/**
 * sched_submit() - add an operation to a stream
 * @template:	copied, short params too; references and long_params are taken over
 * @wait:	return after it is done
 *
 * Waits while the stream is full. Return: 0, the context's fault (then the operation
 * was not done), invalid handle where the stream is destroyed, or out of memory.
 */
int sched_submit(struct sched_stream *stream, const struct sched_op *template, bool wait);

/*
 * The same, unless a count has changed that is incremented when an object of the
 * operation ends: the thread that ends it increments first, then waits for the context.
 * So either that wait covers the operation, or it is not accepted. Return: also
 * SCHED_E_CHANGED.
 */
int sched_submit_if(struct sched_stream *stream, const struct sched_op *template,
	const uint64_t *countp, uint64_t count);
#define SCHED_E_CHANGED (-1)

/*
 * Marks
 */

/* Return: a mark that is not done, with one reference; NULL: no memory. */
struct sched_mark *sched_mark_new(struct sched *sched);
struct sched_mark *sched_mark_ref(struct sched_mark *mark);
struct sched_mark *sched_mark_unref(struct sched_mark *mark);
bool sched_mark_is_done(struct sched_mark *mark);
void sched_mark_wait(struct sched_mark *mark);

/* With the lock. */
void sched_mark_finish(struct sched_mark *mark);

/*
 * Operations (op.c) and grids (grid.c), for the scheduler itself
 */

/* Does a copy or a fill. Called without the lock. */
void sched_op_run(const struct sched_op *op, struct sched_stream *stream);
/* Tells whoever traces that it begins or is complete: a kernel, copy, fill or call of the
 * host. */
void sched_op_note(const struct sched_op *op, bool is_end);

/* A launch begins, or is discarded. With the lock. */
void sched_op_begun(const struct sched *sched, struct sched_op *op);

/* Bytes that a copy or fill moves. */
uint64_t sched_op_size(const struct sched_op *op);

/* With the lock: allocates from or returns to the spare operations. */
struct sched_op *sched_op_new(struct sched *sched, const struct sched_op *template);
void sched_op_free(struct sched *sched, struct sched_op *op);

/* With the lock: releases what a template brought along, as if it had been done. */
void sched_op_discard(const struct sched_op *template);

/* Return: whether the word meets the condition. */
bool sched_word_is_met(const struct sched_word *word);
void sched_word_write(const struct sched_word *word);

/* With the lock: offers a launch to the kernel threads. */
void sched_grid_begin(struct sched *sched, struct sched_op *op);

/* With the lock: a thread joins a grid; it leaves it, and maybe completes it. */
void sched_grid_join(struct sched *sched, struct sched_op *op);
void sched_grid_leave(struct sched *sched, struct sched_op *op);

/* With the lock: sched_unlock() wakes so many threads that may work on it. */
void sched_grid_want(struct sched *sched, const struct sched_grid *grid, uint32_t n);

/* With the lock: its blocks are taken, or shall not be. */
void sched_grid_unlist(struct sched *sched, struct sched_op *op);

/* With the lock: the context's kernels end by this. */
void sched_grid_fail(struct sched_op *op, const struct softgpu_fault *fault);

/* For a running block of the launch: another one shall not run. As in softgpu_hooks. */
bool sched_grid_take_block(const struct softgpu_launch *launch, uint64_t *numberp);

/* A launch of the host begins. */
void sched_budget_begin(const struct sched *sched, struct sched_budget *budget);

/*
 * Looked at before a block begins, because small ones end before the engine looks.
 * Return: whether the time of the grid is over; then the fault says so.
 */
bool sched_grid_is_late(const struct sched_grid *grid, struct softgpu_fault *faultp);

/* The grid whose launch that is. */
static inline struct sched_grid *sched_grid_of(const struct softgpu_launch *launch)
{
	return (struct sched_grid *)((char *)launch -
				     offsetof(struct sched_grid, launch));
}

/* With the lock: whether there is a task that a kernel thread may take. */
bool sched_task_is_there(const struct sched_worker *worker);

/* With the lock: the thread takes up the one that waits longest, for a while. */
void sched_task_serve(struct sched_worker *worker);

/*
 * Sets of kernel threads
 */

static inline void sched_sms_add(struct sched_sms *sms, uint32_t smid)
{
	sms->words[smid / 64] |= UINT64_C(1) << smid % 64;
}

static inline bool sched_sms_has(const struct sched_sms *sms, uint32_t smid)
{
	return sms->words[smid / 64] >> smid % 64 & 1;
}

uint32_t sched_sms_count(const struct sched_sms *sms);

/* A slice of a thread that begins now. */
struct softgpu_slice sched_slice(const struct sched_worker *worker);

/* With the lock: appends a task. */
void sched_task_push(struct sched *sched, struct sched_task *task);

/* With the lock: tells running turns of what waits. */
void sched_tasks_publish(struct sched *sched);

static inline int sched_priority_clamp(int priority)
{
	if (priority > SCHED_PRIORITY_LEAST)
		return SCHED_PRIORITY_LEAST;
	return priority < SCHED_PRIORITY_GREATEST ? SCHED_PRIORITY_GREATEST : priority;
}

/* How a turn at a task ended. */
enum sched_turn {
	SCHED_TURN_DONE,
	SCHED_TURN_OVER, /* to go on with later */
	SCHED_TURN_FAULT,
};

/* All blocks of a grid side by side, until they are done or others want the thread. */
enum sched_turn sched_together_run(struct sched_worker *worker, struct sched_task *task,
	struct softgpu_fault *fault);
struct sched_together *sched_together_free(struct sched_together *together);
size_t sched_together_size(const struct sched_together *together);

/* With the lock: the operation at the head of a running stream is done. */
void sched_stream_complete(struct sched_stream *stream);

uint64_t sched_now_ns(void);
