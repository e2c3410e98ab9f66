/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domain: a build without libvirt
 */

#include <stddef.h>

#include "ctl/domain.h"

enum ctl_status domain_open(struct domain **domainp, const char *uri, const char *name)
{
	*domainp = NULL;
	return ctl_fail(CTL_FAILED,
		"this vgpuctl was built without libvirt, and cannot attach %s", name);
}

void domain_close(struct domain *domain)
{
}

bool domain_is_active(const struct domain *domain)
{
	return false;
}

bool domain_is_persistent(const struct domain *domain)
{
	return false;
}

gid_t domain_group(const struct domain *domain)
{
	return (gid_t)-1;
}

enum ctl_status domain_has_device(
	const struct domain *domain, bool is_live, const char *socket, bool *hasp)
{
	return CTL_FAILED;
}

bool domain_find_socket(
	const struct domain *domain, const char *beside, char *path, size_t size)
{
	return false;
}

enum ctl_status domain_check(const struct domain *domain, bool is_live, uint64_t size)
{
	return CTL_FAILED;
}

enum ctl_status domain_attach(
	const struct domain *domain, bool is_live, const char *socket)
{
	return CTL_FAILED;
}

enum ctl_status domain_detach(
	const struct domain *domain, bool is_live, const char *socket)
{
	return CTL_FAILED;
}
