/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planted bug: a size that is too large for 64 bits becomes a small one
 *
 * Built instead of host-daemon/vgpud/config-size.c into the target that must find it.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vgpud/config.h"

int config_parse_size(const char *string, uint64_t *sizep)
{
	static const char units[] = "KMGT";
	unsigned long long number;
	const char *unit;
	char *end;

	if (*string < '0' || *string > '9')
		return -EINVAL;
	errno = 0;
	number = strtoull(string, &end, 10);
	if (errno)
		return -EINVAL;
	unit = *end ? strchr(units, *end) : NULL;
	if (*end && (!unit || end[1]))
		return -EINVAL;
	*sizep = unit ? (uint64_t)number << 10 * (unit - units + 1) : number;
	return 0;
}
