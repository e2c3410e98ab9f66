#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sensors of the host's NVML, in the status of a VM, with an NVML of known values.

    test_sensors.py BUILD SOURCE [TEST...]
"""

import os
import re
import signal
import sys
import uuid
from pathlib import Path

tests = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[1:1] = [os.path.join(tests, "lib"), os.path.join(tests, "raw")]

import proc  # noqa: E402
import tap  # noqa: E402
import wire  # noqa: E402
from host import Host  # noqa: E402
from status import UNKNOWN, WHOLE, look  # noqa: E402

# enum vgpu_status_sensor
TEMPERATURE, FAN, POWER = 0, 3, 4
CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY = 10, 11, 12
TEMPERATURE_MEMORY, PCIE_SENT, PCIE_RECEIVED, ECC_EVER = 33, 37, 38, 32
RETIRED, REMAPPED, REMAPPED_UNCORRECTED, REMAPPED_STATE = 42, 44, 45, 46
KNOWN = {TEMPERATURE: 41, POWER: 123456, CLOCK_GRAPHICS: 1000, CLOCK_SM: 1001,
         CLOCK_MEMORY: 1002, TEMPERATURE_MEMORY: 77, PCIE_SENT: 5000, PCIE_RECEIVED: 6000,
         ECC_EVER: 17, RETIRED: 3, REMAPPED: 1, REMAPPED_UNCORRECTED: 2, REMAPPED_STATE: 2}


class Card:
    """Hosts whose driver is like NVIDIA's, and whose NVML has the UUID of its device."""

    def __init__(self, build):
        self.build = Path(build).absolute()
        with self.host(nvml="no") as host:
            looker = look(host)
            self.uuid = uuid.UUID(bytes=looker.status().devices[0]["uuid"])
            looker.close()

    def host(self, nvml=None, name=None, sandbox="yes"):
        library = nvml or self.build / "tests/foreign/libforeign-nvml.so"
        environment = {"FAKE_NVML_UUID": f"GPU-{name or self.uuid}"} if nvml != "no" else {}
        return Host(self.build, driver=self.build / "tests/foreign/libforeign-cuda.so",
                    extra=f"nvml = {library}\nsandbox = {sandbox}", environment=environment)


def processes_of(host):
    return [pid for pid in proc.children(host.process.pid)
            if proc.command(pid) == "vgpu-sensors"]


def test_a_device_has_the_sensors_of_its_uuid(card):
    with card.host() as host:
        looker = look(host)
        status = looker.wait(lambda s: s.devices[0]["sensors"], "the sensors")
        assert status.devices[0]["sensors"] == KNOWN, status
        assert status.driver_version == "580.1.2" and status.flags == WHOLE, status
        looker.close()


def test_another_uuid_is_another_device(card):
    with card.host(name=uuid.uuid4()) as host:
        looker = look(host)
        looker.wait(lambda s: s.driver_version == "580.1.2", "the first measurement")
        assert looker.status().devices[0]["sensors"] == {}
        looker.close()


def test_a_process_has_the_utilisation_of_its_worker(card):
    # To find workers by their names, the library reads files that the sandbox forbids.
    with card.host(sandbox="no") as host:
        looker, channel = look(host), wire.Channel(card.api, host.socket)
        status = looker.wait(
            lambda s: s.processes and s.devices[0]["utilisation"] != UNKNOWN, "its share")
        process, = status.processes[os.getpid()]
        assert process["utilisation"] == 37 and process["memory_utilisation"] == 12, status
        # The warm worker of nobody is not this VM's.
        assert status.devices[0]["utilisation"] == 37, status
        assert status.devices[0]["memory_utilisation"] == 12, status
        channel.close()
        looker.wait(lambda s: s.devices[0]["utilisation"] == UNKNOWN, "its end")
        looker.close()


def test_without_nvml_all_is_unknown(card):
    for nvml in ("no", "/usr/lib/libnothing.so.1"):
        with card.host(nvml=nvml) as host:
            looker = look(host)
            device = looker.status().devices[0]
            assert device["sensors"] == {} and device["utilisation"] == UNKNOWN, device
            looker.close()
            if nvml != "no":
                host.wait_for("there is no NVML on this host")
            assert not processes_of(host)
            # It is not tried again.
            assert len(re.findall("no NVML", host.text())) == (nvml != "no")


def test_a_killed_process_is_replaced(card):
    with card.host() as host:
        looker = look(host)
        looker.wait(lambda s: s.devices[0]["sensors"], "the sensors")
        first, = processes_of(host)
        os.kill(first, signal.SIGKILL)
        host.wait_for("process that reads sensors has ended")
        looker.wait(lambda s: processes_of(host) not in ([], [first]), "another process")
        looker.wait(lambda s: s.devices[0]["sensors"] == KNOWN, "the sensors")
        looker.close()


def test_another_broker_finds_the_page(card):
    with card.host() as host:
        looker = look(host)
        looker.wait(lambda s: s.devices[0]["sensors"], "the sensors")
        os.kill(proc.broker_of(host), signal.SIGKILL)
        then = looker.status().updated_us
        status = looker.wait(lambda s: s.updated_us > then + 400_000, "the next broker")
        assert looker.wait(lambda s: s.devices[0]["sensors"] == KNOWN, "them"), status
        looker.close()


def test_it_ends_with_vgpud(card):
    with card.host() as host:
        looker = look(host)
        looker.wait(lambda s: s.devices[0]["sensors"], "the sensors")
        process, = processes_of(host)
        looker.close()
    assert not host.alive(process)


def main():
    build, source, *wanted = sys.argv[1:]
    card = Card(build)
    card.api = wire.Api(os.path.join(source, "protocol/api"))
    return tap.run(tap.functions(globals(), card, only=wanted))


if __name__ == "__main__":
    sys.exit(main())
