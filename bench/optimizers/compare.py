#!/usr/bin/env python3
"""Weights after steps of each optimizer, beside those of PyTorch's optimizer of that name: a small Llama of random weights,
written by transformers, trained in fp64 on one window of text in every step. Prints the largest difference of a weight
over the largest change of one.

  PYTHON bench/optimizers/compare.py [--steps 20] [--kintsugi build/app/kintsugi]

Needs torch, transformers and safetensors. PyTorch's Muon orthogonalizes in bf16; here it does so in fp64."""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

SEQUENCE, RATE, DECAY = 64, 0.01, 0.1
KEYS = {
    "adamw": {}, "adam": {}, "sgd": {}, "nesterov": {}, "adadelta": {"epsilon": 1e-6}, "adafactor": {}, "muon": {},
}


def optimizers_of(name, model):
    """PyTorch's, with decay of matrices alone, as Kintsugi has it."""
    hidden, matrices, others = [], [], []
    for key, weight in model.named_parameters():
        in_layer = key.startswith("model.layers.") and weight.dim() > 1
        (hidden if in_layer else matrices if weight.dim() > 1 else others).append(weight)
    groups = [{"params": hidden + matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    adam = dict(lr=RATE, betas=(0.9, 0.95), eps=1e-8)
    if name == "muon":
        rest = [{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
        return [torch.optim.Muon(hidden, lr=RATE, weight_decay=DECAY, momentum=0.95, adjust_lr_fn="match_rms_adamw"),
                torch.optim.AdamW(rest, **adam)]
    return [{
        "adamw": lambda: torch.optim.AdamW(groups, **adam),
        "adam": lambda: torch.optim.Adam(groups, **adam),
        "sgd": lambda: torch.optim.SGD(groups, lr=RATE, momentum=0.9),
        "nesterov": lambda: torch.optim.SGD(groups, lr=RATE, momentum=0.9, nesterov=True),
        "adadelta": lambda: torch.optim.Adadelta(groups, lr=RATE, rho=0.9, eps=1e-6),
        "adafactor": lambda: torch.optim.Adafactor(groups, lr=RATE, beta2_decay=-0.8, eps=(1e-30, 1e-3), d=1.0),
    }[name]()]


def train_theirs(name, folder, ids, steps):
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float64)
    optimizers = optimizers_of(name, model)
    for _ in range(steps):
        logits = model(ids[None, :-1]).logits
        torch.nn.functional.cross_entropy(logits[0], ids[1:]).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    return {key: weight.detach() for key, weight in model.named_parameters()}


def run(o, *arguments):
    ended = subprocess.run([o.kintsugi, *arguments], capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(ended.stderr)


def train_ours(o, name, work, folder):
    out = work / name
    lines = [f'[model]\nname = "{folder}"\n[data]\ntrain = "{work}/text/train"\n[train]\nfolder = "{out}"\ninit_from = "{folder}"\ndtype = "fp64"',
             f'steps = {o.steps}\nglobal_batch = 1\nsequence = {SEQUENCE}\nlearning_rate = {RATE}\ndecay = "constant"',
             f'warmup_steps = 0\nweight_decay = {DECAY}\nclip = 0\nevent_files = false\noptimizer = "{name}"']
    lines += [f"{key} = {value}" for key, value in KEYS[name].items()]
    (work / "run.toml").write_text("\n".join(lines) + "\n")
    run(o, "train", work / "run.toml")
    run(o, "export", out, work / (name + "_hf"))
    return load_file(work / (name + "_hf") / "model.safetensors")


def main(o):
    torch.Tensor.bfloat16 = lambda self: self  # of Muon
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        letters = "abcdefghijklmnopqrstuvwxyz .,\n"
        draw = torch.randint(len(letters), (SEQUENCE + 1,))
        text = "".join(letters[i] for i in draw.tolist())
        (work / "text.txt").write_text(text)
        run(o, "prepare", work / "text.txt", "--tokenizer", "chars", "--validation", "0", "--output", work / "text")
        vocabulary = json.loads((work / "text" / "tokenizer.json").read_text())["characters"]
        ids = torch.tensor([vocabulary.index(c) for c in text])
        config = LlamaConfig(vocab_size=len(vocabulary), hidden_size=48, intermediate_size=80, num_hidden_layers=2,
                             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=SEQUENCE,
                             tie_word_embeddings=False)
        folder = work / "model"
        LlamaForCausalLM(config).save_pretrained(folder)
        first = load_file(folder / "model.safetensors")
        for name in o.names or KEYS:
            theirs, ours = train_theirs(name, folder, ids, o.steps), train_ours(o, name, work, folder)
            moved = max((theirs[key] - first[key]).abs().max().item() for key in theirs)
            far = max((theirs[key] - ours[key].double()).abs().max().item() for key in theirs)
            print(f"{name:10} {far / moved:.1e} of {moved:.2g}, over {o.steps} steps", flush=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", help="optimizers; all if none is named")
    options.add_argument("--steps", type=int, default=20)
    options.add_argument("--kintsugi", default=str(Path(__file__).resolve().parents[2] / "build/app/kintsugi"))
    main(options.parse_args())
