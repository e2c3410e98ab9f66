# SPDX-License-Identifier: Apache-2.0
"""The page with the state of the GPUs, read as docs/protocol.md describes it."""

import mmap
import os
import socket
import struct
import time

import wire

STATUS_OFF_OFF = 56
DEVICE_OFF, DEVICE_SIZE, DEVICES_MAX = 192, 1360, 64
PROCESS_OFF, PROCESS_SIZE = DEVICE_OFF + DEVICES_MAX * DEVICE_SIZE, 64
PROCESSES_MAX = 128
USE_OFF, USE_SIZE = PROCESS_OFF + PROCESSES_MAX * PROCESS_SIZE, 16
SAMPLE_OFF, SAMPLE_SIZE, SAMPLES = USE_OFF + DEVICES_MAX * PROCESSES_MAX * USE_SIZE, 24, 100
EVENT_OFF, EVENT_SIZE, EVENTS = SAMPLE_OFF + DEVICES_MAX * SAMPLES * SAMPLE_SIZE, 24, 64
PEER_OFF = EVENT_OFF + EVENTS * EVENT_SIZE
DISTANCE_OFF = PEER_OFF + DEVICES_MAX * DEVICES_MAX
STATUS_SIZE = DISTANCE_OFF + DEVICES_MAX * DEVICES_MAX
SOFTGPU, WHOLE = 1, 2
UNUSED = (1 << 64) - 1
INFO_SIZE = 944
SENSORS_N = 48
UNKNOWN = (1 << 32) - 1


class Looker:
    """A process that has no channel, and only looks."""

    def __init__(self, host):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(str(host.socket))
        _, self.fds, _, _ = socket.recv_fds(self.socket, 16, 3)
        self.memory = mmap.mmap(self.fds[0], 1 << 20)
        self.at = self.get("Q", STATUS_OFF_OFF)[0]
        assert wire.TABLE_OFF + 31 * wire.ENTRY_SIZE <= self.at < 1 << 20, self.at

    def get(self, layout, offset):
        return struct.unpack_from("<" + layout, self.memory, offset)

    def status(self):
        """A consistent copy."""
        while True:
            before = self.get("I", self.at)[0]
            copy = bytes(self.memory[self.at : self.at + STATUS_SIZE])
            if before % 2 == 0 and before == self.get("I", self.at)[0]:
                return Status(copy)

    def wait(self, done, what):
        end = time.monotonic() + 60
        while not done(status := self.status()):
            assert time.monotonic() < end, f"waited for {what}: {status}"
            time.sleep(0.01)
        return status

    def close(self):
        self.memory.close()
        self.socket.close()
        for fd in self.fds:
            os.close(fd)


class Status:
    """Its fields."""

    def __init__(self, copy):
        _, self.flags, self.updated_us, n_devices, n_processes, self.cuda_version, _ = (
            struct.unpack_from("<IIQIIiI", copy))
        self.driver_version = copy[32:112].split(b"\0")[0].decode()
        self.devices = [self._device(copy, DEVICE_OFF + i * DEVICE_SIZE)
                        for i in range(n_devices)]
        self.limit, self.used = struct.unpack_from("<QQ", copy, 112)
        self.processes = {}
        for i in range(n_processes):
            process = self._process(copy, PROCESS_OFF + i * PROCESS_SIZE)
            process["uses"] = [struct.unpack_from(
                "<QII", copy, USE_OFF + (device * PROCESSES_MAX + i) * USE_SIZE)
                               for device in range(n_devices)]
            self.processes.setdefault(process["pid"], []).append(process)
        self.samples = [sorted(filter(any, (struct.unpack_from(
            "<QIHH6B", copy, SAMPLE_OFF + (device * SAMPLES + i) * SAMPLE_SIZE)
                                            for i in range(SAMPLES))))
                        for device in range(n_devices)]
        self.events = sorted(filter(any, (struct.unpack_from(
            "<QIIq", copy, EVENT_OFF + i * EVENT_SIZE) for i in range(EVENTS))))
        self.peers, self.distances = (
            [list(copy[at + i * DEVICES_MAX:][:n_devices]) for i in range(n_devices)]
            for at in (PEER_OFF, DISTANCE_OFF))

    @staticmethod
    def _device(copy, at):
        total, used, utilisation, memory, sensors = struct.unpack_from(
            "<QQIIQ", copy, at + INFO_SIZE)
        values = struct.unpack_from(f"<{SENSORS_N}q", copy, at + INFO_SIZE + 32)
        known = {i: values[i] for i in range(SENSORS_N) if sensors >> i & 1}
        return {"name": copy[at : at + 256].split(b"\0")[0].decode(),
                "uuid": copy[at + 256 : at + 272], "total": total, "used": used,
                "utilisation": utilisation, "memory_utilisation": memory, "sensors": known}

    @staticmethod
    def _process(copy, at):
        pid, uid, start, namespace, comm, opened, used, utilisation, memory = struct.unpack_from(
            "<IIQQ16sQQII", copy, at)
        return {"pid": pid, "uid": uid, "start_time": start, "namespace": namespace,
                "comm": comm.split(b"\0")[0].decode(), "opened_us": opened, "used": used,
                "utilisation": utilisation, "memory_utilisation": memory}

    def __repr__(self):
        return str(vars(self))


def look(host):
    looker = Looker(host)
    looker.wait(lambda s: s.devices, "the devices")
    return looker
