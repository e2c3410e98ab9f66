/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process without a host gets an error, in time, and a message on stderr only
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "run.h"
#include "test.h"
#include "vgpu/hello.h"

static struct run run;
static char path[128];
static char socket_variable[160];

/* Distinguishes a cuInit that gives up from one that hangs. */
#define PATIENCE_S 30

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Runs a program that calls cuInit and checks its result. */
static void expect_result(int result)
{
	const char *const argv[] = { WAY_IN, "now", LIBCUDA, NULL };
	const char *const environment[] = { "VGPU_LOG=info", socket_variable, NULL };
	double start = now();
	char text[32];

	run_program(&run, argv, environment);
	check(now() - start < PATIENCE_S);
	check_str(run.out, "");
	snprintf(text, sizeof(text), "result %d\n", result);
	if (run.status != 4 || !strstr(run.err, text))
		test_fail(__FILE__, __LINE__, "status %d: %s", run.status, run.err);
}

static int serve(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(path, sizeof(path), "%s/socket", test_tmpdir());
	snprintf(socket_variable, sizeof(socket_variable), "VGPU_SOCKET=%s", path);
	strcpy(address.sun_path, path);
	check(fd >= 0);
	check_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	check_eq(listen(fd, 4), 0);
	return fd;
}

TEST(without_socket_and_device_there_is_no_device)
{
	if (!access("/dev/vgpu0", F_OK))
		test_skip("this machine has a device");
	strcpy(socket_variable, "UNUSED=1");
	expect_result(100);
	check(strstr(run.err, "transport socket: not asked for"));
	check(strstr(run.err, "transport sysfs: "));
	check(strstr(run.err, " error: cuInit fails with CUDA_ERROR_NO_DEVICE (100): "));
}

TEST(a_socket_that_is_not_there_is_named)
{
	strcpy(socket_variable, "VGPU_SOCKET=/nonexistent/socket");
	expect_result(100);
	check(strstr(run.err, "transport socket: No such file or directory\n"));
	check(strstr(run.err,
		" error: cuInit fails with CUDA_ERROR_NO_DEVICE (100): there "
		"is no socket /nonexistent/socket, "));
}

TEST(a_socket_that_nobody_serves)
{
	close(serve());
	expect_result(100);
	check(strstr(run.err, "nobody serves the socket "));
}

TEST(a_host_that_stays_silent_is_given_up)
{
	int fd = serve();

	expect_result(100);
	check(strstr(run.err, "vgpud does not answer at the socket "));
	close(fd);
}

TEST(a_socket_without_permission_has_a_separate_reason)
{
	int fd;

	if (geteuid() == 0)
		check_eq(setresuid(65534, 65534, 65534), 0);
	if (access(WAY_IN, X_OK) < 0 || access(LIBCUDA, R_OK) < 0)
		test_skip("user %d may not run %s", (int)getuid(), WAY_IN);
	fd = serve();
	check_eq(chmod(path, 0), 0);
	expect_result(100);
	check(strstr(run.err, "this user may not use the socket "));
	close(fd);
}

static void *greet(void *argument)
{
	const struct vgpu_socket_greeting greeting = {
		.magic = VGPU_SHM_MAGIC,
		.protocol_version = 4711,
	};
	int fd = accept(*(int *)argument, NULL, NULL);

	check_eq(send(fd, &greeting, sizeof(greeting), MSG_NOSIGNAL), sizeof(greeting));
	close(fd);
	return NULL;
}

TEST(a_host_of_another_version_has_a_reason_that_names_both_versions)
{
	char text[64];
	pthread_t thread;
	int fd = serve();

	check_eq(pthread_create(&thread, NULL, greet, &fd), 0);
	expect_result(803);
	pthread_join(thread, NULL);
	check(strstr(run.err, "version 4711"));
	snprintf(text, sizeof(text),
		"this libcuda.so.1 version %u:", VGPU_PROTOCOL_VERSION);
	check(strstr(run.err, text));
	close(fd);
}

TEST(without_a_level_nothing_is_said)
{
	const char *const argv[] = { WAY_IN, "now", LIBCUDA, NULL };
	const char *const environment[] = { "VGPU_SOCKET=/nonexistent/socket", NULL };

	run_program(&run, argv, environment);
	check_str(run.err, "result 100\n");
	check_str(run.out, "");
}
