#!/usr/bin/env python3
"""Optimizers compared with PyTorch's, and with bitsandbytes': a small ViT in fp64, of equal initial weights, is trained
on the same eight images in every step, so that a batch does not depend on the order of samples. Rules that PyTorch lacks
(Lion, LAMB, LARS, 8-bit AdamW) are written out below as published.

  PYTHON bench/optimizers/torch_twins.py [OPTIMIZER ...] [--kintsugi FILE] [--steps 20] [--only VARIANT]

Prints, for each optimizer and variant (clipping, accumulation, schedules, frozen weights, ZeRO, tensor splits), the
largest difference of a weight over the largest change of any weight, and fails above 1e-9. Needs torch, transformers,
safetensors and numpy; compares the map of 8-bit codes with that of bitsandbytes if that is installed.
"""
import argparse
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn
from transformers import ViTConfig, ViTForImageClassification
from transformers.utils import logging

IMAGES, SIZE, CLASSES = 8, 32, 5
RATE, DECAY, BETAS, EPSILON = 0.01, 0.1, (0.9, 0.95), 1e-8
CLIP, WARMUP, LEAST = 0.05, 5, 0.001

# The keys of [train] besides those of all, and where PyTorch's default is another, PyTorch's argument below.
OPTIMIZERS = {
    "adamw": {}, "adam": {}, "sgd": {}, "nesterov": {}, "adadelta": {"epsilon": 1e-6}, "adafactor": {}, "muon": {},
    "muon_shape": {"optimizer": "muon", "muon_scale": "shape"}, "lion": {}, "lamb": {"epsilon": 1e-6}, "lars": {},
    "adamw8": {},
}
# Keys of [train] and [parallel]; PyTorch trains on the whole batch in one pass, on one device.
VARIANTS = {
    "plain": ({}, {}),
    "clip": ({"clip": CLIP}, {}),
    "accumulate": ({"clip": CLIP, "micro_batch": 2}, {}),
    "schedule": ({"warmup_steps": WARMUP, "decay": "cosine", "min_learning_rate": LEAST}, {}),
    "freeze": ({"clip": CLIP, "freeze": ["embedding", "layer0"]}, {}),
    "zero0": ({"clip": CLIP}, {"data": 2}),
    "zero1": ({"clip": CLIP}, {"data": 2, "zero": 1}),
    "zero2": ({"clip": CLIP, "micro_batch": 2}, {"data": 2, "zero": 2}),
    "zero3": ({"clip": CLIP, "freeze": ["embedding", "layer0"]}, {"data": 2, "zero": 3}),
    "tensor": ({"clip": CLIP}, {"tensor": 2}),
    "tensor+zero3": ({"clip": CLIP, "micro_batch": 2}, {"tensor": 2, "data": 2, "zero": 3}),
}


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, program 1."""

    def __init__(self, params):
        super().__init__(params, {"lr": RATE})

    def step(self):
        for group in self.param_groups:
            for p in (p for p in group["params"] if p.grad is not None):
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                c = BETAS[0] * m + (1 - BETAS[0]) * p.grad
                p.data -= group["lr"] * (c.sign() + group["weight_decay"] * p.data)
                m.mul_(BETAS[1]).add_(p.grad, alpha=1 - BETAS[1])


class Lamb(torch.optim.Optimizer):
    """You et al. 2020, algorithm 2, with phi(x) = x; without a ratio where there is no decay, as in the authors' code."""

    def __init__(self, params):
        super().__init__(params, {"lr": RATE})

    def step(self):
        for group in self.param_groups:
            for p in (p for p in group["params"] if p.grad is not None):
                s = self.state[p]
                if not s:
                    s.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                s["t"] += 1
                s["m"].mul_(BETAS[0]).add_(p.grad, alpha=1 - BETAS[0])
                s["v"].mul_(BETAS[1]).addcmul_(p.grad, p.grad, value=1 - BETAS[1])
                m, v = s["m"] / (1 - BETAS[0] ** s["t"]), s["v"] / (1 - BETAS[1] ** s["t"])
                u = m / (v.sqrt() + 1e-6) + group["weight_decay"] * p.data
                ratio = p.data.norm() / u.norm() if group["weight_decay"] > 0 else 1.0
                p.data -= group["lr"] * ratio * u


class Lars(torch.optim.Optimizer):
    """You, Gitman, Ginsburg 2017, algorithm 1; without a local rate where there is no decay, as in the authors' code."""

    def __init__(self, params):
        super().__init__(params, {"lr": RATE})

    def step(self):
        for group in self.param_groups:
            decay = group["weight_decay"]
            for p in (p for p in group["params"] if p.grad is not None):
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                local = 0.001 * p.data.norm() / (p.grad.norm() + decay * p.data.norm()) if decay > 0 else 1.0
                m.mul_(0.9).add_(p.grad + decay * p.data, alpha=float(group["lr"] * local))
                p.data -= m


def dynamic_map(signed):
    """bitsandbytes' create_dynamic_map in fp64, compared with it if it is installed."""
    numbers = [0.0, 1.0]
    for i in range(7):
        bounds = torch.linspace(0.1, 1, 2 ** (i if signed else i + 1) + 1, dtype=torch.float64)
        means = (10.0 ** (i - 6) * (bounds[:-1] + bounds[1:]) / 2).tolist()
        numbers += means + [-x for x in means] if signed else means
    numbers = torch.tensor(sorted(numbers), dtype=torch.float64)
    try:
        from bitsandbytes.functional import create_dynamic_map
    except ImportError:
        return numbers
    torch.testing.assert_close(numbers, create_dynamic_map(signed=signed).double(), rtol=1e-6, atol=0)
    return numbers


class Adamw8(torch.optim.Optimizer):
    """The 8-bit AdamW of Dettmers et al. 2022 with the maps of bitsandbytes, in fp64 and in blocks of 256 in the order of
    our weights [inputs outputs]; AdamW where there is no decay. A code is that of the nearest number: bitsandbytes' own
    kernel for the processor takes others for small numbers (0.50.2: 2.1e-5 for 5e-7)."""

    def __init__(self, decayed, others):
        super().__init__([{"params": decayed, "weight_decay": DECAY}, {"params": others}], {"lr": RATE})
        self.maps = {"m": dynamic_map(True), "v": dynamic_map(False)}
        self.rest = torch.optim.AdamW(others, lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=0.0)
        self.t = 0

    def store(self, state, key, x):
        blocks = nn.functional.pad(x, (0, -len(x) % 256)).reshape(-1, 256)
        scale = blocks.abs().amax(1, keepdim=True)
        codes = ((blocks / scale.clamp(min=1e-300))[:, :, None] - self.maps[key]).abs().argmin(2)
        state[key] = (self.maps[key][codes] * scale).flatten()[:len(x)]

    def step(self):
        self.rest.param_groups[0]["lr"] = rate = self.param_groups[0]["lr"]
        self.rest.step()
        self.t += 1
        for p in (p for p in self.param_groups[0]["params"] if p.grad is not None):
            state, g, w = self.state[p], ordered(p.grad).flatten(), ordered(p.data)
            m = BETAS[0] * state.get("m", torch.zeros_like(g)) + (1 - BETAS[0]) * g
            v = BETAS[1] * state.get("v", torch.zeros_like(g)) + (1 - BETAS[1]) * g * g
            u = m / (1 - BETAS[0] ** self.t) / ((v / (1 - BETAS[1] ** self.t)).sqrt() + EPSILON)
            p.data.copy_(in_order_of(p, w - rate * (u.reshape(w.shape) + DECAY * w)))
            self.store(state, "m", m)
            self.store(state, "v", v)


class Adafactor(torch.optim.Optimizer):
    """PyTorch's Adafactor, but a convolution is one matrix [inputs outputs], where PyTorch has a matrix of the kernel's
    height and width for each pair of channels."""

    def __init__(self, groups):
        super().__init__(groups, {"lr": RATE})
        self.views = {p: nn.Parameter(as_matrix(p.data)) for g in groups for p in g["params"]}
        self.inner = torch.optim.Adafactor([{**g, "params": [self.views[p] for p in g["params"]]} for g in groups],
                                           lr=RATE, beta2_decay=-0.8, eps=(1e-30, 1e-3), d=1.0)

    def step(self):
        for group in self.inner.param_groups:
            group["lr"] = self.param_groups[0]["lr"]
        for p, view in self.views.items():
            view.grad = None if p.grad is None else as_matrix(p.grad)
        self.inner.step()
        for p, view in self.views.items():
            p.data.copy_(view.data.reshape(p.shape))


def as_matrix(x):
    return x.flatten(1).clone() if x.dim() == 4 else x.clone()


def ordered(x):
    """A weight of PyTorch in the order of ours: [inputs outputs], and for images [height width channel embed]."""
    return {2: lambda: x.T, 4: lambda: x.permute(2, 3, 1, 0)}.get(x.dim(), lambda: x)().contiguous()


def in_order_of(p, x):
    return {2: lambda: x.T, 4: lambda: x.permute(3, 2, 0, 1)}.get(p.dim(), lambda: x)()


def optimizers_of(name, model):
    """Weight decay for matrices, the class token and positions; none for norms and biases."""
    hidden, decayed, others = [], [], []
    for key, p in model.named_parameters():
        if p.dim() == 1:
            others.append(p)
        elif ".layers." in key:
            hidden.append(p)
        else:
            decayed.append(p)
    groups = [{"params": hidden + decayed, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    adam = dict(lr=RATE, betas=BETAS, eps=EPSILON)
    if name.startswith("muon"):
        rest = [{"params": decayed, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
        scale = "original" if name == "muon_shape" else "match_rms_adamw"
        return [torch.optim.Muon(hidden, lr=RATE, weight_decay=DECAY, momentum=0.95, adjust_lr_fn=scale),
                torch.optim.AdamW(rest, **adam)]
    if name == "adafactor":
        return [Adafactor(groups)]
    return [{
        "adamw": lambda: torch.optim.AdamW(groups, **adam),
        "adam": lambda: torch.optim.Adam(groups, **adam),
        "sgd": lambda: torch.optim.SGD(groups, lr=RATE, momentum=0.9),
        "nesterov": lambda: torch.optim.SGD(groups, lr=RATE, momentum=0.9, nesterov=True),
        "adadelta": lambda: torch.optim.Adadelta(groups, lr=RATE, rho=0.9, eps=1e-6),
        "lion": lambda: Lion(groups), "lamb": lambda: Lamb(groups), "lars": lambda: Lars(groups),
        "adamw8": lambda: Adamw8(hidden + decayed, others),
    }[name]()]


def rate_of(keys, step, steps):
    """docs/configuration.md: warm-up is linear from rate / (warm-up + 1), and its last step is below the peak."""
    if keys.get("decay") != "cosine":
        return RATE
    if step < WARMUP:
        return RATE * (step + 1) / (WARMUP + 1)
    return LEAST + (RATE - LEAST) * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (steps - WARMUP)))


def train_theirs(name, keys, folder, images, labels, o):
    model = ViTForImageClassification.from_pretrained(folder, dtype=torch.float64).eval()
    frozen = ("vit.embeddings.", "vit.layers.0.") if "freeze" in keys else ()
    for key, p in model.named_parameters():
        p.requires_grad = not key.startswith(frozen)
    optimizers = optimizers_of(name, model)
    for step in range(o.steps):
        nn.functional.cross_entropy(model(pixel_values=images).logits, labels).backward()
        if "clip" in keys:
            nn.utils.clip_grad_norm_(model.parameters(), keys["clip"])
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate_of(keys, step, o.steps)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    model.save_pretrained(folder.parent / "theirs")
    return load_file(folder.parent / "theirs" / "model.safetensors")


def run(o, *arguments):
    done = subprocess.run([o.kintsugi, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr}")


def toml(value):
    return f'"{value}"' if isinstance(value, str) else str(value)


def train_ours(name, keys, parallel, work, o):
    train = {"folder": str(work / "run"), "init_from": str(work / "model"), "dtype": "fp64", "steps": o.steps,
             "global_batch": IMAGES, "micro_batch": IMAGES // parallel.get("data", 1), "learning_rate": RATE,
             "decay": "constant", "warmup_steps": 0, "weight_decay": DECAY, "clip": 0.0, "betas": list(BETAS),
             "epsilon": EPSILON, "optimizer": name, **OPTIMIZERS[name], **keys}
    lines = ['[model]', 'family = "vit"', f"outputs = {CLASSES}", "layers = 2", "embed = 32", "heads = 4", "ffn = 64",
             "patch = 16", "[data]", f'train = "{work}/x.npy"', f'train_labels = "{work}/y.csv"', "[train]",
             "event_files = false", *(f"{k} = {toml(v)}" for k, v in train.items()), "[parallel]",
             *(f"{k} = {v}" for k, v in parallel.items())]
    (work / "run.toml").write_text("\n".join(lines) + "\n")
    run(o, "train", work / "run.toml")
    run(o, "export", work / "run", work / "ours")
    return load_file(work / "ours" / "model.safetensors")


def compare(name, variant, o):
    keys, parallel = VARIANTS[variant]
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        rng = np.random.default_rng(3)
        pixels = rng.integers(0, 256, (IMAGES, 3, SIZE, SIZE), dtype=np.uint8)
        labels = rng.integers(0, CLASSES, IMAGES)
        np.save(work / "x.npy", pixels)
        (work / "y.csv").write_text("".join(f"{c}\n" for c in labels))
        config = ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                           image_size=SIZE, patch_size=16, num_labels=CLASSES, hidden_dropout_prob=0.0,
                           attention_probs_dropout_prob=0.0)
        ViTForImageClassification(config).save_pretrained(work / "model")
        first = load_file(work / "model" / "model.safetensors")
        images = torch.from_numpy(pixels).double() / 127.5 - 1
        theirs = train_theirs(name, keys, work / "model", images, torch.from_numpy(labels), o)
        ours = train_ours(name, keys, parallel, work, o)
        moved = max((theirs[key] - first[key]).abs().max().item() for key in first)
        # The gradient of a bias of keys is 0 but for rounding, which Lion and Adafactor scale to a whole step.
        noise = "key.bias" if name in ("lion", "adafactor") else "none"
        compared = [key for key in first if not key.endswith(noise)]
        apart = {key: (theirs[key] - ours[key]).abs().max().item() / moved for key in compared}
    worst = max(apart, key=apart.get)
    bad = not apart[worst] <= 1e-9
    print(f"{name:12} {variant:13} {apart[worst]:.1e} of {moved:.2g}{'  in ' + worst if bad else ''}", flush=True)
    return bad


def main(o):
    # PyTorch's Muon orthogonalizes in bf16; here in the dtype of the gradient.
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    inner = torch.Tensor.to
    torch.Tensor.to = lambda self, *a, **k: self.clone() if k.get("dtype") == torch.bfloat16 else inner(self, *a, **k)
    failed = [compare(name, variant, o) for name in o.names or OPTIMIZERS for variant in o.only or VARIANTS]
    sys.exit(any(failed))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", help="optimizers; all if none is named")
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--only", action="append", choices=VARIANTS, help="variants; all if none is named")
    options.add_argument("--kintsugi", default=str(pathlib.Path(__file__).resolve().parents[2] / "build/app/kintsugi"))
    main(options.parse_args())
