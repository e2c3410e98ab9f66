/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe: completion words
 *
 * The cost of a 64-bit write by the stream for the caller and the device, on an ordinary
 * and on the legacy stream, and whether output of printf is flushed when such a word is
 * seen.
 */

#include <unistd.h>

#include "probe.h"

#define N_OPS 2000

/* Time per pair (launch, write) less time per launch, both run to completion. */
static void write_cost(struct probe *probe, CUstream stream, const char *kind)
{
	CUdeviceptr word = probe->device_flag + 64;
	double start, submit, total, bare;
	char name[96];
	CUresult r = CUDA_SUCCESS;

	start = probe_now();
	for (int i = 0; i < N_OPS && !r; i++)
		r = cuLaunchKernel(probe->empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
	cuStreamSynchronize(stream);
	bare = probe_now() - start;

	start = probe_now();
	for (int i = 0; i < N_OPS && !r; i++) {
		r = cuLaunchKernel(probe->empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
		if (!r)
			r = cuStreamWriteValue64(stream, word, i, 0);
	}
	submit = probe_now() - start;
	cuStreamSynchronize(stream);
	total = probe_now() - start;

	snprintf(name, sizeof(name), "write_value_64_%s_added_per_launch", kind);
	if (probe_ok(probe, name, r))
		probe_number(probe, name, (total - bare) / N_OPS * 1e9, "ns");
	snprintf(name, sizeof(name), "write_value_64_%s_pair_submit", kind);
	probe_number(probe, name, submit / N_OPS * 1e9, "ns");

	start = probe_now();
	for (int i = 0; i < N_OPS && !r; i++)
		r = cuStreamWriteValue64(stream, word, i, 0);
	cuStreamSynchronize(stream);
	snprintf(name, sizeof(name), "write_value_64_%s_alone", kind);
	if (probe_ok(probe, name, r))
		probe_number(probe, name, (probe_now() - start) / N_OPS * 1e9, "ns");
}

/* From the submission of launch and write until the word is seen, compared with a
 * synchronise. */
static void wait_cost(struct probe *probe)
{
	volatile uint64_t *word = (volatile uint64_t *)(probe->flag + 16);
	double start, by_word = 0, by_call = 0;
	CUstream stream;

	cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
	for (uint64_t i = 1; i <= N_OPS; i++) {
		start = probe_now();
		cuLaunchKernel(probe->empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
		if (cuStreamWriteValue64(stream, probe->device_flag + 64, 1000000 + i, 0))
			return;
		while (*word != 1000000 + i)
			;
		by_word += probe_now() - start;
		start = probe_now();
		cuLaunchKernel(probe->empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
		cuStreamSynchronize(stream);
		by_call += probe_now() - start;
	}
	cuStreamDestroy(stream);
	probe_number(probe, "launch_and_wait_by_word", by_word / N_OPS * 1e9, "ns");
	probe_number(probe, "launch_and_stream_synchronize", by_call / N_OPS * 1e9, "ns");
}

/* Redirects stdout to a file while a kernel prints; reports when the line was flushed. */
static void printf_after_word(struct probe *probe)
{
	volatile uint64_t *word = (volatile uint64_t *)(probe->flag + 16);
	char path[] = "/tmp/vgpu-probe-XXXXXX";
	int number = 5, file, saved;
	off_t at_word, after_sync;
	void *parameters[] = { &number };
	CUstream stream;
	CUresult r;

	r = cuModuleGetFunction(&probe->say, probe->module, "say");
	if (!probe_ok(probe, "printf_after_word", r))
		return;
	cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
	file = mkstemp(path);
	unlink(path);
	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	dup2(file, STDOUT_FILENO);
	*word = 0;
	r = cuLaunchKernel(probe->say, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
	if (!r)
		r = cuStreamWriteValue64(stream, probe->device_flag + 64, 77, 0);
	while (!r && *word != 77)
		;
	usleep(20000);
	fflush(stdout);
	at_word = lseek(file, 0, SEEK_END);
	cuStreamSynchronize(stream);
	fflush(stdout);
	after_sync = lseek(file, 0, SEEK_END);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(file);
	cuStreamDestroy(stream);
	if (probe_ok(probe, "printf_after_word", r))
		probe_text(probe, "printf_after_word",
			"%lld bytes out when the word was seen, %lld after synchronize",
			(long long)at_word, (long long)after_sync);
}

void probe_words(struct probe *probe)
{
	CUstream stream;

	if (probe_ok(probe, "stream", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))) {
		write_cost(probe, stream, "ordinary_stream");
		cuStreamDestroy(stream);
	}
	write_cost(probe, NULL, "legacy_stream");
	wait_cost(probe);
	printf_after_word(probe);
}
