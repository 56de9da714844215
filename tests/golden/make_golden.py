#!/usr/bin/env python3
"""Writes tests/data/golden_*.json: three training steps of resnet20 and of the LSTM language model by PyTorch.

An independent truth for Reprise's own models: the networks are written here once more, on PyTorch's functional
interface, in double precision, with Reprise's names of parameters. Initial values and data are a formula (`values`)
that tests/api/golden_test.cc repeats, so that the files need to hold results only: losses of three steps, gradients
of the first step, batch-norm statistics and parameters after the third (their sum, their sum of squares and their
first four elements each).

Usage: apt-get install python3-torch, then `python3 tests/golden/make_golden.py`. Made with PyTorch 1.13.
"""
import json
import math
import pathlib
import zlib

import torch
import torch.nn.functional as F

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"


def bits(name, count):
    """`count` 32-bit numbers for the tensor `name`: a mix (lowbias32, C. Wellons) of crc32(name) and the index."""
    x = torch.arange(count, dtype=torch.int64) * 2654435761 + zlib.crc32(name.encode())
    mask = 0xFFFFFFFF
    x = x & mask
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & mask
    x = x ^ (x >> 15)
    x = (x * 0x846CA68B) & mask
    return x ^ (x >> 16)


def values(name, shape, scale, offset=0.0):
    """f32 values in offset +- scale, as doubles."""
    count = math.prod(shape)
    unit = bits(name, count).double() / 2**32 * 2 - 1
    return (offset + scale * unit).float().double().reshape(shape)


def summary(tensor):
    flat = tensor.detach().reshape(-1)
    return {"sum": flat.sum().item(), "squares": (flat * flat).sum().item(), "first": flat[:4].tolist()}


class Recorder:
    """Parameters by name, created on first use, and their SGD with momentum and weight decay."""

    def __init__(self, rate, momentum, decay):
        self.parameters, self.states, self.buffers = {}, {}, {}
        self.rate, self.momentum, self.decay = rate, momentum, decay

    def parameter(self, name, shape, scale, offset=0.0):
        if name not in self.parameters:
            self.parameters[name] = values(name, shape, scale, offset).requires_grad_()
        return self.parameters[name]

    def step(self, loss):
        for p in self.parameters.values():
            p.grad = None
        loss.backward()
        gradients = {name: summary(p.grad) for name, p in self.parameters.items()}
        with torch.no_grad():
            for name, p in self.parameters.items():
                gradient = p.grad + self.decay * p
                buffer = self.momentum * self.buffers.get(name, torch.zeros_like(p)) + gradient
                self.buffers[name] = buffer
                p -= self.rate * buffer
        return gradients


def conv(r, x, name, out, kernel, stride):
    w = r.parameter(f"{name}.weight", (out, x.shape[1], kernel, kernel), math.sqrt(3.0 / (x.shape[1] * kernel**2)))
    return F.conv2d(x, w, stride=stride, padding=kernel // 2)


def batch_norm(r, x, name):
    channels = x.shape[1]
    gamma = r.parameter(f"{name}.weight", (channels,), 0.2, 1.0)
    beta = r.parameter(f"{name}.bias", (channels,), 0.2)
    mean = r.states.setdefault(f"{name}.running_mean", torch.zeros(channels, dtype=torch.double))
    var = r.states.setdefault(f"{name}.running_var", torch.ones(channels, dtype=torch.double))
    return F.batch_norm(x, mean, var, gamma, beta, training=True, momentum=0.1, eps=1e-5)


def resnet20(r, images, labels):
    x = F.relu(batch_norm(r, conv(r, images, "stem", 16, 3, 1), "stem_bn"))
    for stage in range(3):
        for block in range(3):
            p = f"stage{stage + 1}.{block}."
            channels, stride = 16 << stage, 2 if stage > 0 and block == 0 else 1
            y = F.relu(batch_norm(r, conv(r, x, p + "conv1", channels, 3, stride), p + "bn1"))
            y = batch_norm(r, conv(r, y, p + "conv2", channels, 3, 1), p + "bn2")
            if stride != 1 or x.shape[1] != channels:
                x = batch_norm(r, conv(r, x, p + "shortcut", channels, 1, stride), p + "shortcut_bn")
            x = F.relu(y + x)
    x = x.mean(dim=(2, 3))
    w = r.parameter("head.weight", (10, 64), 0.125)
    b = r.parameter("head.bias", (10,), 0.125)
    return F.cross_entropy(x @ w.t() + b, labels)


def lstm(r, tokens, targets, state, hidden, vocabulary):
    """Two layers over the whole window at once: chunking must not change the result."""
    x = r.parameter("embedding.weight", (vocabulary, hidden), 0.5)[tokens]
    carried = []
    for layer in range(2):
        name = f"layer{layer + 1}."
        w_ih = r.parameter(name + "w_ih", (4 * hidden, hidden), 0.3)
        w_hh = r.parameter(name + "w_hh", (4 * hidden, hidden), 0.3)
        bias = r.parameter(name + "bias", (4 * hidden,), 0.3)
        h, c = state[layer]
        ys = []
        for t in range(tokens.shape[0]):
            i, f, g, o = (x[t] @ w_ih.t() + h @ w_hh.t() + bias).chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            ys.append(h)
        carried.append((h.detach(), c.detach()))
        x = torch.stack(ys)
    w = r.parameter("head.weight", (vocabulary, hidden), 0.3)
    b = r.parameter("head.bias", (vocabulary,), 0.3)
    return F.cross_entropy((x @ w.t() + b).reshape(-1, vocabulary), targets.reshape(-1)), carried


def run_resnet():
    r = Recorder(rate=0.05, momentum=0.9, decay=1e-3)
    losses, first = [], None
    for step in range(3):
        images = values(f"images{step}", (4, 1, 28, 28), 1.0)
        labels = bits(f"labels{step}", 4) % 10
        loss = resnet20(r, images, labels)
        gradients = r.step(loss)
        first = first or gradients
        losses.append(loss.item())
    return r, losses, first


def run_lstm():
    hidden, vocabulary, batch, length = 16, 11, 3, 12
    r = Recorder(rate=0.5, momentum=0.0, decay=0.0)
    state = [(torch.zeros(batch, hidden, dtype=torch.double),) * 2 for _ in range(2)]
    losses, first = [], None
    for step in range(3):
        tokens = bits(f"tokens{step}", length * batch).reshape(length, batch) % vocabulary
        targets = bits(f"targets{step}", length * batch).reshape(length, batch) % vocabulary
        loss, state = lstm(r, tokens, targets, state, hidden, vocabulary)
        gradients = r.step(loss)
        first = first or gradients
        losses.append(loss.item())
    for layer, (h, c) in enumerate(state):
        r.states[f"layer{layer + 1}.h"], r.states[f"layer{layer + 1}.c"] = h, c
    return r, losses, first


def write(name, r, losses, first):
    document = {
        "made_by": f"tests/golden/make_golden.py with PyTorch {torch.__version__}",
        "losses": losses,
        "first_gradients": first,
        "parameters": {name: summary(p) for name, p in r.parameters.items()},
        "states": {name: summary(s) for name, s in r.states.items()},
    }
    DATA.mkdir(exist_ok=True)
    (DATA / f"golden_{name}.json").write_text(json.dumps(document, indent=0) + "\n")
    print(name, losses)


if __name__ == "__main__":
    write("resnet20", *run_resnet())
    write("lstm", *run_lstm())
