/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Domain: the device of vgpud in a domain of libvirt
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ctl/ctl.h"

struct domain; /* a connection to libvirt and a domain of it */

/* Finds a domain; the reason of a failure is printed. uri NULL: libvirt's default.
 * Return: CTL_OK, CTL_NO_VM or CTL_FAILED. */
enum ctl_status domain_open(struct domain **domainp, const char *uri, const char *name);
void domain_close(struct domain *domain);

bool domain_is_active(const struct domain *domain);
bool domain_is_persistent(const struct domain *domain);

/* The group of QEMU's processes, (gid_t)-1: they have the caller's. */
gid_t domain_group(const struct domain *domain);

/* Whether it has a device at this socket: the running one, or the persistent one. */
enum ctl_status domain_has_device(
	const struct domain *domain, bool is_live, const char *socket, bool *hasp);

/* Copies the path of the first device whose socket is in the same folder as that one, of
 * the persistent domain or the running one. Return: whether there is one. */
bool domain_find_socket(
	const struct domain *domain, const char *beside, char *path, size_t size);

/* Whether a device of that size has a place, as far as the description tells; the reason
 * is printed. Return: CTL_OK, CTL_REFUSED or CTL_FAILED. */
enum ctl_status domain_check(const struct domain *domain, bool is_live, uint64_t size);

/* Adds the device, or removes it and waits until the guest has let it go. */
enum ctl_status domain_attach(
	const struct domain *domain, bool is_live, const char *socket);
enum ctl_status domain_detach(
	const struct domain *domain, bool is_live, const char *socket);
