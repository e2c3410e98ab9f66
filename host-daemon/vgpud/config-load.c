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
#include "vgpud/paths.h"
#include "vgpud/trust.h"

/* Logs each mistake as one message. Modifies the text. */
static void log_lines(char *text)
{
	for (char *line = text; line;)
		vgpu_log_error("%s", strsep(&line, "\n"));
}

int config_load_check(const struct config *config, const char *name)
{
	struct mistakes mistakes = { .name = name };
	char *text;

	config_check_host(config, &mistakes);
	text = mistakes_take(&mistakes);
	log_lines(text);
	free(text);
	return mistakes.n ? EXIT_USAGE : 0;
}

int config_load(int fd, const char *name, char **textp, struct config **configp)
{
	char *error = NULL;
	int r;

	r = config_read(fd, textp);
	if (r) {
		vgpu_log_error("%s: %s", name, strerror(-r));
		return EXIT_USAGE;
	}
	r = config_new_from_text(configp, name, *textp, &error);
	if (r == CONFIG_E_INVALID)
		log_lines(error);
	else if (r)
		vgpu_log_error("%s: %s", name, strerror(-r));
	free(error);
	if (r)
		return r == CONFIG_E_INVALID ? EXIT_USAGE : EXIT_FAILURE;
	r = paths_complete(*configp);
	if (r)
		vgpu_log_error(
			"vgpud cannot find its own installation: %s", strerror(-r));
	return r ? EXIT_FAILURE : 0;
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
	if (reason)
		vgpu_log_error("log-file %s: %s", config->log_file, reason);
	return reason ? EXIT_FAILURE : 0;
}
