/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: functions of the program that streams call
 */

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "e2e.h"

static CUdeviceptr mapped_words(unsigned int **wordsp, size_t n)
{
	CUdeviceptr address;

	check_ok(cuMemHostAlloc((void **)wordsp, 4 * n, CU_MEMHOSTALLOC_DEVICEMAP));
	memset(*wordsp, 0, 4 * n);
	check_ok(cuMemHostGetDevicePointer(&address, *wordsp, 0));
	return address;
}

static unsigned int load(const unsigned int *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static CUstream stream_new(void)
{
	CUstream stream;

	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

/* The names of all public calls, one a line. */
extern const char symbols_text[];

static void add_five(void *data)
{
	*(unsigned int *)data += 5;
}

static void in_place(CUstream stream)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	unsigned int x = 1, *word;
	CUdeviceptr p = mapped_words(&word, 1);

	*word = 1;
	if (!stream)
		stream = stream_new();
	for (int i = 0; i < 50; i++) {
		check_ok(launch_step(step, p, 1000, stream));
		check_ok(cuLaunchHostFunc(stream, add_five, word));
		x = stepped(x, 1000) + 5;
	}
	check_ok(cuStreamSynchronize(stream));
	check_eq(load(word), x);
}

TEST(host_function_runs_between_the_work_around_it)
{
	in_place(NULL);
}

TEST(host_function_runs_in_the_default_stream)
{
	in_place(CU_STREAM_LEGACY);
}

TEST(host_function_runs_in_the_stream_of_the_thread)
{
	in_place(CU_STREAM_PER_THREAD);
}

TEST(twin_for_per_thread_streams_calls_too)
{
	CUresult (*launch)(CUstream, CUhostFn, void *) = NULL;
	unsigned int word = 0;

	fixture_new();
	check_ok(cuGetProcAddress("cuLaunchHostFunc", (void **)&launch, 12000,
		CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
	check(launch && launch != cuLaunchHostFunc);
	check_ok(launch(NULL, add_five, &word));
	check_ok(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	check_eq(word, 5);
}

struct seen {
	CUstream stream;
	CUresult status;
	pthread_t thread;
	unsigned int n;
};

static void note(CUstream stream, CUresult status, void *data)
{
	struct seen *seen = data;

	seen->stream = stream;
	seen->status = status;
	seen->thread = pthread_self();
	__atomic_add_fetch(&seen->n, 1, __ATOMIC_SEQ_CST);
}

TEST(stream_callback_is_given_stream_status_and_data)
{
	struct seen seen = {}, other = {};
	CUstream stream;

	fixture_new();
	stream = stream_new();
	check_ok(cuStreamAddCallback(stream, note, &seen, 0));
	check_ok(cuStreamAddCallback(NULL, note, &other, 0));
	check_ok(cuStreamSynchronize(stream));
	check_ok(cuStreamSynchronize(NULL));
	check_eq(seen.n, 1);
	check_eq(seen.status, CUDA_SUCCESS);
	check(seen.stream == stream && other.n == 1 && !other.stream);
	check(!pthread_equal(seen.thread, pthread_self()));
	check(pthread_equal(seen.thread, other.thread));
}

TEST(wrong_arguments_are_refused_and_nothing_is_called)
{
	struct seen seen = {};

	fixture_new();
	check_cu(cuLaunchHostFunc(NULL, NULL, &seen), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuStreamAddCallback(NULL, NULL, &seen, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuStreamAddCallback(NULL, note, &seen, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuStreamAddCallback((CUstream)0x123456789abull, note, &seen, 0),
		CUDA_ERROR_INVALID_HANDLE);
	check_ok(cuCtxSynchronize());
	check_eq(seen.n, 0);
}

struct gate {
	sem_t entered;
	sem_t open;
	unsigned int n_passed;
};

static void pass(void *data)
{
	struct gate *gate = data;

	sem_post(&gate->entered);
	while (sem_wait(&gate->open))
		;
	__atomic_add_fetch(&gate->n_passed, 1, __ATOMIC_SEQ_CST);
}

static void gate_init(struct gate *gate)
{
	*gate = (struct gate){};
	sem_init(&gate->entered, 0, 0);
	sem_init(&gate->open, 0, 0);
}

TEST(callback_that_blocks_delays_only_its_stream)
{
	struct fixture fixture = fixture_new();
	CUfunction step = fixture_function(&fixture, "step");
	CUstream stream = stream_new(), other = stream_new();
	CUdeviceptr p, q;
	CUevent before, after;
	struct gate gate;

	gate_init(&gate);
	check_ok(cuEventCreate(&before, CU_EVENT_DISABLE_TIMING));
	check_ok(cuEventCreate(&after, CU_EVENT_DISABLE_TIMING));
	check_ok(cuMemAlloc(&p, 4));
	check_ok(cuMemsetD32Async(p, 1, 1, stream));
	check_ok(cuEventRecord(before, stream));
	check_ok(cuLaunchHostFunc(stream, pass, &gate));
	check_ok(launch_step(step, p, 3, stream));
	check_ok(cuEventRecord(after, stream));
	sem_wait(&gate.entered);

	/* Other streams, and calls of every kind, continue. */
	check_ok(cuEventSynchronize(before));
	check_ok(cuMemAlloc(&q, 4));
	check_ok(cuMemsetD32Async(q, 1, 1, other));
	for (int i = 0; i < 300; i++)
		check_ok(launch_step(step, q, 2, other));
	check_ok(cuStreamSynchronize(other));
	check_eq(device_word(q), stepped(1, 600));
	check_cu(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	check_cu(cuEventQuery(after), CUDA_ERROR_NOT_READY);

	sem_post(&gate.open);
	check_ok(cuEventSynchronize(after));
	check_eq(gate.n_passed, 1);
	check_ok(cuStreamSynchronize(stream));
	check_eq(device_word(p), stepped(1, 3));
}

/* Calls that do not access a device: NVIDIA's guidelines for robust programs name the
 * first three as calls that are not device-dependent, and forbid a callback only those
 * that are. */
static const char *const permitted[] = {
	"cuGetErrorName",
	"cuGetErrorString",
	"cuDriverGetVersion",
	"cuGetProcAddress",
	"cuGetProcAddress_v2",
};

static bool is_permitted(const char *symbol)
{
	for (size_t i = 0; i < sizeof(permitted) / sizeof(*permitted); i++)
		if (!strcmp(symbol, permitted[i]))
			return true;
	return false;
}

struct attempts {
	CUcontext context;
	CUdeviceptr p;
	int n_called;
	int n_wrong;
	char first_wrong[128];
	CUresult results[4];
	const char *name;
	const char *sentence;
	int version;
	void *function;
};

/* A call is refused before it looks at an argument: none has any. */
static void attempt_all(struct attempts *a)
{
	char symbol[128];
	int length;

	for (const char *at = symbols_text; sscanf(at, "%127s%n", symbol, &length) == 1;
		at += length) {
		CUresult (*call)(long, long, long, long, long, long, long, long, long);

		call = (CUresult(*)(long, long, long, long, long, long, long, long,
			long))dlsym(RTLD_DEFAULT, symbol);
		if (!call || is_permitted(symbol))
			continue;
		a->n_called++;
		if (call(0, 0, 0, 0, 0, 0, 0, 0, 0) == CUDA_ERROR_NOT_PERMITTED)
			continue;
		if (!a->n_wrong++)
			strcpy(a->first_wrong, symbol);
	}
}

static void attempt(void *data)
{
	struct attempts *a = data;

	attempt_all(a);
	a->results[0] = cuGetErrorName(CUDA_ERROR_NOT_PERMITTED, &a->name);
	a->results[1] = cuGetErrorString(CUDA_ERROR_NOT_PERMITTED, &a->sentence);
	a->results[2] = cuDriverGetVersion(&a->version);
	a->results[3] = cuGetProcAddress("cuMemAlloc", &a->function, 12000, 0, NULL);
}

static void attempt_with_status(CUstream stream, CUresult status, void *data)
{
	attempt(data);
}

static void check_attempts(const struct attempts *a)
{
	CUdeviceptr p;

	check(a->n_called > 600);
	check_str(a->first_wrong, "");
	check_eq(a->n_wrong, 0);
	for (int i = 0; i < 4; i++)
		check_cu(a->results[i], CUDA_SUCCESS);
	check_str(a->name, "CUDA_ERROR_NOT_PERMITTED");
	check(a->sentence && *a->sentence && a->version >= 12000 && a->function);
	/* Neither the refused thread nor another one stays marked. */
	check_ok(cuMemAlloc(&p, 4));
	check_ok(cuCtxSynchronize());
}

TEST(no_call_is_permitted_in_a_host_function)
{
	struct attempts a = {};

	fixture_new();
	check_ok(cuLaunchHostFunc(NULL, attempt, &a));
	check_ok(cuCtxSynchronize());
	check_attempts(&a);
}

TEST(no_call_is_permitted_in_a_stream_callback)
{
	struct attempts a = {};
	CUstream stream;

	fixture_new();
	stream = stream_new();
	check_ok(cuStreamAddCallback(stream, attempt_with_status, &a, 0));
	check_ok(cuStreamSynchronize(stream));
	check_attempts(&a);
}

/* The queries of libgomp's plugin to find out whether it is in a callback, with valid
 * arguments. */
static void attempt_in_earnest(void *data)
{
	struct attempts *a = data;
	CUdeviceptr base;
	CUdevice device;
	size_t size;

	a->results[0] = cuCtxGetDevice(&device);
	a->results[1] = cuMemGetAddressRange(&base, &size, a->p);
	a->results[2] = cuMemFree(a->p);
	a->results[3] = cuCtxPushCurrent(a->context);
}

TEST(right_arguments_do_not_help_in_a_callback)
{
	struct fixture fixture = fixture_new();
	struct attempts a = { .context = fixture.context };

	check_ok(cuMemAlloc(&a.p, 4));
	check_ok(cuLaunchHostFunc(NULL, attempt_in_earnest, &a));
	check_ok(cuCtxSynchronize());
	for (int i = 0; i < 4; i++)
		check_cu(a.results[i], CUDA_ERROR_NOT_PERMITTED);
	check_ok(cuMemFree(a.p));
}

static void leave_by_handler(void *data)
{
	exit(EXIT_FAILURE);
}

/* In the callback's thread, as exit handlers of a library that uses CUDA: the call fails,
 * and the handler continues. */
static void clean_up(void)
{
	_exit(cuCtxSynchronize() == CUDA_ERROR_NOT_PERMITTED ? EXIT_SUCCESS : 2);
}

TEST(exit_handler_in_a_callback_is_refused_and_does_not_hang)
{
	fixture_new();
	check_eq(atexit(clean_up), 0);
	check_ok(cuLaunchHostFunc(NULL, leave_by_handler, NULL));
	cuCtxSynchronize();
	for (;;)
		pause();
}

TEST(after_a_fault_stream_callbacks_get_the_error_and_host_functions_do_not_run)
{
	struct fixture fixture = fixture_new();
	struct seen first = {}, second = {};
	CUdeviceptr nowhere = 0x10;
	unsigned int word = 0;
	void *parameters[] = { &nowhere };
	CUstream stream = stream_new();
	struct gate open, gate;

	gate_init(&open);
	sem_post(&open.open);
	check_ok(cuStreamAddCallback(stream, note, &first, 0));
	check_ok(cuLaunchHostFunc(stream, pass, &open));
	/* The failing operation must not begin before all later ones are queued. */
	gate_init(&gate);
	check_ok(cuLaunchHostFunc(stream, pass, &gate));
	check_ok(cuLaunchKernel(fixture_function(&fixture, "store_at"), 2, 1, 1, 32, 1, 1,
		0, stream, parameters, NULL));
	check_ok(cuLaunchHostFunc(stream, add_five, &word));
	check_ok(cuStreamAddCallback(stream, note, &second, 0));
	sem_post(&gate.open);
	check_cu(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	while (!load(&second.n))
		usleep(100);
	check_eq(first.status, CUDA_SUCCESS);
	check_eq(second.status, CUDA_ERROR_ILLEGAL_ADDRESS);

	check_ok(cuDevicePrimaryCtxReset(fixture.device));
	check_eq(word, 0);
	fixture_new();
	check_ok(cuLaunchHostFunc(NULL, add_five, &word));
	check_ok(cuCtxSynchronize());
	check_eq(word, 5);
}

#define N_THREADS 8
#define N_EACH 1250

struct chain {
	CUcontext context;
	unsigned int next;
	unsigned int n_wrong;
	unsigned int numbers[N_EACH];
};

static unsigned int n_at_once;

static void follow(void *data)
{
	struct chain *chain = *(struct chain **)data;
	unsigned int number = ((unsigned int **)data)[1] - chain->numbers;

	chain->n_wrong += __atomic_fetch_add(&n_at_once, 1, __ATOMIC_SEQ_CST) != 0;
	chain->n_wrong += number != chain->next++;
	__atomic_fetch_sub(&n_at_once, 1, __ATOMIC_SEQ_CST);
	free(data);
}

static void *run_chain(void *argument)
{
	struct chain *chain = argument;
	CUstream stream;

	check_ok(cuCtxSetCurrent(chain->context));
	stream = stream_new();
	for (int i = 0; i < N_EACH; i++) {
		void **link = malloc(2 * sizeof(*link));

		link[0] = chain;
		link[1] = &chain->numbers[i];
		check_ok(cuLaunchHostFunc(stream, follow, link));
	}
	check_ok(cuStreamDestroy(stream));
	return NULL;
}

TEST(ten_thousand_callbacks_of_eight_threads_run_in_order_one_at_a_time)
{
	struct fixture fixture = fixture_new();
	struct chain *chains = calloc(N_THREADS, sizeof(*chains));
	pthread_t threads[N_THREADS];

	for (int i = 0; i < N_THREADS; i++) {
		chains[i].context = fixture.context;
		check_eq(pthread_create(&threads[i], NULL, run_chain, &chains[i]), 0);
	}
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	check_ok(cuCtxSynchronize());
	for (int i = 0; i < N_THREADS; i++) {
		check_eq(chains[i].next, N_EACH);
		check_eq(chains[i].n_wrong, 0);
	}
	free(chains);
}

TEST(stream_that_is_destroyed_still_calls_back)
{
	struct seen seen = {};
	struct gate gate;
	CUstream stream;

	fixture_new();
	gate_init(&gate);
	stream = stream_new();
	check_ok(cuLaunchHostFunc(stream, pass, &gate));
	check_ok(cuStreamAddCallback(stream, note, &seen, 0));
	check_ok(cuStreamDestroy(stream));
	sem_wait(&gate.entered);
	check_eq(load(&seen.n), 0);
	sem_post(&gate.open);
	check_ok(cuCtxSynchronize());
	check_eq(seen.n, 1);
	check_eq(seen.status, CUDA_SUCCESS);
}

static void *open_later(void *argument)
{
	struct gate *gate = argument;

	sem_wait(&gate->entered);
	sem_post(&gate->open);
	return NULL;
}

TEST(context_that_is_destroyed_waits_for_its_callbacks)
{
	struct fixture fixture = fixture_new();
	struct seen seen = {};
	CUcontext context;
	pthread_t thread;
	struct gate gate;
	CUstream stream;

	gate_init(&gate);
	check_ok(cuCtxCreate(&context, NULL, 0, fixture.device));
	stream = stream_new();
	check_ok(cuLaunchHostFunc(stream, pass, &gate));
	check_ok(cuStreamAddCallback(stream, note, &seen, 0));
	check_eq(pthread_create(&thread, NULL, open_later, &gate), 0);
	check_ok(cuCtxDestroy(context));
	pthread_join(thread, NULL);
	check_eq(load(&gate.n_passed), 1);
	check_eq(load(&seen.n), 1);
}

TEST(process_may_end_with_a_callback_that_blocks)
{
	static struct gate gate;

	fixture_new();
	gate_init(&gate);
	check_ok(cuLaunchHostFunc(NULL, pass, &gate));
	check_ok(cuLaunchHostFunc(NULL, pass, &gate));
	sem_wait(&gate.entered);
}

static void leave(void *data)
{
	exit(EXIT_SUCCESS);
}

TEST(callback_may_end_the_process)
{
	fixture_new();
	check_ok(cuLaunchHostFunc(NULL, leave, NULL));
	cuCtxSynchronize();
	for (;;)
		pause();
}

static void end_thread(void *data)
{
	*(unsigned int *)data += 1;
	pthread_exit(NULL);
}

static void cancel_thread(void *data)
{
	*(unsigned int *)data += 10;
#ifdef __SANITIZE_ADDRESS__
	/* It does not follow a cancellation up the stack. */
	pthread_exit(PTHREAD_CANCELED);
#endif
	pthread_cancel(pthread_self());
	for (;;)
		pause();
}

TEST(callback_that_ends_its_thread_is_complete)
{
	unsigned int word = 0;

	fixture_new();
	check_ok(cuLaunchHostFunc(NULL, end_thread, &word));
	check_ok(cuLaunchHostFunc(NULL, add_five, &word));
	check_ok(cuLaunchHostFunc(NULL, cancel_thread, &word));
	check_ok(cuLaunchHostFunc(NULL, add_five, &word));
	check_ok(cuCtxSynchronize());
	check_eq(word, 21);
}

static void fork_and_wait(void *data)
{
	int status = 0;
	pid_t pid = fork();

	/* The child runs on from here, in a process without a channel. */
	if (!pid)
		_exit(cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED ? 7 : 1);
	waitpid(pid, &status, 0);
	*(int *)data = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(fork_leaves_callbacks_to_the_parent)
{
	int inside = 0, status = 0;
	unsigned int word = 0;
	struct gate gate;
	pid_t pid;

	fixture_new();
	gate_init(&gate);
	check_ok(cuLaunchHostFunc(NULL, pass, &gate));
	check_ok(cuLaunchHostFunc(NULL, fork_and_wait, &inside));
	check_ok(cuLaunchHostFunc(NULL, add_five, &word));
	sem_wait(&gate.entered);
	pid = fork();
	if (!pid)
		_exit(cuLaunchHostFunc(NULL, add_five, &word) !=
			CUDA_ERROR_NOT_INITIALIZED);
	waitpid(pid, &status, 0);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	sem_post(&gate.open);
	check_ok(cuCtxSynchronize());
	check_eq(inside, 7);
	check_eq(word, 5);
}
