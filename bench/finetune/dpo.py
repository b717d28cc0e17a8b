#!/usr/bin/env python3
"""Preferences beside TRL's loss: the loss, margin and accuracy that a run reports, against torch.

    python3 -m venv venv && venv/bin/pip install torch transformers safetensors
    venv/bin/python bench/finetune/dpo.py build/app/kintsugi

Trains a small Llama on pairs by train.method = "dpo", exports the model before and after, and computes the validation loss with
transformers in fp64 as TRL's DPOTrainer does (loss_type "sigmoid"): the log-probability of each answer is the sum over its
tokens, by the model and by the reference, and the loss is -logsigmoid(beta * (difference of log-ratios)). Prints both and
their difference, and ends with 1 where it is above 1e-6.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.update(TRANSFORMERS_VERBOSITY="critical", HF_HUB_DISABLE_PROGRESS_BARS="1", TQDM_DISABLE="1")

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402

BETA = 0.25
END = 256  # of the tokenizer of bytes


def pairs(count, seed):
    random.seed(seed)
    for _ in range(count):
        a, b = random.randrange(10), random.randrange(10)
        yield {"prompt": f"{a}+{b}=", "chosen": str(a + b), "rejected": str(random.randrange(19))}


def log_probability(model, prompt, answer):
    """The sum over the answer's tokens: bytes, then the end of text."""
    ids = torch.tensor([[*(prompt + answer).encode(), END]])
    logits = model(input_ids=ids).logits[0, :-1]
    scores = torch.log_softmax(logits, -1).gather(-1, ids[0, 1:, None])[:, 0]
    return scores[len(prompt.encode()) - 1:].sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kintsugi")
    kintsugi = str(Path(parser.parse_args().kintsugi).resolve())
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)

        def run(*words):
            done = subprocess.run([kintsugi, *words], cwd=here, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{' '.join(words)}\n{done.stderr}")

        (here / "text.txt").write_text("a text\n" * 50)
        for name, count in (("pairs", 64), ("held_out", 32)):
            (here / f"{name}.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs(count, name)))
        run("prepare", "text.txt", "--tokenizer", "bytes", "--output", "corpus")
        model = '[model]\nfamily = "llama"\nlayers = 2\nembed = 32\nheads = 4\ncontext = 64\n'
        (here / "base.toml").write_text(
            model + '[data]\ntrain = "corpus/train"\n[train]\nfolder = "base_run"\nsteps = 5\nsequence = 8\n'
            'global_batch = 2\nlearning_rate = 0.01\n[parallel]\nthreads = 1\n')
        (here / "dpo.toml").write_text(
            model + '[data]\ntrain = "pairs.jsonl"\nvalidation = "held_out.jsonl"\ntokenizer = "corpus/tokenizer.json"\n'
            'chat_template = "none"\n[train]\nmethod = "dpo"\ninit_from = "base_run"\nfolder = "dpo_run"\nsteps = 30\n'
            f'global_batch = 8\nsequence = 24\nlearning_rate = 0.003\nevaluate_batches = 0\n[dpo]\nbeta = {BETA}\n[parallel]\nthreads = 1\n')
        run("train", "base.toml")
        run("export", "base_run", "reference")
        run("train", "dpo.toml")
        run("export", "dpo_run", "tuned")
        said = json.loads((here / "dpo_run/metrics.jsonl").read_text().splitlines()[-1])

        reference, tuned = (AutoModelForCausalLM.from_pretrained(here / name, dtype=torch.float64).eval()
                            for name in ("reference", "tuned"))
        losses, margins = [], []
        with torch.no_grad():
            for pair in map(json.loads, (here / "held_out.jsonl").read_text().splitlines()):
                ratios = [log_probability(tuned, pair["prompt"], pair[which]) -
                          log_probability(reference, pair["prompt"], pair[which]) for which in ("chosen", "rejected")]
                margins.append(BETA * (ratios[0] - ratios[1]))
                losses.append(-F.logsigmoid(margins[-1]))
        there = {"validation_loss": torch.stack(losses).mean().item(),
                 "validation_reward_margin": torch.stack(margins).mean().item(),
                 "validation_accuracy": (torch.stack(margins) > 0).double().mean().item()}
    worst = 0.0
    for name, value in there.items():
        difference = abs(value - said[name])
        worst = max(worst, difference)
        print(f"{name:26} here {said[name]:.9f}  torch {value:.9f}  difference {difference:.1e}")
    if worst > 1e-6:
        sys.exit("more than 1e-6 apart")


if __name__ == "__main__":
    main()
