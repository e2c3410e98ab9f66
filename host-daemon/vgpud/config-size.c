/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes in the configuration: a number and an optional unit
 *
 * A separate file because a fuzz target is built with a faulty one.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vgpud/config.h"

int config_parse_size(const char *string, uint64_t *sizep)
{
	static const char units[] = "KMGT";
	unsigned long long number;
	unsigned int shift = 0;
	const char *unit;
	char *end;

	if (*string < '0' || *string > '9')
		return CONFIG_E_INVALID;
	errno = 0;
	number = strtoull(string, &end, 10);
	if (errno)
		return CONFIG_E_INVALID;
	if (*end) {
		unit = strchr(units, *end);
		if (!unit || end[1])
			return CONFIG_E_INVALID;
		shift = 10 * (unit - units + 1);
	}
	if (number > UINT64_MAX >> shift)
		return CONFIG_E_INVALID;
	*sizep = (uint64_t)number << shift;
	return 0;
}
