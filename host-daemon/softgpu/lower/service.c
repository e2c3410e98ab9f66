/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Translate: calls of the device runtime
 *
 * A module may declare such a function in any way; here its parameters must have the
 * sizes that the handler counts on.
 */

#include <string.h>

#include "exec/service.h"
#include "lower/lower.h"

static const struct service {
	const char *name;
	const char *sizes;
} services[_SERVICE_N] = {
#define X(_number, _name, _sizes, _in_size) [SERVICE_##_number] = { _name, _sizes },
	SOFTGPU_SERVICES(X)
#undef X
};

static uint32_t size_of(char letter)
{
	switch (letter) {
	case 'w':
		return 4;
	case 'x':
		return 8;
	case 'd':
		return 12;
	case 'e':
		return 24;
	default:
		return 32;
	}
}

/* Returns: what follows the prefix, or NULL. */
static const char *after_prefix(const char *name)
{
	static const char *const prefixes[] = { SERVICE_PREFIX, SERVICE_PREFIX_PLAIN };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return name + strlen(prefixes[i]);
	return NULL;
}

/* Returns: the service of that name, with its flag, or SERVICE_NONE. */
static uint32_t find(const char *name)
{
	size_t length, suffix = strlen(SERVICE_SUFFIX);
	uint32_t flag = 0;

	name = after_prefix(name);
	if (!name)
		return SERVICE_NONE;
	length = strlen(name);
	if (length > suffix && !strcmp(name + length - suffix, SERVICE_SUFFIX)) {
		length -= suffix;
		flag = SERVICE_PER_THREAD;
	}
	for (uint32_t i = 0; i < _SERVICE_N; i++)
		if (strlen(services[i].name) == length &&
			!memcmp(services[i].name, name, length))
			return i | flag;
	return SERVICE_NONE;
}

bool lower_is_service(const char *name)
{
	return find(name) != SERVICE_NONE;
}

static bool fits(const struct ptx_function *function, const char *sizes)
{
	uint32_t n = 0;

	for (; *sizes != ':'; sizes++, n++)
		if (n == function->n_params || function->params[n].is_register ||
			function->params[n].size != size_of(*sizes))
			return false;
	return n == function->n_params && function->n_returns == 1 &&
	       !function->returns[0].is_register &&
	       function->returns[0].size == size_of(sizes[1]);
}

/* What is only weak is for programs without the device runtime: it says so to them. */
uint32_t lower_service_of(const struct ptx_function *function)
{
	uint32_t service = find(function->name);

	if (service == SERVICE_NONE ||
		(function->is_defined && function->linkage == PTX_LINKAGE_WEAK) ||
		!fits(function, services[service & ~SERVICE_PER_THREAD].sizes))
		return SERVICE_NONE;
	return service;
}
