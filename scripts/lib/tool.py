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

# A script's own failures; other exit statuses belong to what it runs.
EXIT_FAILURE = 125
EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND = 126, 127
# What ends a script from outside.
ENDING = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)


class Failure(Exception):
    """Ends the script with a message, and the status of its own failures; what others
    said of it comes before."""

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
    """Lines on standard error; nobody reading them is no reason to fail."""
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
        note(f"{message} (--help tells more)")
        sys.exit(EXIT_FAILURE)


def number(least, kind=int):
    """The type of an option: a number that is at least so large."""

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
    """Has a signal that ends the script raise Stopped; one that was ignored by whoever
    started it, as nohup has it, stays ignored."""
    for signo in ENDING:
        if signal.getsignal(signo) != signal.SIG_IGN:
            signal.signal(signo, raise_stopped)


def shield_signals():
    """From now on nothing interrupts: what is left to do takes a moment only."""
    for signo in ENDING + (signal.SIGALRM,):
        signal.signal(signo, signal.SIG_IGN)


def die_with_parent(signo):
    """In a child, before it executes its program: the signal when the script ends, however
    that ends. The parent may have died before the kernel was told to watch it."""
    parent = os.getpid()

    def prepare():
        libc.prctl(PR_SET_PDEATHSIG, signo, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(EXIT_FAILURE)

    return prepare


def end_process(process, seconds):
    """Asks it to end, and has it end after so many seconds."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def status_of(returncode):
    """A program's end as a shell tells it: 128 and the signal's number."""
    return returncode if returncode >= 0 else 128 - returncode


def check_writable(option, path):
    """Refuses a file that could not be written later, when the work has been done."""
    try:
        with open(path, "ab"):
            pass
    except OSError as error:
        raise Failure(f"{option} {path}: {error.strerror}") from None


def hold_streams():
    """A standard stream that is closed would give its number to a file of ours. Whoever
    writes to it then has the error that it would have had."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)


def run_script(main):
    """Runs main() and ends with its status; nothing ends in a stack of calls."""
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
