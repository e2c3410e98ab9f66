/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of mappings of this process
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "test.h"

#include "vgpu/cleanup.h"

#include "memory/mapping.h"

TEST(a_line_is_taken_apart)
{
	char line[] =
		"7f00a000-7f00c000 r-xp 00003000 fe:0a 1234567    /usr/lib/a b.so\n";
	struct shim_mapping mapping;

	check(shim_mapping_parse(line, &mapping));
	check_eq(mapping.start, 0x7f00a000);
	check_eq(mapping.end, 0x7f00c000);
	check_str(mapping.permissions, "r-xp");
	check_eq(mapping.offset, 0x3000);
	check_eq(mapping.major, 0xfe);
	check_eq(mapping.minor, 0x0a);
	check_eq(mapping.inode, 1234567);
	check_str(mapping.path, "/usr/lib/a b.so");
}

TEST(a_mapping_without_a_file_has_no_path)
{
	char anonymous[] = "1000-2000 rw-p 00000000 00:00 0 \n";
	char heap[] = "1000-2000 rw-p 00000000 00:00 0          [heap]\n";
	struct shim_mapping mapping;

	check(shim_mapping_parse(anonymous, &mapping));
	check_str(mapping.path, "");
	check_eq(mapping.inode, 0);
	check(shim_mapping_parse(heap, &mapping));
	check_str(mapping.path, "[heap]");
}

TEST(other_text_is_no_line)
{
	char empty[] = "", text[] = "Size: 4 kB\n", cut[] = "1000-2000 rw-p 000000";
	struct shim_mapping mapping;

	check(!shim_mapping_parse(empty, &mapping));
	check(!shim_mapping_parse(text, &mapping));
	check(!shim_mapping_parse(cut, &mapping));
}

TEST(the_list_has_the_memory_of_this_process)
{
	_vgpu_cleanup_(shim_mapping_closep) FILE *file = NULL;
	_vgpu_cleanup_(vgpu_freep) char *line = NULL;
	void *memory = mmap(
		NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const uint64_t address = (uint64_t)(uintptr_t)memory;
	struct shim_mapping mapping;
	bool is_found = false;
	size_t room = 0;

	check(memory != MAP_FAILED);
	file = shim_mapping_open();
	check(file != NULL);
	while (!is_found && getline(&line, &room, file) > 0) {
		check(shim_mapping_parse(line, &mapping));
		is_found = mapping.start <= address && address + 8192 <= mapping.end;
	}
	check(is_found);
	check_str(mapping.permissions, "rw-s");
}
