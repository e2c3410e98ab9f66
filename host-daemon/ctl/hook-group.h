/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Hook group: the group of libvirt's QEMU processes, without asking libvirt
 */

#include <sys/types.h>

#define HOOK_QEMU_CONF "/etc/libvirt/qemu.conf"

/* Return: the group of that name or, also after a plus sign, number, as libvirt takes it;
 * (gid_t)-1: there is none. */
gid_t hook_group_find(const char *name);

/*
 * Return: the group that libvirt's configuration of QEMU names, else that of the
 * distribution's user for QEMU; (gid_t)-1 if there is none.
 */
gid_t hook_group(const char *path);
