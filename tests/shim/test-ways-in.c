/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way by which a program finds libcuda leads to a device
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"
#include "run.h"
#include "test.h"

static struct pair pair;
static char socket_variable[160];
static char library_path_variable[256];
static char preload_variable[512];

static void start(void)
{
	const struct pair_options options = { .driver = NULL_DRIVER };

	pair_start(&pair, &options);
	snprintf(socket_variable, sizeof(socket_variable), "VGPU_SOCKET=%s", pair.socket);
	snprintf(library_path_variable, sizeof(library_path_variable),
		"LD_LIBRARY_PATH=%s", LIBCUDA_DIR);
}

/* Runs a program that prints the number of devices. */
static void expect_device(const char *const argv[], const char *variable)
{
	const char *const environment[] = { socket_variable, variable, NULL };
	struct run *run = malloc(sizeof(*run));

	check(run != NULL);
	run_successfully(run, argv, environment);
	check_str(run->out, "devices=1\n");
	free(run);
}

static void expect_by_dlopen(const char *how)
{
	const char *const argv[] = { WAY_IN, how, LIBCUDA, NULL };

	start();
	expect_device(argv, NULL);
	pair_stop(&pair);
}

TEST(a_program_linked_to_it)
{
	const char *const argv[] = { WAY_IN_LINKED, NULL };

	start();
	expect_device(argv, library_path_variable);
	pair_stop(&pair);
}

TEST(dlopen_and_dlsym)
{
	expect_by_dlopen("now");
}

TEST(dlopen_with_deep_binding)
{
#ifdef __SANITIZE_ADDRESS__
	test_skip("the address sanitizer refuses RTLD_DEEPBIND");
#endif
	expect_by_dlopen("deepbind");
}

TEST(dlopen_with_lazy_binding_into_the_global_scope)
{
	expect_by_dlopen("global");
}

TEST(lookup_through_the_old_get_proc_address)
{
	expect_by_dlopen("procaddr");
}

TEST(lookup_through_the_new_get_proc_address)
{
	expect_by_dlopen("procaddr2");
}

TEST(a_name_without_a_path_and_a_library_path)
{
	const char *const argv[] = { WAY_IN, "now", "libcuda.so.1", NULL };

	start();
	expect_device(argv, library_path_variable);
	pair_stop(&pair);
}

TEST(the_name_without_a_version)
{
	const char *const argv[] = { WAY_IN, "now", "libcuda.so", NULL };

	start();
	expect_device(argv, library_path_variable);
	pair_stop(&pair);
}

TEST(preloading)
{
	const char *const argv[] = { WAY_IN, "now", "libcuda.so.1", NULL };

	start();
	snprintf(preload_variable, sizeof(preload_variable), "LD_PRELOAD=%s", LIBCUDA);
	expect_device(argv, preload_variable);
	pair_stop(&pair);
}

TEST(python_by_ctypes)
{
	const char *const argv[] = { PYTHON, WAY_IN_PY, LIBCUDA, NULL };

	start();
	snprintf(preload_variable, sizeof(preload_variable), "LD_PRELOAD=%s", SANITIZERS);
	expect_device(argv, *SANITIZERS ? preload_variable : NULL);
	pair_stop(&pair);
}

TEST(a_program_with_another_protobuf_c_works)
{
	const char *const argv[] = { WAY_IN_PROTOBUF, NULL };

	start();
	expect_device(argv, library_path_variable);
	pair_stop(&pair);
}

/* The cache of the dynamic linker is replaced in a mount namespace of our own. */
TEST(a_file_in_ld_so_conf_d_and_an_empty_environment)
{
	static const char script[] =
		"echo '" LIBCUDA_DIR "' > $0/ld.so.conf && "
		"ldconfig -X -C $0/ld.so.cache -f $0/ld.so.conf / && "
		"mount --bind $0/ld.so.cache /etc/ld.so.cache && "
		"exec env -i VGPU_SOCKET=$1 " ASAN_VARIABLE " " WAY_IN
		" now libcuda.so.1";
	const char *const probe[] = { "unshare", "-rm", "true", NULL };
	struct run *run = malloc(sizeof(*run));

	check(run != NULL);
	run_program(run, probe, NULL);
	if (run->status)
		test_skip("no mount namespace can be had here: %s", run->err);
	start();
	run_successfully(run,
		(const char *const[]){ "unshare", "-rm", "sh", "-c", script, pair.dir,
			pair.socket, NULL },
		NULL);
	check_str(run->out, "devices=1\n");
	free(run);
	pair_stop(&pair);
}
