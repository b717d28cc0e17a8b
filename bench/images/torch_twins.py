#!/usr/bin/env python3
"""Convolutional networks and ViT beside PyTorch, torchvision and transformers with the same weights.

torch_twins.py KINTSUGI [NAME ...]: for each network, random weights are written as safetensors, read by `kintsugi
classify` (logits) and by one step of `kintsugi train` with SGD and a learning rate of 1, whose change of the weights is
the gradient. Prints the largest difference of logits relative to the largest logit, of gradients relative to the norm of
all, and of running statistics after the step. Fails beyond 1e-5, 1e-4 and 1e-4.
"""
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
    def __init__(self, classes):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 6, 5), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, classes)

    def forward(self, x):
        pool = nn.functional.max_pool2d
        x = pool(self.conv1(x).relu(), 2)
        x = pool(self.conv2(x).relu(), 2)
        return self.fc3(self.fc2(self.fc1(x.flatten(1)).relu()).relu())


class Hugging(nn.Module):
    def __init__(self, classes, size):
        super().__init__()
        from transformers import ViTConfig, ViTForImageClassification

        self.config = ViTConfig(hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96,
                                image_size=size, patch_size=8, num_labels=classes, hidden_dropout_prob=0.0,
                                attention_probs_dropout_prob=0.0)
        self.model = ViTForImageClassification(self.config)

    def forward(self, x):
        return self.model(pixel_values=x).logits


def small_stem(model):
    """The stem of images of up to 64 pixels."""
    model.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    model.maxpool = nn.Identity()
    return model


M = torchvision.models
NETWORKS = {
    "lenet": (lambda: LeNet(10), 32, {}),
    "alexnet": (lambda: M.alexnet(num_classes=10, dropout=0.0), 64, {}),
    "vgg11": (lambda: M.vgg11(num_classes=10, dropout=0.0), 32, {}),
    "vgg11_bn": (lambda: M.vgg11_bn(num_classes=10, dropout=0.0), 64, {}),
    "resnet18": (lambda: small_stem(M.resnet18(num_classes=10)), 32, {}),
    "resnet50": (lambda: M.resnet50(num_classes=10), 96, {}),
    "convnext_tiny": (lambda: M.convnext_tiny(num_classes=10, stochastic_depth_prob=0.0, layer_scale=0.5), 64, {}),
    "vit": (lambda: Hugging(10, 32), 32, {}),
}
BATCH = 8


def weights_of(model):
    state = model.model.state_dict() if isinstance(model, Hugging) else model.state_dict()
    return {name: x.clone().contiguous() for name, x in state.items()}


def main():
    kintsugi = str(pathlib.Path(sys.argv[1]).resolve())
    names = sys.argv[2:] or list(NETWORKS)
    failed = False
    print(f"{'network':14} {'logits':>9} {'gradients':>9} {'running':>9}")
    for name in names:
        make, size, _ = NETWORKS[name]
        torch.manual_seed(7)
        model = make().train()
        rng = np.random.default_rng(3)
        pixels = rng.integers(0, 256, (BATCH, 3, size, size), dtype=np.uint8)
        labels = rng.permutation(np.arange(BATCH) % 10).astype(np.int64)
        x = torch.from_numpy(pixels).float() / 127.5 - 1
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            np.save(here / "x.npy", pixels)
            (here / "y.csv").write_text("".join(f"{c}\n" for c in labels))
            weights = here / "weights"
            weights.mkdir()
            before = weights_of(model)
            save_file(before, weights / "model.safetensors")
            if isinstance(model, Hugging):
                model.model.save_pretrained(weights)
                shape = dict(layers=3, embed=48, heads=4, ffn=96, patch=8)
            else:
                (weights / "config.json").write_text(json.dumps(
                    {"model_type": name, "num_channels": 3, "image_height": size, "image_width": size,
                     "num_labels": 10}))
                shape = {}

            def run(*arguments):
                done = subprocess.run([kintsugi, *map(str, arguments)], cwd=here, text=True, capture_output=True)
                if done.returncode:
                    sys.exit(f"{name}: kintsugi {arguments[0]}: {done.stderr}")
                return done.stdout

            run("classify", weights, "x.npy", "--output", "logits.npy", "--show", 0)
            (here / "run.toml").write_text(
                f'[model]\nfamily = "{name}"\noutputs = 10\n' + "".join(f"{k} = {v}\n" for k, v in shape.items())
                + f'[data]\ntrain = "x.npy"\ntrain_labels = "y.csv"\n[train]\nfolder = "run"\nsteps = 1\n'
                f'global_batch = {BATCH}\nmicro_batch = {BATCH}\noptimizer = "sgd"\nlearning_rate = 1.0\n'
                'decay = "constant"\nwarmup_steps = 0\nmomentum = 0.0\nweight_decay = 0.0\nclip = 0.0\n'
                f'init_from = "{weights}"\nevent_files = false\n')
            run("train", "run.toml")
            run("export", "run", "after")
            model.eval()
            with torch.no_grad():
                want = model(x).numpy()
            got = np.load(here / "logits.npy")
            logits = float(np.abs(got - want).max() / np.abs(want).max())

            model.train()
            nn.functional.cross_entropy(model(x), torch.from_numpy(labels)).backward()
            after = load_file(here / "after" / "model.safetensors")
            inner = model.model if isinstance(model, Hugging) else model
            norm = torch.sqrt(sum((p.grad.double() ** 2).sum() for p in inner.parameters())).item()
            if isinstance(model, Hugging):  # names on disk are not those in memory
                before = load_file(weights / "model.safetensors")
                for p in inner.parameters():
                    p.data = p.grad.clone()
                inner.save_pretrained(here / "gradients")
                wanted = load_file(here / "gradients" / "model.safetensors")
            else:
                wanted = {k: p.grad for k, p in inner.named_parameters()}
            gradients = max(((before[k] - after[k]) - g).abs().max().item() / norm for k, g in wanted.items())
            running = max([((after[k] - b).abs() / (b.abs() + 1e-3)).max().item() for k, b in inner.named_buffers()
                           if k.endswith(("running_mean", "running_var"))], default=0.0)
        failed |= logits > 1e-5 or gradients > 1e-4 or running > 1e-4
        print(f"{name:14} {logits:9.1e} {gradients:9.1e} {running:9.1e}", flush=True)
    sys.exit(failed)


main()
