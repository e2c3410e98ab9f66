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

int config_load_check(const struct config *config)
{
	struct mistakes mistakes = { 0 };
	char *text;

	config_check_host(config, &mistakes);
	text = mistakes_take(&mistakes);
	log_lines(text);
	free(text);
	return mistakes.n ? EXIT_USAGE : 0;
}

static int load(const struct config_sources *sources, struct config **configp)
{
	char *error = NULL;
	int r;

	r = config_new(configp, sources, &error);
	if (r == CONFIG_E_INVALID)
		log_lines(error);
	else if (r)
		vgpu_log_error("%s: %s", sources->list[0].path, strerror(-r));
	free(error);
	if (r)
		return r == CONFIG_E_INVALID ? EXIT_USAGE : EXIT_FAILURE;
	r = paths_complete(*configp);
	if (r)
		vgpu_log_error(
			"vgpud cannot find its own installation: %s", strerror(-r));
	return r ? EXIT_FAILURE : 0;
}

int config_load(const char *path, int *keptp, struct config **configp)
{
	_vgpu_cleanup_(config_sources_deinit) struct config_sources sources =
		CONFIG_SOURCES_NULL;
	_vgpu_cleanup_(vgpu_freep) char *failed = NULL;
	int r;

	r = config_sources_read(&sources, path, &failed);
	if (r) {
		vgpu_log_error("%s: %s", failed ? failed : path, strerror(-r));
		return EXIT_USAGE;
	}
	r = load(&sources, configp);
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
