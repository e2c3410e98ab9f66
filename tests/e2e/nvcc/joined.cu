/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs of all kinds that the driver joins while the program runs: PTX, an object file
 * of nvcc's, and the library of the device runtime
 *
 *	joined PTX OBJECT LIBRARY
 */

#include "driver.h"

#define N 64

static size_t n_wrong;

static void expect(const char *what, int found, int expected)
{
	if (found == expected)
		return;
	n_wrong++;
	printf("%s: %d instead of %d\n", what, found, expected);
}

int main(int argc, char **argv)
{
	static const CUjitInputType types[] = { CU_JIT_INPUT_PTX, CU_JIT_INPUT_OBJECT,
		CU_JIT_INPUT_LIBRARY };
	decltype(cuLinkCreate_v2) *link_create;
	decltype(cuLinkAddFile_v2) *add_file;
	decltype(cuLinkComplete) *complete;
	decltype(cuLinkDestroy) *link_destroy;
	decltype(cuModuleLoadData) *load;
	decltype(cuModuleGetFunction) *get_function;
	decltype(cuLaunchKernel) *launch;
	int *device, host[N + 1];
	CUfunction function;
	CUlinkState link;
	CUmodule module;
	size_t size;
	void *image, *params[] = { &device };

	if (argc != 4)
		return EXIT_FAILURE;
	CUDA(cudaMalloc(&device, sizeof(host)));
	CUDA(cudaMemset(device, 0, sizeof(host)));
	find(link_create, "cuLinkCreate");
	find(add_file, "cuLinkAddFile");
	find(complete, "cuLinkComplete");
	find(link_destroy, "cuLinkDestroy");
	find(load, "cuModuleLoadData");
	find(get_function, "cuModuleGetFunction");
	find(launch, "cuLaunchKernel");

	/* An input that is of another kind. */
	DRIVER(link_create(0, NULL, NULL, &link));
	expect("PTX as an object",
		add_file(link, CU_JIT_INPUT_OBJECT, argv[1], 0, NULL, NULL),
		CUDA_ERROR_INVALID_IMAGE);
	expect("an object as a library",
		add_file(link, CU_JIT_INPUT_LIBRARY, argv[2], 0, NULL, NULL),
		CUDA_ERROR_INVALID_IMAGE);
	DRIVER(link_destroy(link));

	/* Without the object a function is missing. */
	DRIVER(link_create(0, NULL, NULL, &link));
	DRIVER(add_file(link, types[0], argv[1], 0, NULL, NULL));
	expect("a part that is missing", complete(link, &image, &size),
		CUDA_ERROR_INVALID_PTX);
	DRIVER(link_destroy(link));

	DRIVER(link_create(0, NULL, NULL, &link));
	for (int i = 0; i < 3; i++)
		DRIVER(add_file(link, types[i], argv[i + 1], 0, NULL, NULL));
	DRIVER(complete(link, &image, &size));
	DRIVER(load(&module, image));
	DRIVER(link_destroy(link));
	DRIVER(get_function(&function, module, "parent"));
	DRIVER(launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		expect("a word", host[i], i * i + 1);
	/* The text of cudaSuccess comes from the library. */
	expect("the text of an error", host[N], 'n');
	return result("joined", N + 1, n_wrong);
}
