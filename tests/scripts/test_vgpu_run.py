#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/vgpu-run on this machine: input, output, statuses, signals, and clean-up.

    test_vgpu_run.py TOP

VGPU_BUILD is the build folder. tests/vm tests the same in a guest.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TOP = Path(sys.argv.pop(1)).absolute()
sys.path.insert(0, str(TOP / "tests/lib"))
import tap  # noqa: E402
COMMAND = TOP / "scripts/vgpu-run"
SECONDS = 100


def processes(folder):
    """Command lines that contain a folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:
            continue
        if os.fsencode(folder) in line:
            found.append(line.decode(errors="replace"))
    return found


class VgpuRun(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="vgpu-run-test-")
        self.addCleanup(self.folder.cleanup)
        self.place = Path(self.folder.name)
        self.runtime = self.place / "run"
        self.runtime.mkdir()
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=str(self.runtime))
        for name in ("VGPU_LOG", "VGPUD_LOG"):
            self.environment.pop(name, None)

    def run_it(self, *arguments, data="", **options):
        environment = dict(self.environment, **options.pop("environment", {}))
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        done = subprocess.run([COMMAND, "--driver", "soft", *arguments], text=True, input=data,
                              env=environment, timeout=SECONDS, check=False, **streams)
        self.check_nothing_left()
        return done

    def check_nothing_left(self):
        self.assertEqual(list(self.runtime.iterdir()), [])
        self.assertEqual(processes(str(self.runtime)), [])

    def start(self, script, **options):
        """A program that has started: it has written a line."""
        process = subprocess.Popen(
            [COMMAND, "--driver", "soft", "--", "sh", "-c", script], env=self.environment,
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **options)
        self.assertEqual(process.stdout.readline(), "up\n")
        return process

    def finish(self, process):
        out, err = process.communicate(timeout=SECONDS)
        self.check_nothing_left()
        return out, err

    def test_input_output_arguments_and_status_are_the_programs(self):
        done = self.run_it("--", "sh", "-c", 'cat; printf "%s|" "$@"; echo e >&2; exit 5',
                           "sh", "a b", "", "--vm", data="text\n")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (5, "text\na b||--vm|", "e\n"))

    def test_a_program_that_a_signal_kills_ends_with_128_and_its_number(self):
        for name, number in (("SEGV", 11), ("KILL", 9), ("TERM", 15)):
            done = self.run_it("sh", "-c", f"kill -{name} $$")
            self.assertEqual((done.returncode, done.stderr), (128 + number, ""))

    def test_every_log_level_leaves_it_ready(self):
        for level in ("none", "error", "warning", "info", "debug"):
            for variables in ({"VGPU_LOG": level}, {"VGPUD_LOG": level}):
                done = self.run_it("true", environment=variables)
                self.assertEqual(done.returncode, 0, (variables, done))

    def test_vgpud_has_its_own_log_level(self):
        log = self.place / "log"
        for variables, has_lines in (({"VGPU_LOG": "none"}, True),
                                     ({"VGPU_LOG": "debug", "VGPUD_LOG": "none"}, False)):
            self.run_it("--log", str(log), "true", environment=variables)
            self.assertEqual("vgpud ready" in log.read_text(), has_lines, variables)

    def test_a_program_that_is_not_there_or_cannot_be_executed(self):
        for program, status in (("/no/such/program", 127), ("/etc/passwd", 126)):
            done = self.run_it(program)
            self.assertEqual(done.returncode, status, done)
            self.assertEqual(len(done.stderr.splitlines()), 1, done)

    def test_kernels_are_watched_on_the_software_gpu_alone(self):
        done = self.run_it("--check-memory", "--check-races", "--check-uninitialised", "true")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for options in (["--check-fatal"], ["--check-races", "--driver", "null"]):
            done = self.run_it(*options, "true")
            self.assertEqual(done.returncode, 125, done)
            self.assertIn("vgpu-run: ", done.stderr)

    def test_a_script_without_its_first_line_runs(self):
        script = self.place / "script"
        script.write_text("echo it runs\n")
        script.chmod(0o755)
        self.assertEqual(self.run_it(script).stdout, "it runs\n")

    def test_wrong_command_lines_end_with_125(self):
        for arguments, word in ((["--driver"], "--driver"), (["--log"], "--log"),
                                (["--env", "A=B", "true"], "needs --vm"), ([], "no command"),
                                (["--log", "/nonexistent/x", "true"], "/nonexistent/x"),
                                (["--vm", "--env", "NO_SUCH", "true"], "NO_SUCH"),
                                (["--vm", "--memory", "little", "true"], "little")):
            done = subprocess.run([COMMAND, *arguments], env=self.environment, text=True,
                                  capture_output=True, stdin=subprocess.DEVNULL,
                                  timeout=SECONDS, check=False)
            self.assertEqual(done.returncode, 125, done)
            self.assertIn(word, done.stderr)
            self.assertNotIn("line ", done.stderr)

    def test_vgpud_that_does_not_start_says_why(self):
        done = subprocess.run([COMMAND, "--driver", "nonsense", "true"], text=True, check=False,
                              env=self.environment, capture_output=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 125)
        self.assertIn("driver is auto, nvidia, soft, null", done.stderr)

    def test_a_log_that_the_disk_has_no_room_for_is_told(self):
        done = self.run_it("--log", "/dev/full", "true")
        self.assertEqual(done.returncode, 125)
        self.assertIn("/dev/full: No space left on device", done.stderr)

    def test_streams_that_are_closed_are_no_others(self):
        for redirection, status, out in (("<&-", 0, "said\n"), ("2>&-", 0, "said\n"),
                                         (">&-", 1, "")):
            done = subprocess.run(
                f"'{COMMAND}' --driver soft sh -c 'cat; echo said' {redirection}", shell=True,
                env=self.environment, text=True, capture_output=True, timeout=SECONDS,
                stdin=subprocess.DEVNULL, check=False)
            self.assertEqual((done.returncode, done.stdout), (status, out), done)
            self.assertNotIn("Traceback", done.stderr)
            self.check_nothing_left()

    def test_signals_reach_the_program_and_its_end_counts(self):
        for signo in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            process = self.start("echo up; exec sleep 1000")
            process.send_signal(signo)
            _, err = self.finish(process)
            self.assertEqual((process.returncode, err), (128 + signo, ""))

    def test_a_program_may_handle_a_signal_and_go_on(self):
        os.mkfifo(self.place / "go")
        process = self.start("trap 'echo heard' TERM; echo up; "
                             "while ! read -r line <go; do :; done 2>/dev/null; echo done",
                             cwd=self.place)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), "heard\n")
        (self.place / "go").write_text("line\n")
        out, _ = self.finish(process)
        self.assertEqual((process.returncode, out), (0, "done\n"))

    def test_what_is_typed_on_a_terminal_comes_once(self):
        """The terminal sends Ctrl-C to all processes: vgpu-run does not forward it."""
        script = "trap 'echo heard' INT; echo up; while ! read -r line; do :; done; echo done"
        leader, follower = os.openpty()
        process = subprocess.Popen(
            ["setsid", "--ctty", COMMAND, "--driver", "soft", "--", "sh", "-c", script],
            env=self.environment, stdin=follower, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        os.close(follower)
        self.assertEqual(process.stdout.readline(), "up\n")
        os.write(leader, b"\x03")
        self.assertEqual(process.stdout.readline(), "heard\n")
        os.write(leader, b"line\n")
        out, _ = self.finish(process)
        os.close(leader)
        self.assertEqual((process.returncode, out), (0, "done\n"))

    def test_vgpud_ends_when_it_is_killed_itself(self):
        process = self.start("echo up; exec sleep 3")
        process.kill()
        process.wait()
        while any("vgpud" in line for line in processes(str(self.runtime))):
            time.sleep(0.05)
        process.stdout.close()
        process.stderr.close()


if __name__ == "__main__":
    # A shell without job control has its background commands ignore some of these, and
    # vgpu-run keeps ignored signals ignored.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    sys.exit(tap.unittest_main(sys.argv[1:]))
