#!/usr/bin/env python3
"""Folders of image models as transformers, timm and torchvision write them, compared with these programs.

folder_twins.py KINTSUGI [NAME ...] [--random N] [--seed N]: for each network, or N times for one of them with random
image size and number of classes, random weights and running statistics are saved by the program itself, read by
`kintsugi classify`, and the logits compared with the program's, relative to the largest. Networks that transformers has
are then trained for one step by `kintsugi train` from the folder, exported with --names transformers, loaded by
transformers and compared again with `kintsugi classify` of the run; timm's and torchvision's are imported, exported and
read again. Images are normalized as the folder says. Limit: 1e-5. Needs torch, torchvision, transformers and timm.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import timm
import torch
import torchvision
import transformers
from safetensors.torch import save_file
from timm.models import save_for_hf
from torch import nn

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet
LIMIT = 1e-5
transformers.utils.logging.disable_progress_bar()


class Hugging:
    def __init__(self, config, model):
        self.config, self.make = config, model

    def build(self, classes, size):
        config = self.config(classes, size)
        return self.make(config)

    def save(self, model, folder, classes, size):
        model.save_pretrained(folder)
        (folder / "preprocessor_config.json").write_text(json.dumps(
            {"size": {"shortest_edge": size}, "image_mean": MEAN, "image_std": DEVIATION}))

    def logits(self, model, x):
        return model(pixel_values=x).logits

    def load(self, folder):
        return self.make.from_pretrained(folder, dtype=torch.float32)


class Timm:
    def __init__(self, name, sized=False):
        self.name, self.sized = name, sized

    def build(self, classes, size):
        return timm.create_model(self.name, num_classes=classes, **({"img_size": size} if self.sized else {}))

    def save(self, model, folder, classes, size):
        model.pretrained_cfg.update(input_size=(3, size, size), mean=MEAN, std=DEVIATION)
        save_for_hf(model, folder, safe_serialization=True)

    def logits(self, model, x):
        return model(x)


class Torchvision:
    def __init__(self, name, sized=False):
        self.name, self.sized = name, sized

    def build(self, classes, size):
        make = getattr(torchvision.models, self.name)
        return make(num_classes=classes, **({"image_size": size} if self.sized else {}))

    def save(self, model, folder, classes, size):
        save_file({k: v.contiguous() for k, v in model.state_dict().items()}, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(
            {"model_type": self.name, "image_height": size, "image_width": size, "num_labels": classes,
             "image_mean": MEAN, "image_std": DEVIATION}))

    def logits(self, model, x):
        return model(x)


def hugging_resnet(**sizes):
    return Hugging(lambda classes, _: transformers.ResNetConfig(num_labels=classes, **sizes),
                   transformers.ResNetForImageClassification)


PLAIN = dict(layer_type="basic", hidden_sizes=[64, 128, 256, 512])
# Name: the network, its image size, and the sizes of random configurations.
NETWORKS = {
    "hugging_resnet18": (hugging_resnet(**PLAIN, depths=[2, 2, 2, 2]), 96, range(33, 100)),
    "hugging_resnet34": (hugging_resnet(**PLAIN, depths=[3, 4, 6, 3]), 64, range(33, 100)),
    "hugging_resnet50": (hugging_resnet(), 64, range(33, 100)),
    "hugging_resnet101": (hugging_resnet(depths=[3, 4, 23, 3]), 64, range(33, 100)),
    "hugging_convnext": (Hugging(lambda classes, _: transformers.ConvNextConfig(num_labels=classes),
                                 transformers.ConvNextForImageClassification), 64, range(32, 100, 32)),
    "hugging_vit": (Hugging(lambda classes, size: transformers.ViTConfig(
        num_labels=classes, image_size=size, hidden_size=48, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=96, patch_size=8), transformers.ViTForImageClassification), 32, range(16, 49, 8)),
    "timm_resnet18": (Timm("resnet18"), 96, range(33, 100)),
    "timm_resnet50": (Timm("resnet50"), 64, range(33, 100)),
    "timm_convnext": (Timm("convnext_tiny"), 64, range(32, 100, 32)),
    "timm_vit": (Timm("vit_tiny_patch16_224", True), 64, range(32, 97, 16)),
    "timm_deit": (Timm("deit_tiny_patch16_224", True), 64, range(32, 97, 16)),
    "torchvision_resnet18": (Torchvision("resnet18"), 32, range(33, 100)),
    "torchvision_vit": (Torchvision("vit_b_32", True), 64, range(32, 97, 32)),
}


def randomize(model):
    """Running statistics, and what is initialized with zeros, ones or very small numbers."""
    with torch.no_grad():
        for key, x in [*model.named_parameters(), *model.named_buffers()]:
            if key.endswith("running_mean") or (key.endswith("bias") and x.dim() == 1):
                x.normal_(0, 0.1)
            elif key.endswith("running_var") or x.dim() == 1:
                x.uniform_(0.5, 1.5)
        for name, layer in model.named_modules():
            if isinstance(layer, nn.Linear) and not layer.weight.any():
                layer.weight.normal_(0, 0.02)


class Runs:
    def __init__(self, kintsugi, here):
        self.kintsugi, self.here = kintsugi, here

    def run(self, *arguments):
        done = subprocess.run([self.kintsugi, *map(str, arguments)], cwd=self.here, text=True, capture_output=True)
        if done.returncode:
            sys.exit(f"kintsugi {' '.join(map(str, arguments))}: {done.stderr}")

    def logits(self, folder):
        self.run("classify", folder, "x.npy", "--output", "logits.npy", "--show", 0, "--dtype", "fp32")
        return np.load(self.here / "logits.npy").astype(np.float64)


def difference(found, network, model, x):
    model.eval()
    with torch.no_grad():
        wanted = network.logits(model, x).double().numpy()
    return np.abs(found - wanted).max() / np.abs(wanted).max()


def one(network, size, classes, seed, kintsugi, here):
    """The differences of the folder, and of what is made of it."""
    torch.manual_seed(seed)
    model = network.build(classes, size)
    randomize(model)
    folder = here / "weights"
    folder.mkdir()
    network.save(model, folder, classes, size)
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (4, 3, size, size), dtype=np.uint8)
    np.save(here / "x.npy", pixels)
    (here / "y.csv").write_text("".join(f"{i % classes}\n" for i in range(4)))
    scale = [torch.tensor(numbers).view(3, 1, 1) for numbers in (MEAN, DEVIATION)]
    x = (torch.from_numpy(pixels).float() / 255 - scale[0]) / scale[1]
    runs = Runs(kintsugi, here)
    read = difference(runs.logits("weights"), network, model, x)
    if hasattr(network, "load"):
        (here / "run.toml").write_text(
            f'[model]\nname = "./weights"\noutputs = {classes}\n[data]\ntrain = "x.npy"\ntrain_labels = "y.csv"\n[train]\nfolder = "run"\n'
            'steps = 1\nglobal_batch = 4\nlearning_rate = 1e-3\nwarmup_steps = 0\ndtype = "fp32"\n'
            'init_from = "./weights"\nevent_files = false\n')
        runs.run("train", "run.toml")
        runs.run("export", "run", "again", "--names", "transformers")
        return read, difference(runs.logits("run"), network, network.load(here / "again"), x)
    runs.run("import", "weights", "run")
    runs.run("export", "run", "again")
    return read, difference(runs.logits("again"), network, model, x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kintsugi")
    parser.add_argument("names", nargs="*", default=list(NETWORKS))
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    configs = [(name, NETWORKS[name][1], 10) for name in options.names]
    if options.random:
        names = [str(rng.choice(options.names)) for _ in range(options.random)]
        configs = [(name, int(rng.choice(NETWORKS[name][2])), int(rng.integers(2, 13))) for name in names]
    failed = False
    print(f"{'network':22} {'size':>4} {'classes':>7} {'read':>9} {'written':>9}")
    for i, (name, size, classes) in enumerate(configs):
        with tempfile.TemporaryDirectory() as folder:
            found = one(NETWORKS[name][0], size, classes, options.seed + i,
                        str(pathlib.Path(options.kintsugi).resolve()), pathlib.Path(folder))
        marked = " ".join(f"{x:9.1e}{'!' if not x <= LIMIT else ' '}" for x in found)
        failed |= any(not x <= LIMIT for x in found)
        print(f"{name:22} {size:4} {classes:7} {marked}", flush=True)
    sys.exit(failed)


main()
