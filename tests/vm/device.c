/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the device works in a stock guest
 *
 * Runs in the guest, without the guest library: finds the ivshmem device in sysfs, maps
 * BAR0 and BAR2, and works with tests/vm/ivshmem-server.py on the host: for each vector a
 * word is written, the doorbell rung, and the word's complement must appear next to it.
 * With "plain" there is no doorbell: the program reads the host's line, which was written
 * before the start, and writes its own.
 */

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PCI_ROOT "/sys/bus/pci/devices"
#define WORDS 64
#define WAIT_SECONDS 20

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static unsigned long read_id(const char *device, const char *file)
{
	char path[512], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), PCI_ROOT "/%s/%s", device, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		fail(path);
	close(fd);
	return strtoul(text, NULL, 16);
}

static const char *find_device(void)
{
	static char name[256];
	struct dirent *entry;
	DIR *dir = opendir(PCI_ROOT);

	if (!dir)
		fail(PCI_ROOT);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (read_id(entry->d_name, "vendor") == 0x1af4 &&
			read_id(entry->d_name, "device") == 0x1110)
			snprintf(name, sizeof(name), "%s", entry->d_name);
	}
	closedir(dir);
	if (!name[0]) {
		fprintf(stderr, "no ivshmem device\n");
		exit(EXIT_FAILURE);
	}
	return name;
}

static volatile unsigned char *map_bar(const char *device, int bar, size_t *sizep)
{
	char path[512];
	struct stat st;
	void *map;
	int fd;

	snprintf(path, sizeof(path), PCI_ROOT "/%s/resource%d", device, bar);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		fail(path);
	map = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		fail(path);
	close(fd);
	*sizep = st.st_size;
	return map;
}

static int wait_for(volatile uint64_t *word, uint64_t value)
{
	struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < WAIT_SECONDS * 1000; i++) {
		if (*word == value)
			return 0;
		nanosleep(&pause, NULL);
	}
	return -1;
}

static void ring_all(volatile uint32_t *registers, volatile unsigned char *memory, int n)
{
	for (int vector = 0; vector < n; vector++) {
		volatile uint64_t *words =
			(volatile uint64_t *)(memory + WORDS + 16 * vector);

		words[0] = 0x1234567800000000 + vector;
		atomic_thread_fence(memory_order_seq_cst);
		registers[3] = 0u << 16 | vector;
		if (wait_for(&words[1], ~words[0]) < 0) {
			fprintf(stderr, "no answer to doorbell %d\n", vector);
			exit(EXIT_FAILURE);
		}
	}
}

int main(int argc, char **argv)
{
	const char *device = find_device();
	int n_vectors = argc > 1 ? atoi(argv[1]) : 0;
	volatile unsigned char *memory;
	volatile uint32_t *registers;
	size_t size, register_size;

	memory = map_bar(device, 2, &size);
	registers = (volatile uint32_t *)map_bar(device, 0, &register_size);
	printf("BAR2 %zu MiB, position %u: %.19s\n", size >> 20, registers[2],
		(const char *)memory);
	ring_all(registers, memory, n_vectors);
	memcpy((char *)memory + size - 32, "written by a guest.", 19);
	return EXIT_SUCCESS;
}
