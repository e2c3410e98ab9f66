#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives QEMU one command of its machine protocol: qmp.py SOCKET COMMAND [ARGUMENTS].

ARGUMENTS is an object in JSON. An answer that has anything in it is printed.
"""
import json
import socket
import sys


def main():
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        stream = connection.makefile("rw")
        arguments = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
        for command, given in (("qmp_capabilities", {}), (sys.argv[2], arguments)):
            stream.write(json.dumps({"execute": command, "arguments": given}) + "\n")
            stream.flush()
            while True:
                answer = json.loads(stream.readline())
                if "error" in answer:
                    sys.exit(str(answer["error"]))
                if "return" in answer:
                    break
        if answer["return"]:
            print(json.dumps(answer["return"]))


if __name__ == "__main__":
    main()
