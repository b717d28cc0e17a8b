#!/usr/bin/env python3
"""Images per second of training beside PyTorch, in turns in one run.

speed.py KINTSUGI [NAME ...] [--rounds N] [--threads N]: for each network the steps of `kintsugi train` on random images
and of PyTorch (eager, channels_last; compiled too with --compile) with SGD, in fp32, alternately. Prints the best round
of each and their ratio.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torchvision
from torch import nn

# Name: size, batch, steps of a round.
CASES = {"resnet18": (32, 128, 4), "resnet50": (224, 16, 3), "convnext_tiny": (64, 16, 3)}


def ours(kintsugi, name, size, batch, steps, threads):
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        rng = np.random.default_rng(1)
        np.save(here / "x.npy", rng.integers(0, 256, (batch, 3, size, size), dtype=np.uint8))
        (here / "y.csv").write_text("".join(f"{i % 10}\n" for i in range(batch)))
        (here / "run.toml").write_text(
            f'[model]\nfamily = "{name}"\noutputs = 10\n[data]\ntrain = "x.npy"\ntrain_labels = "y.csv"\n'
            f'[train]\nfolder = "run"\nsteps = {steps + 1}\nglobal_batch = {batch}\nmicro_batch = {batch}\n'
            'optimizer = "sgd"\nlearning_rate = 0.01\nevent_files = false\nevaluate_every = 0\n'
            f'[parallel]\nthreads = {threads}\n[checkpoint]\nevery = 0\n')
        done = subprocess.run([kintsugi, "train", "run.toml"], cwd=here, text=True, capture_output=True)
        if done.returncode:
            sys.exit(f"{name}: {done.stderr}")
        seconds = [json.loads(line) for line in (here / "run" / "metrics.jsonl").read_text().splitlines()]
        times = [line["seconds"] for line in seconds if "seconds" in line][1:]
        return batch / min(times)


def theirs(model, size, batch, steps):
    x = torch.rand(batch, 3, size, size).contiguous(memory_format=torch.channels_last)
    y = torch.arange(batch) % 10
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    times = []
    for _ in range(steps + 1):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    return batch / min(times[1:])


def network(name, size):
    model = getattr(torchvision.models, name)(num_classes=10)
    if name == "resnet18" and size <= 64:
        model.conv1, model.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    return model.train().to(memory_format=torch.channels_last)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kintsugi")
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    kintsugi = str(pathlib.Path(o.kintsugi).resolve())
    print(f"{'network':14} {'batch':>5} {'size':>4} {'kintsugi/s':>10} {'PyTorch/s':>10} {'ratio':>6}")
    for name in o.names:
        size, batch, steps = CASES[name]
        model = network(name, size)
        forms = [model] + ([torch.compile(model)] if o.compile else [])
        best, other = 0.0, 0.0
        for _ in range(o.rounds):
            best = max(best, ours(kintsugi, name, size, batch, steps, o.threads))
            other = max([other] + [theirs(form, size, batch, steps) for form in forms])
        print(f"{name:14} {batch:5} {size:4} {best:10.2f} {other:10.2f} {best / other:6.2f}", flush=True)


main()
