# SPDX-License-Identifier: Apache-2.0
"""Timed workloads of PyTorch and CuPy: run by tests/gpu/bench, natively and remoted.

    workloads.py [--quick] [--only PREFIX]... SAMPLES.json

Writes {"<name>": {"times": [ns...], "outputs": [numbers...]}}, or {"<name>": {"note":
"why"}} if a workload cannot run. The caller compares the outputs of both runs before it
uses a time. Exit status: 0, 77 with a line on stderr if there
is no PyTorch or it has no device.
"""

import argparse
import io
import json
import sys
import time

EXIT_SKIP = 77
SEED = 20


def resnet(torch):
    """Residual blocks of a ResNet-50's shape: 1x1, 3x3, 1x1, four stages."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inputs, inner, stride):
            super().__init__()
            self.path = nn.Sequential(
                nn.Conv2d(inputs, inner, 1, bias=False),
                nn.BatchNorm2d(inner),
                nn.ReLU(),
                nn.Conv2d(inner, inner, 3, stride, 1, bias=False),
                nn.BatchNorm2d(inner),
                nn.ReLU(),
                nn.Conv2d(inner, 4 * inner, 1, bias=False),
                nn.BatchNorm2d(4 * inner),
            )
            self.short = nn.Identity()
            if stride > 1 or inputs != 4 * inner:
                self.short = nn.Conv2d(inputs, 4 * inner, 1, stride, bias=False)

        def forward(self, x):
            return torch.relu(self.path(x) + self.short(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    inputs = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for i in range(count):
            layers.append(Block(inputs, 64 << stage, 2 if stage and not i else 1))
            inputs = 256 << stage
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)]
    return nn.Sequential(*layers)


def transformer(torch):
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)


class Decoder:
    """Decoding as llama does it: one token, small products, attention to a cache."""

    LAYERS, WIDTH, HEADS, TOKENS = 16, 1024, 16, 256

    def __init__(self, torch):
        self.torch = torch
        make = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.float16) / 32
        width = self.WIDTH
        self.layers = [
            {
                "norm": torch.ones(width, device="cuda", dtype=torch.float16),
                "qkv": make(3 * width, width),
                "out": make(width, width),
                "up": make(4 * width, width),
                "down": make(width, 4 * width),
                "k": make(self.HEADS, self.TOKENS, width // self.HEADS),
                "v": make(self.HEADS, self.TOKENS, width // self.HEADS),
            }
            for _ in range(self.LAYERS)
        ]
        self.x = make(1, width)

    def norm(self, x, weight):
        wide = x.float()
        return (wide * self.torch.rsqrt((wide * wide).mean(-1, True) + 1e-5)).half() * weight

    def step(self):
        functional, x = self.torch.nn.functional, self.x
        for layer in self.layers:
            qkv = self.norm(x, layer["norm"]) @ layer["qkv"].T
            q, k, v = qkv.view(3, self.HEADS, 1, -1)
            layer["k"][:, -1:].copy_(k)
            layer["v"][:, -1:].copy_(v)
            attended = functional.scaled_dot_product_attention(q, layer["k"], layer["v"])
            x = x + attended.reshape(1, -1) @ layer["out"].T
            inner = functional.silu(self.norm(x, layer["norm"]) @ layer["up"].T)
            x = x + inner @ layer["down"].T
        return x


class Bench:
    def __init__(self, torch, quick):
        self.torch, self.quick = torch, quick
        self.n_samples, self.n_warm = (3, 2) if quick else (41, 10)

    def sample(self, step, n=1):
        """Returns the times of one step of n in ns, including asynchronous work."""
        cuda = self.torch.cuda
        for _ in range(self.n_warm):
            step()
        cuda.synchronize()
        times = []
        for _ in range(self.n_samples):
            start = time.perf_counter_ns()
            for _ in range(n):
                step()
            cuda.synchronize()
            times.append((time.perf_counter_ns() - start) / n)
        return times

    def graphed(self, step):
        """Returns (launch, output) of a graph that does what `step` does."""
        stream = self.torch.cuda.Stream()
        stream.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(stream):
            for _ in range(3):
                step()
        self.torch.cuda.current_stream().wait_stream(stream)
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            output = step()
        return graph.replay, output

    def measure(self, step, graph, n=1):
        """The output is taken after as many steps on both sides, before any time."""
        output = None
        if graph:
            step, output = self.graphed(step)
        first = step()
        self.torch.cuda.synchronize()
        outputs = (output if graph else first).detach().float().flatten()[:64].tolist()
        return {"times": self.sample(step, n), "outputs": outputs}

    def model(self, make, shape, training, graph):
        torch = self.torch
        model = make(torch).cuda().train(training)
        x = torch.randn(*shape, device="cuda")
        if not training:
            with torch.no_grad():
                return self.measure(lambda: model(x), graph)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

        def step():
            optimizer.zero_grad(set_to_none=False)
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        return self.measure(step, graph)

    def decode(self, graph):
        decoder = Decoder(self.torch)
        with self.torch.no_grad():
            return self.measure(decoder.step, graph, n=8)

    def small(self):
        """The eager loop of launches that do next to nothing."""
        x = self.torch.zeros(32, device="cuda")

        def step():
            for _ in range(100):
                x.add_(1)
            return x

        return self.measure(step, False)

    def load(self):
        """A model of 512 MiB (quick: 16) from the host's memory to the device."""
        torch = self.torch
        file = io.BytesIO()
        torch.save([torch.ones(4 << 20) for _ in range(1 if self.quick else 32)], file)

        def step():
            file.seek(0)
            return [tensor.cuda() for tensor in torch.load(file)][-1]

        return self.measure(step, False)


def workloads(torch, quick):
    bench = Bench(torch, quick)
    images, words = (16, 3, 224, 224), (8, 256, 512)
    if quick:
        images, words = (2, 3, 64, 64), (2, 32, 512)
    for name, make, shape in (
        ("resnet", resnet, images),
        ("transformer", transformer, words),
    ):
        for training in (False, True):
            for graph in (False, True):
                what = "training" if training else "inference"
                yield (
                    f"torch_{name}_{what}" + ("_graph" if graph else ""),
                    lambda make=make, shape=shape, training=training, graph=graph: bench.model(
                        make, shape, training, graph
                    ),
                )
    yield "torch_decode", lambda: bench.decode(False)
    yield "torch_decode_graph", lambda: bench.decode(True)
    yield "torch_small_kernels", bench.small
    yield "torch_model_load", bench.load
    yield "cupy_elementwise", lambda: cupy_elementwise(bench)


def cupy_elementwise(bench):
    try:
        import cupy
    except ImportError:
        return {"note": "no CuPy is installed"}
    x = cupy.arange(1 << 20, dtype=cupy.float32)
    step = lambda: x * 2 + 1
    outputs = cupy.asnumpy(step()[:64]).tolist()
    times = bench.sample(lambda: (step(), cupy.cuda.Device().synchronize()))
    return {"times": times, "outputs": outputs}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("samples")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("skipped: no PyTorch is installed", file=sys.stderr)
        return EXIT_SKIP
    if not torch.cuda.is_available():
        print("skipped: PyTorch cannot use the device", file=sys.stderr)
        return EXIT_SKIP
    torch.backends.cudnn.benchmark = False
    found = {}
    for name, measure in workloads(torch, options.quick):
        if options.only and not name.startswith(tuple(options.only)):
            continue
        torch.manual_seed(SEED)
        try:
            found[name] = measure()
        except (RuntimeError, MemoryError) as error:
            found[name] = {"note": str(error).splitlines()[0][:200] or "it failed"}
    with open(options.samples, "w", encoding="utf-8") as file:
        json.dump(found, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
