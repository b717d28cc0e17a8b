#!/usr/bin/env python3
"""How far PyTorch's losses in bf16 are from its own in fp32, as bench/losses.py says it of ours: GPT on characters of a
text, from the same weights, on the same samples; by autocast (weights in fp32), and with weights and moments in bf16 too.

  PYTHON bench/peers/torch_losses.py TEXT [--steps 500] [--batch 8] [--sequence 128] [--threads 2]"""
import argparse
import contextlib
import math
import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from losses import difference  # noqa: E402
from torch_step import GPT  # noqa: E402


def rate(step, steps):
    """Warm-up over a tenth, then a cosine to a tenth."""
    warm = max(1, steps // 10)
    return min((step + 1) / warm, 0.1 + 0.45 * (1 + math.cos(math.pi * max(0, step - warm) / (steps - warm))))


def losses(o, text, vocab, dtype):
    torch.manual_seed(1)
    sizes = argparse.Namespace(layers=6, heads=6, embed=384, vocab=vocab, sequence=o.sequence)
    model = GPT(sizes).to(torch.bfloat16 if dtype == "all_bf16" else torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    mixed = torch.autocast("cpu", torch.bfloat16) if dtype == "bf16" else contextlib.nullcontext()
    samples = torch.Generator().manual_seed(2)
    seen = []
    for step in range(o.steps):
        begin = torch.randint(len(text) - o.sequence - 1, (o.batch,), generator=samples)
        tokens = torch.stack([text[i:i + o.sequence + 1] for i in begin.tolist()])
        optimizer.param_groups[0]["lr"] = 1e-3 * rate(step, o.steps)
        with mixed:
            loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seen.append(loss.item())
    return seen


def main(o):
    torch.set_num_threads(o.threads)
    text = Path(o.text).read_text(encoding="utf-8")
    ids = {c: i for i, c in enumerate(sorted(set(text)))}
    text = torch.tensor([ids[c] for c in text])
    wide = losses(o, text, len(ids), "fp32")
    print(f"PyTorch {torch.__version__}, {o.batch} x {o.sequence} characters a step")
    for dtype in ("bf16", "all_bf16"):
        print(f"{dtype}: {difference(wide, losses(o, text, len(ids), dtype), dtype)}", flush=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("text")
    for name, value in dict(steps=500, batch=8, sequence=128, threads=2).items():
        options.add_argument("--" + name, type=int, default=value)
    main(options.parse_args())
