/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options: the command line of a worker
 */

#include <getopt.h>

#include "test.h"
#include "worker/run/options.h"

#define ARGS_MAX 16

static struct options options;

static int parse(const char *const *arguments)
{
	char *argv[ARGS_MAX + 1] = { "vgpu-worker" };
	int argc = 1;

	for (; *arguments; arguments++)
		argv[argc++] = (char *)*arguments;
	/* Restarts getopt_long(). */
	optind = 0;
	return options_parse(&options, argc, argv);
}

#define PARSE(...) parse((const char *const[]){ __VA_ARGS__, NULL })
#define PARSE_MORE(...) PARSE("--control", "3", "--stats", "4", __VA_ARGS__)

TEST(descriptors_are_required)
{
	check_eq(PARSE("--control", "3", "--stats", "4"), 0);
	check_eq(options.control, 3);
	check_eq(options.stats, 4);
	check_eq(PARSE("--control", "3"), OPTIONS_E_INVALID);
	check_eq(PARSE("--stats", "4"), OPTIONS_E_INVALID);
	check_eq(PARSE("--control", "-1", "--stats", "4"), OPTIONS_E_INVALID);
	check_eq(PARSE("--control", "2147483648", "--stats", "4"), OPTIONS_E_INVALID);
}

TEST(numbers_are_whole_and_within_their_field)
{
	check_eq(PARSE_MORE("--uid", "2147483647"), 0);
	check_eq(options.sandbox.uid, 2147483647);
	check_eq(PARSE_MORE("--uid", "2147483648"), OPTIONS_E_INVALID);
	check_eq(PARSE_MORE("--softgpu-threads", "4294967295"), 0);
	check_eq(options.driver.softgpu.n_threads, UINT32_MAX);
	check_eq(PARSE_MORE("--softgpu-threads", "4294967296"), OPTIONS_E_INVALID);
	check_eq(PARSE_MORE("--softgpu-threads", "1x"), OPTIONS_E_INVALID);
	check_eq(PARSE_MORE("--softgpu-threads", ""), OPTIONS_E_INVALID);
	check_eq(PARSE_MORE("--softgpu-timeout", "250"), 0);
	check_eq(options.driver.softgpu.timeout_ms, 250);
	check_eq(PARSE_MORE("--softgpu-devices", "2"), 0);
	check_eq(options.driver.softgpu.n_devices, 2);
	check_eq(PARSE_MORE("--devices", "2,0"), 0);
	check_str(options.driver.softgpu.visible, "2,0");
	check_eq(PARSE_MORE("--softgpu-memory", "18446744073709551615"), 0);
	check_eq(options.driver.softgpu.memory, UINT64_MAX);
	check_eq(PARSE_MORE("--softgpu-memory", "18446744073709551616"),
		OPTIONS_E_INVALID);
}

TEST(words_are_those_of_the_help)
{
	check_eq(PARSE_MORE("--softgpu-schedule", "long"), 0);
	check_eq(options.driver.softgpu.schedule, SOFTGPU_CONFIG_LONG);
	check_eq(PARSE_MORE("--softgpu-schedule", "fair"), 0);
	check_eq(options.driver.softgpu.schedule, SOFTGPU_CONFIG_FAIR);
	check_eq(PARSE_MORE("--softgpu-schedule", "short"), OPTIONS_E_INVALID);
	check_eq(PARSE_MORE("--softgpu-cc", "12.1"), 0);
	check_eq(options.driver.softgpu.cc, 121);
	check_eq(PARSE_MORE("--softgpu-cc", "12"), OPTIONS_E_INVALID);
	check_eq(PARSE_MORE("--softgpu-cc", "12.10"), OPTIONS_E_INVALID);
	check_eq(PARSE_MORE("--softgpu-cc", "9.0x"), OPTIONS_E_INVALID);
	check_eq(PARSE_MORE("--log-level", "loud"), OPTIONS_E_INVALID);
}

TEST(the_sandbox_is_on_unless_it_is_switched_off)
{
	check_eq(PARSE_MORE("--sandbox", "yes"), 0);
	check(!options.sandbox.off && !options.sandbox.unprivileged);
	check_eq(PARSE_MORE("--driver", "soft"), 0);
	check(!options.sandbox.off && !options.sandbox.unprivileged);
	check_eq(PARSE_MORE("--sandbox", "no"), 0);
	check(options.sandbox.off);
	check_eq(PARSE_MORE("--sandbox", "maybe"), OPTIONS_E_INVALID);
	check_eq(PARSE_MORE("--meter", "yes"), 0);
	check_eq(options.meter, true);
	check_eq(PARSE_MORE("--meter", "on"), OPTIONS_E_INVALID);
}

TEST(a_worker_ends_with_its_parent_unless_it_is_to_outlive_it)
{
	check_eq(PARSE_MORE("--driver", "soft"), 0);
	check(!options.sandbox.outlives);
	check_eq(PARSE_MORE("--outlive", "yes"), 0);
	check(options.sandbox.outlives);
	check_eq(PARSE_MORE("--outlive", "no"), 0);
	check(!options.sandbox.outlives);
	check_eq(PARSE_MORE("--outlive", "perhaps"), OPTIONS_E_INVALID);
}

TEST(unknown_arguments_are_refused)
{
	check_eq(PARSE_MORE("--turbo"), OPTIONS_E_INVALID);
	check_eq(PARSE_MORE("more"), OPTIONS_E_INVALID);
	check_eq(PARSE("--help"), OPTIONS_E_HELP);
}
