/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenMP: arrays go to the device, a sum comes back
 */

#include <omp.h>

#include "offload.h"

#define N 1000

int main(void)
{
	double a[N], b[N], c[N], sum = 0, expected = 0;
	int is_on_host = 1;
	size_t n_wrong = 0;

	for (int i = 0; i < N; i++) {
		a[i] = i;
		b[i] = 2 * i;
		c[i] = -1;
		expected += a[i] * b[i];
	}
#pragma omp target map(from : is_on_host)
	is_on_host = omp_is_initial_device();
#pragma omp target teams distribute parallel for map(to : a, b) map(from : c) \
	map(tofrom : sum) reduction(+ : sum)
	for (int i = 0; i < N; i++) {
		c[i] = a[i] + b[i];
		sum += a[i] * b[i];
	}
	for (int i = 0; i < N; i++)
		n_wrong += c[i] != 3 * i;
	n_wrong += sum != expected;
	return offload_result("sum", omp_get_num_devices(), is_on_host, n_wrong);
}
