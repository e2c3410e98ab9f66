#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills at random while programs compute; see scripts/soak.

Each victim is recorded before the signal is sent, so that the end of each program can be
judged: right (status 0), failed (2), wrong (1), killed. All random decisions come from one
generator; their times depend on the machine.
"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import books

# vgpud exits after a broker has died five times in ten seconds.
BROKER_PAUSE = 2.3
REUSE_SECONDS = 20
# The time limit of a soak: several times the duration on a busy machine.
START_SECONDS, KILL_SECONDS = 120, 3
KINDS = ("program", "worker", "broker", "guest program", "guest worker", "QEMU")
WEIGHTS = {"program": 46, "worker": 38, "broker": 8, "guest worker": 8, "QEMU": 2}
GUEST_LOOPS, GUEST_PROGRAMS = 3, 8
ENDS = ("right", "failed", "wrong", "killed")


class Log:
    """The growing log of vgpud: which worker serves which program."""

    def __init__(self, path):
        self.file = open(path, encoding="utf-8", errors="replace")
        self.lines, self.half = [], ""
        self.worker_of = {}  # (vm, pid): worker
        self.open = {}  # worker: vm, while its session is open
        self.killed = set()  # workers, by us
        self.last_opened, self.twice = {}, []

    def read(self):
        text = self.half + self.file.read()
        lines = text.split("\n")
        self.half = lines.pop()
        for line in lines:
            self.lines.append(line)
            self.note(line)

    def note(self, line):
        if "session opened" in line:
            found = dict(re.findall(r"(\w+)=(\S+)", line))
            worker = int(found["worker"])
            # Process ids are reused, but not in such a short time.
            now = float(line.split()[0])
            if now - self.last_opened.get(worker, 0) < REUSE_SECONDS:
                self.twice.append(worker)
            self.last_opened[worker] = now
            self.killed.discard(worker)
            self.worker_of[found["vm"], int(found["pid"])] = worker
            self.open[worker] = found["vm"]
        elif "session ended" in line:
            self.open.pop(int(re.search(r"worker=(\d+)", line)[1]), None)


class Program:
    """One run of `checked` on this machine."""

    def __init__(self, soak):
        # Long runs are killed while they compute, short ones while they start and exit.
        rounds = soak.random.choice((5, 300, 1000, 2000))
        seed = soak.random.randrange(1 << 30)
        self.killed = False
        self.process = subprocess.Popen(
            [soak.checked, str(rounds), str(seed), "2048"],
            env=soak.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    @property
    def pid(self):
        return self.process.pid


class Machine:
    """One virtual machine, from its start to its end."""

    def __init__(self, soak, number):
        self.out = open(soak.folder / f"guest-{number}.out", "w+b")
        script = soak.folder / "guest.sh"
        script.write_text(GUEST_SCRIPT.format(
            checked=soak.checked, loops=GUEST_LOOPS, programs=GUEST_PROGRAMS, seed=number))
        self.killed, self.text = False, ""
        self.run = subprocess.Popen(
            [soak.top / "qemu/run-guest", "--socket", soak.folder / "guest.sock",
             "--timeout", "900", "--lib", soak.library, "--add", soak.checked,
             "--add", script, "--env", "ASAN_OPTIONS=detect_leaks=0",
             "--console", soak.folder / f"guest-{number}.console", "--", "sh", script],
            stdin=subprocess.DEVNULL, stdout=self.out,
            stderr=open(soak.folder / f"guest-{number}.err", "wb"))

    def read(self):
        """Complete lines: a VM may be killed in the middle of one."""
        self.out.seek(0)
        text = self.out.read().decode(errors="replace")
        self.text = text[:text.rfind("\n") + 1]

    def ended(self, status):
        return len(re.findall(rf"^ended {status}$", self.text, re.M))

    def is_idle(self):
        return "\nidle\n" in self.text

    def find_qemu(self):
        for pid in books.descendants(self.run.pid):
            if books.comm(pid).startswith("qemu"):
                return pid
        return None


# In the guest: loops of programs, a loop that kills some of them, and then an idle phase, in
# which no resource may be held. Later programs report the killed ones.
GUEST_SCRIPT = """
loop() {{
	n=0
	while [ $n -lt {programs} ]; do
		{checked} 200 $((1000 * $1 + n + {seed})) 512 >/dev/null 2>&1
		echo "ended $?"
		n=$((n + 1))
	done
}}
for i in $(seq {loops}); do
	loop $i &
	loops="$loops $!"
done
(
	while :; do
		sleep 1
		pid=$(pidof checked | tr ' ' '\\n' | head -n 1)
		[ -z "$pid" ] || {{ kill -9 $pid && echo killed; }} 2>/dev/null
	done
) &
killer=$!
wait $loops
kill $killer
sleep 2
{checked} 1 1 64 >/dev/null 2>&1
echo "ended $?"
sleep 1
echo idle
sleep 1000
"""


class Soak:
    def __init__(self, options, folder):
        self.options, self.folder = options, Path(folder)
        self.top, self.build = Path(options.top), Path(options.build).absolute()
        self.checked = self.build / "tests/soak/checked"
        self.library = self.build / "guest-shim/libcuda.so.1"
        self.random = random.Random(options.seed)
        self.kills = dict.fromkeys(KINDS, 0)
        self.ends = {where: dict.fromkeys(ENDS, 0) for where in ("host", "guest")}
        self.wrong, self.n_passed = [], 0
        self.programs, self.machine, self.n_machines = [], None, 0
        self.last_broker = 0.0
        self.environment = dict(
            os.environ, VGPU_SOCKET=str(self.folder / "local.sock"),
            ASAN_OPTIONS="detect_leaks=0")

    # Host

    def start_host(self):
        config = self.folder / "vgpud.conf"
        config.write_text(
            f"[vgpud]\ndriver = soft\nlog-file = {self.folder}/log\n"
            f"[vm local]\ntransport = socket\nsocket = {self.folder}/local.sock\nsize = 256M\n"
            f"[vm guest]\nsocket = {self.folder}/guest.sock\nsize = 512M\n"
            "max-processes = 14\n")
        (self.folder / "log").touch()
        self.log = Log(self.folder / "log")
        daemon = self.build / "host-daemon/main/vgpud"
        self.host = subprocess.Popen([daemon, "--config", config])
        self.wait(lambda: any("vgpud ready" in line for line in self.log.lines), "vgpud")
        self.settle()
        # Everything is used once, so that resources that remain later are leaks.
        program = Program(self)
        program.process.wait()
        self.settle()
        self.before = self.measure()

    def wait(self, condition, what, seconds=60):
        end = time.monotonic() + seconds
        while True:
            self.log.read()
            if condition():
                return
            if time.monotonic() > end or self.host.poll() is not None:
                raise RuntimeError(f"never so: {what}")
            time.sleep(0.02)

    def broker(self):
        for pid in books.children(self.host.pid):
            if books.comm(pid) == "vgpud-broker":
                return pid
        return None

    def settle(self):
        """Waits until only the broker and one warm worker are left."""
        self.wait(lambda: self.broker() and len(books.children(self.host.pid)) == 2,
                  "broker and warm worker are left")
        self.wait(lambda: not self.log.open, "every session has ended")
        time.sleep(0.3)
        self.log.read()

    def measure(self):
        broker = self.broker()
        return {
            "children of vgpud": len(books.children(self.host.pid)),
            "descriptors of the keeper": books.count_fds(self.host.pid),
            "descriptors of the broker": books.count_fds(broker),
            "memory of the keeper, KiB": books.resident_kib(self.host.pid),
            "memory of the broker, KiB": books.resident_kib(broker),
            "device memory counted": books.quota_in_use(self.host.pid),
            "shared memories": len(books.memories(self.host.pid)),
            "zombies": books.count_zombies({self.host.pid, broker}),
        }

    # Killing

    def kill_program(self):
        program = self.random.choice(self.programs)
        if program.killed or program.process.poll() is not None:
            return False
        program.killed = True
        program.process.kill()
        return True

    def kill_worker(self, vm):
        workers = [w for w, name in self.log.open.items()
                   if name == vm and w not in self.log.killed]
        if not workers:
            return False
        worker = self.random.choice(workers)
        if books.comm(worker) != "vgpu-worker":
            return False
        self.log.killed.add(worker)
        os.kill(worker, signal.SIGKILL)
        return True

    def kill_broker(self):
        broker = self.broker()
        if not broker or time.monotonic() - self.last_broker < BROKER_PAUSE:
            return False
        self.last_broker = time.monotonic()
        os.kill(broker, signal.SIGKILL)
        return True

    def kill_qemu(self):
        machine = self.machine
        if not machine or "ended" not in machine.text or machine.killed:
            return False
        qemu = machine.find_qemu()
        if not qemu:
            return False
        machine.killed = True
        os.kill(qemu, signal.SIGKILL)
        return True

    def kill_something(self):
        kind = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        done = {
            "program": self.kill_program,
            "worker": lambda: self.kill_worker("local"),
            "broker": self.kill_broker,
            "guest worker": lambda: self.kill_worker("guest"),
            "QEMU": self.kill_qemu,
        }[kind]()
        self.kills[kind] += done

    # Judging

    def judge(self, program):
        status = program.process.returncode
        complaint = program.process.stderr.read().decode(errors="replace").strip()
        worker = self.log.worker_of.get(("local", program.pid))
        if status == 0:
            end = "right"
        elif program.killed and status == -signal.SIGKILL:
            end = "killed"
        elif status == 2:
            end = "failed"
            if worker not in self.log.killed:
                self.wrong.append(
                    f"program {program.pid} failed though its worker {worker} was not "
                    f"killed: {complaint}")
        else:
            end = "wrong"
            self.wrong.append(f"program {program.pid} ended with {status}: {complaint}")
        self.ends["host"][end] += 1

    def reap_programs(self):
        for program in list(self.programs):
            if program.process.poll() is None:
                continue
            self.log.read()
            self.programs.remove(program)
            self.judge(program)

    def tend_machine(self, again):
        """Reads the output of the VM; starts another VM when it has ended."""
        machine = self.machine
        if machine:
            machine.read()
            if machine.is_idle() and not machine.killed:
                self.check_idle_guest()
                machine.killed = True
                os.kill(machine.find_qemu(), signal.SIGKILL)
                self.kills["QEMU"] += 1
            if machine.run.poll() is None:
                return
            self.close_machine()
        if again and not self.options.no_vm:
            self.n_machines += 1
            self.machine = Machine(self, self.n_machines)

    def close_machine(self):
        machine, self.machine = self.machine, None
        machine.read()
        ends = self.ends["guest"]
        for end, status in (("right", 0), ("failed", 2), ("wrong", 1), ("killed", 137)):
            ends[end] += machine.ended(status)
        self.kills["guest program"] += machine.text.count("killed\n")
        others = len(re.findall(r"^ended ", machine.text, re.M)) - sum(
            machine.ended(status) for status in (0, 1, 2, 137))
        if machine.ended(1) or others:
            self.wrong.append(f"wrong in the guest: {machine.text}")
        if not machine.killed:
            self.wrong.append(f"a machine ended by itself: {machine.text[-500:]}")
        machine.out.close()

    def check_idle_guest(self):
        """An idle guest holds no channel and no extent."""
        held = ["not looked at"]
        for _ in range(100):
            held = books.held_in_guest(self.host.pid)
            if not held:
                break
            time.sleep(0.05)
        self.check("an idle guest holds nothing", not held, held)

    # Checks

    def check(self, what, is_so, detail=""):
        if is_so:
            self.n_passed += 1
        else:
            self.wrong.append(f"{what}: {detail}")

    def check_log(self):
        # A process that is killed between connecting and the greeting is logged, too.
        allowed = ("the broker was ended by signal 9", "it ended or takes nothing")
        errors = [line for line in self.log.lines
                  if (" error: " in line and not any(text in line for text in allowed))
                  or "Sanitizer" in line or "runtime error:" in line]
        self.check("nothing else in the log is an error", not errors, errors[:5])
        self.check("no worker serves twice", not self.log.twice, self.log.twice)
        self.check("every session that opened has ended", not self.log.open, self.log.open)
        failed = self.ends["guest"]["failed"]
        self.check("guest programs fail only with their workers",
                   failed <= self.kills["guest worker"],
                   f"{failed} of {self.kills['guest worker']}")

    def check_left(self):
        now = self.measure()
        print(f"{'left':32}{'before':>10}{'after':>10}")
        for name, value in now.items():
            print(f"  {name:30}{self.before[name]:10}{value:10}")
            room = 6144 if name.startswith("memory") else 0
            self.check(name, value <= self.before[name] + room,
                       f"{self.before[name]} before, {value} after")

    def print_kills(self):
        print(f"{'killed':32}{'':10}{'number':>10}")
        for kind in KINDS:
            print(f"  {kind:30}{'':10}{self.kills[kind]:10}")
        print(f"{'programs that ended':22}" + "".join(f"{end:>10}" for end in ENDS))
        for where, ends in self.ends.items():
            print(f"  on the {where:13}" + "".join(f"{ends[end]:10}" for end in ENDS))

    # All of it

    def shoot(self):
        goal = self.options.kills
        end = time.monotonic() + START_SECONDS + goal * KILL_SECONDS
        while sum(self.kills.values()) + self.guest_kills() < goal:
            if time.monotonic() > end:
                raise RuntimeError(f"{sum(self.kills.values())} kills, and time is up")
            self.log.read()
            if self.host.poll() is not None:
                raise RuntimeError(f"vgpud ended with {self.host.returncode}")
            while len(self.programs) < self.options.processes:
                self.programs.append(Program(self))
            self.tend_machine(True)
            time.sleep(self.random.uniform(0.02, 0.5))
            self.kill_something()
            self.reap_programs()

    def guest_kills(self):
        return self.machine.text.count("killed\n") if self.machine else 0

    def finish(self):
        """Waits for the end of the programs, and ends the VM."""
        end = time.monotonic() + 120
        while self.programs and time.monotonic() < end:
            time.sleep(0.05)
            self.reap_programs()
        self.check("programs end", not self.programs, f"{len(self.programs)} do not")
        while self.machine:
            machine = self.machine
            machine.killed = True
            qemu = machine.find_qemu()
            if qemu:
                os.kill(qemu, signal.SIGKILL)
                self.kills["QEMU"] += 1
                machine.run.wait(30)
            elif machine.run.poll() is None:
                time.sleep(0.1)
                continue
            self.close_machine()
        self.settle()

    def run(self):
        start = time.monotonic()
        try:
            self.start_host()
            self.shoot()
            self.finish()
            self.print_kills()
            self.check_left()
            self.check_log()
            self.check("results are right", not self.ends["host"]["wrong"])
        except RuntimeError as error:
            self.wrong.append(str(error))
        finally:
            self.stop()
        for sentence in self.wrong[:20]:
            print(f"soak: {sentence}", file=sys.stderr)
        if self.wrong:
            print(f"soak: logs and consoles are kept in {self.folder}", file=sys.stderr)
        print(f"{sum(self.kills.values())} kills, seed {self.options.seed}, "
              f"{time.monotonic() - start:.0f} s")
        print(f"{self.n_passed} passed, {len(self.wrong)} failed, 0 skipped")
        return 1 if self.wrong else 0

    def stop(self):
        for program in self.programs:
            program.process.kill()
        if self.machine:
            self.machine.run.terminate()
            self.machine.run.wait()
        self.host.terminate()
        try:
            self.check("vgpud ends in order", self.host.wait(30) == 0)
        except subprocess.TimeoutExpired:
            self.host.kill()
            self.wrong.append("vgpud does not end")
        if self.options.log:
            Path(self.options.log).write_text((self.folder / "log").read_text())


def exit_usage(message):
    """Reports mistakes in the command line like the scripts."""
    print(f"{(message or '').rstrip()} (see --help)", file=sys.stderr)
    sys.exit(125)


def main():
    parser = argparse.ArgumentParser(
        prog="soak", usage="scripts/soak [OPTION...]", allow_abbrev=False)
    parser.exit = lambda status=0, message=None: exit_usage(message)
    parser.add_argument("--build", required=True)
    parser.add_argument("--top", required=True)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--no-vm", action="store_true")
    parser.add_argument("--log")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    if not books.sees_descriptors():
        print("descriptors of vgpud are not counted: only root can see them", flush=True)
    folder = tempfile.mkdtemp(prefix="vgpu-soak-")
    status = Soak(options, folder).run()
    if not status:
        shutil.rmtree(folder)
    return status


if __name__ == "__main__":
    sys.exit(main())
