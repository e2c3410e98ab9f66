#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives QEMU one command of its machine protocol: qmp.py SOCKET COMMAND [ARGUMENTS].

ARGUMENTS is an object in JSON. An answer that has anything in it is printed. The
command "unplug" takes the ivshmem-doorbell device of an "id", see below.
"""
import json
import os
import socket
import sys


class Monitor:
    """A connection to QEMU's machine protocol."""

    def __init__(self, path):
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(path)
        self.stream = self.connection.makefile("r")
        self.events = []
        self.run("qmp_capabilities")

    def run(self, command, arguments=None, descriptor=None):
        """Returns the answer; ends the program if it is an error."""
        text = json.dumps({"execute": command, "arguments": arguments or {}})
        descriptors = [] if descriptor is None else [descriptor]
        socket.send_fds(self.connection, [text.encode()], descriptors)
        while True:
            answer = self.receive()
            if "error" in answer:
                sys.exit(str(answer["error"]))
            if "return" in answer:
                return answer["return"]

    def wait(self, event):
        """Returns when the event has come since the connection was made."""
        while event not in self.events:
            self.receive()

    def receive(self):
        line = self.stream.readline()
        if not line:
            sys.exit("QEMU has ended")
        answer = json.loads(line)
        if "event" in answer:
            self.events.append(answer["event"])
        return answer


def unplug(monitor, device):
    """Takes the device, and returns when QEMU has freed it.

    Under TCG, QEMU 7.2 closes the eventfds of an ivshmem-doorbell device that it frees,
    and keeps calling its handlers for their numbers. Whatever is opened next, such as a
    connection to this very socket, gets one of these numbers, and crashes QEMU once it
    is readable. So they are taken by descriptors that never are.
    """
    monitor.run("device_del", {"id": device})
    monitor.wait("DEVICE_DELETED")
    never = os.eventfd(0)
    for i in range(100):
        monitor.run("getfd", {"fdname": f"never-{device}-{i}"}, never)


def main():
    monitor = Monitor(sys.argv[1])
    arguments = json.loads(sys.argv[3]) if len(sys.argv) > 3 else None
    if sys.argv[2] == "unplug":
        unplug(monitor, arguments["id"])
        return
    answer = monitor.run(sys.argv[2], arguments)
    if answer:
        print(json.dumps(answer))


if __name__ == "__main__":
    main()
