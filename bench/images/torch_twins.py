#!/usr/bin/env python3
"""Convolutional networks and ViT compared with PyTorch, torchvision and transformers from the same weights.

torch_twins.py KINTSUGI [NAME ...] [--dtype fp32|fp64] [--steps N] [--rate R] [--size N] [--random N] [--seed N]: for
each network, or N times for one of them with random size, batch and number of classes, random weights and running
statistics are written as safetensors, read by `kintsugi classify` (logits; `predict` for fields) and by one step of
`kintsugi train` with SGD and a learning rate of 1, whose change of the weights is the gradient. With --steps N, N more steps of both with
SGD, momentum and the learning rate R (0.01). Prints the largest difference of logits relative to the largest logit,
of gradients relative to the norm of all, and of running statistics relative to the largest of their tensor, after one
step and after N. Limits: 1e-5, 1e-4 and 1e-6 in fp32, or twice the difference of PyTorch in fp32 from PyTorch in
fp64, printed next to it, if that is larger; in fp64, which distinguishes rounding from errors, 1e-9 for all. In fp32,
a ReLU whose input is within rounding of zero changes gradients before it by up to 1e-4 of their norm, and steps
amplify that: use a small learning rate.
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
import torchvision
from safetensors.torch import load_file, save_file
from torch import nn


class LeNet(nn.Module):
    def __init__(self, classes, size):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 6, 5), nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * (((size - 4) // 2 - 4) // 2) ** 2, 120)
        self.fc2, self.fc3 = nn.Linear(120, 84), nn.Linear(84, classes)

    def forward(self, x):
        pool = nn.functional.max_pool2d
        x = pool(self.conv1(x).relu(), 2)
        x = pool(self.conv2(x).relu(), 2)
        return self.fc3(self.fc2(self.fc1(x.flatten(1)).relu()).relu())


class Hugging(nn.Module):
    def __init__(self, classes, size, shape):
        super().__init__()
        from transformers import ViTConfig, ViTForImageClassification

        self.shape = shape  # keys of [model]
        self.model = ViTForImageClassification(ViTConfig(
            hidden_size=shape["embed"], num_hidden_layers=shape["layers"], num_attention_heads=shape["heads"],
            intermediate_size=shape["ffn"], image_size=size, patch_size=shape["patch"], num_labels=classes,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))

    def forward(self, x):
        return self.model(pixel_values=x).logits


class FieldViT(nn.Module):
    """Fields from the tokens of patches, with the names of `kintsugi export`; `relative`: the relative L2 loss."""

    def __init__(self, outputs, size, shape, relative):
        super().__init__()
        self.shape, self.size, self.outputs, self.relative = shape, size, outputs, relative
        embed, ffn, patch = shape["embed"], shape["ffn"], shape["patch"]
        tokens = (size[0] // patch) * (size[1] // patch)
        sizes = {"vit.embeddings.position_embeddings": (1, tokens, embed), "decoder.bias": (outputs,),
                 "vit.embeddings.patch_embeddings.projection.weight": (embed, 3, patch, patch),
                 "vit.embeddings.patch_embeddings.projection.bias": (embed,),
                 "decoder.weight": (embed, outputs, patch, patch),
                 "vit.layernorm.weight": (embed,), "vit.layernorm.bias": (embed,)}
        for i in range(shape["layers"]):
            for name, (rows, columns) in {
                    "attention.attention.query": (embed, embed), "attention.attention.key": (embed, embed),
                    "attention.attention.value": (embed, embed), "attention.output.dense": (embed, embed),
                    "intermediate.dense": (ffn, embed), "output.dense": (embed, ffn)}.items():
                sizes[f"vit.encoder.layer.{i}.{name}.weight"] = (rows, columns)
                sizes[f"vit.encoder.layer.{i}.{name}.bias"] = (rows,)
            for name in ("layernorm_before", "layernorm_after"):
                sizes[f"vit.encoder.layer.{i}.{name}.weight"] = sizes[f"vit.encoder.layer.{i}.{name}.bias"] = (embed,)
        for name, shape_of in sizes.items():
            norm = "norm" in name and name.endswith("weight")
            start = 0.2 * torch.randn(shape_of) + (1 if norm else 0)
            self.register_parameter(name.replace(".", "/"), nn.Parameter(start))

    def weights(self):
        return {name.replace("/", "."): p.detach().clone() for name, p in self.named_parameters()}

    def forward(self, x):
        def of(name):
            return getattr(self, name.replace(".", "/"))

        def linear(h, name):
            return nn.functional.linear(h, of(name + ".weight"), of(name + ".bias"))

        def norm(h, name):
            return nn.functional.layer_norm(h, h.shape[-1:], of(name + ".weight"), of(name + ".bias"), 1e-12)

        projection, patch = "vit.embeddings.patch_embeddings.projection", self.shape["patch"]
        h = nn.functional.conv2d(x, of(projection + ".weight"), of(projection + ".bias"), stride=patch)
        grid = h.shape[2:]
        h = h.flatten(2).transpose(1, 2) + of("vit.embeddings.position_embeddings")
        for i in range(self.shape["layers"]):
            at = f"vit.encoder.layer.{i}."
            q, k, v = (linear(norm(h, at + "layernorm_before"), f"{at}attention.attention.{name}")
                       .unflatten(-1, (self.shape["heads"], -1)).transpose(1, 2) for name in ("query", "key", "value"))
            mixed = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            h = h + linear(mixed, at + "attention.output.dense")
            inner = nn.functional.gelu(linear(norm(h, at + "layernorm_after"), at + "intermediate.dense"))
            h = h + linear(inner, at + "output.dense")
        h = norm(h, "vit.layernorm")
        # Of each token the numbers of its patch: a linear layer and a rearrangement, as in NERSC's example.
        numbers = torch.einsum("bse,eopq->bsopq", h, of("decoder.weight"))
        numbers = numbers.unflatten(1, grid).permute(0, 3, 1, 4, 2, 5)
        return numbers.flatten(4).flatten(2, 3) + of("decoder.bias")[:, None, None]

    def loss(self, y, t):
        if not self.relative:
            return nn.functional.mse_loss(y, t)
        return ((y - t).flatten(1).norm(dim=1) / t.flatten(1).norm(dim=1)).mean()


def small_stem(model):
    """The stem of images of up to 64 pixels."""
    model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model


M = torchvision.models
# Name: the network of a number of classes and an image size, its size, and the sizes of random configurations.
NETWORKS = {
    "lenet": (LeNet, 32, range(20, 41)),
    "alexnet": (lambda c, _: M.alexnet(num_classes=c, dropout=0.0), 64, range(64, 81)),
    "vgg11": (lambda c, _: M.vgg11(num_classes=c, dropout=0.0), 32, range(32, 49)),
    "vgg11_bn": (lambda c, _: M.vgg11_bn(num_classes=c, dropout=0.0), 64, range(32, 49)),
    "resnet18": (lambda c, _: small_stem(M.resnet18(num_classes=c)), 32, range(8, 33)),
    "resnet50": (lambda c, _: M.resnet50(num_classes=c), 96, range(65, 81)),
    "convnext_tiny": (lambda c, _: M.convnext_tiny(num_classes=c, stochastic_depth_prob=0.0, layer_scale=0.5), 64,
                      range(32, 65, 32)),
    "vit": (lambda c, size: Hugging(c, size, dict(layers=3, embed=48, heads=4, ffn=96, patch=8)), 32, range(16, 49, 8)),
    **{f"vit_{loss}": (lambda c, size, loss=loss: FieldViT(
        c, (size, size + 8), dict(layers=3, embed=48, heads=4, ffn=96, patch=8), loss == "relative_l2"), 32,
        range(16, 49, 8)) for loss in ("mse", "relative_l2")},
    "vit_s": (lambda c, size: Hugging(c, size, dict(layers=12, embed=384, heads=6, ffn=1536, patch=16)), 224, [224]),
}


def weights_of(model):
    if isinstance(model, FieldViT):
        return model.weights()
    state = model.model.state_dict() if isinstance(model, Hugging) else model.state_dict()
    return {name: x.clone().contiguous() for name, x in state.items()}


TORCH = {"fp32": torch.float32, "fp64": torch.float64}
LIMITS = {"fp32": (1e-5, 1e-4, 1e-6), "fp64": (1e-9, 1e-9, 1e-9)}


Config = collections.namedtuple("Config", "name size classes batch seed")


def random_config(rng, names, seed):
    name = str(rng.choice(names))
    return Config(name, int(rng.choice(NETWORKS[name][2])), int(rng.integers(2, 13)), int(rng.integers(2, 7)), seed)


class Runs:
    """Runs of kintsugi in a folder with the images and labels of a network."""

    def __init__(self, kintsugi, here, config, shape, dtype):
        self.kintsugi, self.here, self.config, self.shape, self.dtype = kintsugi, here, config, shape, dtype
        self.loss = config.name.removeprefix("vit_") if config.name in ("vit_mse", "vit_relative_l2") else None

    def run(self, *arguments):
        done = subprocess.run([self.kintsugi, *map(str, arguments)], cwd=self.here, text=True, capture_output=True)
        if done.returncode:
            sys.exit(f"{self.config.name}: kintsugi {arguments[0]}: {done.stderr}")

    def trained(self, folder, steps, rate, momentum):
        """The tensors after so many steps from the folder "weights"."""
        (self.here / "run.toml").write_text(
            f'[model]\nfamily = "{"vit" if self.shape else self.config.name}"\noutputs = {self.config.classes}\n'
            + "".join(f"{k} = {v}\n" for k, v in self.shape.items())
            + ('objective = "fields"\n' if self.loss else "")
            + f'[data]\ntrain = "x.npy"\ntrain_labels = "{"y.npy" if self.loss else "y.csv"}"\n[train]\n'
            + (f'loss = "{self.loss}"\n' if self.loss else "")
            + f'folder = "{folder}"\nsteps = {steps}\n'
            f'dtype = "{self.dtype}"\nglobal_batch = {self.config.batch}\n'
            f'micro_batch = {self.config.batch}\noptimizer = "sgd"\n'
            f'learning_rate = {rate}\ndecay = "constant"\nwarmup_steps = 0\nmomentum = {momentum}\n'
            'weight_decay = 0.0\nclip = 0.0\ninit_from = "weights"\nevent_files = false\n')
        self.run("train", "run.toml")
        self.run("export", folder, folder + "_after")
        return load_file(self.here / (folder + "_after") / "model.safetensors")


Results = collections.namedtuple("Results", "logits gradients running later")


def inner_of(model):
    return model.model if isinstance(model, Hugging) else model


def loss_of(model, x, y):
    return model.loss(model(x), y) if isinstance(model, FieldViT) else nn.functional.cross_entropy(model(x), y)


def running_of(named):
    return {k: v.double().clone() for k, v in named if k.endswith(("running_mean", "running_var"))}


def torch_results(model, x, y, options, here):
    """Of PyTorch: logits, gradients by their names on disk, and running statistics after one step and after all."""
    inner = inner_of(model)
    model.zero_grad(set_to_none=True)
    model.eval()
    with torch.no_grad():
        logits = model(x).double().numpy()
    model.train()
    start = {k: v.clone() for k, v in model.state_dict().items()}
    loss_of(model, x, y).backward()
    if isinstance(model, Hugging):  # names on disk are not those in memory
        kept = [p.data for p in inner.parameters()]
        for p in inner.parameters():
            p.data = p.grad.clone()
        inner.save_pretrained(here / "gradients")
        gradients = load_file(here / "gradients" / "model.safetensors")
        for p, data in zip(inner.parameters(), kept):
            p.data = data
    else:
        gradients = {k.replace("/", "."): p.grad.clone() for k, p in inner.named_parameters()}
    running = running_of(model.named_buffers())
    model.load_state_dict(start)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.rate, momentum=0.9)
    for _ in range(options.steps):
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
    later = running_of(model.named_buffers()) if options.steps else {}
    model.load_state_dict(start)
    return Results(logits, gradients, running, later)


def differences(found, wanted):
    norm = torch.sqrt(sum((g.double() ** 2).sum() for g in wanted.gradients.values())).item()
    largest = [max(((found.gradients[k].double() - g.double()).abs().max().item() / norm
                    for k, g in wanted.gradients.items()))]
    for a, b in (found.running, wanted.running), (found.later, wanted.later):
        largest.append(max([((a[k] - b[k]).abs().max() / b[k].abs().max()).item() for k in b], default=0.0))
    return [float(np.abs(found.logits - wanted.logits).max() / np.abs(wanted.logits).max()), *largest]


def one(config, kintsugi, here, options):
    name, size, classes, batch, seed = config
    dtype = TORCH[options.dtype]
    torch.manual_seed(seed)
    model = NETWORKS[name][0](classes, size).to(dtype).train()
    for key, x in model.named_buffers():  # not those that both begin with
        if key.endswith("running_mean"):
            x.normal_(0, 0.1)
        if key.endswith("running_var"):
            x.uniform_(0.5, 1.5)
    rng = np.random.default_rng(seed)
    fields = isinstance(model, FieldViT)
    pixels = rng.integers(0, 256, (batch, 3, *(model.size if fields else (size, size))), dtype=np.uint8)
    labels = rng.permutation(np.arange(batch) % classes).astype(np.int64)
    if fields:
        labels = rng.normal(size=(batch, classes, *model.size)).astype(np.float32)
    x, y = torch.from_numpy(pixels).to(dtype) / 127.5 - 1, torch.from_numpy(labels)
    np.save(here / "x.npy", pixels)
    if fields:
        y = y.to(dtype)
        np.save(here / "y.npy", labels)
    else:
        (here / "y.csv").write_text("".join(f"{c}\n" for c in labels))
    weights = here / "weights"
    weights.mkdir()
    shape = model.shape if fields or isinstance(model, Hugging) else {}
    if isinstance(model, Hugging):
        model.model.save_pretrained(weights)
    else:
        save_file(weights_of(model), weights / "model.safetensors")
        text = {"model_type": name, "num_channels": 3, "image_height": size, "image_width": size, "num_labels": classes}
        if fields:
            text |= {"model_type": "vit", "architectures": ["ViTForFields"], "image_width": model.size[1],
                     "hidden_size": shape["embed"], "intermediate_size": shape["ffn"], "patch_size": shape["patch"],
                     "num_hidden_layers": shape["layers"], "num_attention_heads": shape["heads"]}
        (weights / "config.json").write_text(json.dumps(text))
    before = load_file(weights / "model.safetensors")
    runs = Runs(kintsugi, here, config, shape, options.dtype)
    if fields:
        runs.run("predict", weights, "x.npy", "--output", "logits.npy", "--dtype", options.dtype)
    else:
        runs.run("classify", weights, "x.npy", "--output", "logits.npy", "--show", 0, "--dtype", options.dtype)
    after = runs.trained("one", 1, 1.0, 0.0)
    later = runs.trained("more", options.steps, options.rate, 0.9) if options.steps else {}
    found = Results(np.load(here / "logits.npy").astype(np.float64),
                    {k: v.double() - after[k].double() for k, v in before.items() if v.is_floating_point()},
                    running_of(after.items()), running_of(later.items()))
    wanted = torch_results(model, x, y, options, here)
    own = [0.0] * 4
    if options.dtype == "fp32":
        own = differences(wanted, torch_results(model.double(), x.double(), y.double() if fields else y, options, here))
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
        Config(name, options.size or NETWORKS[name][1], 10, 8, options.seed) for name in options.names]
    columns = f"{'logits':>10}{'gradients':>10}{'running':>10}{'after ' + str(options.steps):>10}"
    print(f"{'network':14} {'size':>4} {'batch':>5} {'classes':>7}{columns}; PyTorch and its fp64{columns}")
    for config in configs:
        with tempfile.TemporaryDirectory() as folder:
            found, own = one(config, str(pathlib.Path(options.kintsugi).resolve()), pathlib.Path(folder), options)
        # Logits are stored in fp32.
        allowed = [max(limit, 2 * error) for limit, error in
                   zip((max(limits[0], 2e-7), limits[1], limits[2], limits[2]), own)]
        beyond = [x > limit for x, limit in zip(found, allowed)]
        failed |= any(beyond)
        marked = "".join(f"{x:9.1e}{'!' if b else ' '}" for x, b in zip(found, beyond))
        print(f"{config.name:14} {config.size:4} {config.batch:5} {config.classes:7} {marked}{'':22}"
              + "".join(f"{x:9.1e} " for x in own), flush=True)
    sys.exit(failed)


main()
