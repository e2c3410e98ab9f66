/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace: a line for each call of the program
 *
 * A line is formatted on the caller's stack and written at once, to a file opened with
 * O_APPEND: lines of several threads and processes do not mix. The file is checked before
 * each line: a program may have closed all descriptors and reused our number, and a
 * forked child may need a file of its own.
 *
 * A pointer of the program may be invalid: the kernel is asked to read it, which fails
 * where a load would end the process.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "vgpu/error.h"
#include "vgpu/log.h"

#include "process/thread.h"
#include "process/trace.h"
#include "wire/clock.h"
#include "wire/error.h"

#define TEXT_MAX 64 /* shown of a string */
/* Room that arguments leave for the end of the line. */
#define TAIL_MAX (80 + SENT_MAX)
#define SENT_MAX 20
/* What a switch as value means, which is how other programs' variables are set. */
#define DEFAULT_PATTERN "vgpu-trace.%p"

/* Never freed: another thread may be writing by it. There is one a process. */
struct trace_file {
	pid_t pid;
	int fd;
	dev_t device;
	ino_t inode;
};

bool shim_trace_is_on;

static struct {
	char pattern[PATH_MAX];
	struct trace_file *file; /* atomic */
} output;

bool shim_trace_expand(const char *pattern, int pid, char *path, size_t size)
{
	size_t used = 0;

	for (; *pattern; pattern++) {
		char number[16] = { *pattern };
		size_t n = 1;

		if (pattern[0] == '%' && pattern[1] == 'p') {
			n = (size_t)snprintf(number, sizeof(number), "%d", pid);
			pattern++;
		}
		if (used + n >= size)
			return false;
		memcpy(path + used, number, n);
		used += n;
	}
	path[used] = '\0';
	return used > 0;
}

static int open_file(struct trace_file **filep)
{
	struct trace_file *file;
	char path[PATH_MAX];
	struct stat stat;
	int fd, r = 0;

	if (!shim_trace_expand(output.pattern, getpid(), path, sizeof(path)))
		return vgpu_error_origin(-ENAMETOOLONG);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
	if (fd < 0)
		return vgpu_error_origin(-errno);
	file = malloc(sizeof(*file));
	if (!file || fstat(fd, &stat)) {
		r = file ? -errno : -ENOMEM;
		free(file);
		close(fd);
		return vgpu_error_origin(r);
	}
	*file = (struct trace_file){ getpid(), fd, stat.st_dev, stat.st_ino };
	*filep = file;
	return 0;
}

static bool is_good(const struct trace_file *file)
{
	struct stat stat;

	return file->pid == getpid() && !fstat(file->fd, &stat) &&
	       stat.st_dev == file->device && stat.st_ino == file->inode;
}

/* Returns: the file to write to, or NULL where it is lost. */
static const struct trace_file *current_file(void)
{
	struct trace_file *file = __atomic_load_n(&output.file, __ATOMIC_ACQUIRE);
	struct trace_file *opened;

	if (file && is_good(file))
		return file;
	if (open_file(&opened)) {
		__atomic_store_n(&shim_trace_is_on, false, __ATOMIC_RELAXED);
		return NULL;
	}
	if (__atomic_compare_exchange_n(&output.file, &file, opened, false,
		    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return opened;
	/* Another thread was faster; its file is as good. */
	close(opened->fd);
	free(opened);
	return file;
}

/* "no" is a file's name, too, but nobody's: a program that asks for no trace gets none.
 */
static const char *read_pattern(void)
{
	const char *pattern = secure_getenv("VGPU_TRACE");

	if (!pattern || !*pattern || !strcmp(pattern, "0") || !strcmp(pattern, "no"))
		return NULL;
	if (!strcmp(pattern, "1") || !strcmp(pattern, "yes"))
		return DEFAULT_PATTERN;
	return pattern;
}

/* A program with more rights than its user must not write where its user says. */
__attribute__((__constructor__)) static void start(void)
{
	const char *pattern = read_pattern();
	int r;

	if (!pattern)
		return;
	r = strlen(pattern) < sizeof(output.pattern) ? 0 : -ENAMETOOLONG;
	if (!r) {
		strcpy(output.pattern, pattern);
		r = open_file(&output.file);
	}
	if (!r) {
		shim_trace_is_on = true;
		return;
	}
	/* A request for a trace that fails is reported without VGPU_LOG, too. */
	vgpu_log_init("libcuda", VGPU_LOG_ERROR);
	vgpu_log_error("no calls are traced: %s: %s", pattern, strerror(-r));
	vgpu_log_init("libcuda", VGPU_LOG_NONE);
}

/* Appends, and cuts what would take the room of the end. */
__attribute__((__format__(__printf__, 2, 3))) static void add(
	struct shim_trace *trace, const char *format, ...)
{
	size_t room = sizeof(trace->line) - TAIL_MAX - trace->size;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(trace->line + trace->size, room, format, ap);
	va_end(ap);
	if (n > 0)
		trace->size += (size_t)n < room ? (size_t)n : room - 1;
}

static void add_name(struct shim_trace *trace, const char *name)
{
	add(trace, "%s%s=", trace->has_arguments ? ", " : "", name);
	trace->has_arguments = true;
}

/* Returns: how many bytes could be read. */
static size_t read_memory(const void *pointer, void *copy, size_t size)
{
	struct iovec to = { copy, size }, from = { (void *)pointer, size };
	ssize_t n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

	return n > 0 ? (size_t)n : 0;
}

void shim_trace_begin(struct shim_trace *trace)
{
	trace->n_messages = shim_thread_n_messages();
	clock_gettime(CLOCK_REALTIME, &trace->begin);
	trace->begin_ns = shim_clock_ns();
}

void shim_trace_result(struct shim_trace *trace, const char *name, CUresult result)
{
	trace->end_ns = shim_clock_ns();
	trace->n_messages = shim_thread_n_messages() - trace->n_messages;
	trace->result = result;
	trace->has_arguments = false;
	trace->size = 0;
	add(trace, "%lld.%06ld %d/%ld %s(", (long long)trace->begin.tv_sec,
		trace->begin.tv_nsec / 1000, getpid(), syscall(SYS_gettid), name);
}

void shim_trace_signed(struct shim_trace *trace, const char *name, int64_t value)
{
	add_name(trace, name);
	add(trace, "%" PRId64, value);
}

void shim_trace_unsigned(struct shim_trace *trace, const char *name, uint64_t value)
{
	add_name(trace, name);
	add(trace, "%" PRIu64, value);
}

void shim_trace_address(struct shim_trace *trace, const char *name, uint64_t value)
{
	add_name(trace, name);
	add(trace, "%#" PRIx64, value);
}

void shim_trace_real(struct shim_trace *trace, const char *name, double value)
{
	add_name(trace, name);
	add(trace, "%g", value);
}

void shim_trace_string(struct shim_trace *trace, const char *name, const char *text)
{
	char copy[TEXT_MAX + 1];
	size_t n = text ? read_memory(text, copy, TEXT_MAX) : 0, i = 0;

	/* The mapping may end after the text: read to the end of the page. */
	if (text && !n)
		n = read_memory(text, copy, 1 + (~(uintptr_t)text & 63));
	if (!n) {
		shim_trace_address(trace, name, (uintptr_t)text);
		return;
	}
	add_name(trace, name);
	add(trace, "\"");
	for (; i < n && copy[i]; i++) {
		if (copy[i] == '"' || copy[i] == '\\')
			add(trace, "\\%c", copy[i]);
		else if (copy[i] < ' ' || copy[i] > '~')
			add(trace, "\\x%02x", (unsigned char)copy[i]);
		else
			add(trace, "%c", copy[i]);
	}
	add(trace, i < n ? "\"" : "\"...");
}

void shim_trace_block(struct shim_trace *trace, const char *name, size_t size)
{
	add_name(trace, name);
	add(trace, "{%zu bytes}", size);
}

void shim_trace_output(struct shim_trace *trace, const char *name, const void *pointer,
	size_t size, enum shim_trace_form form)
{
	uint64_t value = 0;

	shim_trace_address(trace, name, (uintptr_t)pointer);
	if (trace->result != CUDA_SUCCESS || !pointer || size > sizeof(value) ||
		read_memory(pointer, &value, size) != size)
		return;
	if (form == SHIM_TRACE_ADDRESS)
		add(trace, "[%#" PRIx64 "]", value);
	else if (form == SHIM_TRACE_SIGNED && size == sizeof(int32_t))
		add(trace, "[%" PRId32 "]", (int32_t)value);
	else if (form == SHIM_TRACE_SIGNED)
		add(trace, "[%" PRId64 "]", (int64_t)value);
	else
		add(trace, "[%" PRIu64 "]", value);
}

CUresult shim_trace_end(struct shim_trace *trace)
{
	const struct trace_file *file = current_file();
	const char *name = shim_error_name(trace->result);
	uint64_t ns = trace->end_ns - trace->begin_ns;
	ssize_t n;

	if (!file)
		return trace->result;
	trace->size += (size_t)snprintf(trace->line + trace->size, TAIL_MAX - SENT_MAX,
		") = %s <%" PRIu64 ".%09" PRIu64 ">", name ? name : "?", ns / 1000000000u,
		ns % 1000000000u);
	if (trace->n_messages)
		trace->size += (size_t)snprintf(trace->line + trace->size, SENT_MAX,
			" %" PRIu32 " sent", trace->n_messages);
	trace->line[trace->size++] = '\n';
	do
		n = write(file->fd, trace->line, trace->size);
	while (n < 0 && errno == EINTR);
	return trace->result;
}
