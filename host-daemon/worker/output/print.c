/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of kernels
 */

#include <stdlib.h>
#include <string.h>

#include "vgpu/log.h"
#include "worker/base/session.h"
#include "worker/output/print.h"

#define FIRST_SIZE (64u << 10)

void print_init(struct session *session)
{
	pthread_mutex_init(&session->prints->lock, NULL);
}

void print_deinit(struct session *session)
{
	free(session->prints->rings[0].bytes);
	free(session->prints->rings[1].bytes);
	pthread_mutex_destroy(&session->prints->lock);
}

static size_t filled(const struct print_ring *ring)
{
	return ring->tail - ring->head;
}

/* Copies from the ring, with wraparound. */
static void peek(const struct print_ring *ring, char *to, size_t size)
{
	size_t at = ring->head % ring->size, rest = ring->size - at;
	size_t first = size < rest ? size : rest;

	memcpy(to, ring->bytes + at, first);
	memcpy(to + first, ring->bytes, size - first);
}

/* Grows the ring for that many more bytes, up to PRINT_KEPT_MAX. */
static void grow(struct print_ring *ring, size_t more)
{
	size_t size = ring->size ? ring->size : FIRST_SIZE, n = filled(ring);
	char *bytes;

	while (size < PRINT_KEPT_MAX && size < n + more)
		size *= 2;
	if (size == ring->size)
		return;
	bytes = malloc(size);
	if (!bytes)
		return;
	if (n)
		peek(ring, bytes, n);
	free(ring->bytes);
	*ring = (struct print_ring){ .bytes = bytes, .size = size, .tail = n };
}

/* Return: the number of bytes kept. */
static size_t append(struct print_ring *ring, const char *text, size_t size)
{
	size_t n, at, first;

	if (size > ring->size - filled(ring))
		grow(ring, size);
	n = ring->size - filled(ring);
	n = n < size ? n : size;
	if (!n)
		return 0;
	at = ring->tail % ring->size;
	first = n < ring->size - at ? n : ring->size - at;
	memcpy(ring->bytes + at, text, first);
	memcpy(ring->bytes, text + first, n - first);
	ring->tail += n;
	return n;
}

static void take_in(
	struct session *session, unsigned int which, const char *text, size_t size)
{
	struct prints *prints = session->prints;
	size_t n;

	pthread_mutex_lock(&prints->lock);
	n = append(&prints->rings[which], text, size);
	prints->n_lost += size - n;
	prints->n_out += size - n;
	prints->n_in += size;
	/* Partner: the guest's acquire load after the reply to a synchronising call. */
	__atomic_store_n(
		&session_control(session)->printed, prints->n_in, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&prints->lock);
}

void print_from_kernel(void *data, const char *text, size_t size)
{
	take_in(data, 0, text, size);
}

void print_error_from_kernel(void *data, const char *text, size_t size)
{
	take_in(data, 1, text, size);
}

void print_fetch(struct session *session, struct print_piece *piece)
{
	struct prints *prints = session->prints;
	struct print_ring *ring = &prints->rings[0];

	pthread_mutex_lock(&prints->lock);
	/* An assertion ends the work of its context, so its message comes last. */
	piece->is_error = !filled(ring);
	ring = &prints->rings[piece->is_error];
	piece->size = filled(ring) < PRINT_FETCH_MAX ? filled(ring) : PRINT_FETCH_MAX;
	if (piece->size)
		peek(ring, piece->text, piece->size);
	ring->head += piece->size;
	prints->n_out += piece->size;
	piece->position = prints->n_out;
	piece->lost = prints->n_lost - prints->n_lost_told;
	prints->n_lost_told = prints->n_lost;
	pthread_mutex_unlock(&prints->lock);
}

void print_tell_lost(const struct session *session)
{
	if (session->prints->n_lost)
		vgpu_log_warning("%llu bytes of kernel output were lost: the guest did "
				 "not fetch them",
			(unsigned long long)session->prints->n_lost);
}
