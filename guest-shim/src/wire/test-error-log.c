/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error log of the program
 */

#include <stdio.h>
#include <string.h>

#include "test.h"
#include "wire/error-log.h"

static char text[SHIM_ERROR_LOG_TEXT_MAX];

static void add(int number)
{
	char message[32];

	snprintf(message, sizeof(message), "message %d.", number);
	shim_error_log_add(CU_LOG_LEVEL_ERROR, message);
}

static int count_lines(void)
{
	int n = 0;

	for (const char *c = text; *c; c++)
		n += *c == '\n';
	return n;
}

static bool has(int number)
{
	char message[32];

	snprintf(message, sizeof(message), "[CUDA][E] message %d.\n", number);
	return strstr(text, message);
}

TEST(nothing_is_kept_for_a_program_that_does_not_ask)
{
	check(!shim_error_log_is_used());
	add(1);
	check_eq(shim_error_log_position(), 0);
	check(shim_error_log_is_used());
	add(2);
	check_eq(shim_error_log_position(), 1);
}

TEST(messages_are_read_from_a_position_on)
{
	CUlogIterator at = shim_error_log_position();

	add(1);
	add(2);
	check_eq(shim_error_log_read(&at, text, sizeof(text)), strlen(text));
	check(has(1) && has(2));
	check_eq(count_lines(), 2);
	check_eq(at, shim_error_log_position());
	check_eq(shim_error_log_read(&at, text, sizeof(text)), 0);
	add(3);
	shim_error_log_read(&at, text, sizeof(text));
	check(has(3));
	check_eq(count_lines(), 1);
	shim_error_log_read(NULL, text, sizeof(text));
	check_eq(count_lines(), 3);
}

TEST(the_oldest_messages_are_lost_and_that_is_said)
{
	CUlogIterator at = shim_error_log_position();

	for (int i = 0; i < 150; i++)
		add(i);
	shim_error_log_read(&at, text, sizeof(text));
	check_eq(count_lines(), 1 + SHIM_ERROR_LOG_MESSAGES);
	check(!strncmp(text, "[CUDA][W]", 9));
	check(!has(49) && has(50) && has(149));
	/* A position that never was. */
	at = 1000;
	shim_error_log_read(&at, text, sizeof(text));
	check_eq(count_lines(), 1 + SHIM_ERROR_LOG_MESSAGES);
}

TEST(the_newest_messages_are_read_where_there_is_little_room)
{
	size_t whole;

	shim_error_log_position();
	for (int i = 0; i < 10; i++)
		add(i);
	whole = shim_error_log_read(NULL, text, sizeof(text));
	for (size_t size = 1; size <= whole + 1; size++) {
		size_t n;

		memset(text, 'x', sizeof(text));
		n = shim_error_log_read(NULL, text, size);
		check(n < size);
		check_eq(strlen(text), n);
		check_eq(text[size], 'x');
		check(!n || text[n - 1] == '\n');
		if (size > 200)
			check(has(9));
	}
	check_eq(count_lines(), 10);
}

TEST(a_long_message_is_one_line)
{
	static char message[4096];

	memset(message, 'm', sizeof(message) - 1);
	shim_error_log_position();
	shim_error_log_add(CU_LOG_LEVEL_WARNING, message);
	shim_error_log_read(NULL, text, sizeof(text));
	check_eq(count_lines(), 1);
	check(strstr(text, "[CUDA][W] mmm"));
}

static int n_called;

static void called(void *data, CUlogLevel level, char *message, size_t length)
{
	CUlogIterator at = 0;

	n_called += *(int *)data;
	check_eq(level, CU_LOG_LEVEL_ERROR);
	check_eq(strlen(message), length);
	/* It may use the log. */
	check(shim_error_log_read(&at, text, sizeof(text)) > 0);
}

TEST(functions_are_called_until_they_are_unregistered)
{
	CUlogsCallbackHandle first, second;
	int one = 1, ten = 10;

	check(shim_error_log_listen(called, &one, &first));
	check(shim_error_log_listen(called, &ten, &second));
	add(1);
	check_eq(n_called, 11);
	check(shim_error_log_stop(first));
	check(!shim_error_log_stop(first));
	add(2);
	check_eq(n_called, 21);
	check(shim_error_log_stop(second));
	check(!shim_error_log_stop(NULL));
	add(3);
	check_eq(n_called, 21);
}
