# SPDX-License-Identifier: Apache-2.0
"""The CUDA filters of Debian's ffmpeg, against its filters for the CPU.

If both compute the same, the frames have to be equal byte for byte; if they round
differently, few pixels may differ, and only a little.
"""

import subprocess

from suite import Broken, Case, Suite

SIZE = "320x240"
SOURCE = ["-f", "lavfi", "-i", f"testsrc2=size={SIZE}:rate=5:duration=1"]
STILL = ["-f", "lavfi", "-i", "testsrc=size=80x60:rate=5:duration=1"]
DEVICE = ["-init_hw_device", "cuda=c:0", "-filter_hw_device", "c"]
OUTPUT = ["-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt"]

# Name: filters on the device, filters on the CPU, format of the frames, and the
# tolerated difference of a byte on average: interpolations of swscale are in fixed point,
# with other phases and windows. 0 is equality.
FILTERS = {
    "upload": ("format=yuv420p,hwupload,hwdownload,format=yuv420p", "format=yuv420p",
               "yuv420p", 0),
    "upload-cuda": ("format=nv12,hwupload_cuda,hwdownload,format=nv12", "format=nv12",
                    "nv12", 0),
    "upload-p010": ("format=p010le,hwupload_cuda,hwdownload,format=p010le", "format=p010le",
                    "p010le", 0),
    "upload-yuv444": ("format=yuv444p,hwupload_cuda,hwdownload,format=yuv444p",
                      "format=yuv444p", "yuv444p", 0),
    "scale-nearest": ("format=yuv420p,hwupload_cuda,scale_cuda=160:120:interp_algo=nearest,"
                      "hwdownload,format=yuv420p",
                      "format=yuv420p,scale=160:120:flags=neighbor", "yuv420p", 0),
    "scale-nearest-yuv444": (
        "format=yuv444p,hwupload_cuda,scale_cuda=480:360:interp_algo=nearest,hwdownload,"
        "format=yuv444p", "format=yuv444p,scale=480:360:flags=neighbor", "yuv444p", 0),
    "scale-bilinear": ("format=yuv420p,hwupload_cuda,scale_cuda=640:480:interp_algo=bilinear,"
                       "hwdownload,format=yuv420p",
                       "format=yuv420p,scale=640:480:flags=bilinear", "yuv420p", 2),
    "scale-bicubic": ("format=yuv420p,hwupload_cuda,scale_cuda=640:480:interp_algo=bicubic,"
                      "hwdownload,format=yuv420p",
                      "format=yuv420p,scale=640:480:flags=bicubic", "yuv420p", 3),
    "scale-lanczos": ("format=yuv420p,hwupload_cuda,scale_cuda=640:480:interp_algo=lanczos,"
                      "hwdownload,format=yuv420p",
                      "format=yuv420p,scale=640:480:flags=lanczos", "yuv420p", 3),
    "scale-to-nv12": ("format=yuv420p,hwupload_cuda,scale_cuda=format=nv12,hwdownload,"
                      "format=nv12", "format=yuv420p,format=nv12", "nv12", 0),
    "yadif": ("format=yuv420p,hwupload_cuda,yadif_cuda,hwdownload,format=yuv420p",
              "format=yuv420p,yadif", "yuv420p", 0.5),
    "thumbnail": ("format=nv12,hwupload_cuda,thumbnail_cuda=5,hwdownload,format=nv12",
                  "format=nv12,thumbnail=5", "nv12", 0),
    "chromakey": ("format=yuv420p,hwupload_cuda,"
                  "chromakey_cuda=0x0000ff:0.1:0.0,hwdownload,format=yuva420p",
                  "format=yuva420p,chromakey=0x0000ff:0.1:0.0", "yuva420p", 3),
}
OVERLAY = ("[0:v]format=yuv420p,hwupload_cuda[a];[1:v]format=yuv420p,hwupload_cuda[b];"
           "[a][b]overlay_cuda=16:32,hwdownload,format=yuv420p",
           "[0:v]format=yuv420p[a];[1:v]format=yuv420p[b];[a][b]overlay=16:32")


class Ffmpeg(Suite):
    name = "ffmpeg"
    title = "ffmpeg's CUDA filters, compared with those for the CPU"
    in_all = True
    seconds = 180

    def versions(self):
        return f"{self.title}; {self.cache.version_of('ffmpeg')}"

    def cases(self):
        self.cache.packages("ffmpeg")
        program = self.cache.find("usr/bin/ffmpeg")
        libraries = self.cache.library_folders()
        words = [program, "-v", "error", "-nostdin", "-y"]

        def case(name, device, cpu, form, most):
            folder = self.folder("run", name)
            command = [*words, *DEVICE, *device, *OUTPUT, form, "device.raw"]
            reference = [*words, *cpu, *OUTPUT, form, "cpu.raw"]
            return Case(name, command, folder, libraries=libraries,
                        build=lambda: make_reference(reference, folder, libraries),
                        judge=lambda status, _: judge(status, folder, most))

        cases = [case(name, [*SOURCE, "-vf", device], [*SOURCE, "-vf", cpu], form, most)
                 for name, (device, cpu, form, most) in FILTERS.items()]
        device, cpu = ([*SOURCE, *STILL, "-filter_complex", filters] for filters in OVERLAY)
        return [*cases, case("overlay", device, cpu, "yuv420p", 0)]


def make_reference(command, folder, libraries):
    """Makes the frames on the CPU, and removes files of an earlier run."""
    (folder / "device.raw").unlink(missing_ok=True)
    done = subprocess.run(
        ["env", f"LD_LIBRARY_PATH={':'.join(map(str, libraries))}", *map(str, command)],
        cwd=folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=300, check=False)
    if done.returncode:
        raise Broken(f"the filter for the CPU: {done.stdout.strip()}")


def judge(status, folder, most):
    if status:
        return f"exit status {status}"
    device, cpu = ((folder / name).read_bytes() for name in ("device.raw", "cpu.raw"))
    if not cpu or len(device) != len(cpu):
        return f"{len(device)} bytes of frames, {len(cpu)} on the CPU"
    if device == cpu:
        return None
    mean = sum(abs(a - b) for a, b in zip(device, cpu)) / len(cpu)
    n_others = sum(a != b for a, b in zip(device, cpu))
    if mean <= most:
        return None
    return f"{n_others} of {len(cpu)} bytes differ, by {mean:.3f} on average"
