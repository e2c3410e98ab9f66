/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of the loader, in files of the test; its cache is that of tests/doctor
 */

#include <elf.h>
#include <stdlib.h>
#include <unistd.h>

#include "doctor/library.h"
#include "doctor/test-files.h"
#include "vgpu/note.h"

#define NAME "libcuda.so.1"

/* A file of one program header that covers one note, of ours or of another owner. */
static void put_library(const char *path, const char *owner, const char *text)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
		Elf64_Nhdr note;
		char owner[8];
		char text[64];
	} image = {
		.header.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			ELFDATA2LSB, EV_CURRENT },
		.header.e_phoff = sizeof(image.header),
		.header.e_phentsize = sizeof(Elf64_Phdr),
		.header.e_phnum = 1,
		.segment.p_type = PT_NOTE,
		.segment.p_offset = sizeof(image.header) + sizeof(image.segment),
		.segment.p_filesz =
			sizeof(image.note) + sizeof(image.owner) + sizeof(image.text),
		.segment.p_align = 4,
		.note.n_namesz = sizeof(VGPU_NOTE_OWNER),
		.note.n_descsz = sizeof(image.text),
		.note.n_type = VGPU_NOTE_TYPE,
	};
	FILE *file;

	snprintf(image.owner, sizeof(image.owner), "%s", owner);
	snprintf(image.text, sizeof(image.text), "%s", text);
	put(path, "");
	file = fopen(path_of(path), "we");
	check(file != NULL);
	check_eq(fwrite(&image, sizeof(image), 1, file), 1);
	check_eq(fclose(file), 0);
}

static void put_ours(const char *path)
{
	put_library(path, VGPU_NOTE_OWNER, "libcuda 0.1.0 api 13.0");
}

static void put_foreign(const char *path)
{
	put_library(path, "GNU", "x");
}

static struct library library;
static struct doctor doctor;

static void find(const char *root)
{
	doctor_init(&doctor, root);
	library_find(&library, &doctor, NAME);
}

static void set_path(const char *first, const char *second)
{
	char list[2048];

	snprintf(list, sizeof(list), "%s%s", test_tmpdir(), first);
	snprintf(list + strlen(list), sizeof(list) - strlen(list), ":%s%s", test_tmpdir(),
		second);
	check_eq(setenv("LD_LIBRARY_PATH", list, 1), 0);
}

TEST(the_path_comes_before_the_cache_in_its_order)
{
	put_foreign("/one/" NAME);
	put_ours("/two/" NAME);
	set_path("/one", "/two");
	find("");
	check(library.n >= 2);
	check_str(library.files[0].path, path_of("/one/" NAME));
	check_eq(library.files[0].origin, LIBRARY_PATH);
	check_str(library.files[0].note, "");
	check_str(library.files[1].note, "libcuda 0.1.0 api 13.0");
	check(library_ours(&library) == &library.files[1]);
	set_path("/two", "/one");
	find("");
	check(library_ours(&library) == &library.files[0]);
}

TEST(what_the_loader_passes_over_is_left_out)
{
	put("/one/" NAME, "GROUP ( elsewhere )\n");
	put_ours("/two/" NAME);
	set_path("/one", "/two");
	find("");
	check_str(library.files[0].path, path_of("/two/" NAME));
	check_eq(chmod(path_of("/two/" NAME), 0), 0);
	set_path("/two", "/none");
	find("");
	check(library.n == 0 || geteuid() == 0 ||
		strcmp(library.files[0].path, path_of("/two/" NAME)) != 0);
}

TEST(a_note_of_another_library_of_ours_does_not_count)
{
	put_library("/one/" NAME, VGPU_NOTE_OWNER, "libnvidia-ml 0.1.0");
	set_path("/one", "/none");
	find("");
	check_str(library.files[0].note, "");
}

TEST(preloaded_libraries_come_first)
{
	char list[2048];

	put_foreign("/one/libcuda.so.550.1");
	put_foreign("/one/libcudart.so.12");
	put_ours("/two/" NAME);
	set_path("/two", "/none");
	snprintf(list, sizeof(list), "%s/one/libcudart.so.12:%s/one/libcuda.so.550.1",
		test_tmpdir(), test_tmpdir());
	check_eq(setenv("LD_PRELOAD", list, 1), 0);
	find("");
	check_str(library.files[0].path, path_of("/one/libcuda.so.550.1"));
	check_eq(library.files[0].origin, LIBRARY_PRELOADED);
	check_eq(library.files[1].origin, LIBRARY_PATH);
}

TEST(a_root_has_no_environment_but_its_own_files)
{
	put_foreign("/one/" NAME);
	set_path("/one", "/one");
	put_foreign("/opt/libcuda.so.1");
	put("/etc/ld.so.preload", "/opt/other.so /opt/libcuda.so.1\n");
	put_ours("/usr/lib64/vgpu/" NAME);
	put_foreign("/usr/lib64/" NAME);
	find(test_tmpdir());
	check_eq(library.n, 3);
	check_str(library.files[0].path, "/opt/libcuda.so.1");
	check_eq(library.files[0].origin, LIBRARY_PRELOAD_FILE);
	check_str(library.files[1].path, "/usr/lib64/" NAME);
	check_eq(library.files[1].origin, LIBRARY_FOLDER);
	check_str(library.files[2].path, "/usr/lib64/vgpu/" NAME);
	check_eq(library.files[2].origin, LIBRARY_INSTALLED);
	doctor_deinit(&doctor);
}

TEST(one_file_by_two_names_is_one)
{
	put_ours("/usr/lib64/" NAME);
	check_eq(symlink("usr/lib64", path_of("/lib64")), 0);
	find(test_tmpdir());
	check_eq(library.n, 1);
	check(library_at(&library, &doctor, "/usr/lib64/" NAME) == &library.files[0]);
	check(!library_at(&library, &doctor, "/usr/lib/" NAME));
}

TEST(the_file_that_names_a_folder_to_ldconfig_is_found)
{
	struct library_file file = { .path = "/opt/gpu/" NAME };
	char conf[256];

	find(test_tmpdir());
	put("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n");
	put("/etc/ld.so.conf.d/a.conf", "/opt/gpu2\n# /opt/gpu\n");
	library_name_conf(&doctor, &file, conf);
	check_str(conf, "");
	put("/etc/ld.so.conf.d/b.conf", "/opt/x\n  /opt/gpu/  # ours\n");
	library_name_conf(&doctor, &file, conf);
	check_str(conf, "/etc/ld.so.conf.d/b.conf");
	put("/etc/ld.so.conf", "/opt/gpu\n");
	library_name_conf(&doctor, &file, conf);
	check_str(conf, "/etc/ld.so.conf");
}

static void put_program(const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "/bin/%s", name);
	put(path, text);
	check_eq(chmod(path_of(path), 0755), 0);
	check_eq(setenv("PATH", path_of("/bin"), 1), 0);
}

TEST(the_package_of_a_file_is_asked_for)
{
	char package[128];

	put_program("other", "");
	library_name_package("/proc/self/exe", package);
	check_str(package, "");
	put_program("dpkg-query", "#!/bin/sh\necho \"libcuda1:amd64: $2\"\n");
	library_name_package("/proc/self/exe", package);
	check_str(package, "libcuda1");
	put_program("dpkg-query", "#!/bin/sh\nexit 1\n");
	put_program("rpm", "#!/bin/sh\necho nvidia-driver-cuda-libs\n");
	library_name_package("/proc/self/exe", package);
	check_str(package, "nvidia-driver-cuda-libs");
}
