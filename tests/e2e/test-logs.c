/* SPDX-License-Identifier: Apache-2.0 */
/*
 * End to end: the error log
 */

#include <fcntl.h>
#include <unistd.h>

#include "e2e.h"

static char text[25600];

/* Fails for a reason that the host knows. */
static void fail(void)
{
	static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				  ".visible .entry f() { nonsense.u32 %r1; ret; }\n";
	CUmodule module;

	check(cuModuleLoadData(&module, ptx) != CUDA_SUCCESS);
}

static size_t dump(CUlogIterator *iterator)
{
	size_t size = sizeof(text);

	check_ok(cuLogsDumpToMemory(iterator, text, &size, 0));
	check_eq(size, strlen(text) + 1);
	return size - 1;
}

TEST(a_failed_call_leaves_its_reason_in_the_log)
{
	CUlogIterator at = 0;

	fixture_new();
	check_ok(cuLogsCurrent(&at, 0));
	check_eq(dump(&at), 0);
	fail();
	check(dump(&at) > 0);
	check(strstr(text, "cuModuleLoadData"));
	check(strstr(text, "nonsense"));
	check(strstr(text, "[CUDA][E]"));
	check_eq(dump(&at), 0);
	/* Each time, not only at first. */
	fail();
	check(dump(&at) > 0);
}

static struct {
	int n;
	size_t length;
	char message[1024];
} seen;

static void note(void *data, CUlogLevel level, char *message, size_t length)
{
	check_eq(data, &seen);
	check_eq(level, CU_LOG_LEVEL_ERROR);
	seen.n++;
	seen.length = length;
	snprintf(seen.message, sizeof(seen.message), "%s", message);
}

TEST(a_program_is_called_with_each_message)
{
	CUlogsCallbackHandle handle = NULL;

	fixture_new();
	check_ok(cuLogsRegisterCallback(note, &seen, &handle));
	fail();
	check_eq(seen.n, 1);
	check_eq(seen.length, strlen(seen.message));
	check(strstr(seen.message, "nonsense"));
	check_ok(cuLogsUnregisterCallback(handle));
	fail();
	check_eq(seen.n, 1);
	check_cu(cuLogsUnregisterCallback(handle), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLogsUnregisterCallback(NULL), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLogsRegisterCallback(NULL, NULL, &handle), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLogsRegisterCallback(note, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}

TEST(the_log_is_written_to_a_file)
{
	char path[] = "/tmp/e2e-logs-XXXXXX";
	CUlogIterator at = 0;
	int fd = mkstemp(path);
	ssize_t n;

	check(fd >= 0);
	fixture_new();
	check_ok(cuLogsCurrent(&at, 0));
	fail();
	check_ok(cuLogsDumpToFile(&at, path, 0));
	n = read(fd, text, sizeof(text) - 1);
	check(n > 0);
	check(strstr(text, "nonsense"));
	check_eq(text[n - 1], '\n');
	/* What was written is not written again. */
	check_ok(cuLogsDumpToFile(&at, path, 0));
	check_eq(read(fd, text, sizeof(text)), 0);
	check_cu(cuLogsDumpToFile(&at, "/nonexistent/log", 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLogsDumpToFile(&at, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLogsDumpToFile(&at, path, 1), CUDA_ERROR_INVALID_VALUE);
	close(fd);
	unlink(path);
}

TEST(a_small_buffer_has_the_newest_messages)
{
	size_t size = sizeof(text), whole;

	fixture_new();
	check_ok(cuLogsDumpToMemory(NULL, text, &size, 0));
	for (int i = 0; i < 5; i++)
		fail();
	whole = dump(NULL);
	size = whole;
	check_ok(cuLogsDumpToMemory(NULL, text, &size, 0));
	check(size <= whole);
	check(strstr(text, "nonsense"));
	check(strstr(text, "earlier messages"));
	size = 1;
	check_ok(cuLogsDumpToMemory(NULL, text, &size, 0));
	check_eq(size, 1);
	size = 0;
	check_cu(cuLogsDumpToMemory(NULL, text, &size, 0), CUDA_ERROR_INVALID_VALUE);
	size = sizeof(text);
	check_cu(cuLogsDumpToMemory(NULL, NULL, &size, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLogsDumpToMemory(NULL, text, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLogsDumpToMemory(NULL, text, &size, 1), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLogsCurrent(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	check_cu(cuLogsCurrent((CUlogIterator[1]){}, 1), CUDA_ERROR_INVALID_VALUE);
}
