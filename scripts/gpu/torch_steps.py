#!/usr/bin/env python3
"""Training steps of the same networks in PyTorch: eager, f32 without TF32, plain and checkpointed.

For each: the median time of a step, with the GPU waited for, and torch's own peak of allocated bytes
(nothing of the context). Rows are appended to the Markdown table of gpu_check.sh as they come.
--tiny is for a machine without a GPU: small sizes on the CPU, where memory is not measured.
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Bottleneck(nn.Module):
    """Of ResNet-50 v1.5: conv1 conv3 conv1 with the stride in the middle."""

    def __init__(self, inputs, channels, stride):
        super().__init__()
        wide = 4 * channels
        self.body = nn.Sequential(
            nn.Conv2d(inputs, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(True),
            nn.Conv2d(channels, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels),
            nn.ReLU(True), nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide))
        self.shortcut = nn.Identity() if stride == 1 and inputs == wide else nn.Sequential(
            nn.Conv2d(inputs, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


class Preactivation(nn.Module):
    """Of ResNet-1001: three times norm, relu and convolution."""

    def __init__(self, inputs, channels, stride):
        super().__init__()
        wide = 4 * channels
        self.first = nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU(True))
        self.body = nn.Sequential(
            nn.Conv2d(inputs, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(True),
            nn.Conv2d(channels, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels),
            nn.ReLU(True), nn.Conv2d(channels, wide, 1, bias=False))
        same = stride == 1 and inputs == wide
        self.shortcut = None if same else nn.Conv2d(inputs, wide, 1, stride, bias=False)

    def forward(self, x):
        y = self.first(x)
        return self.body(y) + (x if self.shortcut is None else self.shortcut(y))


class Blocks(nn.Module):
    """Stem, blocks, head; `segments` consecutive groups of blocks are checkpointed."""

    def __init__(self, stem, blocks, head, segments):
        super().__init__()
        self.stem, self.blocks, self.head = stem, nn.ModuleList(blocks), head
        self.segments = segments

    def stretch(self, begin, end):
        def run(x):
            for block in self.blocks[begin:end]:
                x = block(x)
            return x
        return run

    def forward(self, x):
        x = self.stem(x)
        if not self.segments:
            return self.head(self.stretch(0, len(self.blocks))(x))
        size = -(-len(self.blocks) // self.segments)
        for begin in range(0, len(self.blocks), size):
            x = checkpoint(self.stretch(begin, begin + size), x, use_reentrant=False)
        return self.head(x)


def head(channels, classes, norm=False):
    layers = [nn.BatchNorm2d(channels), nn.ReLU(True)] if norm else []
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(channels, classes))


def resnet50(segments, counts=(3, 4, 6, 3)):
    stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True),
                         nn.MaxPool2d(3, 2, 1))
    blocks, inputs = [], 64
    for stage, count in enumerate(counts):
        for i in range(count):
            blocks.append(Bottleneck(inputs, 64 << stage, 2 if stage and not i else 1))
            inputs = 4 * 64 << stage
    return Blocks(stem, blocks, head(inputs, 1000), segments)


def resnet1001(segments, count=111):
    blocks, inputs = [], 16
    for stage in range(3):
        for i in range(count):
            blocks.append(Preactivation(inputs, 16 << stage, 2 if stage and not i else 1))
            inputs = 4 * 16 << stage
    return Blocks(nn.Conv2d(3, 16, 3, 1, 1, bias=False), blocks, head(inputs, 10, True), segments)


class Lstm(nn.Module):
    """Characters to characters, chunk by chunk; with segments, chunks are checkpointed."""

    def __init__(self, segments, chunk=100, hidden=256, vocabulary=64):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.lstm = nn.LSTM(hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, vocabulary)
        self.chunk, self.segments = chunk, segments

    def part(self, ids, targets, h, c):
        y, (h, c) = self.lstm(self.embedding(ids), (h, c))
        return nn.functional.cross_entropy(self.head(y).flatten(0, 1), targets.flatten()), h, c

    def loss(self, ids, targets):
        h = torch.zeros(1, ids.shape[0], self.lstm.hidden_size, device=ids.device)
        c, total = torch.zeros_like(h), 0
        for at in range(0, ids.shape[1], self.chunk):
            piece = (ids[:, at:at + self.chunk], targets[:, at:at + self.chunk], h, c)
            part, h, c = (checkpoint(self.part, *piece, use_reentrant=False) if self.segments
                          else self.part(*piece))
            total = total + part
        return total * self.chunk / ids.shape[1]


def cases(tiny):
    """(network, run, loss function, model, inputs), made when their turn comes."""
    device = "cpu" if tiny else "cuda"
    image = (2, 3, 32, 32) if tiny else (128, 3, 224, 224)

    def images(make, shape, classes, segments, channels_last):
        model = make(segments).to(device)
        x = torch.randn(shape, device=device)
        labels = torch.randint(classes, (shape[0],), device=device)
        if channels_last:
            model, x = (each.to(memory_format=torch.channels_last) for each in (model, x))
        return model, lambda: nn.functional.cross_entropy(model(x), labels)

    def text(segments):
        model = Lstm(segments, chunk=5 if tiny else 100).to(device)
        ids = torch.randint(64, (2, 20) if tiny else (32, 10000), device=device)
        return model, lambda: model.loss(ids, ids.roll(-1, 1))

    small = {"counts": (1, 1)} if tiny else {}
    shallow = {"count": 1} if tiny else {}
    for segments, name in ((0, "all kept"), (4, "checkpoint, 4 segments")):
        for last in (False, True):
            yield ("resnet50", f"PyTorch, {name}{', channels_last' if last else ''}",
                   lambda: images(lambda k: resnet50(k, **small), image, 1000, segments, last))
    for segments, name in ((0, "all kept"), (1, "checkpoint of each chunk")):
        yield "lstm", f"PyTorch, {name}", lambda: text(segments)
    for segments, name in ((0, "all kept"), (18, "checkpoint, 18 segments")):
        yield ("resnet1001", f"PyTorch, {name}",
               lambda: images(lambda k: resnet1001(k, **shallow), (image[0], 3, 32, 32), 10,
                              segments, False))


def measure(make, steps):
    model, loss_of = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    on_gpu = next(model.parameters()).is_cuda
    times = []
    for step in range(steps + 3):
        if on_gpu:
            torch.cuda.synchronize()
            if step == 3:
                torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss_of().backward()
        optimizer.step()
        if on_gpu:
            torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    peak = torch.cuda.max_memory_allocated() if on_gpu else None
    return {"ms_per_step": statistics.median(times[3:]), "max_memory_allocated": peak}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--table")
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    start = time.monotonic()
    rows = []
    for network, run, make in cases(options.tiny):
        if time.monotonic() - start > options.seconds:
            print(f"left out: {network}, {run}: no time")
            continue
        try:
            row = {"network": network, "run": run, **measure(make, options.steps)}
        except torch.cuda.OutOfMemoryError as error:
            row = {"network": network, "run": run, "error": str(error)}
        if not options.tiny:
            torch.cuda.empty_cache()
        print(row, flush=True)
        rows.append(row)
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump({"torch": torch.__version__, "rows": rows}, file)
        if options.table and "error" not in row:
            with open(options.table, "a", encoding="utf-8") as file:
                file.write(f"| {network} | {run} | {row['ms_per_step']:.2f} | | "
                           f"{row['max_memory_allocated'] or '-'} | | | |\n")


if __name__ == "__main__":
    main()
