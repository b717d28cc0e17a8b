#!/usr/bin/env python3
"""Held-out accuracy of image classifiers after training, over several seeds, compared with a PyTorch twin.

accuracy.py KINTSUGI DATA [NAME ...] [--seeds N] [--epochs N] [--no-torch]: DATA holds mnist/ (the 10,000 test images,
of which 9,000 are trained on and 1,000 held out) and cifar10/ (train_subset.bin, test_subset.bin). The twin has the
same network, initial distribution, recipe, crops and flips; its random numbers differ. Networks: mnist, lenet, resnet18, and
resnet18_half and resnet18_quarter on images of a half and a quarter of the width and height (means of pixels). Prints
top-1 by seed and the means.
"""
import argparse
import gzip
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

# Name: data, family, epochs, batch, learning rate, padding, flips, pixels of which a mean is one.
CASES = {"mnist": ("mnist", "lenet", 8, 60, 0.02, 0, False, 1),
         "lenet": ("cifar10", "lenet", 12, 50, 0.02, 4, True, 1),
         "resnet18": ("cifar10", "resnet18", 8, 100, 0.05, 4, True, 1),
         "resnet18_half": ("cifar10", "resnet18", 8, 100, 0.05, 2, True, 2),
         "resnet18_quarter": ("cifar10", "resnet18", 6, 100, 0.05, 1, True, 4)}
MOMENTUM, DECAY = 0.9, 5e-4


def mnist(folder):
    def read(name, header):
        path = next(p for p in (folder / name, folder / (name + ".gz")) if p.exists())
        raw = path.read_bytes() if path.suffix != ".gz" else gzip.decompress(path.read_bytes())
        return np.frombuffer(raw, np.uint8, offset=header)
    images = read("t10k-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28)
    labels = read("t10k-labels-idx1-ubyte", 8).astype(np.int64)
    return images[:9000], labels[:9000], images[9000:], labels[9000:]


def cifar(folder):
    def read(name):
        raw = np.frombuffer((folder / name).read_bytes(), np.uint8).reshape(-1, 3073)
        return raw[:, 1:].reshape(-1, 3, 32, 32), raw[:, 0].astype(np.int64)
    return (*read("train_subset.bin"), *read("test_subset.bin"))


def shrunk(images, by):
    count, channels, height, width = images.shape
    parts = images.reshape(count, channels, height // by, by, width // by, by)
    return np.round(parts.mean((3, 5))).astype(np.uint8)


def ours(kintsugi, case, data, epochs, seed):
    _, family, _, batch, rate, padding, flip, _ = case
    steps = len(data[0]) // batch * epochs
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        for name, images, labels in (("train", data[0], data[1]), ("test", data[2], data[3])):
            np.save(here / f"{name}.npy", np.ascontiguousarray(images))
            np.save(here / f"{name}_labels.npy", labels)
        (here / "run.toml").write_text(
            f'[model]\nfamily = "{family}"\n[data]\ntrain = "train.npy"\ntrain_labels = "train_labels.npy"\n'
            f'validation = "test.npy"\nvalidation_labels = "test_labels.npy"\ncrop_padding = {padding}\n'
            f'flip = {str(flip).lower()}\n[train]\nfolder = "run"\nsteps = {steps}\nglobal_batch = {batch}\n'
            f'micro_batch = {batch}\nseed = {seed}\noptimizer = "sgd"\nmomentum = {MOMENTUM}\nlearning_rate = {rate}\n'
            f'min_learning_rate = 0.0\nwarmup_steps = {steps // 20}\nweight_decay = {DECAY}\nclip = 0.0\n'
            'evaluate_every = 0\nevaluate_batches = 0\nevent_files = false\n[checkpoint]\nevery_minutes = 0\n')
        done = subprocess.run([kintsugi, "train", "run.toml"], cwd=here, text=True, capture_output=True)
        if done.returncode:
            sys.exit(done.stderr)
        lines = [json.loads(line) for line in (here / "run" / "metrics.jsonl").read_text().splitlines()]
        return [line["top1"] for line in lines if "top1" in line][-1]


def theirs(case, data, epochs, seed):
    import torch
    import torchvision
    from torch import nn

    _, family, _, batch, rate, padding, flip, _ = case
    torch.manual_seed(seed)
    channels, size = data[0].shape[1:3]
    if family == "lenet":
        side = ((size - 4) // 2 - 4) // 2
        model = nn.Sequential(nn.Conv2d(channels, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                              nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * side * side, 120), nn.ReLU(),
                              nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    else:
        model = getattr(torchvision.models, family)(num_classes=10)
        model.conv1, model.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    for part in model.modules():
        if isinstance(part, (nn.Conv2d, nn.Linear)):
            last = isinstance(part, nn.Linear) and part.out_features == 10
            nn.init.normal_(part.weight, 0, ((1 if last else 2) / part.weight[0].numel()) ** 0.5)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
    model = model.to(memory_format=torch.channels_last).train()
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.SGD([{"params": decayed, "weight_decay": DECAY}, {"params": others}], lr=rate,
                                momentum=MOMENTUM)
    images, labels = torch.from_numpy(data[0].astype(np.float32)) / 127.5 - 1, torch.from_numpy(data[1])
    steps, warmup = len(images) // batch * epochs, len(images) // batch * epochs // 20
    rng = np.random.default_rng(seed)
    order = []
    for step in range(steps):
        if len(order) < batch:
            order += list(rng.permutation(len(images)))
        some, order = order[:batch], order[batch:]
        x = images[some]
        if padding:
            padded = nn.functional.pad(x, [padding] * 4, value=-1)
            tops, lefts = rng.integers(0, 2 * padding + 1, (2, batch))
            x = torch.stack([p[:, a:a + size, b:b + size] for p, a, b in zip(padded, tops, lefts)])
        if flip:
            mirrored = torch.from_numpy(rng.random(batch) < 0.5)
            x = torch.where(mirrored[:, None, None, None], x.flip(3), x)
        part = min(1.0, (step + 1) / max(warmup, 1)) if step < warmup else \
            0.5 * (1 + np.cos(np.pi * (step - warmup) / (steps - warmup)))
        for group in optimizer.param_groups:
            group["lr"] = rate * part
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(x.contiguous(memory_format=torch.channels_last)), labels[some]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        test = torch.from_numpy(data[2].astype(np.float32)) / 127.5 - 1
        found = torch.cat([model(part).argmax(1) for part in test.split(100)]).numpy()
    return float((found == data[3]).mean())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kintsugi")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--no-torch", action="store_true")
    o = parser.parse_args()
    kintsugi = str(pathlib.Path(o.kintsugi).resolve())
    for name in o.names:
        case = CASES[name]
        epochs = o.epochs or case[2]
        data = list((mnist if case[0] == "mnist" else cifar)(o.data / case[0]))
        data[0], data[2] = shrunk(data[0], case[7]), shrunk(data[2], case[7])
        for who, run in [("kintsugi", lambda s: ours(kintsugi, case, data, epochs, s))] + (
                [] if o.no_torch else [("PyTorch", lambda s: theirs(case, data, epochs, s))]):
            found = [100 * run(seed) for seed in range(1, o.seeds + 1)]
            print(f"{name:9} {who:9} {epochs} epochs: mean {statistics.mean(found):.2f}%, of seeds "
                  + ", ".join(f"{x:.1f}" for x in found), flush=True)


main()
