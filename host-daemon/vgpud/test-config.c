/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration of vgpud: what is understood, and what every mistake is answered with
 */

#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "vgpud/config.h"

TEST(a_full_file_is_understood)
{
	static const char text[] =
		"# comment\n"
		"[vgpud]\n"
		"driver = soft\n"
		"log-level = debug ; remark\n"
		"log-file=/var/log/vgpud.log\n"
		"flight-folder = /var/log/vgpud\n"
		"worker = /w\nsoftgpu = /s\nnull-driver = /n\n"
		"warm-workers = 0\nmax-workers = 7\n"
		"softgpu-name = a b\nsoftgpu-cc = 9.0\nsoftgpu-memory = "
		"2G\nsoftgpu-threads=3\nsoftgpu-kernel-timeout = 7\n"
		"softgpu-devices = 2\nsoftgpu-schedule = fair\nsoftgpu-check = memory, "
		"race\n"
		"\n"
		"[vm one]\n"
		"socket = /run/one\nsize = 1G\nhugepages = hugetlb\ndevice-memory = "
		"512M\nmax-processes = 3\n"
		"softgpu-launch-timeout = 30\n"
		"socket-mode = 0600\nsocket-group = 0\n"
		"[vm two.x_y-z]\n"
		"transport = socket\nsocket = /run/two\n"
		"[vm three]\ntransport = plain\nmemory = /dev/shm/vgpud/x\n"
		"memory-owner = 7\n";
	const struct config_vm *vm;
	struct config *config;
	char *error;

	check_eq(config_new_from_text(&config, "f", text, &error), 0);
	check_str(config->driver, "soft");
	check_eq(config->log_level, VGPU_LOG_DEBUG);
	check_str(config->log_file, "/var/log/vgpud.log");
	check_str(config->flight_folder, "/var/log/vgpud");
	check_eq(config->warm_workers, 0);
	check_eq(config->max_workers, 7);
	check_str(config->softgpu_name, "a b");
	check_str(config->softgpu_cc, "9.0");
	check_eq(config->softgpu_memory, 2ull << 30);
	check_eq(config->softgpu_threads, 3);
	check_eq(config->softgpu_kernel_timeout, 7);
	check_eq(config->softgpu_devices, 2);
	check_str(config->softgpu_schedule, "fair");
	check_str(config->softgpu_check, "memory, race");
	check_eq(config->n_vms, 3);
	vm = config_vm_at(config, 0);
	check_str(vm->name, "one");
	check_eq(vm->transport, CONFIG_IVSHMEM);
	check_eq(vm->size, 1u << 30);
	check_eq(vm->hugepages, CONFIG_HUGEPAGES_HUGETLB);
	check_eq(vm->device_memory, 512u << 20);
	check_eq(vm->max_processes, 3);
	check_eq(vm->softgpu_launch_timeout, 30);
	check_eq(vm->socket_mode, 0600);
	check_eq(vm->socket_group, 0);
	check_eq(vm->memory_owner, (uid_t)-1);
	check(!config->allow_unprivileged);
	vm = config_vm_at(config, 1);
	check_eq(vm->transport, CONFIG_SOCKET);
	check_eq(vm->size, 4ull << 30);
	check_eq(vm->hugepages, CONFIG_HUGEPAGES_NO);
	check_eq(vm->max_processes, 64);
	check_eq(vm->socket_mode, 0660);
	vm = config_vm_at(config, 2);
	check_str(vm->memory, "/dev/shm/vgpud/x");
	check_eq(vm->memory_owner, 7);
	check(!config_vm_at(config, 3));
	config_free(config);
}

static const struct {
	const char *text;
	const char *error;
} mistakes[] = {
	{ "", "f:0: there is no [vm NAME] section" },
	{ "[vgpud]\n", "f:1: there is no [vm NAME] section" },
	{ "driver = soft\n", "f:1: a key before the first section" },
	{ "[vgpud]\nnonsense\n", "f:2: neither [SECTION] nor KEY = VALUE nor a comment" },
	{ "[vgpud\n", "f:1: neither [SECTION] nor KEY = VALUE nor a comment" },
	{ "[vgpd]\na = b\n",
		"f:1: there is no section [vgpd], only [vgpud] and [vm NAME]" },
	{ "[vgpud]\n\ncolour = red\n", "f:3: there is no key \"colour\" in [vgpud]" },
	{ "[vgpud]\nsocket = /x\n", "f:2: there is no key \"socket\" in [vgpud]" },
	{ "[vgpud]\ndriver = cuda\n",
		"f:2: driver is auto, nvidia, soft, null or the absolute path of a "
		"libcuda.so.1, not \"cuda\"" },
	{ "[vgpud]\ndriver =\n",
		"f:2: driver is auto, nvidia, soft, null or the absolute path of a "
		"libcuda.so.1, not \"\"" },
	{ "[vgpud]\nlog-level = loud\n",
		"f:2: log-level is none, error, warning, info or debug, not \"loud\"" },
	{ "[vgpud]\nworker = vgpu-worker\n",
		"f:2: \"vgpu-worker\" is not an absolute path" },
	{ "[vgpud]\nwarm-workers = -1\n", "f:2: \"-1\" is not a number from 0 to 4096" },
	{ "[vgpud]\nmax-workers = 0\n", "f:2: \"0\" is not a number from 1 to 4096" },
	{ "[vgpud]\nmax-workers = 4k\n", "f:2: \"4k\" is not a number from 1 to 4096" },
	{ "[vgpud]\nsoftgpu-cc = 12\n",
		"f:2: \"12\" is not a compute capability like 12.1" },
	{ "[vgpud]\nsoftgpu-cc = 12.1x\n",
		"f:2: \"12.1x\" is not a compute capability like 12.1" },
	{ "[vgpud]\nsoftgpu-schedule = fare\n",
		"f:2: softgpu-schedule is long or fair, not \"fare\"" },
	{ "[vgpud]\nsoftgpu-check = 1\n", "f:2: softgpu-check is yes, no, or a list of "
					  "memory, race, uninitialised and "
					  "fatal, not \"1\"" },
	{ "[vgpud]\nsoftgpu-check = memory,\n", "f:2: softgpu-check is yes, no, or a "
						"list of memory, race, uninitialised and "
						"fatal, not \"memory,\"" },
	{ "[vgpud]\nsoftgpu-devices = 9\n", "f:2: \"9\" is not a number from 1 to 8" },
	{ "[vgpud]\nsoftgpu-memory = 0\n",
		"f:2: \"0\" is not a size like 4G, 512M or 65536" },
	{ "[vm a]\nsize = 99999999999999999999\n",
		"f:2: \"99999999999999999999\" is not a size like 4G, 512M or 65536" },
	{ "[vm a]\nsize = 16777216T\n",
		"f:2: \"16777216T\" is not a size like 4G, 512M or 65536" },
	{ "[vm a]\nsize = 4GB\n", "f:2: \"4GB\" is not a size like 4G, 512M or 65536" },
	{ "[vm a]\nsize = 48M\n",
		"f:2: size is a power of two (QEMU aborts on any other), 48M is not" },
	{ "[vm a]\nsize = 32M\n", "f:2: size is from 64M to 256G, 32M is not" },
	{ "[vm a]\nsize = 512G\n", "f:2: size is from 64M to 256G, 512G is not" },
	{ "[vm a]\ntransport = tcp\n",
		"f:2: transport is ivshmem, socket or plain, not \"tcp\"" },
	{ "[vm a]\nhugepages = yes\n",
		"f:2: hugepages is no, transparent or hugetlb, not \"yes\"" },
	{ "[vm a]\ntransport = socket\nsocket = /s\nhugepages = hugetlb\n",
		"f:1: [vm a] has hugepages = hugetlb, which is for transport = ivshmem" },
	{ "[vm a]\nsocket-mode = 888\n", "f:2: \"888\" is not an octal mode like 0660" },
	{ "[vm a]\nsocket-group = no-such-group\n",
		"f:2: there is no group \"no-such-group\"" },
	{ "[vm a]\n", "f:1: [vm a] needs socket = PATH" },
	{ "[vm a]\ntransport = plain\n",
		"f:1: [vm a] with transport = plain needs memory = PATH" },
	{ "[vm a]\nmemory = /m\nsocket = /s\n",
		"f:1: [vm a] has memory = PATH, which is for transport = plain" },
	{ "[vm a]\nsocket = /s\nmemory-owner = root\n",
		"f:1: [vm a] has memory-owner, which is for transport = plain" },
	{ "[vm a]\ntransport=plain\nmemory = /m\nmemory-owner = no such\n",
		"f:4: there is no user \"no such\"" },
	{ "[vgpud]\nmeter = on\n", "f:2: \"on\" is neither yes nor no" },
	{ "[vgpud]\nallow-unprivileged = 1\n", "f:2: \"1\" is neither yes nor no" },
	{ "[vm a]\ntransport=plain\nmemory = /m\nsocket = /s\n",
		"f:1: [vm a] with transport = plain has no socket" },
	{ "[vm a/b]\nsocket = /s\n", "f:1: the name of a VM has letters, digits, '-', "
				     "'_' and '.' only, \"a/b\" "
				     "does not" },
	{ "[vm a]\nsocket = /s\n[vgpud]\nwarm-workers = 1\n[vm a]\nsize = 64M\n",
		"f:5: there is a [vm a] in line 1 already" },
	{ "[vm a]\nsocket = /s\n[vm a]\nsize = 4G\n",
		"f:3: there is a [vm a] in line 1 already" },
	{ "[vgpud]\n[vm a]\nsocket = /s\n[vgpud]\n",
		"f:4: there is a [vgpud] in line 1 already" },
	{ "[vgpud]\n[vgpud]\n[vm a]\nsocket = /s\n",
		"f:2: there is a [vgpud] in line 1 already" },
	{ "[vm a]\nsocket = /s\nsocket = /t\n",
		"f:3: there is a key \"socket\" in line 2 already" },
	{ "[vm a]\nsocket = /s\n  /t\n",
		"f:3: there is a key \"socket\" in line 2 already" },
	{ "[vm a]\nsocket = /s\n  [vm b]\n",
		"f:3: there is a key \"socket\" in line 2 already" },
	{ "[vm a]\nsocket = /s\nsize = 128M\n",
		"f:1: [vm a]: size = 128M has room for 3 guest processes, of 36 MiB each "
		"beside 2 MiB for all; max-processes = 31 (the default) takes size = "
		"2G" },
	{ "[vm a]\nsocket = /s\nsize = 256M\nmax-processes = 8\n",
		"f:1: [vm a]: size = 256M has room for 7 guest processes, of 36 MiB each "
		"beside 2 MiB for all; max-processes = 8 takes size = 512M" },
	{ "[vm a]\nsocket = /s\n[vm b]\nsocket = /s\n",
		"f:4: socket /s is the one of [vm a] already" },
	{ "[vgpud]\nwarm-workers = 4097\n",
		"f:2: \"4097\" is not a number from 0 to 4096" },
	{ "[vgpud]\nsoftgpu = softgpu.so\n",
		"f:2: \"softgpu.so\" is not an absolute path" },
	{ "[vgpud]\nnull-driver =\n", "f:2: \"\" is not an absolute path" },
	{ "[vgpud]\nlog-file = log\n", "f:2: \"log\" is not an absolute path" },
	{ "[vgpud]\nflight-folder = log\n", "f:2: \"log\" is not an absolute path" },
	{ "[vgpud]\nctl-socket = yes\n", "f:2: \"yes\" is not an absolute path" },
	{ "[vgpud]\nctl-socket = /s\n[vm a]\nsocket = /s\n",
		"f:1: ctl-socket = /s is the socket of [vm a]" },
	{ "[vgpud]\nctl-socket = /./s\n[vm a]\nsocket = //s\n",
		"f:1: ctl-socket = /./s is the socket of [vm a], //s" },
	{ "[vm a]\nsocket = /s\n[vm b]\nsocket = /dev/../s\n",
		"f:3: [vm b]: socket = /dev/../s is the socket of [vm a], /s" },
	{ "[vm a]\nsocket = /none/of/s\n[vm b]\nsocket = /none/of/s\n",
		"f:4: socket /none/of/s is the one of [vm a] already" },
	{ "[vm a]\ntransport = plain\nmemory = /m\n[vm b]\ntransport = plain\n"
	  "memory = /m\n",
		"f:4: [vm b]: memory = /m is the memory of [vm a]" },
	{ "[vm a]\ntransport = plain\nmemory = /none/of/m\n[vm b]\n"
	  "transport = plain\nmemory = /none/of/m\n",
		"f:4: [vm b]: memory = /none/of/m is the memory of [vm a]" },
	{ "[vm a]\nsocket = /m\n[vm b]\ntransport = plain\nmemory = /m\n",
		"f:3: [vm b]: memory = /m is the socket of [vm a]" },
	{ "[vm a]\nsocket = /s\n# \x1b[2J\n",
		"f:3: the line has a character that is not of a text" },
	{ "[vgpud]\nctl-admins = no such\n", "f:2: there is no group \"no such\"" },
	{ "[vgpud]\nctl-monitors = no such\n", "f:2: there is no group \"no such\"" },
	{ "[vgpud]\nsoftgpu-name =\n", "f:2: the value is empty" },
	{ "[vgpud]\nsoftgpu-kernel-timeout = 86401\n",
		"f:2: \"86401\" is not a number from 0 to 86400" },
	{ "[vgpud]\nsoftgpu-threads = 0\n", "f:2: \"0\" is not a number from 1 to 4096" },
	{ "[vgpud]\nsandbox = maybe\n", "f:2: \"maybe\" is neither yes nor no" },
	{ "[vgpud]\nsandbox =\n", "f:2: \"\" is neither yes nor no" },
	{ "[vgpud]\nworker-uids = 70000\n",
		"f:2: \"70000\" is not a range of user ids from 1000 on like "
		"70000-74095" },
	{ "[vgpud]\nworker-uids = 0-5000\n",
		"f:2: \"0-5000\" is not a range of user ids from 1000 on like "
		"70000-74095" },
	{ "[vgpud]\nworker-uids = 74095-70000\n",
		"f:2: \"74095-70000\" is not a range of user ids from 1000 on like "
		"70000-74095" },
	{ "[vgpud]\nworker-uids = 70000-70127x\n",
		"f:2: \"70000-70127x\" is not a range of user ids from 1000 on like "
		"70000-74095" },
	{ "[vgpud]\nworker-uids = 70000-70009\n[vm a]\nsocket = /s\n",
		"f:1: worker-uids has fewer numbers than max-workers = 128" },
	{ "[vm a]\nsocket = s\n", "f:2: \"s\" is not an absolute path" },
	{ "[vm a]\nmemory = m\n", "f:2: \"m\" is not an absolute path" },
	{ "[vm a]\ndevice-memory = lots\n",
		"f:2: \"lots\" is not a size like 4G, 512M or 65536" },
	{ "[vm a]\nimage-memory = 0\n",
		"f:2: \"0\" is not a size like 4G, 512M or 65536" },
	{ "[vm a]\nimage-store = none\n",
		"f:2: \"none\" is not a size like 4G, 512M or 65536" },
	{ "[vm a]\nhost-memory = -1G\n",
		"f:2: \"-1G\" is not a size like 4G, 512M or 65536" },
	{ "[vm a]\nmax-processes = 0\n", "f:2: \"0\" is not a number from 1 to 4096" },
	{ "[vm a]\nhandles = 15\n", "f:2: \"15\" is not a number from 16 to 262144" },
	{ "[vm a]\nhandles = 262145\n",
		"f:2: \"262145\" is not a number from 16 to 262144" },
	{ "[vgpud]\ndevice-memory-total = 0\n",
		"f:2: \"0\" is not a size like 4G, 512M or 65536" },
	{ "[vgpud]\nevict-idle = 0\n", "f:2: \"0\" is not a number from 1 to 86400" },
	{ "[vm a]\nevictable = maybe\n", "f:2: \"maybe\" is neither yes nor no" },
	{ "[vm a]\nmax-threads = 1025\n",
		"f:2: \"1025\" is not a number from 1 to 1024" },
	{ "[vm a]\ncpu = 0\n", "f:2: \"0\" is not a number from 1 to 100000" },
	{ "[vm a]\ncpu = 50%\n", "f:2: \"50%\" is not a number from 1 to 100000" },
	{ "[vgpud]\nquantum = 0\n", "f:2: \"0\" is not a number from 1 to 1000" },
	{ "[vm a]\nweight = 0\n", "f:2: \"0\" is not a number from 1 to 10000" },
	{ "[vm a]\npriority = highest\n",
		"f:2: priority is low, normal or high, not \"highest\"" },
	{ "[vm a]\ndevices = 0,0\n", "f:2: \"0\" is there twice" },
	{ "[vm a]\npaused = 1\n", "f:2: \"1\" is neither yes nor no" },
	{ "[vm a]\ncopy-bandwidth = 1023K\n",
		"f:2: copy-bandwidth is bytes a second, from 1M, \"1023K\" is not" },
	{ "[vm a]\nprocess-rate = 0\n", "f:2: \"0\" is not a number from 1 to 1000" },
	{ "[vm a]\nprocess-rate = 1001\n",
		"f:2: \"1001\" is not a number from 1 to 1000" },
	{ "[vm a]\nlog-lines = none\n",
		"f:2: \"none\" is not a number from 1 to 100000" },
	{ "[vm a]\nsoftgpu-launch-timeout = 86401\n",
		"f:2: \"86401\" is not a number from 0 to 86400" },
	{ "[vm a]\nsocket-mode =\n", "f:2: \"\" is not an octal mode like 0660" },
	{ "[vm a]\nsocket-group =\n", "f:2: there is no group \"\"" },
	/* All errors are reported; possible consequences of one are not. */
	{ "[vm a]\nsize = 1\nx\nsize = 2\ncolour = red\n[vgpd]\nx = y\n[vm b]\n"
	  "socket = s\nsocket-mode = 9\n[vm c]\n= 1\n[vm d\n",
		"f:2: size is from 64M to 256G, 1 is not\n"
		"f:3: neither [SECTION] nor KEY = VALUE nor a comment\n"
		"f:4: there is a key \"size\" in line 2 already\n"
		"f:5: there is no key \"colour\" in [vm a]\n"
		"f:6: there is no section [vgpd], only [vgpud] and [vm NAME]\n"
		"f:9: \"s\" is not an absolute path\n"
		"f:10: \"9\" is not an octal mode like 0660\n"
		"f:12: there is no key \"\" in [vm c]\n"
		"f:13: neither [SECTION] nor KEY = VALUE nor a comment" },
	{ "[vm a]\nsocket = /s\n[vm b]\n[vm c]\nsocket = /t\nsize = 64M\n",
		"f:3: [vm b] needs socket = PATH\n"
		"f:4: [vm c]: size = 64M has room for 1 guest processes, of 36 MiB each "
		"beside 2 MiB for all; max-processes = 31 (the default) takes size = "
		"2G" },
};

TEST(sizes_that_suffice_are_taken)
{
	static const char *const sizes[] = { "128M\nmax-processes = 3",
		"256M\nmax-processes = 7", "512M\nmax-processes = 14",
		"1G\nmax-processes = 28", "2G", "2G\nmax-processes = 4096",
		"64M\ntransport = socket" };
	struct config *config;
	char text[256], *error;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		snprintf(
			text, sizeof(text), "[vm a]\nsocket = /s\nsize = %s\n", sizes[i]);
		check_eq(config_new_from_text(&config, "f", text, &error), 0);
		config_free(config);
	}
}

TEST(a_file_of_another_kind_costs_a_bounded_number_of_lines)
{
	_vgpu_cleanup_(vgpu_freep) char *text = calloc(100000, 2);
	struct config *config;
	char *error, *last;

	for (size_t i = 0; i < 99999; i++)
		memcpy(text + 2 * i, "x\n", 2);
	check_eq(config_new_from_text(&config, "f", text, &error), CONFIG_E_INVALID);
	last = strrchr(error, '\n');
	check_str(last + 1, "and 99967 more");
	check(strlen(error) < 4096);
	free(error);
}

TEST(every_mistake_is_reported_with_file_line_and_reason)
{
	struct config *config = NULL;
	char *error;

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++) {
		check_eq(config_new_from_text(&config, "f", mistakes[i].text, &error),
			CONFIG_E_INVALID);
		check_str(error, mistakes[i].error);
		free(error);
	}
}

TEST(every_key_has_a_mistake_that_is_tested)
{
	static const char *const keys[] = { "driver", "log-level", "log-file",
		"flight-folder", "ctl-socket", "ctl-admins", "ctl-monitors",
		"warm-workers", "max-workers", "sandbox", "worker-uids", "worker",
		"softgpu", "null-driver", "softgpu-name", "softgpu-cc", "softgpu-memory",
		"softgpu-threads", "softgpu-devices", "softgpu-kernel-timeout",
		"softgpu-schedule", "softgpu-check", "transport", "socket", "socket-mode",
		"socket-group", "memory", "size", "device-memory", "image-memory",
		"image-store", "host-memory", "handles", "max-processes", "process-rate",
		"log-lines", "copy-bandwidth", "softgpu-launch-timeout", "weight",
		"priority", "paused", "quantum", "devices", "device-memory-total",
		"evict-idle", "evictable", "meter", "max-threads", "cpu" };
	char pattern[64];
	size_t i, j;

	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		snprintf(pattern, sizeof(pattern), "]\n%s =", keys[i]);
		for (j = 0; j < sizeof(mistakes) / sizeof(*mistakes); j++)
			if (strstr(mistakes[j].text, pattern))
				break;
		if (j == sizeof(mistakes) / sizeof(*mistakes))
			test_fail(__FILE__, __LINE__, "no mistake with %s", keys[i]);
	}
}

TEST(lines_and_names_that_the_parser_would_cut_are_refused)
{
	char text[4096], *error;
	struct config *config;

	snprintf(text, sizeof(text), "[vgpud]\nlog-file = /%0500d\n", 0);
	check_eq(config_new_from_text(&config, "f", text, &error), CONFIG_E_INVALID);
	check(!strncmp(error, "f:2: the line has more than ", 28));
	check(!strchr(error, '\n'));
	free(error);
	snprintf(text, sizeof(text), "[vm %060d]\nsocket = /s\n", 0);
	check_eq(config_new_from_text(&config, "f", text, &error), CONFIG_E_INVALID);
	check(strstr(error, "is too long"));
	free(error);
	snprintf(text, sizeof(text), "[vm a]\nsocket = /%0120d\n", 0);
	check_eq(config_new_from_text(&config, "f", text, &error), CONFIG_E_INVALID);
	check(!strncmp(error, "f:2: the path of a socket has at most 107", 40));
	free(error);
}

TEST(sizes_are_numbers_with_one_unit)
{
	uint64_t size;

	check(config_parse_size("65536", &size) == 0 && size == 65536);
	check(config_parse_size("1K", &size) == 0 && size == 1024);
	check(config_parse_size("4G", &size) == 0 && size == 4ull << 30);
	check(config_parse_size("2T", &size) == 0 && size == 2ull << 40);
	check(config_parse_size("", &size) == CONFIG_E_INVALID);
	check(config_parse_size("G", &size) == CONFIG_E_INVALID);
	check(config_parse_size("-1", &size) == CONFIG_E_INVALID);
	check(config_parse_size(" 1", &size) == CONFIG_E_INVALID);
	check(config_parse_size("1 G", &size) == CONFIG_E_INVALID);
	check(config_parse_size("18446744073709551616", &size) == CONFIG_E_INVALID);
	check(config_parse_size("17179869184G", &size) == CONFIG_E_INVALID);
}
