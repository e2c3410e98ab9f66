/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printf() and assert() of kernels: what comes out, where it stands, and the error
 */

#include <cassert>
#include <cstring>
#include <unistd.h>

#include "runtime.h"

__global__ void say(int round)
{
	printf("block %d of round %d: %s %.1f\n", blockIdx.x, round, "text", 2.5);
}

__global__ void must_be(int value, int wanted)
{
	assert(value == wanted);
}

/* Takes a stream of the C library to a file, and brings it back as text. */
struct capture {
	FILE *stream;
	FILE *file;
	int before;
};

static struct capture begin(FILE *stream)
{
	struct capture capture = { stream, tmpfile(), dup(fileno(stream)) };

	fflush(stream);
	dup2(fileno(capture.file), fileno(stream));
	return capture;
}

static void end(struct capture *capture, char *text, size_t size)
{
	fflush(capture->stream);
	dup2(capture->before, fileno(capture->stream));
	rewind(capture->file);
	text[fread(text, 1, size - 1, capture->file)] = '\0';
	fclose(capture->file);
	close(capture->before);
}

int main()
{
	static const char expected[] = "first\n"
				       "block 0 of round 1: text 2.5\n"
				       "second\n"
				       "block 0 of round 2: text 2.5\n"
				       "third\n"
				       "block 0 of round 3: text 2.5\n"
				       "last\n";
	struct capture out = begin(stdout), error;
	size_t n_wrong = 0, limit = 0;
	cudaStream_t stream;
	char text[4096];
	int *p, value;

	CUDA(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 16));
	CUDA(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
	CUDA(cudaMalloc(&p, 4));
	CUDA(cudaStreamCreate(&stream));
	printf("first\n");
	say<<<1, 1>>>(1);
	CUDA(cudaDeviceSynchronize());
	printf("second\n");
	say<<<1, 1>>>(2);
	CUDA(cudaMemcpy(&value, p, 4, cudaMemcpyDeviceToHost));
	printf("third\n");
	say<<<1, 1, 0, stream>>>(3);
	CUDA(cudaStreamSynchronize(stream));
	printf("last\n");
	end(&out, text, sizeof(text));
	n_wrong += strcmp(text, expected) != 0;
	n_wrong += limit != 1 << 16;

	error = begin(stderr);
	must_be<<<1, 1>>>(1, 2);
	n_wrong += cudaDeviceSynchronize() != cudaErrorAssert;
	end(&error, text, sizeof(text));
	n_wrong += !strstr(text, "Assertion `value == wanted` failed.\n");
	return result("printing", 4, n_wrong);
}
