/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: what kernels print comes out of the program, in its place
 */

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "e2e.h"

extern const char print_ptx[];

/* Standard output and error of the test, as files. */
static char paths[2][300];

static void redirect(void)
{
	static const char *const names[2] = { "out", "err" };

	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		int fd;

		snprintf(paths[i], sizeof(paths[i]), "%s/%s", test_tmpdir(), names[i]);
		fd = open(paths[i], O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
			0600);
		check(fd >= 0 && dup2(fd, 1 + i) == 1 + i);
		close(fd);
	}
}

/* The output, NUL-terminated. */
static char *written(int i)
{
	struct stat info;
	char *text;
	int fd;

	fflush(NULL);
	fd = open(paths[i], O_RDONLY | O_CLOEXEC);
	check(fd >= 0 && !fstat(fd, &info));
	text = calloc(1, info.st_size + 1);
	check_eq(read(fd, text, info.st_size), info.st_size);
	close(fd);
	return text;
}

static void check_written(const char *expected)
{
	char *text = written(0);

	if (strcmp(text, expected))
		test_fail(__FILE__, __LINE__, "written is\n%s\nand not\n%s", text,
			expected);
	free(text);
}

struct printing {
	struct fixture fixture;
	CUfunction say, say_much, say_and_trap, must_be;
	int round;
};

/* In a process whose output is redirected. */
static struct printing printing_load(void)
{
	struct printing printing = {};
	CUmodule module;

	printing.fixture = fixture_new();
	check_ok(cuModuleLoadData(&module, print_ptx));
	check_ok(cuModuleGetFunction(&printing.say, module, "say"));
	check_ok(cuModuleGetFunction(&printing.say_much, module, "say_much"));
	check_ok(cuModuleGetFunction(&printing.say_and_trap, module, "say_and_trap"));
	check_ok(cuModuleGetFunction(&printing.must_be, module, "must_be"));
	return printing;
}

static struct printing printing_new(void)
{
	redirect();
	return printing_load();
}

static void launch2(CUfunction function, int a, int b, CUstream stream)
{
	void *parameters[] = { &a, &b };

	check_ok(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

static void say(struct printing *printing, int n, CUstream stream)
{
	launch2(printing->say, printing->round++, n, stream);
}

TEST(kernel_output_appears_where_the_program_waited)
{
	struct printing printing = printing_new();
	CUstream stream;
	unsigned int word = 0;
	void *pinned;
	CUevent event;
	CUdeviceptr p;

	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	check_ok(cuEventCreate(&event, 0));
	check_ok(cuMemAlloc(&p, 4));
	check_ok(cuMemAllocHost(&pinned, 4096));
	printf("first\n");
	say(&printing, 2, NULL);
	check_ok(cuCtxSynchronize());
	printf("context\n");
	say(&printing, 1, stream);
	check_ok(cuStreamSynchronize(stream));
	printf("stream, ");
	say(&printing, 1, NULL);
	check_ok(cuStreamSynchronize(NULL));
	printf("default stream\n");
	say(&printing, 1, stream);
	check_ok(cuEventRecord(event, stream));
	check_ok(cuEventSynchronize(event));
	printf("event\n");
	say(&printing, 1, NULL);
	check_ok(cuMemcpyDtoH(&word, p, 4));
	printf("copy\n");
	say(&printing, 1, NULL);
	check_ok(cuMemcpyHtoD(p, &word, 4));
	printf("copy back\n");
	say(&printing, 1, NULL);
	check_ok(cuMemcpyDtoH(pinned, p, 4));
	printf("pinned copy\n");
	check_written("first\n"
		      "device 0.0 says\ndevice 0.1 says\ncontext\n"
		      "device 1.0 says\nstream, "
		      "device 2.0 says\ndefault stream\n"
		      "device 3.0 says\nevent\n"
		      "device 4.0 says\ncopy\n"
		      "device 5.0 says\ncopy back\n"
		      "device 6.0 says\npinned copy\n");
}

TEST(text_comes_before_what_is_written_unbuffered)
{
	struct printing printing = printing_new();

	check(dup2(1, 2) == 2);
	printf("buffered\n");
	say(&printing, 1, NULL);
	check_ok(cuCtxSynchronize());
	fprintf(stderr, "unbuffered\n");
	check_written("buffered\ndevice 0.0 says\nunbuffered\n");
}

TEST(text_waits_for_the_program_to_wait)
{
	struct printing printing = printing_new();
	CUstream stream;
	char *text;

	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	/* So many that the stream's word shows when they are complete. */
	for (int i = 0; i < 64; i++)
		say(&printing, 1, stream);
	while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
		;
	check_ok(cuStreamQuery(stream));
	check_written("");
	check_ok(cuStreamSynchronize(stream));
	text = written(0);
	check(!strncmp(text, "device 0.0 says\n", 16));
	check_str(text + strlen(text) - 17, "device 63.0 says\n");
	free(text);
}

TEST(much_text_comes_whole)
{
	struct printing printing = printing_new();
	char *text, line[80];

	for (int i = 0; i < 2; i++) {
		launch2(printing.say_much, 8000, 0, NULL);
		check_ok(cuCtxSynchronize());
	}
	text = written(0);
	check_eq(strlen(text), 2 * 8000 * 64);
	for (int i = 0; i < 16000; i += 123) {
		snprintf(line, sizeof(line), "%063d\n", i % 8000);
		check(!memcmp(text + 64 * i, line, 64));
	}
	free(text);
}

TEST(full_buffer_keeps_what_is_newest)
{
	struct printing printing = printing_new();
	size_t limit = 0, length;
	char *text;

	check_ok(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 4096));
	check_ok(cuCtxGetLimit(&limit, CU_LIMIT_PRINTF_FIFO_SIZE));
	check_eq(limit, 4096);
	launch2(printing.say_much, 1000, 0, NULL);
	check_ok(cuCtxSynchronize());
	text = written(0);
	length = strlen(text);
	check(length >= 2048 && length <= 4096 && length % 64 == 0);
	check_eq(atoi(text + length - 64), 999);
	check_eq(atoi(text), 1000 - (int)length / 64);
	free(text);
	/* Its size is settled once something was printed. */
	check_cu(
		cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 8192), CUDA_ERROR_INVALID_VALUE);
}

TEST(failed_assertion_is_printed_on_standard_error)
{
	struct printing printing = printing_new();
	char *text;

	printf("before\n");
	say(&printing, 1, NULL);
	launch2(printing.must_be, 7, 7, NULL);
	check_ok(cuCtxSynchronize());
	launch2(printing.must_be, 7, 8, NULL);
	check_cu(cuCtxSynchronize(), CUDA_ERROR_ASSERT);
	check_written("before\ndevice 0.0 says\n");
	text = written(1);
	check(strstr(text, "print.cu:42: must_be: block: [0,0,0], thread: [0,0,0] "
			   "Assertion `value == wanted` failed.\n"));
	free(text);
	check_cu(cuStreamSynchronize(NULL), CUDA_ERROR_ASSERT);
}

TEST(fault_that_a_call_before_noticed_does_not_swallow_text)
{
	struct printing printing = printing_new();
	CUresult r;

	launch2(printing.say_and_trap, 7, 0, NULL);
	/* No call that waits: the process learns of the fault by one that does not. */
	while ((r = cuStreamQuery(NULL)) == CUDA_ERROR_NOT_READY)
		;
	check(r != CUDA_SUCCESS);
	check_written("");
	check_cu(cuCtxSynchronize(), r);
	check_written("device 7.0 traps\n");
	check_cu(cuStreamSynchronize(NULL), r);
}

TEST(the_end_of_a_context_flushes_its_output)
{
	struct printing printing = printing_new();

	say(&printing, 1, NULL);
	/* Queued work still runs: a wait that does not flush output. */
	while (cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY)
		;
	check_written("");
	check_ok(cuDevicePrimaryCtxReset(printing.fixture.device));
	check_written("device 0.0 says\n");
}

/* A process that prints and ends without waiting: what the driver let out before, here
 * because of another launch, is in its output all the same. */
static void print_and_leave(void)
{
	struct printing printing = printing_load();

	say(&printing, 1, NULL);
	while (cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY)
		;
	say(&printing, 0, NULL);
	while (cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY)
		;
	exit(EXIT_SUCCESS);
}

TEST(text_that_came_out_is_not_lost_at_the_end_of_the_process)
{
	int status = 0;
	pid_t pid;

	redirect();
	pid = fork();
	if (!pid)
		print_and_leave();
	check_eq(waitpid(pid, &status, 0), pid);
	check(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
	check_written("device 0.0 says\n");
}

static void note_written(CUstream stream, CUresult status, void *data)
{
	*(char **)data = written(0);
}

TEST(stream_callback_finds_the_text_before_it)
{
	struct printing printing = printing_new();
	char *seen = NULL;

	say(&printing, 1, NULL);
	check_ok(cuStreamAddCallback(NULL, note_written, &seen, 0));
	check_ok(cuStreamSynchronize(NULL));
	check(seen);
	check_str(seen, "device 0.0 says\n");
	free(seen);
}

struct talker {
	struct printing printing;
	int number;
};

static void *talk(void *argument)
{
	struct talker *talker = argument;
	CUstream stream;

	check_ok(cuCtxSetCurrent(talker->printing.fixture.context));
	check_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 25; i++) {
		char line[64], *text;

		talker->printing.round = 100 * talker->number + i;
		snprintf(
			line, sizeof(line), "device %d.0 says\n", talker->printing.round);
		say(&talker->printing, 1, stream);
		check_ok(cuStreamSynchronize(stream));
		text = written(0);
		check(strstr(text, line));
		free(text);
	}
	return NULL;
}

TEST(each_of_eight_threads_has_its_output_after_its_wait)
{
	struct printing printing = printing_new();
	struct talker talkers[8];
	pthread_t threads[8];
	char *text;

	for (int i = 0; i < 8; i++) {
		talkers[i] = (struct talker){ printing, i + 1 };
		check_eq(pthread_create(&threads[i], NULL, talk, &talkers[i]), 0);
	}
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	text = written(0);
	check_eq(strlen(text), 8 * 25 * strlen("device 100.0 says\n"));
	free(text);
}
