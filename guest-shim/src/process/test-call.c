/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submission, against a host that compares what it is sent with what protobuf-c packs
 */

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "vgpu/g-driver.pb-c.h"
#include "vgpu/ring.h"

#include "fake-host.h"
#include "process/call.h"
#include "process/context.h"
#include "process/words.h"

#define PARAMS_MAX 6000u
#define N_THREADS 8
#define ROUNDS 4000u

/* The host: a thread that takes frames, compares and counts them. */
static struct {
	struct vgpu_ring_consumer consumer;
	uint32_t word; /* of the one stream */
	uint64_t n_launches;
	enum { AWAKE, TIRED, ASLEEP } state; /* atomic: asleep it takes nothing */
	uint32_t n_frames[VGPU_SLOTS_MAX];   /* by lane; atomic */
	uint32_t sequence[VGPU_SLOTS_MAX];
} host;

static struct shim_context *context;

/* What launch `number` is: its size and all of its bytes follow from the number. */
static void make_request(
	Vgpu__CuLaunchKernelRequest *request, uint64_t number, uint8_t *params)
{
	*request = (Vgpu__CuLaunchKernelRequest)VGPU__CU_LAUNCH_KERNEL_REQUEST__INIT;
	request->f = number;
	request->params.data = params;
	request->params.len = number * 2654435761u % PARAMS_MAX;
	memset(params, (int)number, request->params.len);
}

/* The same bytes in another message, which is copied to the ring. */
static void make_copied_request(
	Vgpu__CuStreamBatchMemOpV2Request *request, uint64_t number, uint8_t *params)
{
	Vgpu__CuLaunchKernelRequest launch;

	make_request(&launch, number, params);
	*request = (Vgpu__CuStreamBatchMemOpV2Request)
		VGPU__CU_STREAM_BATCH_MEM_OP_V2_REQUEST__INIT;
	request->ops = launch.params;
	request->count = (uint32_t)number;
}

static void compare(const struct vgpu_frame *frame, const ProtobufCMessage *expected)
{
	uint8_t packed[VGPU_FRAME_MAX];
	size_t size = protobuf_c_message_pack(expected, packed);

	check_eq(frame->size - sizeof(*frame), size);
	check(!memcmp(frame->body, packed, size));
}

static void compare_launch(const struct vgpu_frame *frame)
{
	Vgpu__CuLaunchKernelRequest *got, expected;
	uint8_t params[PARAMS_MAX];

	got = vgpu__cu_launch_kernel_request__unpack(
		NULL, frame->size - sizeof(*frame), frame->body);
	check(got);
	make_request(&expected, got->f, params);
	compare(frame, &expected.base);
	vgpu__cu_launch_kernel_request__free_unpacked(got, NULL);
}

static void compare_copied(const struct vgpu_frame *frame)
{
	Vgpu__CuStreamBatchMemOpV2Request *got, expected;
	uint8_t params[PARAMS_MAX];

	got = vgpu__cu_stream_batch_mem_op_v2_request__unpack(
		NULL, frame->size - sizeof(*frame), frame->body);
	check(got);
	make_copied_request(&expected, got->count, params);
	compare(frame, &expected.base);
	vgpu__cu_stream_batch_mem_op_v2_request__free_unpacked(got, NULL);
}

static void serve(const struct vgpu_frame *frame)
{
	uint32_t lane = frame->lane;

	check(lane < VGPU_SLOTS_MAX);
	/* Nothing is lost, and nothing comes twice or in another order. */
	check_eq(frame->sequence, ++host.sequence[lane]);
	__atomic_add_fetch(&host.n_frames[lane], 1, __ATOMIC_RELEASE);
	if (frame->call == VGPU_CALL_vgpuStreamWord) {
		Vgpu__VgpuStreamWordRequest *request =
			vgpu__vgpu_stream_word_request__unpack(
				NULL, frame->size - sizeof(*frame), frame->body);

		host.word = request->word;
		vgpu__vgpu_stream_word_request__free_unpacked(request, NULL);
	} else if (frame->call == VGPU_CALL_cuLaunchKernel) {
		compare_launch(frame);
	} else if (frame->call == VGPU_CALL_cuStreamBatchMemOp_v2) {
		compare_copied(frame);
	} else {
		check(frame->call == VGPU_CALL_vgpuLaneContext ||
			frame->call == VGPU_CALL_vgpuLaneExit);
		return;
	}
	if (vgpu_call_flags[frame->call] & VGPU_CALL_F_STREAM_ORDERED)
		__atomic_store_n(&shim_channel.words[host.word].value, ++host.n_launches,
			__ATOMIC_RELEASE);
}

static void *host_main(void *argument)
{
	const struct vgpu_frame *frame;

	for (uint32_t n = 0;;) {
		if (__atomic_load_n(&host.state, __ATOMIC_ACQUIRE) != AWAKE) {
			__atomic_store_n(&host.state, ASLEEP, __ATOMIC_RELEASE);
			while (__atomic_load_n(&host.state, __ATOMIC_ACQUIRE) == ASLEEP)
				sched_yield();
		}
		if (vgpu_ring_next(&host.consumer, &frame)) {
			sched_yield();
			continue;
		}
		serve(frame);
		/* Seldom enough for the ring to be found full. */
		if (++n % 32 == 0 || host.consumer.head == host.consumer.tail)
			vgpu_ring_release(&host.consumer);
	}
	return argument;
}

/* The state of the process, as a forked child finds it: wiped. */
static uint32_t *state;

static void begin(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	state = mmap(
		NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(state != MAP_FAILED);
	check_eq(madvise(state, page, MADV_WIPEONFORK), 0);
	*state = SHIM_READY;
	fake_host_start(state, &host.consumer, host_main);
	shim_context_setup(1);
	context = shim_context_primary(0);
	context->is_live = 1;
	check_eq(shim_context_push(context), CUDA_SUCCESS);
}

/* What closes the channel at exit knows nothing of this one. */
static void end(void)
{
	*state = SHIM_NEW;
}

static CUresult launch(uint64_t number)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuLaunchKernel);
	Vgpu__CuLaunchKernelRequest request;
	uint8_t params[PARAMS_MAX];

	make_request(&request, number, params);
	return shim_call_async(&call, &request.base, NULL);
}

static CUresult batch(uint64_t number)
{
	struct shim_call call = SHIM_CALL_INIT(VGPU_CALL_cuStreamBatchMemOp_v2);
	Vgpu__CuStreamBatchMemOpV2Request request;
	uint8_t params[PARAMS_MAX];

	make_copied_request(&request, number, params);
	return shim_call_async(&call, &request.base, NULL);
}

static void wait_for_host(void)
{
	struct shim_thread *thread = shim_thread_get();

	while (__atomic_load_n(&host.n_frames[thread->lane], __ATOMIC_ACQUIRE) !=
		thread->sequence)
		sched_yield();
}

static void *send_many(void *unused)
{
	check_eq(shim_context_push(context), CUDA_SUCCESS);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		check_eq(launch(i), CUDA_SUCCESS);
		check_eq(batch(i), CUDA_SUCCESS);
	}
	wait_for_host();
	return NULL;
}

TEST(a_message_packed_into_the_ring_is_what_protobuf_c_packs)
{
	check(vgpu_call_flags[VGPU_CALL_cuLaunchKernel] & VGPU_CALL_F_IN_PLACE);
	check(!(vgpu_call_flags[VGPU_CALL_cuStreamBatchMemOp_v2] & VGPU_CALL_F_IN_PLACE));
	begin();
	send_many(NULL);
	/* Far more than a lap: with pads, and with a ring found full. */
	check(host.consumer.head > 20ull * VGPU_RING_SIZE);
	end();
}

TEST(frames_of_eight_threads_stay_whole_and_in_order)
{
	pthread_t threads[N_THREADS];

	begin();
	for (int i = 0; i < N_THREADS; i++)
		check_eq(pthread_create(&threads[i], NULL, send_many, NULL), 0);
	for (int i = 0; i < N_THREADS; i++)
		check_eq(pthread_join(threads[i], NULL), 0);
	check_eq(host.n_launches, 2ull * N_THREADS * ROUNDS);
	end();
}

static void put_to_sleep(void)
{
	struct vgpu_channel_control *control = shim_channel.control;

	__atomic_store_n(&host.state, TIRED, __ATOMIC_RELEASE);
	while (__atomic_load_n(&host.state, __ATOMIC_ACQUIRE) != ASLEEP)
		sched_yield();
	__atomic_store_n(&control->consumer_idle, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&control->consumer_sleeping, 1, __ATOMIC_SEQ_CST);
}

static void wake_up(void)
{
	struct vgpu_channel_control *control = shim_channel.control;

	__atomic_store_n(&control->consumer_sleeping, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&control->consumer_idle, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&host.state, AWAKE, __ATOMIC_RELEASE);
	wait_for_host();
}

/* Returns: how often the host was rung for by so many launches. */
static uint32_t rings_of(unsigned int n)
{
	uint32_t before = fake_host_n_rings();

	for (unsigned int i = 0; i < n; i++)
		check_eq(launch(0), CUDA_SUCCESS);
	return fake_host_n_rings() - before;
}

TEST(a_host_that_sleeps_is_rung_for_once_until_it_takes_a_frame)
{
	begin();
	check_eq(rings_of(10), 0);
	wait_for_host();
	for (int i = 0; i < 3; i++) {
		put_to_sleep();
		check_eq(rings_of(1), 1);
		check_eq(rings_of(50), 0);
		wake_up();
	}
	/* A ring may get lost. */
	put_to_sleep();
	check_eq(rings_of(1), 1);
	check(rings_of(200) >= 2);
	wake_up();
	end();
}

/* Sends until it is cancelled. */
static void *send_for_ever(void *type)
{
	check_eq(shim_context_push(context), CUDA_SUCCESS);
	check_eq(launch(1), CUDA_SUCCESS);
	pthread_setcanceltype(
		type ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED, NULL);
	for (uint64_t i = 1;; i++) {
		if (launch(i) != CUDA_SUCCESS)
			break;
		pthread_testcancel();
	}
	return NULL;
}

static void cancel_many(void *type)
{
	for (int i = 0; i < 100; i++) {
		pthread_t thread;
		void *result;

		check_eq(pthread_create(&thread, NULL, send_for_ever, type), 0);
		usleep(i % 10 * 50);
		check_eq(pthread_cancel(thread), 0);
		check_eq(pthread_join(thread, &result), 0);
		check(result == PTHREAD_CANCELED);
		/* With a lock left behind, this would wait for ever. */
		check_eq(launch(2), CUDA_SUCCESS);
	}
	wait_for_host();
}

TEST(a_cancelled_thread_leaves_the_ring_to_others)
{
	begin();
	cancel_many(NULL);
	end();
}

static void *send_until_told(void *stop)
{
	check_eq(shim_context_push(context), CUDA_SUCCESS);
	for (uint64_t i = 1; !__atomic_load_n((bool *)stop, __ATOMIC_RELAXED); i++)
		check_eq(launch(i), CUDA_SUCCESS);
	wait_for_host();
	return NULL;
}

TEST(a_thread_that_may_be_cancelled_anywhere_leaves_the_ring_to_others)
{
#ifdef __SANITIZE_ADDRESS__
	test_skip("the address sanitizer does not follow a stack that is left anywhere");
#endif
	test_skip_emulated("for an unknown reason a thread in 100 is cancelled there "
			   "while its cancellation is deferred");
	begin();
	cancel_many(&host);
	end();
}

TEST(a_child_forked_while_others_send_is_turned_away)
{
	bool stop = false;
	pthread_t thread;

	test_skip_emulated("leaves a child the pages of MADV_WIPEONFORK");
	begin();
	check_eq(pthread_create(&thread, NULL, send_until_told, &stop), 0);
	for (int i = 0; i < 50; i++) {
		int status;
		pid_t pid = fork();

		check(pid >= 0);
		if (!pid)
			_exit(launch(1) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
		check_eq(waitpid(pid, &status, 0), pid);
		check_eq(status, 0);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	check_eq(pthread_join(thread, NULL), 0);
	end();
}
