/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests of images between processes
 */

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#include "code/digests.h"
#include "process/environment.h"

#define NOBODY 65534
#define NOT_SECURE 99

static struct shim_digest digest;

static void begin(void)
{
	shim_environment.remembers_images = true;
	check_eq(setenv("XDG_RUNTIME_DIR", test_tmpdir(), 1), 0);
}

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", test_tmpdir(), name);
	return path;
}

static struct shim_digest_key key_of(uint64_t number)
{
	return (struct shim_digest_key){ { number, 1, 2, 3 } };
}

static void remember(uint64_t number)
{
	const struct shim_digest_key key = key_of(number);

	memset(digest.bytes, (int)number, sizeof(digest.bytes));
	digest.is_silent = number % 2;
	shim_digests_remember(&key, &digest);
}

/* Whether it is known; a wrong digest fails the test. */
static bool knows(uint64_t number)
{
	const struct shim_digest_key key = key_of(number);

	memset(&digest, 0, sizeof(digest));
	if (!shim_digests_find(&key, &digest))
		return false;
	for (size_t i = 0; i < sizeof(digest.bytes); i++)
		check_eq(digest.bytes[i], (uint8_t)number);
	check_eq(digest.is_silent, number % 2);
	return true;
}

TEST(stored_digests_are_found)
{
	struct shim_digest_key key;
	struct stat st;

	begin();
	check(!knows(1));
	remember(1);
	remember(2);
	check(knows(1) && knows(2) && !knows(3));
	key = key_of(1);
	key.words[SHIM_DIGEST_KEY_WORDS - 1]++;
	check(!shim_digests_find(&key, &digest));
	key = key_of(1);
	memset(digest.bytes, 2, sizeof(digest.bytes));
	shim_digests_remember(&key, &digest);
	check(shim_digests_find(&key, &digest) && digest.bytes[0] == 2);
	check_eq(stat(path_of("vgpu"), &st), 0);
	check_eq(st.st_mode & 07777, 0700);
	check_eq(stat(path_of("vgpu/images"), &st), 0);
	check_eq(st.st_mode & 07777, 0600);
}

TEST(the_file_is_bounded)
{
	unsigned int n = 0;
	struct stat st;

	begin();
	for (uint64_t i = 0; i < 5000; i++)
		remember(i);
	for (uint64_t i = 0; i < 5000; i++)
		n += knows(i);
	check(n > 1500 && n <= 2048);
	check_eq(stat(path_of("vgpu/images"), &st), 0);
	check(st.st_size <= 256 * 1024);
}

TEST(the_cache_can_be_disabled)
{
	begin();
	remember(1);
	shim_environment.remembers_images = false;
	check(!knows(1));
	remember(2);
	shim_environment.remembers_images = true;
	check(knows(1) && !knows(2));
}

TEST(damage_is_not_believed)
{
	unsigned char byte;
	struct stat st;
	int fd;

	begin();
	remember(1);
	fd = open(path_of("vgpu/images"), O_RDWR | O_CLOEXEC);
	check(fd >= 0 && !fstat(fd, &st));
	/* Each byte of the record for itself. */
	for (off_t i = st.st_size - 128; i < st.st_size; i++) {
		check_eq(pread(fd, &byte, 1, i), 1);
		byte ^= 0x40;
		check_eq(pwrite(fd, &byte, 1, i), 1);
		check(!knows(1));
		byte ^= 0x40;
		check_eq(pwrite(fd, &byte, 1, i), 1);
	}
	check(knows(1));
	check_eq(ftruncate(fd, st.st_size - 1), 0);
	check(!knows(1));
	remember(1);
	check(knows(1));
	check_eq(ftruncate(fd, 0), 0);
	check(!knows(1));
	close(fd);
}

TEST(files_of_others_are_not_believed)
{
	begin();
	remember(1);
	check_eq(chmod(path_of("vgpu/images"), 0620), 0);
	check(!knows(1));
	check_eq(chmod(path_of("vgpu/images"), 0600), 0);
	check(knows(1));
	check_eq(chmod(path_of("vgpu"), 0702), 0);
	check(!knows(1));
	remember(2);
	check_eq(chmod(path_of("vgpu"), 0700), 0);
	check(knows(1) && !knows(2));
	if (geteuid()) {
		puts("skipped: only root can give files to another user");
		return;
	}
	check_eq(chown(path_of("vgpu/images"), 1, (gid_t)-1), 0);
	check(!knows(1));
	check_eq(chown(path_of("vgpu/images"), 0, (gid_t)-1), 0);
	check_eq(chown(path_of("vgpu"), 1, (gid_t)-1), 0);
	check(!knows(1));
}

TEST(links_and_what_is_no_file_are_not_followed)
{
	char target[256];

	begin();
	remember(1);
	snprintf(target, sizeof(target), "%s", path_of("elsewhere"));
	check_eq(rename(path_of("vgpu/images"), target), 0);
	check_eq(symlink(target, path_of("vgpu/images")), 0);
	check(!knows(1));
	remember(2);
	check_eq(unlink(path_of("vgpu/images")), 0);
	check_eq(rename(target, path_of("vgpu/images")), 0);
	check(knows(1) && !knows(2));
	check_eq(rename(path_of("vgpu"), target), 0);
	check_eq(symlink(target, path_of("vgpu")), 0);
	check(!knows(1));
	check_eq(unlink(path_of("vgpu")), 0);
	check_eq(mkdir(path_of("vgpu"), 0700), 0);
	check_eq(mkfifo(path_of("vgpu/images"), 0600), 0);
	check(!knows(1));
	remember(1);
	check(!knows(1));
}

TEST(without_a_folder_nothing_is_known)
{
	begin();
	check_eq(setenv("XDG_RUNTIME_DIR", path_of("none"), 1), 0);
	remember(1);
	check(!knows(1));
	check_eq(unsetenv("XDG_RUNTIME_DIR"), 0);
	check_eq(unsetenv("XDG_CACHE_HOME"), 0);
	check_eq(unsetenv("HOME"), 0);
	remember(1);
	check(!knows(1));
	check_eq(setenv("XDG_RUNTIME_DIR", "relative", 1), 0);
	check_eq(setenv("HOME", test_tmpdir(), 1), 0);
	remember(1);
	check(knows(1));
	check_eq(access(path_of(".cache/vgpu/images"), R_OK), 0);
	check_eq(setenv("XDG_CACHE_HOME", path_of("cache"), 1), 0);
	check(!knows(1));
	remember(1);
	check(knows(1));
}

static void *write_all(void *data)
{
	for (int i = 0; i < 2000; i++)
		remember((uint64_t)(uintptr_t)data);
	return NULL;
}

/* One record, two digests: it is one of them or none, never half of each. */
TEST(writers_at_the_same_time_do_no_harm)
{
	const struct shim_digest_key key = key_of(1);
	struct shim_digest first = {}, found;
	pthread_t thread;

	begin();
	check_eq(pthread_create(&thread, NULL, write_all, (void *)1), 0);
	for (int i = 0; i < 2000; i++) {
		memset(first.bytes, i, sizeof(first.bytes));
		shim_digests_remember(&key, &first);
		if (!shim_digests_find(&key, &found))
			continue;
		for (size_t j = 1; j < sizeof(found.bytes); j++)
			check_eq(found.bytes[j], found.bytes[0]);
	}
	pthread_join(thread, NULL);
}

/* Copies this program and runs the copy as its owner. */
static void make_set_uid_copy(const char *to)
{
	int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	char bytes[65536];
	ssize_t n;

	check(in >= 0 && out >= 0);
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		check_eq(write(out, bytes, (size_t)n), n);
	check_eq(n, 0);
	/* In this order: a change of the owner takes the bit away. */
	check_eq(fchown(out, NOBODY, NOBODY), 0);
	check_eq(fchmod(out, 04755), 0);
	close(in);
	close(out);
}

/* Runs as that user: without a program, with no more rights than its own. */
static int run(const char *program, const char *folder)
{
	pid_t child = fork();
	int status;

	check(child >= 0);
	if (!child)
		setenv("XDG_RUNTIME_DIR", folder, 1);
	if (!child && program) {
		execl(program, program, (char *)NULL);
		_exit(EXIT_FAILURE);
	}
	if (!child) {
		if (setresgid(NOBODY, NOBODY, NOBODY) ||
			setresuid(NOBODY, NOBODY, NOBODY))
			_exit(EXIT_FAILURE);
		remember(1);
		_exit(knows(1) ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	check_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *make_folder_of_another(const char *name)
{
	check_eq(mkdir(path_of(name), 0700), 0);
	check_eq(chown(path_of(name), NOBODY, NOBODY), 0);
	return path_of(name);
}

/* The program of the test below, run with the rights of another user, on whose folder it
 * works. */
__attribute__((__constructor__)) static void run_as_another(void)
{
	if (!getenv("TEST_AS_ANOTHER"))
		return;
	if (!getauxval(AT_SECURE))
		_exit(NOT_SECURE);
	shim_environment.remembers_images = true;
	remember(1);
	_exit(knows(1) ? EXIT_FAILURE : EXIT_SUCCESS);
}

TEST(a_program_with_more_rights_than_its_user_remembers_nothing)
{
	char program[256];
	int status;

	if (geteuid())
		test_skip("only root can make a program of another user");
	test_skip_emulated("the kernel cannot execute a copy of it");
	begin();
	snprintf(program, sizeof(program), "%s", path_of("set-uid"));
	check_eq(chmod(test_tmpdir(), 0755), 0);
	make_set_uid_copy(program);
	check_eq(run(NULL, make_folder_of_another("plain")), EXIT_SUCCESS);
	check_eq(access(path_of("plain/vgpu/images"), F_OK), 0);
	check_eq(setenv("XDG_CACHE_HOME", make_folder_of_another("cache"), 1), 0);
	check_eq(setenv("HOME", make_folder_of_another("home"), 1), 0);
	check_eq(setenv("TEST_AS_ANOTHER", "yes", 1), 0);
	status = run(program, make_folder_of_another("secure"));
	if (status == NOT_SECURE)
		test_skip("programs do not get the rights of their owner here (nosuid)");
	check_eq(status, EXIT_SUCCESS);
	check(access(path_of("secure/vgpu"), F_OK) < 0);
	check(access(path_of("cache/vgpu"), F_OK) < 0);
	check(access(path_of("home/.cache"), F_OK) < 0);
}
