/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenACC in a queue: GCC's runtime frees copied-out buffers by a callback of the stream.
 * It learns that it is in one by what the driver answers there, and defers the free.
 */

#include <openacc.h>

#include "offload.h"

#define N 4096

int main(void)
{
	int *a = malloc(N * sizeof(*a)), is_on_host = 1;
	size_t n_wrong = 0;

	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < N; i++)
			a[i] = i;
/* clang-format off */
#pragma acc enter data copyin(a[0 : N]) async(1)
#pragma acc parallel loop present(a[0 : N]) async(1)
		for (int i = 0; i < N; i++)
			a[i] = 3 * a[i] + round;
#pragma acc exit data copyout(a[0 : N]) async(1)
/* clang-format on */
#pragma acc wait
		for (int i = 0; i < N; i++)
			n_wrong += a[i] != 3 * i + round;
		n_wrong += acc_is_present(a, N * sizeof(*a)) != 0;
	}
#pragma acc parallel copyout(is_on_host)
	is_on_host = acc_on_device(acc_device_host);
	free(a);
	return offload_result(
		"queue", acc_get_num_devices(acc_device_nvidia), is_on_host, n_wrong);
}
