/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest process that makes calls of all kinds while it corrupts the memory it shares
 * with its worker, for a test that observes the host meanwhile:
 *
 *	corrupt PLACE SEED	spoils that place for a while, then ends
 *	corrupt nothing SEED	spoils nothing, calls until it is ended
 *	corrupt wait SEED	spoils nothing, waits until it is ended
 *	corrupt flood SEED	gives many streams work, faster than it is done
 *	corrupt graphs SEED	launches a captured graph again and again
 *
 * The results of its own calls do not matter; it may well crash.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

#include "vgpu/ring-layout.h"

#define N_CALLERS 3
#define N_BURSTS 1500
#define WRITES_PER_BURST 8
#define PAUSE_US 200
#define SIZE 4096u
#define N_FLOODED 32
#define LAUNCHES_PER_WAIT 200

/* From the start of the area, but for the table, which is the whole memory's. */
static const struct place {
	const char *name;
	uint32_t offset;
	uint32_t size;
} places[] = {
	{ "control", 0, sizeof(struct vgpu_channel_control) },
	{ "indices", 0, 2 * VGPU_CACHE_LINE },
	{ "ring", VGPU_RING_OFF, VGPU_RING_SIZE },
	{ "words", VGPU_WORDS_OFF, 64 * VGPU_CACHE_LINE },
	{ "slots", VGPU_SLOTS_OFF, 8 * VGPU_SLOT_SIZE },
	{ "records", VGPU_RECORDS_OFF, 512 * sizeof(uint64_t) },
	{ "area", 0, VGPU_AREA_SIZE },
	{ "table", 0, VGPU_SHM_TABLE_OFF + sizeof(struct vgpu_channel_entry) },
};

static uint64_t random_state;

/* xorshift64*, so that a seed means the same everywhere. */
static uint64_t random_number(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1dull;
}

static void must(CUresult r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "%s: CUDA error %d\n", what, r);
	_Exit(1);
}

#define MUST(_call) must(_call, #_call)

/* Where this process has that offset of the shared memory. */
static uint8_t *find_mapping(uint64_t wanted)
{
	unsigned long start, end, offset;
	FILE *maps = fopen("/proc/self/maps", "re");
	uint8_t *found = NULL;
	char line[512];

	while (!found && maps && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "vgpu-shm") ||
			sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) != 3)
			continue;
		if (offset <= wanted && wanted - offset < end - start)
			found = (uint8_t *)(start + (wanted - offset));
	}
	if (maps)
		fclose(maps);
	if (!found) {
		fprintf(stderr, "the shared memory is not mapped\n");
		_Exit(1);
	}
	return found;
}

/*
 * Calling
 */

static CUcontext context;

static void *call_all_kinds(void *data)
{
	CUdeviceptr memory = 0;
	uint8_t bytes[SIZE] = {};
	CUstream stream = NULL;
	CUevent event = NULL;
	void *pinned = NULL;

	cuCtxSetCurrent(context);
	cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
	cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
	cuMemAlloc(&memory, SIZE);
	cuMemAllocHost(&pinned, SIZE);
	for (;;) {
		CUevent timed = NULL;

		for (int i = 0; i < 20; i++)
			cuMemsetD32Async(memory, i, SIZE / 4, stream);
		cuMemcpyHtoDAsync(memory, bytes, 256, stream);
		if (pinned)
			cuMemcpyDtoHAsync(pinned, memory, SIZE, stream);
		cuEventRecord(event, stream);
		cuEventQuery(event);
		cuStreamQuery(stream);
		cuEventSynchronize(event);
		cuEventCreate(&timed, 0);
		cuEventRecord(timed, stream);
		cuStreamWaitEvent(stream, timed, 0);
		cuEventDestroy(timed);
		cuStreamSynchronize(stream);
		cuMemcpyDtoH(bytes, memory, SIZE);
	}
	return NULL;
}

static void start_callers(void)
{
	pthread_t thread;

	for (int i = 0; i < N_CALLERS; i++)
		pthread_create(&thread, NULL, call_all_kinds, NULL);
}

/* For work that continues as long as the process. */
static void wait_for_ever(void)
{
	CUdeviceptr memory;
	CUstream stream;
	CUevent event;

	MUST(cuMemAlloc(&memory, SIZE));
	MUST(cuMemsetD32(memory, 0, SIZE / 4));
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	MUST(cuStreamWaitValue32(stream, memory, 1, CU_STREAM_WAIT_VALUE_EQ));
	MUST(cuEventRecord(event, stream));
	puts("0");
	fflush(stdout);
	MUST(cuEventSynchronize(event));
}

/* The ring is full most of the time: no stream has as much work as one may have. */
static void flood_for_ever(void)
{
	CUstream streams[N_FLOODED];
	CUdeviceptr memory;

	MUST(cuMemAlloc(&memory, SIZE));
	for (int i = 0; i < N_FLOODED; i++)
		MUST(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	for (unsigned int i = 0;; i++)
		MUST(cuMemsetD32Async(memory, i, SIZE / 4, streams[i % N_FLOODED]));
}

static void launch_for_ever(void)
{
	CUdeviceptr memory;
	CUgraphExec exec;
	CUstream stream;
	CUgraph graph;

	MUST(cuMemAlloc(&memory, SIZE));
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	for (int i = 0; i < 8; i++)
		MUST(cuMemsetD32Async(memory, i, SIZE / 4, stream));
	MUST(cuStreamEndCapture(stream, &graph));
	MUST(cuGraphInstantiate(&exec, graph, 0));
	for (;;) {
		for (int i = 0; i < LAUNCHES_PER_WAIT; i++)
			MUST(cuGraphLaunch(exec, stream));
		MUST(cuStreamSynchronize(stream));
	}
}

/*
 * Spoiling
 */

static uint64_t spoilt(uint64_t value)
{
	switch (random_number() % 6) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return value + 1;
	case 3:
		return value - 1;
	case 4:
		return value ^ 1ull << random_number() % 64;
	default:
		return random_number();
	}
}

static void spoil(uint8_t *start, uint32_t size)
{
	for (int burst = 0; burst < N_BURSTS; burst++) {
		for (int i = 0; i < WRITES_PER_BURST; i++) {
			uint64_t *word =
				(uint64_t *)(start + random_number() % (size / 8) * 8);
			uint64_t value = __atomic_load_n(word, __ATOMIC_RELAXED);

			__atomic_store_n(word, spoilt(value), __ATOMIC_RELAXED);
		}
		usleep(PAUSE_US);
	}
}

static void spoil_place(const struct place *place)
{
	const struct vgpu_shm_header *header = (const void *)find_mapping(0);
	bool is_table = !strcmp(place->name, "table");
	uint8_t *start = find_mapping(is_table ? 0 : header->area_off);

	start_callers();
	usleep(50000);
	spoil(start + place->offset, place->size);
	_exit(0);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	random_state = strtoull(argv[2], NULL, 0) * 2 + 1;
	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	if (!strcmp(argv[1], "wait"))
		wait_for_ever();
	puts("0");
	fflush(stdout);
	if (!strcmp(argv[1], "flood"))
		flood_for_ever();
	if (!strcmp(argv[1], "graphs"))
		launch_for_ever();
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!strcmp(argv[1], places[i].name))
			spoil_place(&places[i]);
	if (strcmp(argv[1], "nothing") != 0)
		return 2;
	start_callers();
	for (;;)
		pause();
}
