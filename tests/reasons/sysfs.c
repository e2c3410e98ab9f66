/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks for a vGPU device in a folder made to look like /sys/bus/pci/devices:
 * "sysfs FOLDER" prints what cuInit would, and the code
 */

#include <errno.h>
#include <stdio.h>

#include "wire/reason.h"
#include "wire/transport.h"

int main(int argc, char **argv)
{
	struct shim_transport transport = { .shm_fd = -1, .socket_fd = -1 };
	int r;

	if (argc != 2)
		return 2;
	shim_reason_setup();
	r = shim_transport_sysfs_open(&transport, argv[1]);
	if (r)
		shim_reason_tell_init(r == -EPROTO ? CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
						   : CUDA_ERROR_NO_DEVICE,
			"nothing was noted");
	printf("code %d\n", !r		   ? CUDA_SUCCESS
			    : r == -EPROTO ? CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
					   : CUDA_ERROR_NO_DEVICE);
	return 0;
}
