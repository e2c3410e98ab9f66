/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seconds: a time on the command line
 */

#include <errno.h>

#include "ctl/seconds.h"

#define SECONDS_MAX (24u * 60 * 60)

int seconds_parse(const char *text, unsigned int *secondsp)
{
	unsigned int seconds = 0;
	const char *c = text;

	for (; *c >= '0' && *c <= '9' && seconds <= SECONDS_MAX; c++)
		seconds = seconds * 10 + (unsigned int)(*c - '0');
	if (c == text || *c || seconds > SECONDS_MAX)
		return -EINVAL;
	*secondsp = seconds;
	return 0;
}
