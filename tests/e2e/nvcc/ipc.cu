/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and events of another process: a ring of two, which take turns
 */

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime.h"

#define N 4096
#define TURNS 20

/* What each process gives the other. */
struct handles {
	cudaIpcMemHandle_t memory;
	cudaIpcEventHandle_t event;
};

__global__ void increment(unsigned int *to, const unsigned int *from)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	to[i] = from[i] + 1;
}

static void send(int line, const void *data, size_t size)
{
	if (write(line, data, size) != (ssize_t)size)
		exit(EXIT_FAILURE);
}

static void receive(int line, void *data, size_t size)
{
	if (recv(line, data, size, MSG_WAITALL) != (ssize_t)size)
		exit(EXIT_FAILURE);
}

/* Each turn writes the own memory from the other's; the first begins. */
static size_t take_turns(int line, bool is_first)
{
	std::vector<unsigned int> values(N);
	struct handles mine, theirs;
	unsigned int *own, *other;
	cudaEvent_t event, theirs_event;
	cudaStream_t stream;
	size_t n_wrong = 0;
	char token = 0;
	void *memory;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc(&own, N * sizeof(*own)));
	CUDA(cudaMemset(own, 0, N * sizeof(*own)));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaEventCreateWithFlags(
		&event, cudaEventDisableTiming | cudaEventInterprocess));
	CUDA(cudaIpcGetMemHandle(&mine.memory, own));
	CUDA(cudaIpcGetEventHandle(&mine.event, event));
	send(line, &mine, sizeof(mine));
	receive(line, &theirs, sizeof(theirs));
	CUDA(cudaIpcOpenMemHandle(
		&memory, theirs.memory, cudaIpcMemLazyEnablePeerAccess));
	CUDA(cudaIpcOpenEventHandle(&theirs_event, theirs.event));
	other = (unsigned int *)memory;
	if (!is_first)
		receive(line, &token, 1);
	for (int i = 0; i < TURNS; i++) {
		CUDA(cudaStreamWaitEvent(stream, theirs_event, 0));
		increment<<<N / 256, 256, 0, stream>>>(own, other);
		CUDA(cudaGetLastError());
		CUDA(cudaEventRecord(event, stream));
		/* The other process waits on its device, not here. */
		send(line, &token, 1);
		if (is_first || i + 1 < TURNS)
			receive(line, &token, 1);
	}
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(values.data(), own, N * sizeof(*own), cudaMemcpyDeviceToHost));
	for (unsigned int value : values)
		n_wrong += value != 2u * TURNS - is_first;
	/* Neither frees what the other uses. */
	send(line, &token, 1);
	receive(line, &token, 1);
	CUDA(cudaIpcCloseMemHandle(other));
	CUDA(cudaEventDestroy(theirs_event));
	CUDA(cudaEventDestroy(event));
	CUDA(cudaFree(own));
	return n_wrong;
}

int main(void)
{
	size_t n_wrong;
	int ends[2], status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return EXIT_FAILURE;
	/* Before either uses the device. */
	pid = fork();
	if (!pid) {
		close(ends[0]);
		return take_turns(ends[1], false) ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	close(ends[1]);
	n_wrong = take_turns(ends[0], true);
	if (waitpid(pid, &status, 0) != pid || status)
		n_wrong++;
	return result("ipc", N, n_wrong);
}
