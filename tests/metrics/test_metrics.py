#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vgpu-metrics beside a program on softgpu, and its scrapers, which are slow, many, or no
programs of HTTP: test_metrics.py BUILD"""

import contextlib
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

BUILD = Path(sys.argv[1]).absolute()
SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(SOURCE / "tests/lib"), str(SOURCE / "tests/ctl"), str(Path(__file__).parent)]

import exposition  # noqa: E402  pylint: disable=wrong-import-position
import tap  # noqa: E402  pylint: disable=wrong-import-position
from counted import Counted  # noqa: E402  pylint: disable=wrong-import-position
from host import Host  # noqa: E402  pylint: disable=wrong-import-position
from test_top import N_COPIES, N_LAUNCHES, SIZE  # noqa: E402  pylint: disable=wrong-import-position

CTL = BUILD / "host-daemon/ctl/vgpuctl"
METRICS = BUILD / "host-daemon/metrics/vgpu-metrics"
# As serve.c has them.
CONNECTIONS, SERVE_S = 32, 20


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Server:
    """vgpu-metrics, for a socket of vgpud that may be a link to it."""

    def __init__(self, test, *options):
        folder = tempfile.TemporaryDirectory(prefix="vgpu-metrics-")
        test.addCleanup(folder.cleanup)
        self.vgpud, self.path = Path(folder.name) / "vgpud", f"{folder.name}/metrics"
        self.errors = open(Path(folder.name) / "errors", "w+", encoding="utf-8")
        test.addCleanup(self.errors.close)
        self.process = subprocess.Popen(
            [METRICS, "--listen", self.path, "--socket", self.vgpud, *options],
            stderr=self.errors)
        test.addCleanup(self.stop)
        while not self.listens():
            assert self.process.poll() is None
            time.sleep(0.01)

    def listens(self):
        """The file is there a moment before."""
        try:
            self.open().close()
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    def stop(self):
        self.process.terminate()
        assert self.process.wait(60) == 0
        assert not os.path.exists(self.path)

    def point_to(self, place):
        new = self.vgpud.with_name("new")
        new.symlink_to(place)
        new.rename(self.vgpud)

    def request(self, url="/metrics", method="GET", **headers):
        connection = Connection(self.path)
        connection.request(method, url, headers=headers)
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return reply, text

    def scrape(self):
        reply, text = self.request()
        assert reply.status == 200, (reply.status, text)
        assert reply.getheader("Content-Type").startswith("text/plain; version=0.0.4")
        return exposition.parse(text)

    def open(self):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(120)
        client.connect(self.path)
        return client

    def count_sockets(self):
        n = 0
        for path in Path(f"/proc/{self.process.pid}/fd").iterdir():
            # It may close one at any time.
            with contextlib.suppress(FileNotFoundError):
                n += os.readlink(path).startswith("socket:")
        return n


def value(families, name, **labels):
    wanted = tuple(sorted(labels.items()))
    for family in families.values():
        for (sample, found), number in family.samples.items():
            if (sample, found) == (name, wanted):
                return number
    return None


class Values(Counted, unittest.TestCase):
    def setUp(self):
        self.start_host(BUILD, vm="device-memory = 1G")
        self.server = Server(self, "--processes")
        self.server.point_to(self.socket)

    def wait_for(self, name, number, **labels):
        """Scrapes until it is so: what is served may be a second old, and a call is timed
        after its reply."""
        for _ in range(300):
            families = self.server.scrape()
            if value(families, name, **labels) == number:
                return families
            time.sleep(0.1)
        self.assertEqual(value(families, name, **labels), number)
        return None

    def check_work(self, n, n_programs):
        def check(families, name, number, **labels):
            self.assertEqual(value(families, name, vm="raw", **labels), number, name)

        duration = "vgpu_vm_call_duration_seconds"
        families = self.wait_for(f"{duration}_count", n, vm="raw", call="cuCtxSynchronize")
        check(families, "vgpu_vm_launches_total", n * N_LAUNCHES)
        check(families, "vgpu_vm_copies_total", n * N_COPIES, direction="to_device")
        check(families, "vgpu_vm_copies_total", 0, direction="from_device")
        check(families, "vgpu_vm_copied_bytes_total", n * N_COPIES * SIZE,
              direction="to_device")
        check(families, "vgpu_vm_sessions_opened_total", n_programs)
        for call, number in (("cuLaunchKernel", n * N_LAUNCHES),
                             ("cuMemcpyHtoDAsync", n * N_COPIES),
                             ("cuMemAlloc", n_programs)):
            check(families, f"{duration}_count", number, call=call)
            check(families, f"{duration}_bucket", number, call=call, le="+Inf")
            self.assertGreater(value(families, f"{duration}_sum", vm="raw", call=call), 0)
        return families

    def test_work_of_programs_is_counted_also_after_their_ends(self):
        first = self.start()
        self.work(first)
        families = self.check_work(1, 1)
        self.assertEqual(value(families, "vgpu_up"), 1)
        self.assertEqual(value(families, "vgpu_vm_sessions", vm="raw"), 1)
        self.assertEqual(value(families, "vgpu_vm_device_memory_limit_bytes", vm="raw"), 1 << 30)
        self.assertGreaterEqual(value(families, "vgpu_vm_device_memory_bytes", vm="raw"), SIZE)
        self.assertEqual(value(families, "vgpu_vm_greeted", vm="raw"), 1)
        self.work(first)
        self.check_work(2, 1)
        first.communicate()
        second = self.start()
        self.work(second)
        families = self.check_work(3, 2)
        self.assertEqual(value(families, "vgpu_vm_sessions_ended_total", vm="raw",
                               reason="closed"), 1)
        # Another broker takes over.
        subprocess.run([CTL, "--socket", self.socket, "set", "raw", "handles=77"], check=True,
                       timeout=60, stdout=subprocess.DEVNULL)
        self.work(second)
        self.check_work(4, 2)
        second.communicate()
        self.wait_for("vgpu_vm_sessions_ended_total", 2, vm="raw", reason="closed")
        self.check_work(4, 2)

    def test_launches_that_have_not_begun_are_queued(self):
        def run_ctl(*words):
            return subprocess.run([CTL, "--socket", self.socket, *words], check=True, timeout=60,
                                  stdout=subprocess.PIPE).stdout

        program, name = self.start(), "vgpu_vm_queued_launches"
        self.assertIsNone(value(self.server.scrape(), name, vm="raw"))
        self.work(program)
        self.wait_for(name, 0, vm="raw")
        run_ctl("pause", "raw")
        program.stdin.write(b"once\n")
        self.wait_for(name, N_LAUNCHES, vm="raw")
        # The worker has taken them all.
        self.wait_for("vgpu_vm_queued_bytes", 0, vm="raw")
        shown = json.loads(run_ctl("show", "raw", "--json"))
        self.assertEqual(shown["queued_launches"], N_LAUNCHES)
        self.assertEqual(shown["processes"][0]["queued_launches"], N_LAUNCHES)
        shown = json.loads(run_ctl("top", "--json"))
        for use in shown["vms"][0], shown["processes"][0]:
            self.assertEqual(use["queued_launches"], N_LAUNCHES)
        self.assertIn(f" {N_LAUNCHES} launches\n", run_ctl("show", "raw").decode())
        run_ctl("resume", "raw")
        self.assertEqual(program.stdout.read(5), b"done\n")
        self.wait_for(name, 0, vm="raw")

    def test_processes_have_metrics_if_wanted(self):
        program = self.start()
        self.work(program)
        self.check_work(1, 1)
        families = self.server.scrape()
        samples = families["vgpu_process_launches_total"].samples
        self.assertEqual(list(samples.values()), [N_LAUNCHES])
        labels = dict(list(samples)[0][1])
        self.assertEqual((labels["vm"], labels["pid"]), ("raw", str(program.pid)))
        self.assertEqual(set(labels), {"vm", "pid", "name", "session"})
        without = Server(self)
        without.point_to(self.socket)
        self.assertFalse([name for name in without.scrape() if "process" in name])

    def test_labels_are_those_of_the_page(self):
        program = self.start()
        self.work(program)
        families = self.check_work(1, 1)
        page = (SOURCE / "docs/metrics.md").read_text(encoding="utf-8")
        n_checked = 0
        for name, family in families.items():
            for labels in family.labels():
                row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` "))
                told = {word.strip("`, ") for word in row.split("|")[3].split()}
                self.assertEqual(set(labels), told - {""}, row)
                n_checked += 1
        self.assertGreater(n_checked, 20)

    def test_other_parsers_accept_both_formats(self):
        try:
            # pylint: disable=import-outside-toplevel
            from prometheus_client import parser
            from prometheus_client.openmetrics import parser as openmetrics
        except ImportError:
            self.skipTest("python3-prometheus-client is not installed")
        program = self.start()
        self.work(program)
        self.check_work(1, 1)
        text = self.server.request()[1]
        families = list(parser.text_string_to_metric_families(text))
        self.assertEqual(len(families), len(exposition.parse(text)))
        reply, text = self.server.request(
            Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
        self.assertTrue(reply.getheader("Content-Type").startswith(
            "application/openmetrics-text; version=1.0.0"))
        self.assertEqual(len(list(openmetrics.text_string_to_metric_families(text))),
                         len(families))

    def test_requests_of_a_second_get_one_text(self):
        began, texts = time.monotonic(), {self.server.request()[1] for _ in range(50)}
        self.assertLessEqual(len(texts), time.monotonic() - began + 2)


class Scrapers(unittest.TestCase):
    """Without a vgpud: what is served is short, and the same."""

    def setUp(self):
        self.server = Server(self)

    def check_alive(self):
        self.assertEqual(value(self.server.scrape(), "vgpu_up"), 0)
        self.assertIsNone(self.server.process.poll())

    def test_a_vgpud_that_comes_and_goes(self):
        self.check_alive()

        def prepare(folder):
            self.server.point_to(folder / "control")
            return f"ctl-socket = {folder}/control\n"

        for _ in range(2):
            with Host(BUILD, driver="null", prepare=prepare):
                for up in range(300):
                    up = value(self.server.scrape(), "vgpu_up")
                    if up:
                        break
                    time.sleep(0.1)
                self.assertEqual(up, 1)
            for _ in range(300):
                up = value(self.server.scrape(), "vgpu_up")
                if not up:
                    break
                time.sleep(0.1)
            self.assertEqual(up, 0)
        self.server.errors.seek(0)
        # Each change is said once.
        text = self.server.errors.read()
        self.assertEqual(text.count(" answers"), 2, text)
        self.assertEqual(text.count("vgpud does not run"), 3, text)

    def test_other_requests(self):
        reply, text = self.server.request("/")
        self.assertEqual((reply.status, "/metrics" in text), (200, True))
        self.assertEqual(self.server.request("/other")[0].status, 404)
        self.assertEqual(self.server.request("/metrics/")[0].status, 404)
        reply, _ = self.server.request(method="POST")
        self.assertEqual((reply.status, reply.getheader("Allow")), (405, "GET, HEAD"))
        reply, text = self.server.request(method="HEAD")
        self.assertEqual((reply.status, text), (200, ""))
        self.assertGreater(int(reply.getheader("Content-Length")), 0)
        connection = Connection(self.server.path)
        connection.request("POST", "/metrics", body=b"x" * (1 << 20))
        self.assertEqual(connection.getresponse().status, 405)
        connection.close()
        self.check_alive()

    def test_what_is_no_http(self):
        generator = random.Random(17)
        parts = [b"GET ", b"/metrics", b" HTTP/1.1\r\n", b"\r\n", b"\0", b"Host: x\r\n",
                 b"Content-Length: -1\r\n", b"Content-Length: 99999999999999999999\r\n",
                 b"Transfer-Encoding: chunked\r\n", b"Accept: " + b"x" * 9000 + b"\r\n"]
        for i in range(200):
            data = (generator.randbytes(generator.randrange(1, 5000)) if i % 2 else
                    b"".join(generator.choices(parts, k=generator.randrange(1, 9))))
            with self.server.open() as client:
                try:
                    client.sendall(data)
                    client.shutdown(socket.SHUT_WR)
                    while client.recv(65536):
                        pass
                except (BrokenPipeError, ConnectionResetError):
                    pass
        with self.server.open() as client:
            try:
                for _ in range(100):
                    client.sendall(b"GET /metrics HTTP/1.1\r\nx: " + b"y" * 100000)
            except (BrokenPipeError, ConnectionResetError):
                pass
        self.check_alive()

    def test_many_that_say_nothing_or_never_read(self):
        clients = []
        for i in range(100):
            clients.append(self.server.open())
            if i % 2:
                clients[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertLessEqual(self.server.count_sockets(), CONNECTIONS + 4)
        # One more waits for its turn, and gets it.
        self.check_alive()
        for client in clients:
            client.close()

    def test_one_that_sends_byte_by_byte_is_ended(self):
        with self.server.open() as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\n")
            with self.assertRaises((BrokenPipeError, ConnectionResetError)):
                for _ in range(10 * SERVE_S):
                    client.sendall(b"x")
                    time.sleep(1)
        self.check_alive()


if __name__ == "__main__":
    sys.exit(tap.unittest_main())
