/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hook: a build without libvirt
 */

#include "ctl/ctl.h"

enum ctl_status ctl_hook(const struct ctl_options *options, char **arguments)
{
	return ctl_fail(CTL_FAILED,
		"this vgpuctl was built without libvirt, and is no hook for %s",
		arguments[0]);
}
