/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function of the program in a stream that does not return: it ends the process, or it
 * throws what nobody catches. callback-ends exit|throw
 */

#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include <unistd.h>

#include "runtime.h"

static std::string way;
static std::thread::id first_thread;

/* What a library does that cleans up: it is refused here, and may not wait for ever. */
static void clean_up()
{
	cudaError_t r = cudaDeviceSynchronize();
	size_t n_wrong = 0;

	n_wrong += std::this_thread::get_id() == first_thread;
	n_wrong += r != cudaErrorNotPermitted;
	result("callback-ends", 2, n_wrong);
	fflush(stdout);
	_exit(n_wrong ? EXIT_FAILURE : EXIT_SUCCESS);
}

static void end(void *data)
{
	if (way == "throw")
		throw std::runtime_error("nobody catches this");
	exit(EXIT_FAILURE);
}

int main(int n_arguments, char **arguments)
{
	cudaStream_t stream;

	way = n_arguments > 1 ? arguments[1] : "exit";
	first_thread = std::this_thread::get_id();
	CUDA(cudaStreamCreate(&stream));
	if (way == "throw")
		std::set_terminate(clean_up);
	else
		atexit(clean_up);
	CUDA(cudaLaunchHostFunc(stream, end, NULL));
	cudaStreamSynchronize(stream);
	for (;;)
		pause();
}
