/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF note that identifies our libcuda, in valid and in damaged files
 */

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"
#include "vgpu/note.h"

/* A file of one program header that covers one note. */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Nhdr note;
	char owner[8];
	char text[16];
};

static struct image good_image(void)
{
	struct image image = {
		.header.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			ELFDATA2LSB, EV_CURRENT },
		.header.e_phoff = offsetof(struct image, segment),
		.header.e_phentsize = sizeof(Elf64_Phdr),
		.header.e_phnum = 1,
		.segment.p_type = PT_NOTE,
		.segment.p_offset = offsetof(struct image, note),
		.segment.p_filesz = sizeof(struct image) - offsetof(struct image, note),
		.segment.p_align = 4,
		.note.n_namesz = sizeof(VGPU_NOTE_OWNER),
		.note.n_descsz = 16,
		.note.n_type = VGPU_NOTE_TYPE,
		.owner = VGPU_NOTE_OWNER,
		.text = "libcuda 0.1.0",
	};

	return image;
}

static int read_image(const void *data, size_t size, char *text, size_t text_size)
{
	int fd = memfd_create("note", MFD_CLOEXEC), r;

	check(fd >= 0);
	check(write(fd, data, size) == (ssize_t)size);
	r = vgpu_note_read(fd, text, text_size);
	close(fd);
	return r;
}

static int read_result(const struct image *image)
{
	char text[64];

	return read_image(image, sizeof(*image), text, sizeof(text));
}

TEST(our_note_is_found_and_read)
{
	struct image image = good_image();
	char text[64], cut[4];

	check_eq(read_image(&image, sizeof(image), text, sizeof(text)), 0);
	check_str(text, "libcuda 0.1.0");
	check_eq(read_image(&image, sizeof(image), cut, sizeof(cut)), 0);
	check_str(cut, "lib");
}

TEST(a_note_of_another_owner_or_type_does_not_match)
{
	struct image image = good_image();

	image.owner[0] = 'V';
	check_eq(read_result(&image), VGPU_NOTE_E_ABSENT);
	image = good_image();
	image.note.n_type = 2;
	check_eq(read_result(&image), VGPU_NOTE_E_ABSENT);
	image = good_image();
	image.segment.p_type = PT_LOAD;
	check_eq(read_result(&image), VGPU_NOTE_E_ABSENT);
}

TEST(a_file_that_is_not_elf_is_rejected)
{
	struct image image = good_image();
	char text[64];

	check_eq(read_image("", 0, text, sizeof(text)), VGPU_NOTE_E_NOT_ELF);
	check_eq(read_image("GROUP ( libcuda.so.1 )", 22, text, sizeof(text)),
		VGPU_NOTE_E_NOT_ELF);
	image.header.e_ident[EI_CLASS] = ELFCLASS32;
	check_eq(read_result(&image), VGPU_NOTE_E_NOT_ELF);
}

TEST(damaged_numbers_are_refused)
{
	struct image image = good_image();

	image.header.e_phnum = 0xffff;
	check_eq(read_result(&image), VGPU_NOTE_E_NOT_ELF);
	image = good_image();
	image.header.e_phoff = UINT64_MAX - 8;
	check_eq(read_result(&image), VGPU_NOTE_E_NOT_ELF);
	image = good_image();
	image.header.e_phentsize = 1;
	check_eq(read_result(&image), VGPU_NOTE_E_NOT_ELF);
	image = good_image();
	image.segment.p_offset = UINT64_MAX;
	check_eq(read_result(&image), VGPU_NOTE_E_NOT_ELF);
	image = good_image();
	image.segment.p_filesz = 1000;
	check_eq(read_result(&image), VGPU_NOTE_E_NOT_ELF);
	image = good_image();
	image.note.n_namesz = UINT32_MAX;
	check_eq(read_result(&image), VGPU_NOTE_E_NOT_ELF);
	image = good_image();
	image.note.n_descsz = UINT32_MAX - 2;
	check_eq(read_result(&image), VGPU_NOTE_E_NOT_ELF);
	image = good_image();
	image.segment.p_filesz = UINT64_MAX;
	check_eq(read_result(&image), VGPU_NOTE_E_ABSENT);
}

TEST(every_truncation_ends_without_a_crash)
{
	struct image image = good_image();
	char text[64];
	size_t size;

	for (size = 0; size < sizeof(image); size++)
		check(read_image(&image, size, text, sizeof(text)) != 0);
}

TEST(every_single_byte_may_be_wrong)
{
	uint8_t bytes[sizeof(struct image)];
	char text[64];
	size_t i;

	for (i = 0; i < sizeof(bytes); i++) {
		struct image image = good_image();

		memcpy(bytes, &image, sizeof(bytes));
		bytes[i] = 0xff;
		check(read_image(bytes, sizeof(bytes), text, sizeof(text)) >= 0);
	}
}

TEST(this_program_has_no_such_note)
{
	char text[64];

	check_eq(vgpu_note_read_path("/proc/self/exe", text, sizeof(text)),
		VGPU_NOTE_E_ABSENT);
	check_eq(vgpu_note_read_path("/nonexistent", text, sizeof(text)), -ENOENT);
}
