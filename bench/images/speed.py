#!/usr/bin/env python3
"""Images per second and peak memory of training compared with PyTorch, in turns in one run.

speed.py KINTSUGI [NAME ...] [--batch N] [--steps N] [--rounds N] [--threads N] [--compile] [--cpu] [--space N]: for
each network, steps of `kintsugi train` on random images and of PyTorch (eager, channels_last; with --compile the
better of that and compiled) with SGD and momentum in fp32, alternately, each in a separate process. Prints the best
step of all rounds, the ratio, and the largest resident memory of each process. With --cpu, images per second of
processor time of all threads, for a machine that other programs use too. With --space N, N ranks that split the
height of images of 512 pixels, alternately with one rank, both with one thread per rank: the step of N ranks relative
to a part of one rank's.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

# Name: family, size, batch, further keys of [model].
CASES = {"resnet18": ("resnet18", 32, 128, {}),
         "resnet50": ("resnet50", 224, 16, {}),
         "vit_s": ("vit", 224, 16, dict(layers=12, embed=384, heads=6, ffn=1536, patch=16)),
         "convnext_tiny": ("convnext_tiny", 224, 16, {})}


def measured(command, folder):
    """Output, peak memory in MB and processor time in seconds of a process."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err, text=True)
        _, status, usage = os.wait4(process.pid, 0)
        out.seek(0), err.seek(0)
        if status:
            sys.exit(f"{command[0]}: {err.read()}")
        return out.read(), usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def ours(o, name, batch, size=0, threads=0, ranks=1):
    import numpy as np

    family, usual, _, shape = CASES[name]
    size, threads = size or usual, threads or o.threads
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        rng = np.random.default_rng(1)
        np.save(here / "x.npy", rng.integers(0, 256, (batch, 3, size, size), dtype=np.uint8))
        (here / "y.csv").write_text("".join(f"{i % 10}\n" for i in range(batch)))

        def run(steps):
            (here / "run.toml").write_text(
                f'[model]\nfamily = "{family}"\noutputs = 10\n' + "".join(f"{k} = {v}\n" for k, v in shape.items())
                + f'[data]\ntrain = "x.npy"\ntrain_labels = "y.csv"\n[train]\nfolder = "run{steps}"\nsteps = {steps}\n'
                f'global_batch = {batch}\nmicro_batch = {batch}\noptimizer = "sgd"\nmomentum = 0.9\n'
                'learning_rate = 0.01\nevent_files = false\nevaluate_every = 0\n'
                f'[parallel]\nthreads = {threads}\nranks = {ranks}\nspace = {ranks}\n[checkpoint]\nevery = 0\n')
            return measured([o.kintsugi, "train", "run.toml"], here)

        steps = o.steps + 1
        _, memory, cpu = run(steps)
        lines = [json.loads(line) for line in (here / f"run{steps}" / "metrics.jsonl").read_text().splitlines()]
        times = [line["seconds"] for line in lines if "seconds" in line][1:]
        if o.cpu:
            return batch * o.steps / (cpu - run(1)[2]), memory
        return batch / min(times), memory


def network(name):
    import torch
    import torchvision
    from torch import nn

    family, size, _, shape = CASES[name]
    if family == "vit":
        model = torchvision.models.VisionTransformer(
            size, shape["patch"], shape["layers"], shape["heads"], shape["embed"], shape["ffn"], num_classes=10)
    else:
        model = getattr(torchvision.models, family)(num_classes=10)
    if size <= 64:
        model.conv1, model.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    return model.train().to(memory_format=torch.channels_last)


def torch_steps(name, batch, steps, threads, compiled):
    """In a process of its own: prints the shortest step, and the processor time after the first, in seconds."""
    import torch
    from torch import nn

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model, size = network(name), CASES[name][1]
    model = torch.compile(model) if compiled else model
    x = torch.rand(batch, 3, size, size).contiguous(memory_format=torch.channels_last)
    y = torch.arange(batch) % 10
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    times, first = [], 0.0
    for step in range(steps + 1):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
        if step == 0:
            first = time.process_time()
    print(min(times[1:]), (time.process_time() - first) / steps)


def theirs(o, name, batch, compiled):
    out, memory, _ = measured([sys.executable, __file__, "--child", name, str(batch), str(o.steps), str(o.threads),
                               str(int(compiled))], ".")
    shortest, cpu = map(float, out.split())
    return batch / (cpu if o.cpu else shortest), memory


def split_in_space(o):
    size, batch = 512, o.batch or 2
    print(f"{size} pixels, batch {batch}: seconds per step; peak memory in MB")
    for name in o.names:
        best = {ranks: (0.0, 0.0) for ranks in (1, o.space)}
        for _ in range(o.rounds):
            for ranks in best:
                best[ranks] = max(best[ranks], ours(o, name, batch, size, 1, ranks))
        (one, memory), (some, other_memory) = best.values()
        print(f"{name:14} 1 rank {batch / one:7.3f}, {memory:.0f} MB; {o.space} ranks {batch / some:7.3f}, "
              f"{other_memory:.0f} MB; {o.space * one / some:.3f} times 1/{o.space} of one rank's step", flush=True)


def main():
    if sys.argv[1:2] == ["--child"]:
        name, *numbers = sys.argv[2:]
        return torch_steps(name, *map(int, numbers[:3]), numbers[3] == "1")
    parser = argparse.ArgumentParser()
    parser.add_argument("kintsugi")
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--space", type=int, default=0)
    o = parser.parse_args()
    o.kintsugi = str(pathlib.Path(o.kintsugi).resolve())
    if o.space:
        return split_in_space(o)
    unit = "per second of processor time" if o.cpu else "per second"
    print(f"images {unit}; peak memory in MB")
    print(f"{'network':14} {'batch':>5} {'size':>4} {'kintsugi':>9} {'PyTorch':>9} {'ratio':>6} {'MB':>6} {'MB':>6}")
    for name in o.names:
        batch = o.batch or CASES[name][2]
        best, other, memory, other_memory = 0.0, 0.0, 0.0, float("inf")
        for _ in range(o.rounds):
            speed, peak = ours(o, name, batch)
            best, memory = max(best, speed), max(memory, peak)
            for compiled in [False, True] if o.compile else [False]:
                speed, peak = theirs(o, name, batch, compiled)
                other, other_memory = max(other, speed), min(other_memory, peak)
        print(f"{name:14} {batch:5} {CASES[name][1]:4} {best:9.2f} {other:9.2f} {best / other:6.2f} {memory:6.0f} "
              f"{other_memory:6.0f}", flush=True)


main()
