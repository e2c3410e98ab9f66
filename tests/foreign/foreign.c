/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu as a driver that the worker cannot configure, like NVIDIA's
 *
 * It exports the Driver API alone. It puts variables of modules outside the guest's
 * window, and managed variables where no guest can access them; the worker has to place
 * device memory in the window by cuMemAddressReserve and cuMemMap. softgpu divides its
 * addresses among what its devices share, which comes first, and each device: the first
 * part is the device part of the window, and the second is behind the window.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softgpu.h"

#define N_DEVICES 2u
/* The second candidate for the window, with 256 MiB of shared memory in front, as the
 * programs are run with. */
#define WINDOW 0x550000000000ull
#define WINDOW_SIZE (320ull << 30)
#define SHARED_MEMORY (256ull << 20)
#define MEMORY (16ull << 30)
#define N_FILES 200u
#define PART (WINDOW_SIZE - SHARED_MEMORY)

/* The sandbox that the worker enters later lets files shrink, but not grow. */
static int files[N_FILES];
static unsigned int n_files;

static int make_large(void)
{
	int fd = memfd_create("foreign", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, MEMORY) < 0)
		abort();
	return fd;
}

static int make_file(void *data, uint64_t size)
{
	unsigned int i = __atomic_fetch_add(&n_files, 1, __ATOMIC_RELAXED);

	(void)data;
	if (i >= N_FILES || ftruncate(files[i], (off_t)(size + SOFTGPU_LABEL_SIZE)) < 0 ||
		fcntl(files[i], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return -1;
	return files[i];
}

static __attribute__((__constructor__)) void place(void)
{
	const char *threads = getenv("VGPU_FOREIGN_THREADS");
	/* Where it is set there is one device, for machines that share it. */
	const struct softgpu_config config = {
		.size = sizeof(config),
		.n_devices = threads ? 1 : N_DEVICES,
		.n_threads = threads ? (uint32_t)atoi(threads) : 0,
		.memory_fd = make_large(),
		.memory_size = MEMORY,
		.make_file = make_file,
	};

	for (unsigned int i = 0; i < N_FILES; i++)
		files[i] = make_large();
	if (softgpu_configure(&config) ||
		softgpu_set_window(WINDOW + SHARED_MEMORY, (N_DEVICES + 1) * PART, WINDOW,
			SHARED_MEMORY)) {
		fprintf(stderr, "softgpu cannot be configured\n");
		abort();
	}
}
