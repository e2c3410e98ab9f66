/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracing of calls: names of files, and how arguments look
 */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "process/trace.h"
#include "test.h"

/* Pointers of the program are read by the kernel, which reports those that are wrong. */
#define NO_READ "does not have process_vm_readv"

TEST(the_process_id_replaces_its_placeholder_in_the_name)
{
	char path[32];

	check(shim_trace_expand("/tmp/t", 12, path, sizeof(path)));
	check_str(path, "/tmp/t");
	check(shim_trace_expand("%p-%p.%q%", 12, path, sizeof(path)));
	check_str(path, "12-12.%q%");
	check(!shim_trace_expand("", 12, path, sizeof(path)));
	check(shim_trace_expand("aaa%p", 12, path, 6));
	check(!shim_trace_expand("aaa%p", 123, path, 6));
	check(!shim_trace_expand("aaaaaa", 123, path, 6));
}

/* Returns: the line without the text before the call. */
static const char *line_of(struct shim_trace *trace)
{
	trace->line[trace->size] = '\0';
	return strstr(trace->line, "call(") + strlen("call(");
}

TEST(arguments_are_shown_by_what_they_are)
{
	struct shim_trace trace;
	double number = 0;

	test_skip_emulated(NO_READ);
	shim_trace_begin(&trace);
	shim_trace_result(&trace, "call", CUDA_SUCCESS);
	shim_trace_signed(&trace, "a", -3);
	shim_trace_unsigned(&trace, "b", UINT64_MAX);
	shim_trace_address(&trace, "c", 0x1000);
	shim_trace_real(&trace, "d", 1.5);
	shim_trace_string(&trace, "e", "say \"no\"\n\\");
	shim_trace_string(&trace, "f", NULL);
	shim_trace_block(&trace, "g", sizeof(number));
	check_str(line_of(&trace), "a=-3, b=18446744073709551615, c=0x1000, d=1.5, "
				   "e=\"say \\\"no\\\"\\x0a\\\\\", f=0, g={8 bytes}");
}

static const char *output_of(
	CUresult result, const void *pointer, size_t size, enum shim_trace_form form)
{
	static struct shim_trace trace;
	const char *line;

	shim_trace_begin(&trace);
	shim_trace_result(&trace, "call", result);
	shim_trace_output(&trace, "x", pointer, size, form);
	line = line_of(&trace);
	return strchr(line, '[') ? strchr(line, '[') : "";
}

TEST(outputs_are_shown_if_the_call_succeeded)
{
	int number = -5;
	size_t size = 4096;
	void *handle = (void *)0x77;

	test_skip_emulated(NO_READ);
	check_str(output_of(0, &number, sizeof(number), SHIM_TRACE_SIGNED), "[-5]");
	check_str(output_of(0, &size, sizeof(size), SHIM_TRACE_UNSIGNED), "[4096]");
	check_str(output_of(0, &handle, sizeof(handle), SHIM_TRACE_ADDRESS), "[0x77]");
	check_str(output_of(1, &handle, sizeof(handle), SHIM_TRACE_ADDRESS), "");
	check_str(output_of(0, NULL, 8, SHIM_TRACE_ADDRESS), "");
	check_str(output_of(0, (void *)16, 8, SHIM_TRACE_ADDRESS), "");
}

TEST(memory_that_is_not_there_is_not_read)
{
	long page = sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, (size_t)page * 2, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct shim_trace trace;

	test_skip_emulated(NO_READ);
	check(map != MAP_FAILED);
	check(!munmap(map + page, (size_t)page));
	strcpy(map + page - 5, "last");
	shim_trace_begin(&trace);
	shim_trace_result(&trace, "call", CUDA_SUCCESS);
	shim_trace_string(&trace, "a", map + page - 5);
	check_str(line_of(&trace), "a=\"last\"");
	shim_trace_result(&trace, "call", CUDA_SUCCESS);
	shim_trace_string(&trace, "a", (const char *)0x10);
	check_str(line_of(&trace), "a=0x10");
}

TEST(a_line_that_is_too_long_is_cut_and_ends_all_the_same)
{
	struct shim_trace trace;

	shim_trace_begin(&trace);
	shim_trace_result(&trace, "call", CUDA_ERROR_NOT_FOUND);
	for (int i = 0; i < 100; i++)
		shim_trace_string(&trace, "text",
			"..............................................................."
			".");
	check(trace.size < sizeof(trace.line));
	check_eq(shim_trace_end(&trace), CUDA_ERROR_NOT_FOUND);
	check(trace.size < sizeof(trace.line));
}
