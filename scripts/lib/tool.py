# SPDX-License-Identifier: Apache-2.0
"""What the scripts in Python share: messages, command lines, paths, signals, children."""

import argparse
import ctypes
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("VGPU_BUILD") or TOP / "build")
ME = os.path.basename(sys.argv[0])

# The status of a script's failures; others are statuses of the command that it runs.
EXIT_FAILURE = 125
EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND = 126, 127
# Signals that end a script.
ENDING = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)


class Failure(Exception):
    """Ends the script with a message and EXIT_FAILURE; details, such as the output of a
    command that failed, are printed before it."""

    status = EXIT_FAILURE

    def __init__(self, message, *details):
        super().__init__(message)
        self.details = details


class Stopped(Exception):
    """A signal asked the script to end."""

    def __init__(self, signo):
        super().__init__(f"signal {signo}")
        self.status = 128 + signo


def show(*lines):
    """Prints lines on standard error, and ignores errors in doing so."""
    try:
        for line in lines if sys.stderr else ():
            print(line, file=sys.stderr, flush=True)
    except OSError:
        pass


def note(*messages):
    show(*(f"{ME}: {message}" for message in messages))


def version():
    found = re.search(r"^  version: '(.*)',$", (TOP / "meson.build").read_text(), re.M)
    return found[1] if found else "unknown"


class Parser(argparse.ArgumentParser):
    """Options, then a command of any form; mistakes end with 125."""

    def __init__(self, description, epilog):
        super().__init__(
            prog=ME, description=description, epilog=epilog, allow_abbrev=False,
            usage="%(prog)s [OPTION...] [--] COMMAND [ARGUMENT...]",
            formatter_class=argparse.RawDescriptionHelpFormatter)
        self.add_argument("--version", action="version", version=f"{ME} (vGPU) {version()}",
                          help="print the version and exit")

    def add_command(self):
        self.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)

    def parse_args(self, args=None, namespace=None):
        options = super().parse_args(args, namespace)
        if getattr(options, "command", None) and options.command[0] == "--":
            del options.command[0]
        return options

    def error(self, message):
        note(f"{message} (see --help)")
        sys.exit(EXIT_FAILURE)


def number(least, kind=int):
    """The type of an option: a number with a minimum."""

    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value < 1 << 40:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} on")
        return value

    return parse


def one_of(*names):
    """The type of an option: one of some words."""

    def parse(text):
        if text not in names:
            raise argparse.ArgumentTypeError(
                f"{text!r} is none of {', '.join(names[:-1])} and {names[-1]}")
        return text

    return parse


def quote(words):
    """The words as one line of POSIX shell, each of them quoted."""
    return " ".join("'" + str(word).replace("'", "'\\''") + "'" for word in words)


def raise_stopped(signo, _frame):
    raise Stopped(signo)


def catch_signals():
    """Makes signals that end the script raise Stopped; signals that were ignored at its
    start, as by nohup, stay ignored."""
    for signo in ENDING:
        if signal.getsignal(signo) != signal.SIG_IGN:
            signal.signal(signo, raise_stopped)


def shield_signals():
    """Ignores signals from now on, for the short rest of the script."""
    for signo in ENDING + (signal.SIGALRM,):
        signal.signal(signo, signal.SIG_IGN)


def die_with_parent(signo):
    """For preexec_fn: the child gets the signal when the script ends for any reason. The
    parent may have died before prctl()."""
    parent = os.getpid()

    def prepare():
        libc.prctl(PR_SET_PDEATHSIG, signo, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(EXIT_FAILURE)

    return prepare


def end_process(process, seconds):
    """Terminates a process, and kills it after so many seconds."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def status_of(returncode):
    """The status of a program as in a shell: 128 and the signal's number."""
    return returncode if returncode >= 0 else 128 - returncode


def check_writable(option, path):
    """Fails early if a file cannot be written after the work."""
    try:
        with open(path, "ab"):
            pass
    except OSError as error:
        raise Failure(f"{option} {path}: {error.strerror}") from None


def hold_streams():
    """Opens closed standard streams, so that no other file gets their numbers. They are
    read-only: writing to them still fails."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)


def run_script(main):
    """Runs main() and exits with its status, never with a traceback."""
    try:
        hold_streams()
        catch_signals()
        status = main()
        if sys.stdout:
            sys.stdout.flush()
    except SystemExit as end:
        status = end.code or 0
    except Failure as failure:
        show(*failure.details)
        note(*str(failure).splitlines())
        status = failure.status
    except Stopped as stopped:
        status = stopped.status
    except BrokenPipeError:
        # As any program that writes to a pipe nobody reads.
        status = 128 + signal.SIGPIPE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        note(f"{where}{error.strerror or error}")
        status = EXIT_FAILURE
    # What could not be written is not tried again.
    os._exit(status)
