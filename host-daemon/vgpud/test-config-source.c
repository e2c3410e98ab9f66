/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources of a configuration: which files are read, and that a broker gets the same ones
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "vgpud/config.h"

static struct config_sources sources;

/* Makes a file in the test's folder. Returns: its path, valid until the next call. */
static const char *put(const char *name, const char *text)
{
	static char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", test_tmpdir(), name);
	file = fopen(path, "we");
	check(file != NULL);
	fputs(text, file);
	check_eq(fclose(file), 0);
	return path;
}

static void make_folder(void)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/vm.d", test_tmpdir());
	check_eq(mkdir(path, 0700), 0);
}

static int read_sources(char **failedp)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/vgpud.conf", test_tmpdir());
	return config_sources_read(&sources, path, failedp);
}

/* Reads and parses; returns all mistakes, to be freed, or NULL. */
static char *parse(struct config **configp)
{
	char *failed, *error;
	int r;

	check_eq(read_sources(&failed), 0);
	r = config_new(configp, &sources, &error);
	check_eq(r, error ? CONFIG_E_INVALID : 0);
	return error;
}

TEST(without_a_folder_there_is_only_the_main_file)
{
	char *failed;

	put("vgpud.conf", "[vgpud]\n");
	check_eq(read_sources(&failed), 0);
	check_eq(sources.n, 1);
	check(!sources.has_folder && !sources.list[0].vm);
	check_str(sources.list[0].text, "[vgpud]\n");
	config_sources_deinit(&sources);
}

TEST(files_of_the_folder_are_read_in_the_order_of_their_names)
{
	char *failed;

	make_folder();
	put("vgpud.conf", "");
	put("vm.d/two.conf", "2");
	put("vm.d/one.conf", "1");
	put("vm.d/three.conf~", "");
	put("vm.d/.four.conf", "");
	put("vm.d/five", "");
	put("vm.d/.conf", "");
	check_eq(read_sources(&failed), 0);
	check_eq(sources.n, 3);
	check(sources.has_folder);
	check_str(sources.list[1].vm, "one");
	check_str(sources.list[1].text, "1");
	check_str(sources.list[2].vm, "two");
	config_sources_deinit(&sources);
}

TEST(a_main_file_that_cannot_be_read_is_named)
{
	char *failed;

	check_eq(read_sources(&failed), -ENOENT);
	check(strstr(failed, "/vgpud.conf"));
	free(failed);
	check_eq(sources.n, 0);
}

TEST(a_file_of_a_vm_that_cannot_be_read_is_a_mistake)
{
	struct config *config;
	char path[256], *error;

	make_folder();
	put("vgpud.conf", "");
	snprintf(path, sizeof(path), "%s/vm.d/a.conf", test_tmpdir());
	check_eq(symlink("nowhere", path), 0);
	error = parse(&config);
	check(strstr(error, "/vm.d/a.conf:0: it cannot be read: No such file"));
	check_eq(sources.list[1].error, -ENOENT);
	free(error);
	config_sources_deinit(&sources);
}

TEST(a_folder_that_is_none_is_named)
{
	char *failed;

	put("vgpud.conf", "");
	put("vm.d", "");
	check_eq(read_sources(&failed), -ENOTDIR);
	check(strstr(failed, "/vm.d"));
	free(failed);
}

TEST(a_broker_takes_what_the_keeper_kept)
{
	struct config_sources taken;
	char *failed;
	int fd;

	make_folder();
	put("vgpud.conf", "main");
	put("vm.d/one.conf", "");
	put("vm.d/two.conf", "text\n");
	check_eq(read_sources(&failed), 0);
	check_eq(config_sources_keep(&sources, &fd), 0);
	check(write(fd, "x", 1) < 0);
	check_eq(config_sources_take(&taken, fd), 0);
	close(fd);
	check_eq(taken.n, 3);
	check(taken.has_folder);
	for (size_t i = 0; i < 3; i++) {
		check_str(taken.list[i].path, sources.list[i].path);
		check_str(taken.list[i].text, sources.list[i].text);
		check(!i || !strcmp(taken.list[i].vm, sources.list[i].vm));
	}
	config_sources_deinit(&taken);
	config_sources_deinit(&sources);
}

TEST(a_file_of_another_kind_is_not_taken)
{
	static const struct {
		const char *bytes;
		size_t size;
	} wrong[] = { { "", 0 }, { "x", 1 }, { "", 1 }, { "\0path", 6 },
		{ "\0path\0text", 10 } };
	struct config_sources taken;
	int fd;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		fd = memfd_create("test", MFD_CLOEXEC);
		check_eq(
			write(fd, wrong[i].bytes, wrong[i].size), (ssize_t)wrong[i].size);
		check_eq(config_sources_take(&taken, fd), -EPROTO);
		check_eq(taken.n, 0);
		close(fd);
	}
}

TEST(vms_of_all_files_are_in_one_configuration)
{
	struct config *config;

	make_folder();
	put("vgpud.conf", "[vgpud]\ndriver = soft\n[vm z]\nsocket = /z\n");
	put("vm.d/a.conf", "[vm a]\nsocket = /a\nhandles = 77\n");
	put("vm.d/b.conf", "# not used\n");
	check(!parse(&config));
	config_sources_deinit(&sources);
	check_eq(config->n_vms, 2);
	check_str(config_vm_at(config, 0)->name, "z");
	check_str(config_vm_at(config, 1)->name, "a");
	check_eq(config_vm_at(config, 1)->handles, 77);
	check(strstr(config_vm_at(config, 1)->place.file, "/vm.d/a.conf"));
	check_eq(config_vm_at(config, 1)->place.line, 1);
	config_free(config);
}

TEST(an_empty_folder_is_a_configuration_without_vms)
{
	struct config *config;

	make_folder();
	put("vgpud.conf", "[vgpud]\ndriver = soft\n");
	check(!parse(&config));
	config_sources_deinit(&sources);
	check_eq(config->n_vms, 0);
	config_free(config);
}

TEST(mistakes_name_the_file_of_the_folder)
{
	static const struct {
		const char *text, *error;
	} wrong[] = {
		{ "[vm b]\nsocket = /b\n", "a.conf:1: this file is for [vm a] only" },
		{ "\n[vgpud]\n", "a.conf:2: this file is for [vm a] only" },
		{ "handles = 70\n", "a.conf:1: a key before the first section" },
		{ "[vm a]\n\nsize = 3\n", "a.conf:3: " },
		{ "[vm a]\nsize = 2G\n", "a.conf:1: [vm a] needs socket = PATH" },
		{ "[vm a]\nsocket = /a\n[vm a]\n",
			"a.conf:3: there is a [vm a] in line 1 already" },
		{ "[vm a]\nsocket = /z\n", "a.conf:2: " },
	};
	struct config *config;
	char *error;

	make_folder();
	put("vgpud.conf", "[vm z]\nsocket = /z\n");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		put("vm.d/a.conf", wrong[i].text);
		error = parse(&config);
		check(error && strstr(error, wrong[i].error));
		free(error);
		config_sources_deinit(&sources);
	}
}

/* Such as a power cut may leave. */
TEST(a_file_with_zeroes_is_a_mistake_in_their_line)
{
	static const char text[] = "[vm a]\nsocket = /a\n\0\0\0\nsize = 3\n";
	struct config *config;
	char path[256], *error;
	int fd;

	make_folder();
	put("vgpud.conf", "[vm z]\nsocket = /z\n");
	snprintf(path, sizeof(path), "%s/vm.d/a.conf", test_tmpdir());
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	check_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	close(fd);
	error = parse(&config);
	check(strstr(error, "a.conf:3: the line has a character that is not of a text"));
	check(strstr(error, "a.conf:4: size is "));
	free(error);
	config_sources_deinit(&sources);
}

TEST(a_fifo_is_a_mistake_and_delays_nothing)
{
	struct config *config;
	char path[256], *error;

	make_folder();
	put("vgpud.conf", "[vm z]\nsocket = /z\n");
	snprintf(path, sizeof(path), "%s/vm.d/a.conf", test_tmpdir());
	check_eq(mkfifo(path, 0600), 0);
	error = parse(&config);
	check(strstr(error, "/vm.d/a.conf:0: it cannot be read: Illegal seek"));
	free(error);
	config_sources_deinit(&sources);
}

TEST(one_socket_in_two_files_is_named_by_both)
{
	struct config *config;
	char link[256], text[320], *error;

	make_folder();
	snprintf(link, sizeof(link), "%s/link", test_tmpdir());
	check_eq(symlink(test_tmpdir(), link), 0);
	snprintf(text, sizeof(text), "[vm z]\nsocket = %s/s\n", test_tmpdir());
	put("vgpud.conf", text);
	snprintf(text, sizeof(text), "\n[vm a]\nsocket = %s/s\n", link);
	put("vm.d/a.conf", text);
	error = parse(&config);
	check(strstr(error, "/vm.d/a.conf:2: [vm a]: socket = "));
	check(strstr(error, "/link/s is the socket of [vm z], "));
	free(error);
	config_sources_deinit(&sources);
}

TEST(a_vm_of_the_main_file_is_named_by_the_second_one)
{
	struct config *config;
	char *error;

	make_folder();
	put("vgpud.conf", "[vm a]\nsocket = /z\n");
	put("vm.d/a.conf", "\n[vm a]\nsocket = /a\n");
	error = parse(&config);
	check(strstr(error, "/vm.d/a.conf:2: there is a [vm a] in /"));
	check(strstr(error, "/vgpud.conf:1 already"));
	free(error);
	config_sources_deinit(&sources);
}

/*
 * The right ones of them
 */

/* As parse(), without those that are wrong. Returns: their mistakes, to be freed. */
static char *parse_right(struct config **configp, int expected)
{
	char *failed, *error;

	check_eq(read_sources(&failed), 0);
	check_eq(config_new_of_right(configp, &sources, &error), expected);
	return error;
}

TEST(a_wrong_file_takes_no_other_vm_along)
{
	struct config *config;
	struct config_sources taken;
	char *error;
	int fd;

	make_folder();
	put("vgpud.conf", "[vm z]\nsocket = /z\n");
	put("vm.d/a.conf", "[vm a]\nsocket = /a\nsize = 3\n");
	put("vm.d/b.conf", "[vm b]\nsocket = /b\n");
	put("vm.d/c.conf", "");
	put("vm.d/d.conf", "[vm d]\nsocket = /z\n");
	error = parse_right(&config, 0);
	check(strstr(error, "/vm.d/a.conf:3: size is "));
	check(strstr(error, "/vm.d/d.conf:2: socket /z is the one of [vm z] already"));
	free(error);
	check_eq(config->n_vms, 2);
	check(config_find_vm(config, "b") && config_find_vm(config, "z"));
	check(!config_find_vm(config, "a"));
	config_free(config);
	check(sources.list[1].is_left_out && !sources.list[2].is_left_out);
	check(!sources.list[3].is_left_out && sources.list[4].is_left_out);

	/* A broker gets what was parsed. */
	check_eq(config_sources_keep(&sources, &fd), 0);
	check_eq(config_sources_take(&taken, fd), 0);
	close(fd);
	check_eq(taken.n, 3);
	check_str(taken.list[1].vm, "b");
	check_str(taken.list[2].vm, "c");
	config_sources_deinit(&taken);
	config_sources_deinit(&sources);
}

TEST(all_files_of_vms_may_be_wrong)
{
	struct config *config;
	char *error;

	make_folder();
	put("vgpud.conf", "");
	put("vm.d/a.conf", "x\n");
	error = parse_right(&config, 0);
	check(strstr(error, "/vm.d/a.conf:1: "));
	free(error);
	check_eq(config->n_vms, 0);
	config_free(config);
	config_sources_deinit(&sources);
}

TEST(a_wrong_main_file_is_refused)
{
	struct config *config = NULL;
	char *error;

	make_folder();
	put("vgpud.conf", "[vgpud]\ndriver = x\n");
	put("vm.d/a.conf", "[vm a]\nsize = 3\n");
	error = parse_right(&config, CONFIG_E_INVALID);
	check(strstr(error, "/vgpud.conf:2: "));
	check(strstr(error, "/vm.d/a.conf:2: "));
	free(error);
	check(!config);
	config_sources_deinit(&sources);
}

TEST(without_a_mistake_there_is_no_text)
{
	struct config *config;

	make_folder();
	put("vgpud.conf", "");
	put("vm.d/a.conf", "[vm a]\nsocket = /a\n");
	check(!parse_right(&config, 0));
	check_eq(config->n_vms, 1);
	config_free(config);
	config_sources_deinit(&sources);
}
