/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenACC: a loop over an array; its launches give their parameters another way than
 * OpenMP's do
 */

#include <openacc.h>

#include "offload.h"

#define N 4096

int main(void)
{
	int is_on_host = 1;
	size_t n_wrong = 0;
	float a[N];

	for (int i = 0; i < N; i++)
		a[i] = (float)i;
#pragma acc parallel loop copy(a)
	for (int i = 0; i < N; i++)
		a[i] = a[i] * 2 + 1;
#pragma acc parallel copyout(is_on_host)
	is_on_host = acc_on_device(acc_device_host);
	for (int i = 0; i < N; i++)
		n_wrong += a[i] != i * 2 + 1;
	return offload_result(
		"loop", acc_get_num_devices(acc_device_nvidia), is_on_host, n_wrong);
}
