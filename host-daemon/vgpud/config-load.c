/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a configuration from a file, and puts it in force
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vgpu/cleanup.h"
#include "vgpu/log.h"
#include "vgpud/config-check.h"
#include "vgpud/config-load.h"
#include "vgpud/journal.h"
#include "vgpud/paths.h"
#include "vgpud/trust.h"

/* Logs each mistake as one message. Modifies the text. */
static void log_lines(char *text)
{
	for (char *line = text; line;)
		vgpu_log_error("%s", strsep(&line, "\n"));
}

/* What this host lacks for it. Return: 0, or an exit status. */
static int check_host(const struct config *config)
{
	struct mistakes mistakes = { 0 };
	char *text;

	config_check_host(config, &mistakes);
	text = mistakes_take(&mistakes);
	log_lines(text);
	free(text);
	mistakes_deinit(&mistakes);
	return mistakes.n ? EXIT_USAGE : 0;
}

static int complete(struct config **configp)
{
	const int r = paths_complete(*configp);

	if (r)
		vgpu_log_error(
			"vgpud cannot find its own installation: %s", strerror(-r));
	if (r)
		*configp = config_free(*configp);
	return r ? EXIT_FAILURE : 0;
}

/* Logs the reason of a failure. Return: an exit status. */
static int tell(const char *path, int r, char *error)
{
	if (error)
		log_lines(error);
	if (r < 0)
		vgpu_log_error("%s: %s", path, strerror(-r));
	return !r ? 0 : r == CONFIG_E_INVALID ? EXIT_USAGE : EXIT_FAILURE;
}

static int load(const struct config_sources *sources, struct config **configp)
{
	_vgpu_cleanup_(vgpu_freep) char *error = NULL;
	int r;

	r = config_new(configp, sources, &error);
	r = tell(sources->list[0].path, r, error);
	return r ? r : complete(configp);
}

/*
 * A VM that is served would lose its device, and its programs with it, by a slip of the
 * pen: its file has to be right. Return: 0, or an exit status.
 */
static int check_left_out(
	const struct config_sources *sources, const struct config *served)
{
	int status = 0;

	for (size_t i = 1; i < sources->n; i++) {
		const struct config_source *source = &sources->list[i];

		if (!source->is_left_out)
			continue;
		if (served && config_find_vm(served, source->vm))
			status = EXIT_USAGE;
		else
			vgpu_log_error("%s is left out: [vm %s] is not served until the "
				       "file is right and vgpud is reloaded",
				source->path, source->vm);
	}
	return status;
}

/* An empty file is allowed: it may be one whose lines were made comments. */
static void tell_empty(const struct config_sources *sources, const struct config *config)
{
	for (size_t i = 1; i < sources->n; i++) {
		const struct config_source *source = &sources->list[i];

		if (!source->is_left_out && !config_find_vm(config, source->vm))
			vgpu_log_warning("%s has no section [vm %s], which is not served",
				source->path, source->vm);
	}
}

static int read_sources(struct config_sources *sources, const char *path)
{
	_vgpu_cleanup_(vgpu_freep) char *failed = NULL;
	const int r = config_sources_read(sources, path, &failed);

	if (r)
		vgpu_log_error("%s: %s", failed ? failed : path, strerror(-r));
	return r ? EXIT_USAGE : 0;
}

int config_load_check(const char *path)
{
	_vgpu_cleanup_(config_sources_deinit) struct config_sources sources =
		CONFIG_SOURCES_NULL;
	_vgpu_cleanup_(config_freep) struct config *config = NULL;
	int r;

	r = read_sources(&sources, path);
	if (!r)
		r = load(&sources, &config);
	if (r)
		return r;
	tell_empty(&sources, config);
	return check_host(config);
}

static int load_right(struct config_sources *sources, const char *path,
	const struct config *served, struct config **configp)
{
	_vgpu_cleanup_(vgpu_freep) char *error = NULL;
	int r;

	r = config_new_of_right(configp, sources, &error);
	r = tell(path, r, error);
	if (r)
		return r;
	r = check_left_out(sources, served);
	if (r) {
		*configp = config_free(*configp);
		return r;
	}
	tell_empty(sources, *configp);
	return complete(configp);
}

int config_load(const char *path, const struct config *served, int *keptp,
	struct config **configp)
{
	_vgpu_cleanup_(config_sources_deinit) struct config_sources sources =
		CONFIG_SOURCES_NULL;
	int r;

	r = read_sources(&sources, path);
	if (!r)
		r = load_right(&sources, path, served, configp);
	if (r)
		return r;
	r = config_sources_keep(&sources, keptp);
	if (!r)
		return 0;
	vgpu_log_error("%s: it cannot be kept in memory: %s", path, strerror(-r));
	*configp = config_free(*configp);
	return EXIT_FAILURE;
}

int config_load_kept(int kept, struct config **configp)
{
	_vgpu_cleanup_(config_sources_deinit) struct config_sources sources =
		CONFIG_SOURCES_NULL;
	int r;

	r = config_sources_take(&sources, kept);
	if (r) {
		vgpu_log_error("the keeper's copy of the configuration cannot be read: "
			       "%s",
			strerror(-r));
		return EXIT_FAILURE;
	}
	return load(&sources, configp);
}

/* All processes of vgpud log to standard error. */
int config_load_log(const struct config *config)
{
	const char *reason = NULL;
	struct stat st;
	int fd;

	if (!config->log_file)
		return 0;
	/* Opening a FIFO without a reader fails instead of blocking. */
	fd = open(config->log_file,
		O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW |
			O_NONBLOCK,
		0640);
	if (fd < 0 || fstat(fd, &st) < 0)
		reason = errno == ELOOP ? "it is a symbolic link" : strerror(errno);
	else if (S_ISREG(st.st_mode))
		reason = trust_reason(&st, TRUST_NOBODY_ELSE);
	if (!reason && dup2(fd, STDERR_FILENO) < 0)
		reason = strerror(errno);
	vgpu_close(fd);
	vgpu_log_never_wait();
	journal_use();
	if (reason)
		vgpu_log_error("log-file %s: %s", config->log_file, reason);
	return reason ? EXIT_FAILURE : 0;
}
