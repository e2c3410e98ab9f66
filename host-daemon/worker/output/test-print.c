/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of kernels: kept, bounded, taken from descriptors
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"
#include "worker/base/session.h"
#include "worker/output/driver-output.h"
#include "worker/output/print.h"

/* Those that are captured stay so. */
const bool test_keeps_descriptors = true;

static struct prints prints;
static struct session session = { .prints = &prints };
static struct print_piece piece;

static void set_up(void)
{
	static struct vgpu_channel_control control;

	session.area = (uint8_t *)&control;
	print_init(&session);
}

static uint64_t printed(void)
{
	return session_control(&session)->printed;
}

TEST(text_is_fetched_in_order_and_messages_of_assertions_last)
{
	set_up();
	print_from_kernel(&session, "one ", 4);
	print_error_from_kernel(&session, "bad", 3);
	print_from_kernel(&session, "two", 3);
	check_eq(printed(), 10);
	print_fetch(&session, &piece);
	check_eq(piece.size, 7);
	check(!memcmp(piece.text, "one two", 7) && !piece.is_error);
	check_eq(piece.position, 7);
	print_fetch(&session, &piece);
	check(piece.size == 3 && !memcmp(piece.text, "bad", 3) && piece.is_error);
	check_eq(piece.position, printed());
	print_fetch(&session, &piece);
	check_eq(piece.size, 0);
	print_deinit(&session);
}

TEST(ring_wraps_around_and_grows_in_order)
{
	uint32_t n_in = 0, n_out = 0;

	set_up();
	while (n_in < 1 << 18) {
		uint32_t words[300], i;

		for (i = 0; i < 300; i++)
			words[i] = n_in++;
		print_from_kernel(&session, (const char *)words, sizeof(words));
		if (n_in % 900)
			continue;
		print_fetch(&session, &piece);
		check_eq(piece.size, PRINT_FETCH_MAX);
		for (i = 0; i < PRINT_FETCH_MAX / 4; i++, n_out++)
			check(!memcmp(piece.text + 4 * i, &n_out, 4));
	}
	for (print_fetch(&session, &piece); piece.size; print_fetch(&session, &piece))
		for (uint32_t i = 0; i < piece.size / 4; i++, n_out++)
			check(!memcmp(piece.text + 4 * i, &n_out, 4));
	check_eq(n_out, n_in);
	check_eq(piece.lost, 0);
	check_eq(piece.position, printed());
	print_deinit(&session);
}

TEST(guest_that_fetches_nothing_loses_what_is_too_much)
{
	uint64_t n = 0, lost = 0;
	char *text;

	set_up();
	text = malloc(1 << 20);
	memset(text, 'x', 1 << 20);
	for (int i = 0; i < 20; i++)
		print_from_kernel(&session, text, 1 << 20);
	free(text);
	check_eq(session.prints->rings[0].size, PRINT_KEPT_MAX);
	do {
		print_fetch(&session, &piece);
		n += piece.size;
		lost += piece.lost;
	} while (piece.size);
	check_eq(n, PRINT_KEPT_MAX);
	check_eq(lost, (20 << 20) - PRINT_KEPT_MAX);
	check_eq(piece.position, printed());
	print_deinit(&session);
}

/* Writes all of it: a pipe without a reader would block. */
static void write_all(int fd, const char *text, size_t size)
{
	while (size) {
		ssize_t n = write(fd, text, size);

		if (n < 0)
			_exit(EXIT_FAILURE);
		text += n;
		size -= n;
	}
}

TEST(output_of_a_driver_is_read_without_blocking_it)
{
	static char text[600000];
	uint64_t n = 0;

	set_up();
	check_eq(driver_output_start(), 0);
	driver_output_serve(&session);
	memset(text, 'k', sizeof(text));
	write_all(STDOUT_FILENO, text, sizeof(text));
	printf("by the C library");
	driver_output_collect();
	check_eq(printed(), sizeof(text) + 16);
	do {
		print_fetch(&session, &piece);
		n += piece.size;
	} while (n < printed() && piece.size);
	check_eq(n, printed());
	check(!memcmp(piece.text + piece.size - 16, "by the C library", 16));
}

TEST(only_assertions_of_the_error_output_of_a_driver_reach_the_guest)
{
	static const char secret[] = "driver: /host/path is missing\n";
	static const char message[] = "k.cu:3: f: block: [0,0,0], thread: [0,0,0] "
				      "Assertion `x` failed.\n";

	set_up();
	check_eq(driver_output_start(), 0);
	driver_output_serve(&session);
	write_all(STDERR_FILENO, secret, sizeof(secret) - 1);
	write_all(STDERR_FILENO, message, 20);
	driver_output_collect();
	check_eq(printed(), 0);
	write_all(STDERR_FILENO, message + 20, sizeof(message) - 21);
	driver_output_collect();
	print_fetch(&session, &piece);
	check(piece.is_error);
	check_eq(piece.size, sizeof(message) - 1);
	check(!memcmp(piece.text, message, piece.size));
}
