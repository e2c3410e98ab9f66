/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Ctl: the verbs of vgpuctl
 */

#include <stdbool.h>

/* The exit status, see vgpuctl(1). */
enum ctl_status {
	CTL_OK = 0,
	CTL_FAILED = 1,
	CTL_USAGE = 2,
	CTL_NO_VGPUD = 3,
	CTL_DENIED = 4,
	CTL_NO_VM = 5,
	CTL_REFUSED = 6, /* a value or a file is wrong */
	CTL_SILENT = 7,	 /* all is done, but the guest has not greeted in time */
};

#define CTL_SOCKET "/run/vgpud/control"

/* Seconds that attach waits for the guest. */
#define CTL_WAIT "10"

/* Seconds between two samples of top. */
#define CTL_INTERVAL "2"

/* Seconds that a trace lasts. */
#define CTL_TRACE "10"

/* Size of a recording. */
#define CTL_RECORD "1G"

/* What all verbs have in common. */
struct ctl_options {
	const char *socket;
	bool is_json;
	bool is_persistent;   /* of set */
	bool is_guest;	      /* of doctor */
	bool is_once;	      /* of top */
	bool is_config_only;  /* of attach: the running domain stays as it is */
	const char *uri;      /* of libvirt, NULL: its default */
	const char *vram;     /* of attach, NULL: no limit */
	const char *size;     /* of attach and record, NULL: the default */
	const char *wait;     /* of attach, seconds, NULL: the default */
	const char *output;   /* of trace and record, a file; NULL: none */
	const char *merge;    /* of trace, a guest's file; NULL: none */
	const char *seconds;  /* of trace and record, NULL: the default */
	const char *interval; /* of top, seconds, NULL: the default */
	const char *sort;     /* of top and stats, a column, NULL: the first */
	const char *process;  /* of stats and record, a pid of the guest, NULL: all */
	const char *command;  /* of record, a name of a process, NULL: all */
	const char *call;     /* of stats, how its name begins, NULL: all */
};

struct ctl_verb {
	const char *name;
	const char *synopsis; /* of its arguments */
	const char *help;
	int n_min, n_max; /* arguments; n_max -1: any number */
	enum ctl_status (*run)(const struct ctl_options *options, char **arguments);
};

enum ctl_status ctl_list(const struct ctl_options *options, char **arguments);
enum ctl_status ctl_show(const struct ctl_options *options, char **arguments);
enum ctl_status ctl_set(const struct ctl_options *options, char **arguments);
enum ctl_status ctl_pause(const struct ctl_options *options, char **arguments);
enum ctl_status ctl_resume(const struct ctl_options *options, char **arguments);
enum ctl_status ctl_attach(const struct ctl_options *options, char **arguments);
enum ctl_status ctl_detach(const struct ctl_options *options, char **arguments);
enum ctl_status ctl_hook(const struct ctl_options *options, char **arguments);
enum ctl_status ctl_doctor(const struct ctl_options *options, char **arguments);
enum ctl_status ctl_log_level(const struct ctl_options *options, char **arguments);
enum ctl_status ctl_logs(const struct ctl_options *options, char **arguments);
enum ctl_status ctl_record(const struct ctl_options *options, char **arguments);
enum ctl_status ctl_stats(const struct ctl_options *options, char **arguments);
enum ctl_status ctl_top(const struct ctl_options *options, char **arguments);
enum ctl_status ctl_trace(const struct ctl_options *options, char **arguments);
enum ctl_status ctl_version(const struct ctl_options *options, char **arguments);

/* Prints the program's name and a sentence to standard error. Return: the status. */
enum ctl_status ctl_fail(enum ctl_status status, const char *format, ...)
	__attribute__((__format__(__printf__, 2, 3)));

/* Whether that prints nothing from now on. */
void ctl_set_quiet(bool is_quiet);
