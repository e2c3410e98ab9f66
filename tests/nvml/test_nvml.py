#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The guest's NVML against a vgpud with softgpu, from programs without a word of C.

    test_nvml.py BUILD SOURCE
"""

import ctypes
import os
import re
import subprocess
import sys
import time
import unittest
from pathlib import Path
from xml.etree import ElementTree

BUILD, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
sys.path.insert(0, str(SOURCE / "tests/lib"))

import proc  # noqa: E402
import proofs  # noqa: E402
import tap  # noqa: E402
from host import Host  # noqa: E402

NVML = str(BUILD / "guest-shim/nvml/libnvidia-ml.so.1")
CUDA = str(BUILD / "guest-shim/libcuda.so.1")
PROGRAM = str(BUILD / "tests/nvml/nvml-program")
SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION = range(5)
NOT_FOUND, INSUFFICIENT_SIZE, DRIVER_NOT_LOADED, TIMEOUT, GPU_IS_LOST = 6, 7, 9, 10, 15
GPU_UTILIZATION_SAMPLES, XID_EVENT, XID_PAGE_FAULT = 1, 8, 31
ILLEGAL_ADDRESS = 700
P2P_READ, P2P_WRITE, P2P_OK = 0, 1, 0
CODES = {"NVML_ERROR_NOT_SUPPORTED": NOT_SUPPORTED, "NVML_ERROR_NO_PERMISSION": NO_PERMISSION,
         "NVML_ERROR_INVALID_ARGUMENT": INVALID_ARGUMENT}
# These need no initialised library.
FREE = {"nvmlInit", "nvmlInit_v2", "nvmlInitWithFlags", "nvmlShutdown", "nvmlErrorString"}
MEMORY = 64 << 20


class ProcessInfo(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("memory", ctypes.c_ulonglong),
                ("gpu_instance", ctypes.c_uint), ("compute_instance", ctypes.c_uint)]


def symbols():
    return (SOURCE / "protocol/api/nvml-symbols.txt").read_text("utf-8").split()


class EventData(ctypes.Structure):
    _fields_ = [("device", ctypes.c_void_p), ("type", ctypes.c_ulonglong),
                ("data", ctypes.c_ulonglong), ("gpu_instance", ctypes.c_uint),
                ("compute_instance", ctypes.c_uint)]


class Sample(ctypes.Structure):
    _fields_ = [("time", ctypes.c_ulonglong), ("value", ctypes.c_ulonglong)]


class Nvml:
    """The library, loaded and initialised."""

    def __init__(self):
        self.library = ctypes.CDLL(NVML)
        self.check("nvmlInit_v2")

    def call(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def check(self, name, *arguments):
        result = self.call(name, *arguments)
        assert result == SUCCESS, f"{name} returns {result}"

    def device(self, index=0):
        device = ctypes.c_void_p()
        self.check("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(device))
        return device

    def text(self, name, *arguments):
        buffer = ctypes.create_string_buffer(96)
        self.check(name, *arguments, buffer, len(buffer))
        return buffer.value.decode()

    def processes(self, index=0):
        infos, n = (ProcessInfo * 128)(), ctypes.c_uint(128)
        self.check("nvmlDeviceGetComputeRunningProcesses_v3", self.device(index),
                   ctypes.byref(n), infos)
        return {info.pid: info.memory for info in infos[:n.value]}

    def shut_down(self):
        self.check("nvmlShutdown")


def use_device():
    """Of a child: takes memory, says so, and waits until its input ends."""
    cuda, context, pointer = ctypes.CDLL(CUDA), ctypes.c_void_p(), ctypes.c_uint64()
    for result in (cuda.cuInit(0),
                   cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), int(sys.argv[-1])),
                   cuda.cuCtxSetCurrent(context),
                   cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(MEMORY))):
        assert result == 0, result
    print("ready", flush=True)
    sys.stdin.read()


class AllocationProp(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handle_types", ctypes.c_int),
                ("location_type", ctypes.c_int), ("location", ctypes.c_int),
                ("rest", ctypes.c_byte * 16)]


class IpcHandle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_byte * 64)]


PINNED, POSIX_FD, ON_DEVICE, LAZY = 1, 1, 1, 1


def share_memory():
    """Of a child: shares memory of a device, says how it is found, and waits."""
    kind, number = sys.argv[-2:]
    cuda, context, memory = ctypes.CDLL(CUDA), ctypes.c_void_p(), ctypes.c_uint64()
    prop = AllocationProp(PINNED, POSIX_FD, ON_DEVICE, int(number))
    handle, fd, size = IpcHandle(), ctypes.c_int(), ctypes.c_size_t(MEMORY)
    for result in (cuda.cuInit(0),
                   cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), int(number)),
                   cuda.cuCtxSetCurrent(context)):
        assert result == 0, result
    if kind == "ipc":
        for result in (cuda.cuMemAlloc_v2(ctypes.byref(memory), size),
                       cuda.cuIpcGetMemHandle(ctypes.byref(handle), memory)):
            assert result == 0, result
        print(bytes(handle).hex(), flush=True)
    else:
        for result in (cuda.cuMemCreate(ctypes.byref(memory), size, ctypes.byref(prop),
                                        ctypes.c_uint64(0)),
                       cuda.cuMemExportToShareableHandle(ctypes.byref(fd), memory, POSIX_FD,
                                                         ctypes.c_uint64(0))):
            assert result == 0, result
        print(f"/proc/{os.getpid()}/fd/{fd.value}", flush=True)
    sys.stdin.read()


def take_memory():
    """Of a child: has memory that another one shares, with a context on another device."""
    kind, place = sys.argv[-2:]
    cuda, context, memory = ctypes.CDLL(CUDA), ctypes.c_void_p(), ctypes.c_uint64()
    for result in (cuda.cuInit(0),
                   cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
                   cuda.cuCtxSetCurrent(context)):
        assert result == 0, result
    if kind == "ipc":
        result = cuda.cuIpcOpenMemHandle_v2(
            ctypes.byref(memory), IpcHandle.from_buffer_copy(bytes.fromhex(place)), LAZY)
    else:
        result = cuda.cuMemImportFromShareableHandle(
            ctypes.byref(memory), ctypes.c_void_p(os.open(place, os.O_RDWR)), POSIX_FD)
    assert result == 0, result
    print("ready", flush=True)
    sys.stdin.read()


FAULT = b"""
.version 7.0
.target sm_50
.address_size 64
.visible .entry fault()
{
	.reg .u64 %rd<2>;
	mov.u64 %rd1, 64;
	st.global.u64 [%rd1], %rd1;
	ret;
}
"""


def make_fault():
    """Of a child: a kernel that writes where nothing is, on the device that it was given."""
    cuda, context, module = ctypes.CDLL(CUDA), ctypes.c_void_p(), ctypes.c_void_p()
    device, function, none = int(sys.argv[-1]), ctypes.c_void_p(), ctypes.c_void_p()
    one = [ctypes.c_uint(1)] * 6
    for result in (cuda.cuInit(0),
                   cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
                   cuda.cuCtxSetCurrent(context),
                   cuda.cuModuleLoadData(ctypes.byref(module), FAULT),
                   cuda.cuModuleGetFunction(ctypes.byref(function), module, b"fault"),
                   cuda.cuLaunchKernel(function, *one, 0, none, none, none)):
        assert result == 0, result
    assert cuda.cuCtxSynchronize() == ILLEGAL_ADDRESS


def start_child(*words):
    """A child, and the line that it says."""
    child = subprocess.Popen([sys.executable, __file__, BUILD, SOURCE, *words],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    line = child.stdout.readline().strip()
    assert line, words
    return child, line


def start_user(prefix=(), device=0):
    child = subprocess.Popen(
        [*prefix, sys.executable, __file__, BUILD, SOURCE, "--use", str(device)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if child.stdout.readline() != "ready\n":
        child.stdin.close()
        child.wait()
        return None
    return child


def end_user(child):
    child.stdin.close()
    child.stdout.close()
    child.wait()


def wait_until(condition, what):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.05)


def run_program(*words):
    folders = os.pathsep.join(os.path.dirname(library) for library in (NVML, CUDA))
    done = subprocess.run([PROGRAM, *map(str, words)], text=True, check=False,
                          env=dict(os.environ, LD_LIBRARY_PATH=folders),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


class WithHost(unittest.TestCase):
    """Each test has a vgpud of its own."""

    def setUp(self):
        self.host = Host(BUILD).__enter__()
        os.environ["VGPU_SOCKET"] = str(self.host.socket)
        self.nvml = Nvml()

    def tearDown(self):
        while self.nvml.call("nvmlShutdown") == SUCCESS:
            pass
        self.host.__exit__()

    def n_sessions(self):
        return len(re.findall("session opened", self.host.text()))

    def test_no_call_of_the_list_does_harm_with_null(self):
        """A call has NULL and zeroes for all its arguments, before and after nvmlInit."""
        zeroes = [ctypes.c_void_p(0)] * 7
        self.nvml.shut_down()
        for name in set(symbols()) - FREE:
            with self.subTest(name):
                self.assertEqual(self.nvml.call(name, *zeroes), UNINITIALIZED)
        self.nvml.check("nvmlInit_v2")
        for name in set(symbols()) - FREE:
            with self.subTest(name):
                self.assertIn(self.nvml.call(name, *zeroes),
                              (INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION))

    def test_no_call_of_the_list_takes_another_handle(self):
        """A device that is none is recognised without a look at it."""
        words = ctypes.create_string_buffer(4096)
        for name in symbols():
            if not name.startswith("nvmlDevice") or "GetHandleBy" in name or \
                    name in ("nvmlDeviceGetCount", "nvmlDeviceGetCount_v2") or \
                    re.search("Drain|RemoveGpu|Discover", name):
                continue
            for value in (1, 4096, ctypes.addressof(words)):
                with self.subTest(name, value=value):
                    result = self.nvml.call(name, ctypes.c_void_p(value),
                                            *[ctypes.c_void_p(ctypes.addressof(words))] * 6)
                    self.assertEqual(result, INVALID_ARGUMENT)

    def test_each_refusal_is_that_of_the_coverage_page(self):
        """The arguments are right as far as the description tells them."""
        words, n_refused = ctypes.create_string_buffer(1 << 16), 0
        for call in (c for path in SOURCE.glob("protocol/api/nvml-*.xml")
                     for c in ElementTree.parse(path).getroot().iter("call")):
            if call.get("reply") != "refused":
                continue
            arguments = []
            for parameter in call:
                if parameter.tag in ("out", "inout"):
                    arguments.append(ctypes.byref(words))
                elif parameter.get("type") == "nvmlDevice_t":
                    arguments.append(self.nvml.device())
                elif parameter.tag == "in":
                    arguments.append(ctypes.byref(words))
            name = call.get("symbol", call.get("name"))
            code = CODES[call.get("code", "NVML_ERROR_NOT_SUPPORTED")]
            n_refused += 1
            with self.subTest(name):
                self.assertEqual(self.nvml.call(name, *arguments), code)
                self.assertFalse(any(words.raw), "it wrote something")
        self.assertGreater(n_refused, 200)

    def test_devices_are_those_of_libcuda(self):
        cuda, device = ctypes.CDLL(CUDA), self.nvml.device()
        count, version = ctypes.c_int(), ctypes.c_int()
        name, bus = ctypes.create_string_buffer(96), ctypes.create_string_buffer(32)
        uuid, total = ctypes.create_string_buffer(16), ctypes.c_size_t()
        for result in (cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)),
                       cuda.cuDeviceGetName(name, 96, 0), cuda.cuDeviceGetUuid_v2(uuid, 0),
                       cuda.cuDeviceGetPCIBusId(bus, 32, 0),
                       cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0),
                       cuda.cuDriverGetVersion(ctypes.byref(version))):
            self.assertEqual(result, 0)
        number = ctypes.c_uint()
        self.nvml.check("nvmlDeviceGetCount_v2", ctypes.byref(number))
        self.assertEqual(number.value, count.value)
        self.assertEqual(self.nvml.text("nvmlDeviceGetName", device), name.value.decode())
        self.assertEqual(
            self.nvml.text("nvmlDeviceGetUUID", device).removeprefix("GPU-").replace("-", ""),
            uuid.raw.hex())
        pci = ctypes.create_string_buffer(68)
        self.nvml.check("nvmlDeviceGetPciInfo_v3", device, pci)
        self.assertEqual(pci.raw[:16].split(b"\0")[0].lower(), bus.value)
        self.assertEqual(pci.raw[36:].split(b"\0")[0].lower(), b"0000" + bus.value)
        memory = (ctypes.c_ulonglong * 3)()
        self.nvml.check("nvmlDeviceGetMemoryInfo", device, memory)
        self.assertEqual(memory[0], total.value)
        number = ctypes.c_int()
        self.nvml.check("nvmlSystemGetCudaDriverVersion", ctypes.byref(number))
        self.assertEqual(number.value, version.value)

    def test_a_process_that_looks_has_no_session(self):
        for _ in range(20):
            self.nvml.processes()
            self.nvml.shut_down()
            self.nvml.check("nvmlInit_v2")
        self.assertEqual(self.n_sessions(), 0)

    def test_a_process_is_shown_while_it_runs(self):
        self.assertEqual(self.nvml.processes(), {})
        child = start_user()
        wait_until(lambda: self.nvml.processes().get(child.pid, 0) >= MEMORY,
                   "the process and its memory")
        memory = (ctypes.c_ulonglong * 3)()
        self.nvml.check("nvmlDeviceGetMemoryInfo", self.nvml.device(), memory)
        self.assertGreaterEqual(memory[2], MEMORY)
        self.assertEqual(memory[1] + memory[2], memory[0])
        n = ctypes.c_uint(0)
        self.assertEqual(self.nvml.call("nvmlDeviceGetComputeRunningProcesses_v3",
                                        self.nvml.device(), ctypes.byref(n), None),
                         INSUFFICIENT_SIZE)
        self.assertEqual(n.value, 1)
        end_user(child)
        wait_until(lambda: not self.nvml.processes(), "the end of the process")

    def test_a_process_of_a_container_has_the_pid_that_is_seen_here(self):
        child = start_user(("unshare", "--pid", "--fork", "--mount-proc"))
        if child is None:
            self.skipTest("no pid namespace can be made here")
        wait_until(self.nvml.processes, "the process in its namespace")
        (pid,) = self.nvml.processes()
        self.assertEqual(Path(f"/proc/{pid}/stat").read_text("utf-8").split()[3],
                         str(child.pid))
        end_user(child)

    def test_a_fault_is_an_event(self):
        event_set, data = ctypes.c_void_p(), EventData()
        self.nvml.check("nvmlEventSetCreate", ctypes.byref(event_set))
        self.nvml.check("nvmlDeviceRegisterEvents", self.nvml.device(),
                        ctypes.c_ulonglong(XID_EVENT), event_set)
        wait = "nvmlEventSetWait_v2", event_set, ctypes.byref(data)
        self.assertEqual(self.nvml.call(*wait, 1), TIMEOUT)
        subprocess.run([sys.executable, __file__, BUILD, SOURCE, "--fault", "0"], check=True)
        self.nvml.check(*wait, 60_000)
        self.assertEqual((data.device, data.type, data.data),
                         (self.nvml.device().value, XID_EVENT, XID_PAGE_FAULT))
        self.assertEqual(self.nvml.call(*wait, 1), TIMEOUT)
        self.nvml.check("nvmlEventSetFree", event_set)

    def test_samples_go_on(self):
        samples, kind = (Sample * 200)(), ctypes.c_uint()

        def get(last):
            n = ctypes.c_uint(200)
            result = self.nvml.call(
                "nvmlDeviceGetSamples", self.nvml.device(), GPU_UTILIZATION_SAMPLES,
                ctypes.c_ulonglong(last), ctypes.byref(kind), ctypes.byref(n), samples)
            self.assertIn(result, (SUCCESS, NOT_FOUND))
            return [s.time for s in samples[:n.value]] if result == SUCCESS else []

        wait_until(lambda: get(0), "the first samples")
        first = get(0)
        self.assertEqual(first, sorted(set(first)))
        wait_until(lambda: get(first[-1]), "samples after these")
        self.assertGreater(get(first[-1])[0], first[-1])

    def test_the_environment_of_cuda_does_not_matter(self):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        self.addCleanup(os.environ.pop, "CUDA_VISIBLE_DEVICES")
        self.nvml.shut_down()
        self.nvml.check("nvmlInit_v2")
        self.nvml.device()

    def test_the_library_has_our_note(self):
        notes = subprocess.run(["readelf", "-p", ".note.vgpu", NVML], check=True, text=True,
                               stdout=subprocess.PIPE).stdout
        self.assertRegex(notes, r"libnvidia-ml [0-9.]+ protocol \d+ revision \S+")

    def test_the_library_can_be_unloaded_and_loaded_again(self):
        code = f"""
import _ctypes, ctypes
def is_loaded():
    return "libnvidia-ml" in open("/proc/self/maps").read()
for order in ("n", "cn", "nc", "nn"):
    for kind in order:
        if kind == "c":
            assert ctypes.CDLL({CUDA!r}).cuInit(0) == 0
            continue
        first, second = ctypes.CDLL({NVML!r}), ctypes.CDLL({NVML!r})
        assert first.nvmlInit_v2() == 0 and second.nvmlInitWithFlags(0) == 0
        assert first.nvmlShutdown() == 0 and second.nvmlShutdown() == 0
        for library in (first, second):
            _ctypes.dlclose(library._handle)
        assert not is_loaded(), order
import os
pid = os.fork()
if not pid:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_a_program_computes_on_the_device_that_it_found(self):
        uuid = self.nvml.text("nvmlDeviceGetUUID", self.nvml.device())
        for order in ("nc", "cn", "ncn", "cnc"):
            with self.subTest(order):
                self.assertEqual(run_program("compute", order),
                                 [f"computed on {uuid}", "listed with 8 MiB", "done"])

    def test_a_thousand_cycles_leave_nothing_on_either_side(self):
        broker = proc.broker_of(self.host)

        def held():
            return [len(os.listdir(f"/proc/{pid}/fd"))
                    for pid in (self.host.process.pid, broker)]

        before = held()
        self.assertEqual(run_program("cycle", 1000), ["1000 cycles leave nothing"])
        wait_until(lambda: held() == before, "the descriptors of the host")

    def test_a_host_that_starts_again_is_found_again(self):
        device, memory = self.nvml.device(), (ctypes.c_ulonglong * 3)()

        def look():
            return self.nvml.call("nvmlDeviceGetMemoryInfo", device, memory)

        self.assertEqual(look(), SUCCESS)
        self.host.process.terminate()
        self.host.process.wait()
        self.assertEqual(look(), GPU_IS_LOST)
        self.host.process = subprocess.Popen(
            [self.host.vgpud, "--config", Path(self.host.folder.name) / "vgpud.conf"],
            env=self.host.environment)
        wait_until(lambda: look() == SUCCESS, "the device after the start of vgpud")


class SeveralDevices(unittest.TestCase):
    def setUp(self):
        self.host = Host(BUILD, extra="softgpu-devices = 3",
                         vm=f"device-memory = {4 * MEMORY >> 20}M").__enter__()
        os.environ["VGPU_SOCKET"] = str(self.host.socket)
        self.nvml = Nvml()

    def tearDown(self):
        self.nvml.shut_down()
        self.host.__exit__()

    def memory(self, index):
        """Total, free and used."""
        memory = (ctypes.c_ulonglong * 3)()
        self.nvml.check("nvmlDeviceGetMemoryInfo", self.nvml.device(index), memory)
        return tuple(memory)

    def test_each_shows_its_own_processes_and_memory(self):
        child = start_user(device=1)
        wait_until(lambda: self.nvml.processes(1) == {child.pid: MEMORY}, "it on its device")
        self.assertEqual(self.nvml.processes(0), {})
        self.assertEqual(self.nvml.processes(2), {})
        # One limit is for all of them.
        self.assertEqual(self.memory(1), (4 * MEMORY, 3 * MEMORY, MEMORY))
        self.assertEqual(self.memory(0), (4 * MEMORY, 3 * MEMORY, 0))
        end_user(child)
        wait_until(lambda: self.memory(1) == (4 * MEMORY, 4 * MEMORY, 0), "its end")

    def test_memory_that_an_ended_process_has_left_is_on_its_device(self):
        """Also for the brokers that follow."""
        for kind in "ipc", "handle":
            with self.subTest(kind):
                first, place = start_child("--share", kind, "2")
                second, _ = start_child("--take", kind, place)
                wait_until(lambda: self.used() == [0, 0, MEMORY], "the memory on its device")
                end_user(first)
                self.check_left()
                for replace in self.host.kill_broker, self.host.reload, self.host.replace:
                    replace()
                    self.check_left()
                end_user(second)
                wait_until(lambda: self.memory(2) == (4 * MEMORY, 4 * MEMORY, 0), "its end")

    def used(self):
        return [self.memory(i)[2] for i in range(3)]

    def check_left(self):
        """Another process shows that what is seen is not of before."""
        child = start_user(device=1)
        wait_until(lambda: self.nvml.processes(1) == {child.pid: MEMORY}, "another process")
        self.assertEqual(self.used(), [0, MEMORY, MEMORY])
        self.assertEqual(self.memory(2), (4 * MEMORY, 2 * MEMORY, MEMORY))
        end_user(child)
        wait_until(lambda: self.used() == [0, 0, MEMORY], "its end")

    def test_an_event_is_of_its_device(self):
        event_set, data = ctypes.c_void_p(), EventData()
        self.nvml.check("nvmlEventSetCreate", ctypes.byref(event_set))
        for i in range(3):
            self.nvml.check("nvmlDeviceRegisterEvents", self.nvml.device(i),
                            ctypes.c_ulonglong(XID_EVENT), event_set)
        subprocess.run([sys.executable, __file__, BUILD, SOURCE, "--fault", "2"], check=True)
        self.nvml.check("nvmlEventSetWait_v2", event_set, ctypes.byref(data), 60_000)
        self.assertEqual(data.device, self.nvml.device(2).value)

    def test_devices_are_peers_as_libcuda_says(self):
        # A process of its own: libcuda stays with the host that it has found first.
        code = (f"import ctypes; cuda, access = ctypes.CDLL({CUDA!r}), ctypes.c_int(); "
                "print(cuda.cuInit(0), "
                "cuda.cuDeviceCanAccessPeer(ctypes.byref(access), 0, 1), access.value)")
        done = subprocess.run([sys.executable, "-c", code], check=True, text=True,
                              stdout=subprocess.PIPE)
        *results, access = map(int, done.stdout.split())
        self.assertEqual(results, [0, 0])
        status = ctypes.c_int()
        for capability in (P2P_READ, P2P_WRITE):
            self.nvml.check("nvmlDeviceGetP2PStatus", self.nvml.device(0),
                            self.nvml.device(1), capability, ctypes.byref(status))
            self.assertEqual(status.value == P2P_OK, bool(access))


class Answers(unittest.TestCase):
    def test_each_answer_is_proved_by_a_test(self):
        """As the coverage page has it; what has the answer of another is that one's."""
        lines = proofs.list_nvml(sorted(SOURCE.glob("guest-shim/nvml/test-*.c")))
        proved, n_answers = {line.split()[0] for line in lines}, 0
        for path in SOURCE.glob("protocol/api/nvml-*.xml"):
            for call in ElementTree.parse(path).getroot().iter("call"):
                if call.get("reply") != "local" or call.get("as"):
                    continue
                n_answers += 1
                with self.subTest(call.get("name")):
                    self.assertIn(call.get("symbol", call.get("name")), proved)
        self.assertGreater(n_answers, 100)


class WithoutHost(unittest.TestCase):
    def test_there_is_no_driver_without_a_host(self):
        os.environ["VGPU_SOCKET"] = "/nowhere/socket"
        code = (f"import ctypes; nvml = ctypes.CDLL({NVML!r}); "
                f"assert nvml.nvmlInit_v2() == {DRIVER_NOT_LOADED}")
        done = subprocess.run([sys.executable, "-c", code], check=True, text=True,
                              stderr=subprocess.PIPE, env=dict(os.environ, VGPU_LOG="error"))
        self.assertRegex(done.stderr, "nvmlInit fails with NVML_ERROR_DRIVER_NOT_LOADED "
                                      r"\(9\): .*/nowhere/socket")


if __name__ == "__main__":
    if "--use" in sys.argv:
        use_device()
        sys.exit(0)
    for option, function in ("--share", share_memory), ("--take", take_memory):
        if option in sys.argv:
            function()
            sys.exit(0)
    if "--fault" in sys.argv:
        make_fault()
        sys.exit(0)
    sys.exit(tap.unittest_main())
