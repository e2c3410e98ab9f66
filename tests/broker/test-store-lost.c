/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the service manager has kept for vgpud, and cannot be continued as it is
 */

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper/bundle.h"
#include "manager.h"
#include "service.h"
#include "test.h"
#include "vgpu-keeper.pb-c.h"
#include "vgpud/config-source.h"

static void serve_another_qemu(void)
{
	struct guest other;

	guest_connect_qemu(&other, service_path("qemu"));
	guest_open(&other, 0, "app");
	guest_close(&other, 0);
	guest_disconnect(&other);
}

/* Everything is let go. */
static void start_afresh(const char *why)
{
	const unsigned int n = pair_count_log(&pair, "vgpud ready");
	char end;

	pair_spawn(&pair, &options);
	pair_wait_log(&pair, "vgpud ready", n + 1);
	check_eq(pair_count_log(&pair, why), 1);
	check_eq(pair_count_log(&pair, "continues what"), 0);
	guest_wait_for(!service_is_alive(worker) && !service_is_alive(in_qemu));
	/* The machine sees that its device is gone. */
	check_eq(recv(qemu.socket, &end, 1, 0), 0);
	guest_disconnect(&guest);
	guest_disconnect(&qemu);
	service_serve_another(pair.socket);
	serve_another_qemu();
	pair_stop(&pair);
	manager_settle();
	check_eq(manager_count(), 0);
	service_end();
}

/* Return: the place of the bundle with the base, and what it says. */
static unsigned int find_base(
	VgpuKeeper__State **statep, int *fds, size_t *n_fdsp, struct bundle_label *label)
{
	struct manager_fd *kept;
	unsigned int n;
	uint8_t bytes[4096];
	ssize_t size;

	kept = manager_kept(&n);
	for (unsigned int i = 0; i < n; i++) {
		check_eq(bundle_read_label(kept[i].fd, label), 0);
		check_eq(bundle_open(kept[i].fd, fds, n_fdsp), 0);
		size = pread(fds[0], bytes, sizeof(bytes), 0);
		check(size > 0);
		*statep = vgpu_keeper__state__unpack(NULL, size, bytes);
		check(*statep != NULL);
		if (*(*statep)->version)
			return i;
		vgpu_keeper__state__free_unpacked(*statep, NULL);
		for (size_t j = 0; j < *n_fdsp; j++)
			close(fds[j]);
	}
	test_fail(__FILE__, __LINE__, "there is no base");
}

/* Stores it again with another message. */
static void change_base(void (*change)(uint8_t *bytes, size_t *sizep))
{
	struct bundle_label label;
	VgpuKeeper__State *state;
	int fds[BUNDLE_FDS_MAX];
	uint8_t bytes[4096];
	struct manager_fd *kept;
	size_t n_fds, size;
	unsigned int n, i;

	i = find_base(&state, fds, &n_fds, &label);
	state->version[0] = '7';
	size = vgpu_keeper__state__pack(state, bytes);
	vgpu_keeper__state__free_unpacked(state, NULL);
	if (change)
		change(bytes, &size);
	close(fds[0]);
	fds[0] = memfd_create("changed", MFD_CLOEXEC);
	check_eq(write(fds[0], bytes, size), size);
	kept = manager_kept(&n);
	close(kept[i].fd);
	kept[i].fd = bundle_make(&label, fds, n_fds);
	check(kept[i].fd >= 0);
	for (size_t j = 0; j < n_fds; j++)
		close(fds[j]);
}

TEST(sessions_of_another_version_are_let_go)
{
	service_start();
	service_kill();
	change_base(NULL);
	start_afresh("those that an earlier vgpud has stored have version 7");
}

static void garble(uint8_t *bytes, size_t *sizep)
{
	memset(bytes, 0xff, *sizep);
}

TEST(a_message_that_is_none_is_not_used)
{
	service_start();
	service_kill();
	change_base(garble);
	start_afresh("what an earlier vgpud has stored cannot be read");
}

/* Whether a bundle is what the test is about; its first descriptor is the message. */
typedef bool (*is_it_fn)(const VgpuKeeper__State *state);

static bool is_qemu(const VgpuKeeper__State *state)
{
	return state->n_vms && !strcmp(state->vms[0]->section, "qemu");
}

static bool is_worker_in_qemu(const VgpuKeeper__State *state)
{
	return state->n_workers && state->workers[0]->pid == in_qemu;
}

static void garble_bundle(struct manager_fd *kept, const int *fds, size_t n_fds)
{
	struct bundle_label label;
	int changed[BUNDLE_FDS_MAX];

	check_eq(bundle_read_label(kept->fd, &label), 0);
	memcpy(changed, fds, n_fds * sizeof(*fds));
	changed[0] = memfd_create("garbled", MFD_CLOEXEC);
	check_eq(write(changed[0], "\xff\xff\xff", 3), 3);
	close(kept->fd);
	kept->fd = bundle_make(&label, changed, n_fds);
	check(kept->fd >= 0);
	close(changed[0]);
}

/* Stores all of these again with a message that is none. */
static void garble_parts(is_it_fn is_it)
{
	unsigned int n, n_garbled = 0;
	struct manager_fd *kept = manager_kept(&n);
	VgpuKeeper__State *state;
	int fds[BUNDLE_FDS_MAX];
	uint8_t bytes[4096];
	size_t n_fds;
	ssize_t size;

	for (unsigned int i = 0; i < n; i++) {
		check_eq(bundle_open(kept[i].fd, fds, &n_fds), 0);
		size = pread(fds[0], bytes, sizeof(bytes), 0);
		check(size > 0);
		state = vgpu_keeper__state__unpack(NULL, size, bytes);
		check(state != NULL);
		if (is_it(state)) {
			garble_bundle(&kept[i], fds, n_fds);
			n_garbled++;
		}
		vgpu_keeper__state__free_unpacked(state, NULL);
		for (size_t j = 0; j < n_fds; j++)
			close(fds[j]);
	}
	check_eq(n_garbled, 1);
}

static void stop_after_loss(void)
{
	guest_close(&guest, 0);
	guest_disconnect(&guest);
	guest_wait_for(!service_is_alive(worker));
	pair_stop(&pair);
	manager_settle();
	check_eq(manager_count(), 0);
	service_end();
}

/* The other session goes on, and all of it can end in order. */
static void check_the_rest(void)
{
	check_eq(pair_count_log(&pair, "what an earlier vgpud has stored cannot be read"),
		1);
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	check_eq(guest_entry(&guest, 0)->worker_pid, worker);
	check(service_is_alive(worker));
	service_serve_another(pair.socket);
	serve_another_qemu();
	stop_after_loss();
}

TEST(a_vm_whose_part_cannot_be_read_is_let_go_alone)
{
	char end;

	service_start();
	service_kill();
	garble_parts(is_qemu);
	service_continue();
	guest_wait_for(!service_is_alive(in_qemu));
	/* The machine sees that its device is gone. */
	check_eq(recv(qemu.socket, &end, 1, 0), 0);
	guest_disconnect(&qemu);
	check_the_rest();
}

TEST(a_session_whose_worker_cannot_be_read_ends_alone)
{
	service_start();
	service_kill();
	garble_parts(is_worker_in_qemu);
	service_continue();
	guest_wait_for(!service_is_alive(in_qemu));
	guest_wait_for(guest_entry(&qemu, 0)->state != VGPU_CHANNEL_OPEN);
	/* The device is as it was. */
	guest_open(&qemu, 1, "app");
	guest_close(&qemu, 1);
	guest_disconnect(&qemu);
	check_the_rest();
}

static void empty(uint8_t *bytes, size_t *sizep)
{
	(void)bytes;
	*sizep = 0;
}

TEST(a_state_without_its_base_is_not_used)
{
	service_start();
	service_kill();
	change_base(empty);
	start_afresh("is not complete");
}

TEST(numbers_of_descriptors_that_are_not_there_are_not_used)
{
	struct bundle_label label;
	VgpuKeeper__State *state;
	int fds[BUNDLE_FDS_MAX];
	struct manager_fd *kept;
	size_t n_fds;
	unsigned int n, i;

	service_start();
	service_kill();
	i = find_base(&state, fds, &n_fds, &label);
	kept = manager_kept(&n);
	close(kept[i].fd);
	/* The message is the same, the sources are not there. */
	kept[i].fd = bundle_make(&label, fds, 1);
	vgpu_keeper__state__free_unpacked(state, NULL);
	for (size_t j = 0; j < n_fds; j++)
		close(fds[j]);
	start_afresh("what an earlier vgpud has stored cannot be read");
}

/* Stores the base again, with a configuration that has a mistake for this program. */
static void spoil_sources(void)
{
	struct config_sources sources = CONFIG_SOURCES_NULL;
	struct bundle_label label;
	VgpuKeeper__State *state;
	int fds[BUNDLE_FDS_MAX], spoiled;
	struct manager_fd *kept;
	size_t n_fds;
	unsigned int n, i;
	char *failed = NULL;
	FILE *file;

	file = fopen(service_path("spoiled"), "w");
	check(file && fputs("[vgpud]\nof-another-release = yes\n", file) >= 0);
	check_eq(fclose(file), 0);
	check_eq(config_sources_read(&sources, service_path("spoiled"), &failed), 0);
	check_eq(config_sources_keep(&sources, &spoiled), 0);
	config_sources_deinit(&sources);
	i = find_base(&state, fds, &n_fds, &label);
	/* The first is the message itself. */
	check(state->sources >= 0 && (size_t)state->sources + 1 < n_fds);
	close(fds[state->sources + 1]);
	fds[state->sources + 1] = spoiled;
	vgpu_keeper__state__free_unpacked(state, NULL);
	kept = manager_kept(&n);
	close(kept[i].fd);
	kept[i].fd = bundle_make(&label, fds, n_fds);
	check(kept[i].fd >= 0);
	for (size_t j = 0; j < n_fds; j++)
		close(fds[j]);
}

TEST(a_stored_configuration_with_mistakes_is_replaced_by_the_file)
{
	service_start();
	service_kill();
	spoil_sources();
	service_continue();
	check_eq(pair_count_log(&pair, "of-another-release"), 1);
	check_eq(pair_count_log(&pair, "has stored cannot be used"), 1);
	check_eq(pair_count_log(&pair, "loses its device"), 0);
	manager_wait_ready(2);
	/* The next one finds the other configuration in the store, once that is there. */
	service_step_aside();
	service_continue();
	check_eq(pair_count_log(&pair, "has stored cannot be used"), 1);
	service_serve_another(pair.socket);
	service_stop();
}

/* The VM of section "qemu", which is as it was for the other one, is not continued. */
static void lose_qemu(const char *section)
{
	char end;

	service_kill();
	spoil_sources();
	options.sections = section;
	service_continue();
	pair_wait_log(&pair, "vm=qemu id=2: the VM loses its device", 1);
	guest_wait_for(!service_is_alive(in_qemu));
	check_eq(recv(qemu.socket, &end, 1, 0), 0);
	check_eq(guest_entry(&guest, 0)->state, VGPU_CHANNEL_OPEN);
	check(service_is_alive(worker));
	guest_disconnect(&qemu);
}

TEST(then_a_vm_whose_section_has_another_socket_is_lost)
{
	char section[300];

	service_start();
	snprintf(section, sizeof(section),
		"[vm qemu]\nsize = 256M\nmax-processes = 3\nsocket = %s\n",
		service_path("elsewhere"));
	lose_qemu(section);
	guest_connect_qemu(&qemu, service_path("elsewhere"));
	guest_open(&qemu, 0, "app");
	guest_close(&qemu, 0);
	guest_disconnect(&qemu);
	check(access(service_path("qemu"), F_OK) < 0);
	stop_after_loss();
}

TEST(then_a_vm_whose_section_has_another_transport_is_lost)
{
	struct guest other;
	char section[300];

	service_start();
	snprintf(section, sizeof(section), "[vm qemu]\ntransport = socket\nsocket = %s\n",
		service_path("qemu"));
	lose_qemu(section);
	/* The greeting of the other transport; the fake worker takes no such "qemu". */
	guest_connect(&other, service_path("qemu"));
	guest_disconnect(&other);
	stop_after_loss();
}

TEST(then_a_vm_whose_section_is_gone_is_lost)
{
	service_start();
	lose_qemu(NULL);
	stop_after_loss();
}

/* vgpud cannot start, and has decided nothing. */
TEST(nothing_is_let_go_while_both_configurations_have_mistakes)
{
	int status;

	service_start();
	service_kill();
	spoil_sources();
	options.vm_lines = "size = 3\n";
	pair_spawn(&pair, &options);
	status = pair_wait_exit(&pair);
	check(WIFEXITED(status));
	check_eq(WEXITSTATUS(status), 2);
	manager_settle();
	check(service_is_alive(worker) && service_is_alive(in_qemu));
	options.vm_lines = NULL;
	service_continue();
	service_stop();
}

TEST(descriptors_of_others_are_closed_and_the_rest_is_used)
{
	int pair_of_fds[2];

	service_start();
	service_kill();
	check_eq(pipe2(pair_of_fds, O_CLOEXEC), 0);
	manager_add("stored", pair_of_fds[0]);
	manager_add("vgpud-1", open("/dev/null", O_RDWR | O_CLOEXEC));
	service_continue();
	pair_wait_log(&pair, "which is not vgpud's", 2);
	/* vgpud is heard before it serves, so nobody has the other end any more. */
	check_eq(poll(&(struct pollfd){ .fd = pair_of_fds[1] }, 1, 30000), 1);
	close(pair_of_fds[1]);
	service_stop();
}

TEST(a_vgpud_that_wants_no_store_lets_everything_go)
{
	service_start();
	service_kill();
	options.argument = NULL;
	start_afresh("all sessions and VMs of an earlier vgpud are let go");
}
