/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory: reserved addresses, and what is mapped at them
 */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mem/virtual.h"
#include "test.h"

#define LIMIT (64ull << 20)
#define UNIT VIRTUAL_GRANULARITY

static struct memory memory;

static void begin(uint32_t n_devices)
{
	check_eq(memory_init(&memory, n_devices, LIMIT, 0, 0, 0, 0), 0);
}

static void end(void)
{
	memory_deinit(&memory);
}

static bool may(uint32_t device, uint64_t address, uint64_t size, unsigned int access)
{
	struct softgpu_space space;

	memory_space(&memory, device, 1u << device, &space);
	return softgpu_space_check_range(&space, address, size, access);
}

static uint64_t used(uint32_t device)
{
	uint64_t free, total;

	memory_info(&memory, device, &free, &total);
	return total - free;
}

static uint64_t must_reserve(uint64_t size)
{
	uint64_t address;

	check_eq(virtual_reserve(&memory, size, 0, 0, &address), 0);
	check_eq(address % UNIT, 0);
	return address;
}

static struct physical *must_create(uint64_t size)
{
	const struct physical template = { .size = size };
	struct physical *physical;

	check_eq(physical_new(&memory, &template, &physical), 0);
	return physical;
}

static char *bytes(uint64_t address)
{
	return (char *)(uintptr_t)address;
}

TEST(memory_is_accessible_once_it_is_mapped_and_access_is_given)
{
	struct physical *physical;
	uint64_t address;

	begin(1);
	address = must_reserve(4 * UNIT);
	physical = must_create(2 * UNIT);
	check(!may(0, address, 1, SOFTGPU_READ));
	check_eq(virtual_map(&memory, address, 2 * UNIT, 0, physical), 0);
	check(!may(0, address, 1, SOFTGPU_READ));
	check(!memory_covers(&memory, 0, SOFTGPU_READ, address, 1));

	check_eq(virtual_set_access(&memory, address, 2 * UNIT, 0, SOFTGPU_READ), 0);
	check(may(0, address, 2 * UNIT, SOFTGPU_READ));
	check(!may(0, address, 1, SOFTGPU_WRITE));
	check(memory_covers(&memory, 0, SOFTGPU_READ, address, 2 * UNIT));
	check(!memory_covers(&memory, 0, SOFTGPU_WRITE, address, 1));

	check_eq(virtual_set_access(
			 &memory, address, 2 * UNIT, 0, SOFTGPU_READ | SOFTGPU_WRITE),
		0);
	check(may(0, address, 2 * UNIT, SOFTGPU_WRITE));
	check(!may(0, address, 2 * UNIT + 1, SOFTGPU_READ));
	check(memory_covers(&memory, 0, SOFTGPU_WRITE, address, 2 * UNIT));
	check(!memory_covers(&memory, 0, SOFTGPU_WRITE, address, 2 * UNIT + 1));

	check_eq(virtual_unmap(&memory, address, 2 * UNIT), 0);
	check(!may(0, address, 1, SOFTGPU_READ));
	physical_unref(&memory, physical);
	check_eq(virtual_free(&memory, address, 4 * UNIT), 0);
	end();
}

TEST(contents_stay_while_nothing_is_mapped_and_show_at_each_address)
{
	struct physical *physical;
	uint64_t address;

	begin(1);
	address = must_reserve(4 * UNIT);
	physical = must_create(2 * UNIT);
	check_eq(virtual_map(&memory, address, 2 * UNIT, 0, physical), 0);
	strcpy(bytes(address + UNIT + 5), "contents");
	check_eq(virtual_unmap(&memory, address, 2 * UNIT), 0);
	check_eq(bytes(address + UNIT)[5], 0);

	check_eq(virtual_map(&memory, address, 2 * UNIT, 0, physical), 0);
	check_eq(virtual_map(&memory, address + 2 * UNIT, UNIT, UNIT, physical), 0);
	check_str(bytes(address + UNIT + 5), "contents");
	check_str(bytes(address + 2 * UNIT + 5), "contents");
	bytes(address + 2 * UNIT)[5] = 'C';
	check_str(bytes(address + UNIT + 5), "Contents");
	physical_unref(&memory, physical);
	end();
}

TEST(physical_memory_counts_once_until_handle_and_mappings_are_gone)
{
	struct physical *physical, *other;
	const struct physical large = { .size = LIMIT };
	uint64_t address;

	begin(1);
	address = must_reserve(4 * UNIT);
	check_eq(used(0), 0);
	physical = must_create(2 * UNIT);
	check_eq(used(0), 2 * UNIT);
	check_eq(physical_new(&memory, &large, &other), MEMORY_E_FULL);
	check_eq(virtual_map(&memory, address, 2 * UNIT, 0, physical), 0);
	check_eq(virtual_map(&memory, address + 2 * UNIT, 2 * UNIT, 0, physical), 0);
	check_eq(used(0), 2 * UNIT);
	physical_unref(&memory, physical);
	check_eq(virtual_unmap(&memory, address, 2 * UNIT), 0);
	check_eq(used(0), 2 * UNIT);
	check_eq(virtual_unmap(&memory, address + 2 * UNIT, 2 * UNIT), 0);
	check_eq(used(0), 0);
	check_eq(physical_new(&memory, &large, &other), 0);
	physical_unref(&memory, other);
	end();
}

TEST(memory_that_was_freed_is_zero_when_it_is_used_again)
{
	struct physical *physical;
	uint64_t address;

	begin(1);
	address = must_reserve(UNIT);
	for (int i = 0; i < 3; i++) {
		physical = must_create(UNIT);
		check_eq(virtual_map(&memory, address, UNIT, 0, physical), 0);
		for (uint64_t at = 0; at < UNIT; at += 4096)
			check_eq(bytes(address)[at], 0);
		memset(bytes(address), 'x', UNIT);
		physical_unref(&memory, physical);
		check_eq(virtual_unmap(&memory, address, UNIT), 0);
	}
	end();
}

TEST(only_reserved_addresses_are_mapped_and_only_once)
{
	struct physical *physical;
	uint64_t address;

	begin(1);
	address = must_reserve(2 * UNIT);
	physical = must_create(2 * UNIT);
	check_eq(virtual_map(&memory, address + UNIT, 2 * UNIT, 0, physical),
		MEMORY_E_OUTSIDE);
	check_eq(virtual_map(&memory, address - UNIT, UNIT, 0, physical),
		MEMORY_E_OUTSIDE);
	check_eq(virtual_map(&memory, address + 4096, UNIT, 0, physical), -EINVAL);
	check_eq(virtual_map(&memory, address, UNIT, UNIT / 2, physical), -EINVAL);
	check_eq(virtual_map(&memory, address, UNIT, 2 * UNIT, physical), -EINVAL);
	check_eq(virtual_map(&memory, address, UNIT, -UNIT, physical), -EINVAL);
	check_eq(virtual_map(&memory, address, 0, 0, physical), -EINVAL);
	check_eq(virtual_map(&memory, address + UNIT, UNIT, 0, physical), 0);
	check_eq(virtual_map(&memory, address, 2 * UNIT, 0, physical), MEMORY_E_TWICE);
	check_eq(virtual_map(&memory, address + UNIT, UNIT, 0, physical), MEMORY_E_TWICE);
	check_eq(virtual_map(&memory, address, UNIT, 0, physical), 0);
	physical_unref(&memory, physical);
	end();
}

TEST(whole_mappings_are_unmapped_and_whole_reservations_freed)
{
	struct physical *physical;
	uint64_t address;

	begin(1);
	address = must_reserve(6 * UNIT);
	physical = must_create(2 * UNIT);
	check_eq(virtual_map(&memory, address, 2 * UNIT, 0, physical), 0);
	check_eq(virtual_map(&memory, address + 2 * UNIT, UNIT, 0, physical), 0);
	check_eq(virtual_map(&memory, address + 4 * UNIT, UNIT, 0, physical), 0);
	check_eq(virtual_unmap(&memory, address, UNIT), MEMORY_E_UNKNOWN);
	check_eq(virtual_unmap(&memory, address + UNIT, UNIT), MEMORY_E_UNKNOWN);
	check_eq(virtual_unmap(&memory, address, 4 * UNIT), MEMORY_E_UNKNOWN);
	check_eq(virtual_unmap(&memory, address + 3 * UNIT, UNIT), MEMORY_E_UNKNOWN);
	check_eq(virtual_unmap(&memory, address, 0), MEMORY_E_UNKNOWN);
	check_eq(virtual_set_access(&memory, address, UNIT, 0, SOFTGPU_READ),
		MEMORY_E_UNKNOWN);
	check_eq(virtual_free(&memory, address, 6 * UNIT), MEMORY_E_USED);
	check_eq(virtual_unmap(&memory, address, 3 * UNIT), 0);
	check_eq(virtual_unmap(&memory, address + 4 * UNIT, UNIT), 0);
	check_eq(virtual_free(&memory, address, 3 * UNIT), MEMORY_E_UNKNOWN);
	check_eq(virtual_free(&memory, address + UNIT, 5 * UNIT), MEMORY_E_UNKNOWN);
	check_eq(virtual_free(&memory, address, 6 * UNIT), 0);
	check_eq(virtual_free(&memory, address, 6 * UNIT), MEMORY_E_UNKNOWN);
	physical_unref(&memory, physical);
	end();
}

TEST(hints_and_alignments_of_reservations_are_honoured)
{
	uint64_t first, second, third;

	begin(1);
	first = must_reserve(4 * UNIT);
	check_eq(virtual_free(&memory, first, 4 * UNIT), 0);
	check_eq(virtual_reserve(&memory, UNIT, 0, first + 2 * UNIT, &second), 0);
	check_eq(second, first + 2 * UNIT);
	/* Taken: another place. */
	check_eq(virtual_reserve(&memory, UNIT, 0, first + 2 * UNIT, &third), 0);
	check(third != second);
	/* Outside of all windows, and not aligned. */
	check_eq(virtual_reserve(&memory, UNIT, 0, 0x1000, &third), 0);
	check_eq(virtual_reserve(&memory, UNIT, 0, first + UNIT / 2, &third), 0);
	check_eq(third % UNIT, 0);
	check_eq(virtual_reserve(&memory, UNIT, 64 * UNIT, 0, &third), 0);
	check_eq(third % (64 * UNIT), 0);
	check_eq(virtual_reserve(&memory, UNIT, 3 * UNIT, 0, &third), -EINVAL);
	check_eq(virtual_reserve(&memory, UNIT / 2, 0, 0, &third), -EINVAL);
	check_eq(virtual_reserve(&memory, 0, 0, 0, &third), -EINVAL);
	check_eq(virtual_reserve(&memory, -UNIT, 0, 0, &third), MEMORY_E_FULL);
	check_eq(virtual_reserve(&memory, 1ull << 45, 0, 0, &third), MEMORY_E_FULL);
	end();
}

TEST(an_allocation_is_no_reservation_and_the_reverse)
{
	struct range range = { .kind = RANGE_DEVICE, .size = 2 * UNIT };
	struct physical *physical;
	uint64_t allocated, reserved;

	begin(1);
	physical = must_create(UNIT);
	reserved = must_reserve(2 * UNIT);
	check_eq(memory_alloc(&memory, &range, &allocated), 0);
	check(allocated >= reserved + 2 * UNIT || allocated + 2 * UNIT <= reserved);
	check(virtual_map(&memory, (allocated + UNIT - 1) / UNIT * UNIT, UNIT, 0,
		      physical) == MEMORY_E_OUTSIDE);
	check_eq(virtual_unmap(&memory, allocated, 2 * UNIT), MEMORY_E_UNKNOWN);
	check_eq(virtual_map(&memory, reserved, UNIT, 0, physical), 0);
	check_eq(memory_free(&memory, reserved, MEMORY_KIND(RANGE_DEVICE)),
		MEMORY_E_UNKNOWN);
	physical_unref(&memory, physical);
	end();
}

TEST(access_is_each_devices_own)
{
	struct physical *physical;
	uint64_t address;

	begin(3);
	address = must_reserve(UNIT);
	physical = must_create(UNIT);
	check_eq(virtual_map(&memory, address, UNIT, 0, physical), 0);
	check_eq(virtual_set_access(
			 &memory, address, UNIT, 1, SOFTGPU_READ | SOFTGPU_WRITE),
		0);
	check(!may(0, address, 1, SOFTGPU_READ));
	check(may(1, address, UNIT, SOFTGPU_WRITE));
	check(!may(2, address, 1, SOFTGPU_READ));
	check(!memory_covers(&memory, 0, SOFTGPU_READ, address, 1));
	check(memory_covers(&memory, 1, SOFTGPU_WRITE, address, UNIT));
	check_eq(used(0), UNIT);
	check_eq(used(1), 0);
	physical_unref(&memory, physical);
	end();
}

TEST(checked_memory_is_open_to_devices_with_access_only)
{
	struct physical *physical;
	uint64_t address;

	memory.is_checked = false;
	begin(2);
	memory.is_checked = true;
	address = must_reserve(UNIT);
	physical = must_create(UNIT);
	check_eq(virtual_map(&memory, address, UNIT, 0, physical), 0);
	check_eq(virtual_set_access(
			 &memory, address, UNIT, 1, SOFTGPU_READ | SOFTGPU_WRITE),
		0);
	check(may(1, address, UNIT, SOFTGPU_WRITE));
	check(!may(0, address, 1, SOFTGPU_READ));
	physical_unref(&memory, physical);
	end();
}

TEST(shared_memory_has_a_file_to_itself_and_the_rest_has_one)
{
	const struct physical shared = { .size = UNIT, .is_shared = true };
	struct physical *physicals[4];

	begin(1);
	physicals[0] = must_create(UNIT);
	physicals[1] = must_create(UNIT);
	check_eq(physicals[0]->fd, physicals[1]->fd);
	check(physicals[0]->offset != physicals[1]->offset);
	check_eq(physical_new(&memory, &shared, &physicals[2]), 0);
	check_eq(physical_new(&memory, &shared, &physicals[3]), 0);
	check(physicals[2]->fd != physicals[3]->fd);
	check(physicals[2]->fd != physicals[0]->fd);
	check_eq(physicals[3]->offset, 0);
	for (int i = 0; i < 4; i++)
		physical_unref(&memory, physicals[i]);
	end();
}

TEST(a_given_file_is_used_within_its_bounds_and_stays_open)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct physical *first, *second, *third;
	const struct physical template = { .size = UNIT };
	struct stat st;

	check(fd >= 0 && !ftruncate(fd, 4096 + 2 * UNIT));
	begin(1);
	memory.physicals.fd = fd;
	memory.physicals.offset = 4096;
	memory.physicals.size = 2 * UNIT;
	first = must_create(UNIT);
	second = must_create(UNIT);
	check_eq(first->fd, fd);
	check_eq(first->offset, 4096);
	check_eq(second->offset, 4096 + UNIT);
	check_eq(physical_new(&memory, &template, &third), -ENOMEM);
	physical_unref(&memory, first);
	third = must_create(UNIT);
	check_eq(third->offset, 4096);
	physical_unref(&memory, second);
	physical_unref(&memory, third);
	end();
	check_eq(fstat(fd, &st), 0);
	close(fd);
}

TEST(without_descriptors_there_is_no_memory)
{
	const struct physical template = { .size = UNIT };
	struct rlimit limit, none;
	struct physical *physical;

	begin(1);
	check_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	check_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	check_eq(physical_new(&memory, &template, &physical), -EMFILE);
	check_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	check_eq(used(0), 0);
	end();
}

TEST(host_memory_does_not_count)
{
	const struct physical host = { .size = 2 * LIMIT, .is_host = true };
	struct physical *physical;

	begin(1);
	check_eq(physical_new(&memory, &host, &physical), 0);
	check_eq(used(0), 0);
	physical_unref(&memory, physical);
	end();
}

/* The caller's own memory is there, as long as it is registered. */
TEST(memory_at_reserved_addresses_can_be_registered)
{
	struct range range = { .size = UNIT };
	struct physical *physical;
	uint64_t address;

	begin(2);
	address = must_reserve(3 * UNIT);
	physical = must_create(UNIT);
	range.address = address + 3 * UNIT;
	check_eq(memory_register(&memory, &range), MEMORY_E_OUTSIDE);
	range.address = address + 2 * UNIT + 4096;
	check_eq(memory_register(&memory, &range), MEMORY_E_OUTSIDE);
	range.address = address + UNIT;
	check(!may(0, range.address, 1, SOFTGPU_READ));
	check_eq(memory_register(&memory, &range), 0);
	for (uint32_t i = 0; i < 2; i++) {
		check(may(i, range.address, UNIT, SOFTGPU_READ | SOFTGPU_WRITE));
		check(memory_covers(&memory, i, SOFTGPU_WRITE, range.address, UNIT));
	}
	check_eq(memory_register(&memory, &range), MEMORY_E_TWICE);
	check_eq(virtual_map(&memory, range.address, UNIT, 0, physical), MEMORY_E_TWICE);
	check_eq(virtual_unmap(&memory, range.address, UNIT), MEMORY_E_UNKNOWN);
	check_eq(virtual_free(&memory, address, 3 * UNIT), MEMORY_E_USED);
	check_eq(memory_unregister(&memory, range.address), 0);
	check(!may(0, range.address, 1, SOFTGPU_READ));
	check(!may(1, range.address, 1, SOFTGPU_READ));
	check_eq(virtual_map(&memory, range.address, UNIT, 0, physical), 0);
	check_eq(memory_register(&memory, &range), MEMORY_E_USED);
	check_eq(virtual_unmap(&memory, range.address, UNIT), 0);
	physical_unref(&memory, physical);
	check_eq(virtual_free(&memory, address, 3 * UNIT), 0);
	end();
}
