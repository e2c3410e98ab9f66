/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The test framework
 *
 * A test program is a C file with any number of
 *
 *	TEST(name_that_is_a_sentence)
 *	{
 *		check(x == 1);
 *	}
 *
 * linked with tests/lib/runner.c, which has main(): every test runs in a child process,
 * under a time limit, and leaves no descriptors, child processes or temporary files, or
 * fails. `PROGRAM NAME...` runs only the named tests, `PROGRAM --list`
 * lists them, `PROGRAM --no-fork NAME` runs one in the program itself, for a debugger.
 * The cases are printed in the Test Anything Protocol, version 13.
 */

#include <stdbool.h>
#include <stdio.h>

struct test {
	const char *name;
	void (*run)(void);
	unsigned int seconds; /* time limit */
} __attribute__((aligned(32)));

#define TEST_SECONDS(_name, _seconds)                                                    \
	static void test_##_name(void);                                                  \
	static const struct test test_entry_##_name                                      \
		__attribute__((used, section("test_section"))) = {                       \
			.name = #_name,                                                  \
			.run = test_##_name,                                             \
			.seconds = (_seconds),                                           \
		};                                                                       \
	static void test_##_name(void)

#define TEST(_name) TEST_SECONDS(_name, 60)

/*
 * Defined by programs whose tests rightly end with more descriptors than they began with:
 * those of a library that keeps its descriptors until the process ends.
 */
extern const bool test_keeps_descriptors __attribute__((weak));

void test_fail(const char *file, int line, const char *format, ...)
	__attribute__((__noreturn__, __format__(__printf__, 3, 4)));

/* Ends the test as skipped, with a reason that is printed. */
void test_skip(const char *format, ...)
	__attribute__((__noreturn__, __format__(__printf__, 1, 2)));

/* Skips where an emulator runs the program, as in a cross build: it lacks a feature of
 * the kernel. */
void test_skip_emulated(const char *lack);

/* A fresh directory that is removed with all it holds when the test ends. */
const char *test_tmpdir(void);

#define check(_condition)                                                                \
	do {                                                                             \
		if (!(_condition))                                                       \
			test_fail(__FILE__, __LINE__, "check failed: %s", #_condition);  \
	} while (0)

/* Compares integers and prints both. */
#define check_eq(_a, _b)                                                                 \
	do {                                                                             \
		long long a_ = (long long)(_a), b_ = (long long)(_b);                    \
		if (a_ != b_)                                                            \
			test_fail(__FILE__, __LINE__, "%s is %lld, %s is %lld", #_a, a_, \
				#_b, b_);                                                \
	} while (0)

#define check_str(_a, _b)                                                                \
	do {                                                                             \
		const char *a_ = (_a), *b_ = (_b);                                       \
		if (__builtin_strcmp(a_, b_))                                            \
			test_fail(__FILE__, __LINE__, "%s is \"%s\", not \"%s\"", #_a,   \
				a_, b_);                                                 \
	} while (0)
