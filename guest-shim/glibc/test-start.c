/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of programs on the C library of older guests
 */

#include "test.h"

static int n_calls;
static int n_arguments;
static char **arguments;
static char **first_environment;

__attribute__((constructor)) static void count(int argc, char **argv, char **environment)
{
	n_calls++;
	n_arguments = argc;
	arguments = argv;
	first_environment = environment;
}

TEST(constructors_are_called_once)
{
	check_eq(n_calls, 1);
}

TEST(constructors_get_the_arguments_and_the_environment)
{
	check(n_arguments >= 1);
	check(!arguments[n_arguments]);
	check(first_environment == arguments + n_arguments + 1);
}
