#!/usr/bin/env python3
"""Convolutional networks and ViT compared with PyTorch, torchvision and transformers from the same weights.

torch_twins.py KINTSUGI [NAME ...] [--dtype fp32|fp64] [--steps N] [--rate R] [--size N] [--random N] [--seed N]: for
each network, or N times for one of them with random channels, sizes, batch, outputs, label smoothing, optimizer and
weight decay, random weights and running statistics are written as safetensors, read by `kintsugi classify` or
`predict` (outputs, except classes of pixels) and by one step of `kintsugi train` with SGD and a learning rate of 1,
whose change of the weights is the gradient. With --steps N, N more steps of both with momentum and the learning rate R
(0.01). Prints the largest difference of outputs relative to the largest, of gradients relative to the norm of all, of
running statistics relative to the largest of their tensor, after one step and after N, and of weights after N. Limits:
1e-5, 1e-4, 1e-6, 1e-6 and 1e-4 in fp32, or twice the difference of PyTorch in fp32 from PyTorch in fp64, printed next
to it, if that is larger; in fp64, which distinguishes rounding from errors, 1e-9 for all. In fp32, a ReLU whose input
is within rounding of zero changes gradients before it by up to 1e-4 of their norm, and steps amplify that: use a small
learning rate.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from twin_networks import NETWORKS, FieldViT, Hugging

TORCH = {"fp32": torch.float32, "fp64": torch.float64}
LIMITS = {"fp32": (1e-5, 1e-4, 1e-6), "fp64": (1e-9, 1e-9, 1e-9)}
Config = collections.namedtuple("Config", "name size channels outputs batch smoothing optimizer decay seed")


def random_config(rng, names, seed):
    name = str(rng.choice(names))
    of = NETWORKS[name]
    size = [int(rng.choice(of.sizes))] * len(of.size) if of.square else [int(rng.choice(of.sizes)) for _ in of.size]
    smoothing = float(rng.choice([0.0, 0.1])) if of.objective == "classes" else 0.0
    outputs = int(rng.choice([2, 3, 7, 10, 100, 1000]) if of.objective == "classes" else rng.integers(2, 6))
    return Config(name, size, int(rng.choice([1, 2, 3, 4, 20])), outputs, int(rng.integers(1, 7)), smoothing,
                  str(rng.choice(["sgd", "nesterov"])), float(rng.choice([0.0, 0.01])), seed)


def is_hugging(model):
    return isinstance(model, Hugging)


def weights_of(model):
    return {name.replace("/", "."): x.clone().contiguous() for name, x in model.state_dict().items()}


class Runs:
    """Runs of kintsugi in a folder with the images and labels of a network."""

    def __init__(self, kintsugi, here, config, shape, dtype):
        self.kintsugi, self.here, self.config, self.shape, self.dtype = kintsugi, here, config, shape, dtype

    def run(self, *arguments):
        done = subprocess.run([self.kintsugi, *map(str, arguments)], cwd=self.here, text=True, capture_output=True)
        if done.returncode:
            sys.exit(f"{self.config}: kintsugi {arguments[0]}: {done.stderr}")

    def trained(self, folder, steps, rate, momentum, **keys):
        """The tensors after so many steps from the folder "weights"."""
        c = self.config
        labels = "y.csv" if NETWORKS[c.name].objective == "classes" else "y.npy"
        loss = f'loss = "{c.name.removeprefix("vit_")}"\n' if NETWORKS[c.name].objective == "fields" else ""
        keys = {"optimizer": '"sgd"', "weight_decay": 0.0} | keys
        (self.here / "run.toml").write_text(
            f'[model]\nfamily = "{family_of(c)}"\noutputs = {c.outputs}\nobjective = "{NETWORKS[c.name].objective}"\n'
            + "".join(f"{k} = {v}\n" for k, v in self.shape.items())
            + f'[data]\ntrain = "x.npy"\ntrain_labels = "{labels}"\n[train]\n{loss}'
            f'folder = "{folder}"\nsteps = {steps}\n'
            f'dtype = "{self.dtype}"\nglobal_batch = {c.batch}\nmicro_batch = {c.batch}\n'
            f'learning_rate = {rate}\ndecay = "constant"\nwarmup_steps = 0\nmomentum = {momentum}\n'
            f'label_smoothing = {c.smoothing}\nclip = 0.0\ninit_from = "weights"\nevent_files = false\n'
            + "".join(f"{k} = {v}\n" for k, v in keys.items()))
        self.run("train", "run.toml")
        self.run("export", folder, folder + "_after")
        return load_file(self.here / (folder + "_after") / "model.safetensors")


# `later`: weights and running statistics after all steps.
Results = collections.namedtuple("Results", "logits gradients running later")


def family_of(config):
    return NETWORKS[config.name].family or config.name


def inner_of(model):
    return model.model if is_hugging(model) else model


def running_of(named):
    return {k: v.double().clone() for k, v in named if k.endswith(("running_mean", "running_var"))}


def on_disk(model, here):
    """The parameters by their names on disk, which for transformers are not those in memory."""
    if not is_hugging(model):
        return {k.replace("/", "."): p.detach().clone() for k, p in model.named_parameters()}
    model.model.save_pretrained(here / "saved")
    return load_file(here / "saved" / "model.safetensors")


def loss_of(config, model, x, wanted):
    y = model(x)
    if isinstance(model, FieldViT):
        return model.loss(y, wanted.to(y.dtype))
    if NETWORKS[config.name].objective == "numbers":
        return nn.functional.mse_loss(y, wanted.to(y.dtype))
    return nn.functional.cross_entropy(y, wanted, ignore_index=255, label_smoothing=config.smoothing)


def torch_results(config, model, x, y, options, here):
    """Of PyTorch: logits, gradients by their names on disk, and running statistics after one step and after all."""
    inner = inner_of(model)
    model.zero_grad(set_to_none=True)
    model.eval()
    with torch.no_grad():
        logits = model(x).double().numpy()
    model.train()
    start = {k: v.clone() for k, v in model.state_dict().items()}
    loss_of(config, model, x, y).backward()
    kept = [p.data for p in inner.parameters()]
    for p in inner.parameters():
        p.data = p.grad.clone()
    gradients = on_disk(model, here)
    for p, data in zip(inner.parameters(), kept):
        p.data = data
    running = running_of(model.named_buffers())
    model.load_state_dict(start)
    # Weight decay leaves out norms, biases and ConvNeXt's scales.
    decays = {name: p.dim() > 1 and not name.endswith("layer_scale") for name, p in model.named_parameters()}
    groups = [{"params": [p for name, p in model.named_parameters() if decays[name] == which], "weight_decay": decay}
              for which, decay in ((True, config.decay), (False, 0.0))]
    optimizer = torch.optim.SGD(groups, lr=options.rate, momentum=0.9, nesterov=config.optimizer == "nesterov")
    for _ in range(options.steps):
        optimizer.zero_grad()
        loss_of(config, model, x, y).backward()
        optimizer.step()
    later = {**on_disk(model, here), **running_of(model.named_buffers())} if options.steps else {}
    model.load_state_dict(start)
    return Results(logits, gradients, running, later)


def differences(found, wanted):
    norm = torch.sqrt(sum((g.double() ** 2).sum() for g in wanted.gradients.values())).item()
    largest = [max(((found.gradients[k].double() - g.double()).abs().max().item() / norm
                    for k, g in wanted.gradients.items()))]
    for a, b in (found.running, wanted.running), (found.later, wanted.later):
        largest.append(max([((a[k].double() - b[k].double()).abs().max() / b[k].double().abs().max()).item()
                            for k in b if b is wanted.running or k in found.running], default=0.0))
    weights = [k for k in wanted.later if k not in found.running and k in found.later]
    largest.append(max([(found.later[k].double() - wanted.later[k].double()).abs().max().item() for k in weights],
                       default=0.0))
    logits = 0.0 if found.logits is None else np.abs(found.logits - wanted.logits).max() / np.abs(wanted.logits).max()
    return [float(logits), *largest]


def data_of(config, rng, dtype, here):
    """Images and labels, written to files: bytes of up to 4 channels, otherwise numbers."""
    objective = NETWORKS[config.name].objective
    shape = (config.batch, config.channels, *config.size)
    if config.channels <= 4 and len(config.size) == 2:
        pixels = rng.integers(0, 256, shape, dtype=np.uint8)
        x = torch.from_numpy(pixels).to(dtype) / 127.5 - 1
    else:
        pixels = rng.normal(size=shape).astype(np.float32)
        x = torch.from_numpy(pixels).to(dtype)
    np.save(here / "x.npy", pixels)
    if objective == "classes":
        labels = rng.permutation(np.arange(config.batch) % config.outputs).astype(np.int64)
        (here / "y.csv").write_text("".join(f"{c}\n" for c in labels))
    elif objective == "pixels":
        labels = rng.integers(0, config.outputs + 1, (config.batch, *config.size))
        labels[labels == config.outputs] = 255  # ignored
        np.save(here / "y.npy", labels.astype(np.uint8))
    else:
        size = config.size if objective == "fields" else []
        labels = rng.normal(size=(config.batch, config.outputs, *size)).astype(np.float32)
        np.save(here / "y.npy", labels)
    return x, torch.from_numpy(labels)


def field_config(shape):
    return {"architectures": ["ViTForFields"], "hidden_size": shape["embed"], "intermediate_size": shape["ffn"],
            "patch_size": shape["patch"], "num_hidden_layers": shape["layers"], "num_attention_heads": shape["heads"]}


def one(config, kintsugi, here, options):
    dtype, of = TORCH[options.dtype], NETWORKS[config.name]
    torch.manual_seed(config.seed)
    model = of.build(config.outputs, config.size, config.channels).to(dtype).train()
    for key, x in model.named_buffers():  # not those that both begin with
        if key.endswith("running_mean"):
            x.normal_(0, 0.1)
        if key.endswith("running_var"):
            x.uniform_(0.5, 1.5)
    x, y = data_of(config, np.random.default_rng(config.seed), dtype, here)
    weights = here / "weights"
    weights.mkdir()
    if is_hugging(model):
        model.model.save_pretrained(weights)
        values = json.loads((weights / "config.json").read_text())
    else:
        save_file(weights_of(model), weights / "model.safetensors")
        values = {"model_type": family_of(config), "num_channels": config.channels, "image_height": config.size[-2],
                  "image_width": config.size[-1], "num_labels": config.outputs}
        values |= field_config(model.shape) if of.objective == "fields" else {"objective": of.objective}
        values |= {"image_depth": config.size[0]} if len(config.size) == 3 else {}
        values |= {"width": model.shape["embed"]} if family_of(config) == "unet" else {}
    values |= {"image_dtype": "float32"} if np.load(here / "x.npy").dtype == np.float32 else {}
    (weights / "config.json").write_text(json.dumps(values))
    before = load_file(weights / "model.safetensors")
    runs = Runs(kintsugi, here, config, getattr(model, "shape", {}), options.dtype)
    if of.objective in ("numbers", "fields"):
        runs.run("predict", weights, "x.npy", "--output", "logits.npy", "--dtype", options.dtype)
    if of.objective == "classes":
        runs.run("classify", weights, "x.npy", "--output", "logits.npy", "--show", 0, "--dtype", options.dtype)
    after = runs.trained("one", 1, 1.0, 0.0)
    later = runs.trained("more", options.steps, options.rate, 0.9, optimizer=f'"{config.optimizer}"',
                         weight_decay=config.decay) if options.steps else {}
    found = Results(np.load(here / "logits.npy").astype(np.float64) if of.objective != "pixels" else None,
                    {k: v.double() - after[k].double() for k, v in before.items() if v.is_floating_point()},
                    running_of(after.items()), later)
    wanted = torch_results(config, model, x, y, options, here)
    own = [0.0] * 5
    if options.dtype == "fp32":
        own = differences(wanted, torch_results(config, model.double(), x.double(), y, options, here))
    return differences(found, wanted), own


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kintsugi")
    parser.add_argument("names", nargs="*", default=list(NETWORKS))
    parser.add_argument("--dtype", choices=list(TORCH), default="fp32")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0.01)
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    limits = LIMITS[options.dtype]
    failed = False
    rng = np.random.default_rng(options.seed)
    configs = [random_config(rng, options.names, options.seed + i) for i in range(options.random)] or [
        Config(name, [options.size] * len(NETWORKS[name].size) if options.size else NETWORKS[name].size, 3,
               10 if NETWORKS[name].objective == "classes" else 4, 8, 0.0, "sgd", 0.0, options.seed)
        for name in options.names]
    columns = f"{'logits':>10}{'gradients':>10}{'running':>10}{'after ' + str(options.steps):>10}{'weights':>10}"
    print(f"{'network':13} {'channels, size':>16} {'batch':>5} {'outputs':>7} {'smooth':>6} {'optimizer, decay':>16}"
          f"{columns}; PyTorch and its fp64{columns}")
    for c in configs:
        with tempfile.TemporaryDirectory() as folder:
            found, own = one(c, str(pathlib.Path(options.kintsugi).resolve()), pathlib.Path(folder), options)
        # Logits are stored in fp32; weights have the limit of gradients.
        allowed = [max(limit, 2 * error) for limit, error in
                   zip((max(limits[0], 2e-7), limits[1], limits[2], limits[2], limits[1]), own)]
        beyond = [x > limit for x, limit in zip(found, allowed)]
        failed |= any(beyond)
        marked = "".join(f"{x:9.1e}{'!' if b else ' '}" for x, b in zip(found, beyond))
        size = f"{c.channels} x " + "x".join(map(str, c.size))
        print(f"{c.name:13} {size:>16} {c.batch:5} {c.outputs:7} {c.smoothing:6} {c.optimizer + ' ' + str(c.decay):>16} "
              f"{marked}{'':21}" + "".join(f"{x:9.1e} " for x in own), flush=True)
    sys.exit(failed)


main()
