/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Note: whether a library is of the guest
 *
 * Any file may be named, so each number in it is checked against the size that was read.
 */

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>

#include "vgpu/checked.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/note.h"

/* Linkers make a dozen program headers, and notes of a few hundred bytes. */
#define NOTE_HEADERS_MAX 256u
#define NOTE_SEGMENT_MAX (64u << 10)

/* Returns: 0, VGPU_NOTE_E_NOT_ELF where the file is shorter, or -errno. */
static int read_at(int fd, uint64_t offset, void *buffer, size_t size)
{
	ssize_t n;

	if (offset > INT64_MAX - size)
		return VGPU_NOTE_E_NOT_ELF;
	do
		n = pread(fd, buffer, size, offset);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return vgpu_error_origin(-errno);
	return (size_t)n == size ? 0 : VGPU_NOTE_E_NOT_ELF;
}

/* The unread rest of a segment; parts of notes are aligned from its start. */
struct notes {
	const uint8_t *data;
	uint64_t size;
	uint64_t alignment;
	uint64_t offset;
};

/* Takes one part of a note; NULL if it is not all there. */
static const uint8_t *take(struct notes *notes, uint64_t size)
{
	const uint8_t *part = notes->data + notes->offset;

	if (size > notes->size - notes->offset)
		return NULL;
	/* The last note of a segment may lack its padding. */
	if (!vgpu_align_u64(notes->offset + size, notes->alignment, &notes->offset) ||
		notes->offset > notes->size)
		notes->offset = notes->size;
	return part;
}

static int find_note(struct notes *notes, char *text, size_t text_size)
{
	const uint8_t *name, *description;
	Elf64_Nhdr header;
	size_t n;

	while (notes->size - notes->offset >= sizeof(header)) {
		memcpy(&header, notes->data + notes->offset, sizeof(header));
		notes->offset += sizeof(header);
		name = take(notes, header.n_namesz);
		description = name ? take(notes, header.n_descsz) : NULL;
		if (!description)
			return VGPU_NOTE_E_NOT_ELF;
		if (header.n_type != VGPU_NOTE_TYPE ||
			header.n_namesz != sizeof(VGPU_NOTE_OWNER) ||
			memcmp(name, VGPU_NOTE_OWNER, sizeof(VGPU_NOTE_OWNER)))
			continue;
		n = strnlen((const char *)description, header.n_descsz);
		if (n >= text_size)
			n = text_size - 1;
		memcpy(text, description, n);
		text[n] = '\0';
		return 0;
	}
	return VGPU_NOTE_E_ABSENT;
}

static int read_segment(int fd, const Elf64_Phdr *segment, char *text, size_t text_size)
{
	_vgpu_cleanup_(vgpu_freep) uint8_t *data = NULL;
	struct notes notes;
	int r;

	if (segment->p_filesz > NOTE_SEGMENT_MAX)
		return VGPU_NOTE_E_ABSENT;
	data = malloc(segment->p_filesz + 1);
	if (!data)
		return vgpu_error_origin(-ENOMEM);
	r = read_at(fd, segment->p_offset, data, segment->p_filesz);
	if (r)
		return r;
	notes = (struct notes){
		.data = data,
		.size = segment->p_filesz,
		.alignment = segment->p_align == 8 ? 8 : 4,
	};
	return find_note(&notes, text, text_size);
}

int vgpu_note_read(int fd, char *text, size_t text_size)
{
	Elf64_Phdr segment;
	Elf64_Ehdr header;
	uint64_t offset;
	uint32_t i;
	int r;

	r = read_at(fd, 0, &header, sizeof(header));
	if (r)
		return r;
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) ||
		header.e_ident[EI_CLASS] != ELFCLASS64 ||
		header.e_ident[EI_DATA] != ELFDATA2LSB ||
		header.e_phentsize != sizeof(segment) ||
		header.e_phnum > NOTE_HEADERS_MAX)
		return VGPU_NOTE_E_NOT_ELF;

	for (i = 0; i < header.e_phnum; i++) {
		if (!vgpu_add_u64(header.e_phoff, i * sizeof(segment), &offset))
			return VGPU_NOTE_E_NOT_ELF;
		r = read_at(fd, offset, &segment, sizeof(segment));
		if (r)
			return r;
		if (segment.p_type != PT_NOTE)
			continue;
		r = read_segment(fd, &segment, text, text_size);
		if (r != VGPU_NOTE_E_ABSENT)
			return r;
	}
	return VGPU_NOTE_E_ABSENT;
}

int vgpu_note_read_path(const char *path, char *text, size_t text_size)
{
	_vgpu_cleanup_(vgpu_closep) int fd =
		open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	return vgpu_note_read(fd, text, text_size);
}
