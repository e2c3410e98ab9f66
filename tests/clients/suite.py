# SPDX-License-Identifier: Apache-2.0
"""Programs of other projects, run on the guest library and judged.

A suite finds its programs, builds each just before it runs, and judges it. This file has
the common part: each program has a private vgpud with softgpu, a time limit, and a line of
the table. A program that succeeds without a launch is *idle*, not passed: many silently
fall back to the CPU if they find no device.

A program that does not pass has a line in the suite's list of expected results, with the
reason; a result that differs from the list, better or worse, is unexpected.
"""

import fnmatch
import os
import re
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

import tool
from vgpud import Vgpud, make_shim_folder

EXPECTED = Path(__file__).resolve().parent / "expected"
RESULTS = ("pass", "idle", "fail", "skip")
# A list may also mark a result as unpredictable: the program measures time.
ANY = "any"

# Variables that must not affect a program.
FOREIGN = ("VGPU_", "CUDA_", "OMP_", "ACC_", "GOMP_", "HL_", "LD_LIBRARY_PATH")
# The limit of a program's output.
OUTPUT_SIZE = 4 << 20
OUR_LINE = re.compile(r"^[0-9.]+ libcuda\[\d+\] (\w+): (.*)\n?", re.M)
# A kernel did not run; a program that checks no errors succeeds nevertheless.
REFUSED = re.compile(r"cu\w*Launch\w* fails with CUDA_ERROR_NOT_SUPPORTED")
LAUNCHES = re.compile(r"session ended .*?\blaunches=(\d+)")
TELLING = re.compile(r"error|fail|abort|assert|mismatch|wrong|differ|cannot|invalid|"
                     r"exception|not supported|terminate", re.I)


class Skip(Exception):
    """A program, or a whole suite, cannot run here: a dependency is missing."""


class Broken(Exception):
    """A program could not be built, although its dependencies exist."""


class Case:
    """One program. build() is called just before command runs; judge gets the exit status,
    as in a shell, and the output, and returns the reason of a failure, or None. On a
    terminal programs do not buffer, so that their output to several descriptors stays in
    order."""

    def __init__(self, name, command, folder=None, *, build=None, judge=None, skip=None,
                 variables=None, libraries=(), seconds=None, may_fail=None,
                 on_terminal=False):
        self.name, self.command, self.folder = name, command, folder
        self.build, self.judge, self.skip = build, judge or judge_status, skip
        self.variables, self.libraries = variables or {}, libraries
        self.seconds, self.may_fail = seconds, may_fail
        self.on_terminal = on_terminal


class Outcome:
    def __init__(self, name, launches, result, reason, output=""):
        self.name, self.launches, self.result = name, launches, result
        self.reason, self.output = " ".join(str(reason).split()), output
        self.unexpected = None


class Suite:
    """Base class; derived ones have name, title and cases(). Skip from cases() skips all."""

    name = title = ""
    seconds = 60  # for one program
    settings = ""  # lines of vgpud's configuration

    def __init__(self, cache, source=None):
        self.cache, self.source = cache, source

    def versions(self):
        """The versions of the programs, for the head of the table."""
        return self.title

    def cases(self):
        raise NotImplementedError

    def folder(self, *names):
        """A folder of this suite in the cache, created if missing."""
        place = self.cache.root.joinpath("suites", self.name, *names)
        place.mkdir(parents=True, exist_ok=True)
        return place


class Expected:
    """A list of expected results: lines 'PATTERN: RESULT: reason'; the first match counts,
    and a program without a match is expected to pass."""

    def __init__(self, path):
        self.path, self.lines, self.used = path, [], set()
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            parts = [part.strip() for part in line.split(": ", 2)]
            if len(parts) != 3 or parts[1] not in RESULTS + (ANY,) or not parts[2]:
                raise tool.Failure(f"{path}:{number}: not of the form 'NAME: RESULT: reason'")
            self.lines.append(parts)

    def of(self, name):
        for pattern, result, reason in self.lines:
            if fnmatch.fnmatchcase(name, pattern):
                self.used.add(pattern)
                return result, reason
        return "pass", ""

    def judge(self, outcome):
        """Marks the outcome if it differs from the expected one."""
        result, reason = self.of(outcome.name)
        if outcome.result in ("skip", result) or result == ANY:
            return
        outcome.unexpected = f"{result} was expected" + (f" ({reason})" if reason else "")

    def unused(self):
        return [pattern for pattern, _, _ in self.lines if pattern not in self.used]


def judge_status(status, _output):
    # Programs also exit with the number of an error, which may be as large.
    if 128 < status <= 128 + signal.SIGRTMAX:
        return f"ended by {signal_name(status - 128)}"
    return f"exit status {status}" if status else None


def signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def build(command, folder, program=None, seconds=600):
    """Runs a compiler, unless the same command was run before; a failure has the compiler's
    first error."""
    command = [str(word) for word in command]
    stamp = folder / (f"{program.name}.command" if program else "command")
    if program and program.exists() and stamp.exists() and \
            stamp.read_text(encoding="utf-8") == repr(command):
        return
    try:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              errors="replace", timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise Broken(f"{command[0]} does not end in {seconds} s") from None
    if done.returncode:
        lines = done.stdout.splitlines()
        first = next((line for line in lines if re.search(r"\berror\b", line)),
                     lines[-1] if lines else f"exit status {done.returncode}")
        raise Broken(f"build: {first}")
    stamp.write_text(repr(command), encoding="utf-8")


def kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run_program(case, folder, seconds):
    """Returns its exit status, None after a timeout, and its output."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(FOREIGN)}
    libraries = [str(folder / "lib"), *map(str, case.libraries)]
    environment.update(VGPU_SOCKET=str(folder / "vgpud.sock"), VGPU_LOG="warning",
                       LD_LIBRARY_PATH=":".join(libraries), **case.variables)
    # Its remaining files are removed with the folder.
    work = case.folder or folder / "work"
    Path(work).mkdir(exist_ok=True)
    with open(folder / "output", "w+b") as output, Terminal(output) as terminal:
        stream = terminal.end if case.on_terminal else output
        process = subprocess.Popen(
            [str(word) for word in case.command], cwd=work, env=environment,
            stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True,
            preexec_fn=tool.die_with_parent(signal.SIGKILL))
        try:
            status = tool.status_of(process.wait(seconds))
        except subprocess.TimeoutExpired:
            status = None
        finally:
            kill_group(process)
        terminal.close()
        output.seek(0)
        return status, output.read(OUTPUT_SIZE).decode(errors="replace").replace("\r\n", "\n")


class Terminal:
    """A terminal for a program, whose output goes to a file."""

    def __init__(self, output):
        self.ours, self.end = os.openpty()
        self.output = output
        self.reader = threading.Thread(target=self.copy, daemon=True)

    def copy(self):
        """Reads until every process has closed the other end."""
        try:
            while data := os.read(self.ours, 65536):
                self.output.write(data)
        except OSError:
            pass

    def __enter__(self):
        self.reader.start()
        return self

    def close(self):
        if self.end is not None:
            os.close(self.end)
            self.end = None
            self.reader.join(10)  # a process that left its group may have it open
            os.close(self.ours)

    def __exit__(self, *_):
        self.close()


def telling_line(output):
    """The line of a program's output that is the likeliest reason of its failure."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    found = next((line for line in lines if TELLING.search(line)), lines[-1] if lines else "")
    return found[:200]


def lines_of_ours(said):
    """Messages of the guest library; errors first, as a warning may be unrelated."""
    found = OUR_LINE.findall(said)
    return [text for wanted in (True, False) for level, text in found
            if (level == "error") == wanted]


def asked_of_device(log):
    """The requests to the device of a program that launched nothing."""
    calls = sum(map(int, re.findall(r"session ended .*?\bcalls=(\d+)", log)))
    copies = sum(map(int, re.findall(r"\bcopies_\w+=(\d+)", log)))
    return f"{calls} calls, {copies} copies" if calls else "no session"


def run_case(case, seconds, settings):
    """Runs one program against a private vgpud."""
    if case.skip:
        return Outcome(case.name, 0, "skip", case.skip)
    try:
        if case.build:
            case.build()
    except Skip as skip:
        return Outcome(case.name, 0, "skip", skip)
    except Broken as broken:
        if case.may_fail:
            return Outcome(case.name, 0, "skip", f"the suite expects it: {case.may_fail}")
        return Outcome(case.name, 0, "fail", broken)
    seconds = case.seconds or seconds
    with tempfile.TemporaryDirectory(prefix="vgpu-clients.") as name:
        folder = Path(name)
        make_shim_folder(folder / "lib")
        with Vgpud(folder, "soft", "socket", is_last=False, settings=settings) as vgpud:
            status, said = run_program(case, folder, seconds)
        log = vgpud.text()
    ours = lines_of_ours(said)
    output = OUR_LINE.sub("", said)
    launches = sum(map(int, LAUNCHES.findall(log)))
    try:
        wrong = f"no end in {seconds} s" if status is None else case.judge(status, output)
    except Skip as skip:
        return Outcome(case.name, launches, "skip", skip)
    refused = next((text for text in ours if REFUSED.match(text)), None)
    if not wrong and launches and not refused:
        return Outcome(case.name, launches, "pass", "")
    if not wrong and not refused:
        return Outcome(case.name, launches, "idle", ours[0] if ours else asked_of_device(log))
    wrong = wrong or "a kernel is refused, and it does not look"
    reason = "; ".join(filter(None, [wrong, ours[0] if ours else telling_line(output)]))
    if case.may_fail:
        return Outcome(case.name, launches, "skip", f"the suite expects it: {case.may_fail}")
    return Outcome(case.name, launches, "fail", reason, said + "\n" + log)


def show_line(outcome):
    mark = "!" if outcome.unexpected else " "
    reason = outcome.reason
    if outcome.unexpected:
        reason = f"{reason} [{outcome.unexpected}]" if reason else f"[{outcome.unexpected}]"
    print(f"{outcome.name:<50} {outcome.launches:>7} {mark}{outcome.result:<5} {reason}".rstrip(),
          flush=True)


def run_suite(suite, only, seconds, logs, lists):
    """Runs the programs that match the patterns, or all. Returns the outcomes, and the
    patterns of its list that match no program."""
    expected = Expected(lists / f"{suite.name}.txt")
    outcomes = []
    cases = list(suite.cases())
    print(f"== {suite.name}: {suite.versions()}")
    print(f"{'program':<50} {'launches':>7} {'result':<6} first reason")
    for case in cases:
        if only and not any(fnmatch.fnmatchcase(case.name, pattern) for pattern in only):
            continue
        outcome = run_case(case, seconds or suite.seconds, suite.settings)
        expected.judge(outcome)
        show_line(outcome)
        outcomes.append(outcome)
        if logs and outcome.result == "fail":
            file = logs / f"{suite.name}-{outcome.name.replace('/', '-')}.log"
            file.write_text(outcome.output, encoding="utf-8", errors="replace")
    unused = [] if only else expected.unused()
    for pattern in unused:
        print(f"! {expected.path.name} names {pattern}, which is no program of the suite")
    return outcomes, unused


def count(outcomes):
    """The three numbers of the last line."""
    as_expected = [o for o in outcomes if not o.unexpected and o.result != "skip"]
    n_skipped = sum(o.result == "skip" for o in outcomes)
    return len(as_expected), len(outcomes) - len(as_expected) - n_skipped, n_skipped
