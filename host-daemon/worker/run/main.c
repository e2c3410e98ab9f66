/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-worker: replays the calls of one guest process on a driver
 */

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/control.h"
#include "vgpu/cleanup.h"
#include "vgpu/error.h"
#include "vgpu/hello.h"
#include "vgpu/log.h"
#include "vgpu/version.h"
#include "worker/base/flight.h"
#include "worker/base/reason.h"
#include "worker/base/recorder.h"
#include "worker/base/session.h"
#include "worker/base/trace.h"
#include "worker/code/store.h"
#include "worker/handle/device-info.h"
#include "worker/memory/growth.h"
#include "worker/memory/device-memory.h"
#include "worker/memory/managed.h"
#include "worker/memory/residency.h"
#include "worker/memory/share.h"
#include "worker/output/driver-output.h"
#include "worker/output/print.h"
#include "worker/run/dispatcher.h"
#include "worker/run/latency.h"
#include "worker/run/options.h"
#include "worker/run/recorded.h"
#include "worker/run/reservation.h"
#include "worker/run/sandbox.h"
#include "worker/run/session-life.h"
#include "worker/wait/meter.h"

/* How long a worker may take to end after its control socket. */
#define HANGUP_S 5

enum {
	_WORKER_E_SUCCESS,

	WORKER_E_DISMISSED, /* vgpud does not need the worker, or is gone */
};

/* All that main() and its helpers share. */
struct worker_process {
	struct options options;
	struct reservation reservation;
	struct driver driver;
	struct worker_stats *stats;
	struct flight *flight;
	struct trace *trace;
	struct worker_wishes *wishes;
	struct session session;
	bool has_session;
};

static struct worker_process worker;

static struct softgpu_allowance *allowance_of(struct worker_process *w)
{
	return (struct softgpu_allowance *)(void *)((uint8_t *)w->stats +
						    WORKER_ALLOWANCE_OFF);
}

static int map_stats(struct worker_process *w)
{
	int r;

	w->stats = mmap(NULL, WORKER_STATS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		w->options.stats, 0);
	if (w->stats == MAP_FAILED)
		return vgpu_error_origin(-errno);
	w->options.driver.softgpu.allowance = allowance_of(w);
	r = flight_map(&w->flight, w->options.stats);
	if (!r)
		r = trace_map(&w->trace, &w->wishes, w->options.stats);
	return r ? vgpu_error_trace(r) : 0;
}

static int send_opened(struct worker_process *w, uint32_t reason)
{
	struct control_message message = {
		.type = CONTROL_OPENED,
		.opened.reason = reason,
	};

	return control_send(w->options.control, &message, NULL) ? WORKER_E_DISMISSED : 0;
}

static int enter_sandbox(struct worker_process *w)
{
	int r;

	dispatcher_prepare();
	r = sandbox_enter(&w->options.sandbox, sandbox_profile(&w->driver));
	if (r)
		vgpu_log_error("the sandbox cannot be entered: %s; a worker does not "
			       "serve outside of it unless sandbox = no",
			strerror(-r));
	return r;
}

static int begin_sandbox(struct worker_process *w)
{
	int r = sandbox_begin(&w->options.sandbox, &w->options.driver);

	if (r)
		vgpu_log_error("access to files cannot be dropped: %s; a worker does not "
			       "serve with it unless sandbox = no",
			strerror(-r));
	return r;
}

static struct worker_use *use_of(struct worker_process *w)
{
	return (struct worker_use *)(void *)((uint8_t *)w->stats + WORKER_USE_OFF);
}

/* vgpud shows them to guests that have no worker. */
static void publish_devices(struct worker_process *w)
{
	struct worker_devices *devices =
		(struct worker_devices *)(void *)((uint8_t *)w->stats +
						  WORKER_DEVICES_OFF);

	device_info_publish(devices);
	devices->flags = w->driver.configure ? WORKER_DEVICES_SOFTGPU : 0;
}

/* NVIDIA's driver reads these in cuInit. Its own order of devices is by speed. */
static int choose_devices(const char *list)
{
	if (list && (setenv("CUDA_VISIBLE_DEVICES", list, 1) ||
			    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1)))
		return vgpu_error_origin(-errno);
	return 0;
}

/* A VM has all devices of its list, or its processes none. Return: 0 or
 * DRIVER_E_NO_INIT. */
static int check_devices(const char *list, int n_devices)
{
	int n = 1;

	for (const char *c = list ? list : ""; *c; c++)
		n += *c == ',';
	if (!list || n == n_devices)
		return 0;
	vgpu_log_warning("devices = %s: the driver has %d of these %d, up to the first "
			 "that it does not know",
		list, n_devices, n);
	return DRIVER_E_NO_INIT;
}

/* Opens the driver and reports the result to vgpud. */
static int make_ready(struct worker_process *w)
{
	struct control_message message = {
		.type = CONTROL_READY,
		.ready.reason = VGPU_REASON_NONE,
		.ready.protocol_minor = vgpu_version.minor,
	};
	struct control_ready *ready = &message.ready;
	const struct vgpu_driver *driver = &w->driver.table;
	CUresult result;
	int r, n_devices = 0;

	message.greeting.version = CONTROL_VERSION;
	r = choose_devices(w->options.driver.softgpu.visible);
	if (!r)
		r = driver_select(&w->driver, &w->options.driver, &result);
	if (r == DRIVER_E_NO_INIT && w->options.driver.softgpu.visible)
		vgpu_log_warning("devices = %s: the driver may have none of these",
			w->options.driver.softgpu.visible);
	if (!r) {
		if (driver->cuDeviceGetCount)
			driver->cuDeviceGetCount(&n_devices);
		if (driver->cuDriverGetVersion)
			driver->cuDriverGetVersion(&ready->driver_version);
		ready->n_devices = n_devices;
		device_info_load(&w->driver, n_devices);
		publish_devices(w);
		r = check_devices(w->options.driver.softgpu.visible, n_devices);
	}
	if (!r)
		r = session_prepare(&w->session, &w->driver);
	/* Before the sandbox, and early: the frequency is measured from here on. */
	if (!r)
		r = latency_init(w->session.latency, w->options.stats);
	if (!r) {
		snprintf(ready->driver, sizeof(ready->driver), "%.63s",
			driver_name(&w->driver));
		/* softgpu passes the output of kernels to a function; other drivers write
		 * it to descriptors. */
		if (!w->driver.configure && driver_output_start())
			vgpu_log_warning("output of kernels will be lost");
		/* Before READY: no guest is served outside the sandbox. */
		r = enter_sandbox(w);
	}
	if (r == DRIVER_E_NO_INIT || (!r && !n_devices))
		ready->reason = VGPU_REASON_NO_DEVICE;
	else if (r == DRIVER_E_ABSENT || r == DRIVER_E_OURS)
		ready->reason = VGPU_REASON_NO_DRIVER;
	else if (r)
		ready->reason = VGPU_REASON_HOST;
	if (control_send(w->options.control, &message, NULL))
		return WORKER_E_DISMISSED;
	return ready->reason == VGPU_REASON_NONE ? 0 : vgpu_error_origin(-ENODEV);
}

/* Receives the next message, which must have that type; STOP or end-of-file dismiss the
 * worker. */
static int await(struct worker_process *w, struct control_message *message, int *fds,
	uint32_t type)
{
	int r = control_receive(w->options.control, message, fds);

	if (r)
		return r < 0 ? vgpu_error_trace(r) : WORKER_E_DISMISSED;
	if (message->type == CONTROL_STOP)
		return WORKER_E_DISMISSED;
	return message->type == type ? 0 : vgpu_error_origin(-EPROTO);
}

/*
 * Finds a window that is free on both sides. ASSIGN has the first candidate, each WINDOW
 * message a further one.
 */
static int settle_window(struct worker_process *w, const struct control_assign *assign,
	struct vgpu_window *window)
{
	struct control_message message;
	int fds[CONTROL_FDS_MAX], r;

	*window = (struct vgpu_window){ assign->window_base, assign->window_size };
	while (!vgpu_window_is_sane(window->base, window->size, assign->shm_size) ||
		reservation_settle(&w->reservation, window)) {
		r = send_opened(w, VGPU_REASON_WINDOW);
		if (!r)
			r = await(w, &message, fds, CONTROL_WINDOW);
		if (r)
			return r;
		*window =
			(struct vgpu_window){ message.window.base, message.window.size };
	}
	return 0;
}

/* vgpud is of another build: the rest of its messages cannot be interpreted. */
static int check_version(struct worker_process *w, uint32_t version)
{
	if (version == CONTROL_VERSION)
		return 0;
	vgpu_log_error("vgpud speaks version %u of the control protocol, this worker "
		       "version %u: vgpud and its worker program have to be of one "
		       "installation, and vgpud has to be restarted after a change",
		version, CONTROL_VERSION);
	send_opened(w, VGPU_REASON_HOST);
	return vgpu_error_origin(-EPROTO);
}

/* softgpu measures itself, and others are measured if that is wanted. */
static void measure_device(struct worker_process *w)
{
	int r = 0;

	if (w->options.meter && !w->driver.configure)
		r = meter_start(&w->session, allowance_of(w));
	if (r)
		vgpu_log_warning(
			"device time is neither measured nor limited: %s", strerror(-r));
}

/* What softgpu's kernels do; of others only the calls are known. */
static void trace_device(struct worker_process *w)
{
	static struct softgpu_trace trace = {
		.get_tag = trace_get_number,
		.note = trace_add_work,
	};

	if (!w->driver.trace)
		return;
	trace.data = &w->session;
	trace.is_wanted = &w->wishes->trace_until;
	w->driver.trace(&trace);
}

/* Receives ASSIGN, and the socket of a RECORD before it, else -1. */
static int await_assign(
	struct worker_process *w, struct control_message *message, int *fds, int *recordp)
{
	int r;

	*recordp = -1;
	do {
		r = control_receive(w->options.control, message, fds);
		if (r)
			return r < 0 ? vgpu_error_trace(r) : WORKER_E_DISMISSED;
		if (message->type == CONTROL_RECORD) {
			vgpu_close(*recordp);
			*recordp = fds[0];
		}
	} while (message->type == CONTROL_RECORD);
	if (message->type == CONTROL_STOP)
		return WORKER_E_DISMISSED;
	return message->type == CONTROL_ASSIGN ? 0 : vgpu_error_origin(-EPROTO);
}

static void record(struct worker_process *w, const struct control_assign *assign, int fd)
{
	const struct worker_devices *devices =
		(const struct worker_devices *)(const void *)((uint8_t *)w->stats +
							      WORKER_DEVICES_OFF);

	if (fd < 0)
		return;
	recorded_start(&w->session, fd,
		&(struct recorded_origin){
			.release = VGPU_VERSION,
			.driver = driver_name(&w->driver),
			.assign = assign,
			.softgpu =
				w->driver.configure ? &w->options.driver.softgpu : NULL,
			.device = devices->n ? &devices->infos[0] : NULL,
		});
}

static int open_session(struct worker_process *w)
{
	struct control_message message;
	const struct control_assign *assign = &message.assign;
	struct vgpu_window window;
	int fds[CONTROL_FDS_MAX], r, record_fd;
	bool poll;

	r = await_assign(w, &message, fds, &record_fd);
	if (!r)
		r = check_version(w, message.greeting.version);
	if (r)
		return r;
	poll = assign->flags & CONTROL_ASSIGN_POLL;
	r = settle_window(w, assign, &window);
	if (r)
		return r;
	if (w->driver.set_window &&
		w->driver.set_window(window.base + assign->shm_size,
			window.size - assign->shm_size, window.base, assign->shm_size))
		r = vgpu_error_origin(-ENOTSUP);
	w->session.trace = w->trace;
	w->session.wishes = w->wishes;
	if (!r)
		r = session_init(&w->session, w->stats, use_of(w), w->flight,
			w->options.control, assign, &window,
			&(struct session_fds){
				.memory = fds[0],
				.quota = fds[1],
				.doorbell = poll ? -1 : fds[2],
				.interrupt = poll ? fds[2] : fds[3],
			});
	if (r) {
		vgpu_log_error("the session on channel %u cannot begin: %s",
			assign->channel, strerror(-r));
		send_opened(w, VGPU_REASON_HOST);
		return r;
	}
	r = residency_open(&w->session, w->options.stats);
	if (r)
		vgpu_log_warning("the room on the device is not known: %s", strerror(-r));
	record(w, assign, record_fd);
	driver_output_serve(&w->session);
	trace_device(w);
	measure_device(w);
	w->has_session = true;
	vgpu_log_info("channel %u serves process %u (%s)", assign->channel,
		assign->guest_pid, assign->guest_comm);
	return 0;
}

/* The first thread during a session: handles messages from vgpud. */
static void attend(struct worker_process *w)
{
	struct control_message message;
	int fds[CONTROL_FDS_MAX], r;

	for (;;) {
		r = control_receive(w->options.control, &message, fds);
		if (r)
			session_end(&w->session, VGPU_REASON_SHUTDOWN, "vgpud is gone");
		if (session_is_recorded(&w->session) && message.type != CONTROL_STOP)
			recorder_answer(&w->session, &message);
		if (message.type == CONTROL_GRANT)
			growth_granted(&w->session, &message.grant);
		else if (message.type == CONTROL_IMAGE)
			store_answered(&w->session, &message.image, fds[0]);
		else if (message.type == CONTROL_SHARED)
			share_answered(&w->session, &message.share, fds[0]);
		else if (message.type == CONTROL_MOVE && w->session.doorbell >= 0)
			session_ring(&w->session);
		else if (message.type == CONTROL_STOP)
			session_end(&w->session, VGPU_REASON_NONE, "vgpud closes it");
	}
}

static void *wait_for_signal(void *data)
{
	struct worker_process *w = data;
	sigset_t signals;
	int number;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigwait(&signals, &number);
	if (!w->has_session)
		_exit(0);
	session_end(
		&w->session, VGPU_REASON_SHUTDOWN, "the worker was requested to stop");
}

/* One thread handles all signals, so a driver's threads never receive any. */
static int start_signals(struct worker_process *w)
{
	pthread_t thread;
	sigset_t signals;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	r = -pthread_create(&thread, NULL, wait_for_signal, w);
	return r ? vgpu_error_origin(r) : 0;
}

/* Ends a worker that is left alone, also if its first thread is in a driver. */
static void *wait_for_hangup(void *data)
{
	struct worker_process *w = data;
	struct pollfd poller = { .fd = w->options.control, .events = POLLRDHUP };

	while (poll(&poller, 1, -1) < 0 || !poller.revents)
		;
	/* The first thread reads what was sent before, and tells the guest. */
	sleep(HANGUP_S);
	_exit(1);
}

/* A worker that does not end with its parent has this thread instead. */
static int start_hangup(struct worker_process *w)
{
	pthread_t thread;
	int r;

	if (!w->options.sandbox.outlives)
		return 0;
	r = -pthread_create(&thread, NULL, wait_for_hangup, w);
	return r ? vgpu_error_origin(r) : 0;
}

static int run(struct worker_process *w)
{
	pthread_t dispatcher;
	int r;

	r = map_stats(w);
	if (!r)
		r = begin_sandbox(w);
	if (!r)
		r = start_signals(w);
	if (!r)
		r = start_hangup(w);
	if (!r)
		r = reservation_make(&w->reservation);
	if (!r)
		r = make_ready(w);
	if (!r)
		r = open_session(w);
	if (!r)
		r = -pthread_create(&dispatcher, NULL, dispatcher_main, &w->session);
	/* Last, so that the guest's wake-up and the start of the dispatcher overlap. */
	if (!r)
		r = send_opened(w, VGPU_REASON_NONE);
	if (r)
		return r;
	attend(w);
	return 0;
}

/*
 * The life of a worker
 *
 * vgpud starts workers in advance. A worker reserves candidate address windows while its
 * address space is still empty, loads the driver, calls cuInit, queries the devices,
 * creates its tables, enters its sandbox, sends READY and waits: it has no context and no
 * guest yet. ASSIGN gives it one guest process, by descriptors and numbers; it maps the
 * shared memory of that process, starts the dispatcher and sends OPENED. From then on
 * these threads run:
 *
 *	first		receives from vgpud: STOP, grants of arena, images, end-of-file
 *	dispatcher	takes frames off the ring, in order; see dispatcher.c
 *	lanes		one per guest thread with a call that may block; lane-thread.c
 *	signals		waits for SIGTERM
 *	the driver's	any number
 *
 * All exits are in session_end(): the guest has closed the channel or broken the
 *protocol, or vgpud or the kernel requests it. A worker never serves a second guest
 *process, so it needs no teardown: the kernel frees all it has.
 */
int main(int argc, char **argv)
{
	int r;

	/*
	 * glibc reads a file of /proc before it trims a thread's heap. Heaps have at most
	 * 64 MiB, so this threshold prevents trimming.
	 */
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
	r = options_parse(&worker.options, argc, argv);
	if (r)
		return r == OPTIONS_E_HELP ? 0 : 2;
	vgpu_log_init("vgpu-worker", worker.options.log_level);
	worker.options.driver.softgpu.print = print_from_kernel;
	worker.options.driver.softgpu.print_error = print_error_from_kernel;
	worker.options.driver.softgpu.print_data = &worker.session;
	worker.options.driver.softgpu.explain = reason_from_driver;
	worker.options.driver.softgpu.managed_alloc = managed_alloc;
	worker.options.driver.softgpu.managed_free = managed_free;
	worker.options.driver.softgpu.managed_data = &worker.session;
	worker.options.driver.softgpu.make_file = share_make_file;
	worker.options.driver.softgpu.make_file_data = &worker.session;
	worker.options.driver.softgpu.charge = device_memory_charge_driver;
	worker.options.driver.softgpu.refund = device_memory_refund_driver;
	worker.options.driver.softgpu.charge_data = &worker.session;
	worker.options.driver.softgpu.fault = recorded_fault;
	worker.options.driver.softgpu.fault_data = &worker.session;
	worker.options.driver.softgpu.memory_fd = worker.options.stats;
	worker.options.driver.softgpu.memory_offset = WORKER_STATS_SIZE;
	worker.options.driver.softgpu.memory_size = WORKER_MEMORY_SIZE;
	r = run(&worker);
	return r == WORKER_E_DISMISSED ? 0 : 1;
}
