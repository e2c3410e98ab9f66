/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Top: the verb that shows again and again who uses the devices
 *
 * The screen is drawn over, without the terminal's second one: what stands there last
 * remains, as does the reason if vgpud ends.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "ctl/client.h"
#include "ctl/output.h"
#include "ctl/sample.h"
#include "ctl/seconds.h"
#include "ctl/table.h"
#include "vgpu/cleanup.h"
#include "vgpud/clock.h"

/* Before the first rates are shown. */
#define FIRST_MS 500
/* Of a terminal that does not tell, or the columns of no terminal. */
#define LINES 24
#define COLUMNS 200

struct top {
	const struct ctl_options *options;
	const char *vm; /* NULL: all */
	unsigned int seconds;
	struct client client;
	struct table table;
	struct sample sample;
	struct termios old;
	sigset_t old_mask;
	int signals;
	bool is_over;
};

static enum ctl_status init(
	struct top *top, const struct ctl_options *options, const char *vm)
{
	*top = (struct top){
		.options = options,
		.vm = vm,
		.client = CLIENT_NULL,
		.table.columns = COLUMNS,
		.signals = -1,
	};
	if (options->sort)
		top->table.key = sample_find_key(options->sort);
	if (top->table.key == _SAMPLE_KEY_N)
		return ctl_fail(CTL_USAGE,
			"'%s' is no column to sort by: busy, launches, copies, memory, "
			"host, name",
			options->sort);
	if (seconds_parse(options->interval ? options->interval : CTL_INTERVAL,
		    &top->seconds) ||
		!top->seconds)
		return ctl_fail(CTL_USAGE,
			"'%s' is not a number of seconds, which is from 1 to a day",
			options->interval);
	if (!options->is_once && !options->is_json &&
		(!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
		return ctl_fail(CTL_USAGE,
			"this is not a terminal: top --once or --json does without");
	return client_open(&top->client, options->socket);
}

static void deinit(struct top *top)
{
	sample_deinit(&top->sample);
	client_close(&top->client);
	if (top->signals >= 0)
		close(top->signals);
}

/* Takes the next sample, and rates since the last one. */
static enum ctl_status step(struct top *top)
{
	struct sample next;
	enum ctl_status status = sample_take(&next, &top->client, top->vm);

	if (status)
		return status;
	sample_compare(&next, &top->sample);
	sample_deinit(&top->sample);
	top->sample = next;
	return CTL_OK;
}

/*
 * Once
 */

static enum ctl_status show_once(struct top *top)
{
	enum ctl_status status;

	status = sample_take(&top->sample, &top->client, top->vm);
	if (status)
		return status;
	sleep(top->seconds);
	status = step(top);
	if (status)
		return status;
	sample_sort(&top->sample, top->table.key);
	if (top->options->is_json)
		return output_json(table_json(&top->sample, top->seconds));
	table_print(&top->table, &top->sample, stdout, "\n");
	return output_end(CTL_OK);
}

/*
 * The terminal
 */

/* Keys come one by one and are not shown. */
static void take_terminal(const struct top *top)
{
	struct termios raw = top->old;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	fputs("\033[?25l\033[H\033[2J", stdout);
	fflush(stdout);
}

static void give_terminal(const struct top *top)
{
	tcsetattr(STDIN_FILENO, TCSADRAIN, &top->old);
	fputs("\033[?25h", stdout);
	fflush(stdout);
}

static void draw(struct top *top)
{
	struct winsize size = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		size = (struct winsize){ .ws_row = LINES, .ws_col = 80 };
	/* One is for the keys, and the cursor rests in the last. */
	top->table.lines = size.ws_row > 2 ? size.ws_row - 2 : 1;
	top->table.columns = size.ws_col;
	sample_sort(&top->sample, top->table.key);
	fputs("\033[H", stdout);
	table_print(&top->table, &top->sample, stdout, "\033[K\r\n");
	printf("%.*s\033[K\r\n\033[J", size.ws_col,
		"q quit  s sort  i idle processes  m machines  p processes");
	fflush(stdout);
}

static void take_key(struct top *top, char key)
{
	switch (key) {
	case 'q':
		top->is_over = true;
		break;
	case 's':
		top->table.key = (top->table.key + 1) % _SAMPLE_KEY_N;
		break;
	case 'i':
		top->table.hides_idle = !top->table.hides_idle;
		break;
	case 'm':
		top->table.hides_vms = !top->table.hides_vms;
		break;
	case 'p':
		top->table.hides_processes = !top->table.hides_processes;
		break;
	}
}

static void read_keys(struct top *top)
{
	char keys[16];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	/* The terminal is gone. */
	if (n <= 0)
		top->is_over = true;
	for (ssize_t i = 0; i < n; i++)
		take_key(top, keys[i]);
}

static void read_signal(struct top *top)
{
	struct signalfd_siginfo info;

	if (read(top->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGTSTP) {
		give_terminal(top);
		raise(SIGSTOP);
		take_terminal(top);
	} else if (info.ssi_signo != SIGWINCH) {
		top->is_over = true;
	}
}

/* Draws until that time, on each key again. */
static void wait_until(struct top *top, int64_t end)
{
	struct pollfd fds[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = top->signals, .events = POLLIN },
	};
	int64_t left;

	while (!top->is_over && (left = end - clock_now()) > 0) {
		if (poll(fds, 2, (int)left) <= 0)
			continue;
		if (fds[0].revents)
			read_keys(top);
		if (fds[1].revents)
			read_signal(top);
		draw(top);
	}
}

static enum ctl_status show_again_and_again(struct top *top)
{
	enum ctl_status status;
	int64_t next;

	status = sample_take(&top->sample, &top->client, top->vm);
	next = clock_now() + FIRST_MS;
	while (!status && !top->is_over) {
		draw(top);
		wait_until(top, next);
		if (top->is_over)
			break;
		status = step(top);
		next = clock_now() + (int64_t)top->seconds * 1000;
	}
	return status;
}

static enum ctl_status watch(struct top *top)
{
	enum ctl_status status;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGTSTP);
	sigaddset(&set, SIGWINCH);
	top->signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (top->signals < 0 || tcgetattr(STDIN_FILENO, &top->old))
		return ctl_fail(
			CTL_FAILED, "the terminal cannot be used: %s", strerror(errno));
	sigprocmask(SIG_BLOCK, &set, &top->old_mask);
	take_terminal(top);
	status = show_again_and_again(top);
	give_terminal(top);
	sigprocmask(SIG_SETMASK, &top->old_mask, NULL);
	return output_end(status);
}

enum ctl_status ctl_top(const struct ctl_options *options, char **arguments)
{
	enum ctl_status status;
	struct top top;

	status = init(&top, options, arguments[0]);
	if (!status && (options->is_once || options->is_json))
		status = show_once(&top);
	else if (!status)
		status = watch(&top);
	deinit(&top);
	return status;
}
