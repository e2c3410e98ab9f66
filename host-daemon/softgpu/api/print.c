/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of kernels
 *
 * As CUDA documents, the output of printf() is buffered in its context, where new output
 * replaces the oldest, and is flushed at fixed points: when a kernel is launched or
 * waited for, when memory is copied synchronously, when modules and contexts are
 * destroyed, before a stream callback. The message of a failed assertion is flushed at
 * once, after earlier output.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

struct record {
	uint32_t size;
};

static void write_to_stdout(void *data, const char *text, size_t size)
{
	fwrite(text, 1, size, stdout);
	fflush(stdout);
}

static void write_to_stderr(void *data, const char *text, size_t size)
{
	fwrite(text, 1, size, stderr);
}

void print_setup(struct softgpu_hooks *hooks)
{
	if (!hooks->print)
		hooks->print = write_to_stdout;
	if (!hooks->print_error)
		hooks->print_error = write_to_stderr;
}

/* Copies between the ring and memory, over the ring's end if need be. */
static void put(struct print_fifo *fifo, const void *from, size_t size)
{
	size_t at = fifo->tail % fifo->size, rest = fifo->size - at;
	size_t first = size < rest ? size : rest;

	memcpy(fifo->bytes + at, from, first);
	memcpy(fifo->bytes, (const char *)from + first, size - first);
	fifo->tail += size;
}

static void get(struct print_fifo *fifo, void *to, size_t size)
{
	size_t at = fifo->head % fifo->size, rest = fifo->size - at;
	size_t first = size < rest ? size : rest;

	memcpy(to, fifo->bytes + at, first);
	memcpy((char *)to + first, fifo->bytes, size - first);
	fifo->head += size;
}

/* The buffer is made by the first that prints, as large as the limit is then. */
static bool fifo_is_there(CUcontext context)
{
	struct print_fifo *fifo = &context->fifo;

	if (!fifo->bytes) {
		fifo->size = context->limits[CU_LIMIT_PRINTF_FIFO_SIZE];
		fifo->bytes = fifo->size ? malloc(fifo->size) : NULL;
	}
	return fifo->bytes;
}

static void keep_text(void *data, const char *text, size_t size)
{
	CUcontext context = data;
	struct print_fifo *fifo = &context->fifo;
	struct record record = { .size = size }, oldest;

	pthread_mutex_lock(&fifo->lock);
	if (fifo_is_there(context) && sizeof(record) + size <= fifo->size) {
		while (fifo->tail - fifo->head + sizeof(record) + size > fifo->size) {
			get(fifo, &oldest, sizeof(oldest));
			fifo->head += oldest.size;
		}
		put(fifo, &record, sizeof(record));
		put(fifo, text, size);
	}
	pthread_mutex_unlock(&fifo->lock);
}

/* With the lock. */
static void flush(struct print_fifo *fifo)
{
	const struct softgpu_hooks *hooks = &softgpu_device.hooks;
	char text[1024];
	struct record record;

	while (fifo->head != fifo->tail) {
		get(fifo, &record, sizeof(record));
		while (record.size) {
			size_t n =
				record.size < sizeof(text) ? record.size : sizeof(text);

			get(fifo, text, n);
			hooks->print(hooks->data, text, n);
			record.size -= n;
		}
	}
}

static void tell_error(void *data, const char *text, size_t size)
{
	const struct softgpu_hooks *hooks = &softgpu_device.hooks;
	struct print_fifo *fifo = &((CUcontext)data)->fifo;

	pthread_mutex_lock(&fifo->lock);
	flush(fifo);
	hooks->print_error(hooks->data, text, size);
	pthread_mutex_unlock(&fifo->lock);
}

void print_init(CUcontext context)
{
	pthread_mutex_init(&context->fifo.lock, NULL);
	context->hooks = softgpu_device.hooks;
	context->hooks.data = context;
	context->hooks.print = keep_text;
	context->hooks.print_error = tell_error;
}

void print_flush(CUcontext context)
{
	struct print_fifo *fifo = &context->fifo;

	pthread_mutex_lock(&fifo->lock);
	flush(fifo);
	pthread_mutex_unlock(&fifo->lock);
}

void print_flush_current(void)
{
	CUcontext context;

	if (context_current_raw(&context) == CUDA_SUCCESS)
		print_flush(context);
}

bool print_has_begun(CUcontext context)
{
	bool has_begun;

	pthread_mutex_lock(&context->fifo.lock);
	has_begun = context->fifo.bytes;
	pthread_mutex_unlock(&context->fifo.lock);
	return has_begun;
}

void print_reset(CUcontext context)
{
	struct print_fifo *fifo = &context->fifo;

	pthread_mutex_lock(&fifo->lock);
	flush(fifo);
	free(fifo->bytes);
	fifo->bytes = NULL;
	fifo->head = fifo->tail = 0;
	pthread_mutex_unlock(&fifo->lock);
}

void print_deinit(CUcontext context)
{
	pthread_mutex_destroy(&context->fifo.lock);
}
