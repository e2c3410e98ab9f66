/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sentences: each error has one that names what to do, and all of them fit
 */

#include <errno.h>
#include <string.h>

#include "test.h"
#include "vgpu/hello.h"

#include "wire/sentence.h"

static char text[SHIM_SENTENCE_SIZE];

static void fill(void)
{
	memset(text, 'x', sizeof(text));
}

/* A sentence is a string that ends before its array does. */
static void check_whole(void)
{
	size_t length = strnlen(text, sizeof(text));

	check(length > 0 && length < sizeof(text) - 1);
}

static const char *of_device(const char *name, int error)
{
	fill();
	shim_sentence_of_device(text, name, error);
	check_whole();
	return text;
}

static const char *of_socket(const char *path, int error)
{
	fill();
	shim_sentence_of_socket(text, path, error);
	check_whole();
	return text;
}

static const char *of_channel(uint32_t reason, uint64_t detail)
{
	const struct vgpu_channel_entry entry = { .reason = reason, .detail = detail };

	fill();
	shim_sentence_of_channel(text, &entry);
	check_whole();
	return text;
}

TEST(without_a_device_the_remedy_is_to_attach_one)
{
	check(strstr(of_device(NULL, -ENODEV), "attach one"));
}

TEST(each_error_of_a_device_has_its_remedy)
{
	check(strstr(of_device("0000:00:05.0", -EACCES), "usermod"));
	check(strstr(of_device("0000:00:05.0", -EPERM), "Secure Boot"));
	check(strstr(of_device("0000:00:05.0", -EROFS), "ProtectKernelTunables=no"));
	check(strstr(of_device("0000:00:05.0", -ENXIO), "start vgpud"));
	check(strstr(of_device("0000:00:05.0", -ENOSPC), "size ="));
	check(!strstr(text, "mount /sys"));
	check(strstr(text, "0000:00:05.0"));
}

static const char *of_driver(const char *path, int error)
{
	fill();
	shim_sentence_of_driver(text, path, error);
	check_whole();
	return text;
}

TEST(each_error_of_the_driver_has_its_remedy)
{
	check(strstr(of_driver("/dev/vgpu0", -EACCES), "usermod"));
	check(strstr(of_driver("/dev/vgpu0", -EPERM), "DeviceAllow"));
	check(strstr(of_driver("/dev/vgpu0", -EPROTO), "release"));
	check(strstr(of_driver("/dev/vgpu0", -ENODEV), "taken"));
	check(strstr(of_driver("/dev/vgpu0", -EIO), strerror(EIO)));
	check(strstr(text, "/dev/vgpu0"));
	check(strstr(of_device("0000:00:05.0", -EINVAL), "--device /dev/vgpu0"));
}

TEST(each_error_of_a_socket_has_its_remedy)
{
	check(strstr(of_socket("/run/a.sock", -ENOENT), "start vgpud"));
	check(strstr(of_socket("/run/a.sock", -ECONNREFUSED), "start vgpud"));
	check(strstr(of_socket("/run/a.sock", -EACCES), "socket-group"));
	check(strstr(of_socket("/run/a.sock", -ETIMEDOUT), "see its log"));
	check(strstr(text, "/run/a.sock"));
}

TEST(an_error_without_a_remedy_names_the_systems_own)
{
	check(strstr(of_device("0000:00:05.0", -EIO), strerror(EIO)));
	check(strstr(of_device("0000:00:05.0", -EIO), "0000:00:05.0"));
	check(strstr(of_socket("/run/a.sock", -ELOOP), strerror(ELOOP)));
}

TEST(a_name_of_any_length_leaves_room_for_the_remedy)
{
	static char name[4096];

	memset(name, 'a', sizeof(name) - 1);
	check(strstr(of_device(name, -EACCES), "usermod"));
	check(strstr(of_socket(name, -EACCES), "socket-group"));
	check(strstr(of_socket(name, -ELOOP), strerror(ELOOP)));
}

TEST(a_limit_is_printed_with_its_number_and_its_key)
{
	check(strstr(of_channel(VGPU_REASON_PROCESSES, 7), " 7 "));
	check(strstr(text, "max-processes ="));
	check(strstr(of_channel(VGPU_REASON_WORKERS, 64), " 64 "));
	check(strstr(text, "max-workers ="));
	check(strstr(of_channel(VGPU_REASON_HOST_MEMORY, 512), "512 MiB"));
	check(strstr(text, "host-memory ="));
}

TEST(a_dead_worker_is_reported_with_its_signal_if_it_had_one)
{
	check(strstr(of_channel(VGPU_REASON_WORKER_DIED, 11), strsignal(11)));
	check(!strchr(of_channel(VGPU_REASON_WORKER_DIED, 0), '('));
	check(!strchr(of_channel(VGPU_REASON_WORKER_DIED, 1ull << 40), '('));
}

/* The number comes from shared memory, so it may be any. */
TEST(an_unknown_reason_refers_to_the_hosts_log)
{
	char host[SHIM_SENTENCE_SIZE];

	strcpy(host, of_channel(VGPU_REASON_HOST, 0));
	check(strstr(host, "vgpud's log"));
	check_str(of_channel(_VGPU_REASON_N, 0), host);
	check_str(of_channel(UINT32_MAX, UINT64_MAX), host);
}

TEST(each_reason_has_its_own_sentence)
{
	char other[SHIM_SENTENCE_SIZE];

	for (uint32_t a = VGPU_REASON_NO_DEVICE; a < _VGPU_REASON_N; a++)
		for (uint32_t b = VGPU_REASON_NO_DEVICE; b < a; b++) {
			strcpy(other, of_channel(a, 9));
			check(strcmp(other, of_channel(b, 9)));
		}
}
