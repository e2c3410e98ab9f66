/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times on the command line of vgpuctl
 */

#include <errno.h>

#include "ctl/ctl.h"
#include "ctl/seconds.h"
#include "test.h"

TEST(a_number_of_seconds_is_a_time)
{
	unsigned int seconds = 7;

	check_eq(seconds_parse(CTL_WAIT, &seconds), 0);
	check(seconds > 0);
	check_eq(seconds_parse("0", &seconds), 0);
	check_eq(seconds, 0);
	check_eq(seconds_parse("86400", &seconds), 0);
	check_eq(seconds, 86400);
}

TEST(what_is_none_is_refused)
{
	static const char *const wrong[] = { "", " 1", "1 ", "-1", "+1", "1s", "0x10",
		"1.5", "86401", "4294967296", "18446744073709551617",
		"99999999999999999999999" };
	unsigned int seconds = 7;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		check_eq(seconds_parse(wrong[i], &seconds), -EINVAL);
		check_eq(seconds, 7);
	}
}
