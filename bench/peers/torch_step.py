"""The peer: training steps of GPT in PyTorch on the CPU. Prints tokens per second of each step, then the peak of memory.

python3 torch_step.py --threads 2 --batch 4 --sequence 256 [--passes 1] [--layers 12 --heads 12 --embed 768
                      --vocab 50257] [--dtype fp32 | bf16 | all_bf16] [--compile] [--steps 4]

bf16: autocast, with weights in fp32, as Kintsugi keeps masters in fp32. all_bf16: weights and optimizer state in bf16."""
import argparse
import contextlib
import resource
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, embed, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(embed), nn.LayerNorm(embed)
        self.qkv, self.out = nn.Linear(embed, 3 * embed), nn.Linear(embed, embed)
        self.up, self.down = nn.Linear(embed, 4 * embed), nn.Linear(4 * embed, embed)

    def forward(self, x):
        b, s, e = x.shape
        q, k, v = (t.view(b, s, self.heads, e // self.heads).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(e, 2))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(o.transpose(1, 2).reshape(b, s, e))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.table, self.positions = nn.Embedding(o.vocab, o.embed), nn.Embedding(o.sequence, o.embed)
        self.blocks = nn.ModuleList(Block(o.embed, o.heads) for _ in range(o.layers))
        self.norm = nn.LayerNorm(o.embed)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, labels):
        x = self.table(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.norm(x) @ self.table.weight.T
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def main(o):
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    model = GPT(o).to(torch.bfloat16 if o.dtype == "all_bf16" else torch.float32)
    step = torch.compile(model) if o.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    mixed = torch.autocast("cpu", torch.bfloat16) if o.dtype == "bf16" else contextlib.nullcontext()
    for _ in range(o.steps):
        tokens = torch.randint(o.vocab, (o.batch, o.sequence + 1))
        start = time.perf_counter()
        for part in tokens.chunk(o.passes):
            with mixed:
                loss = step(part[:, :-1], part[:, 1:]) / o.passes
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        print(f"{o.batch * o.sequence / (time.perf_counter() - start):.1f} tokens/s", flush=True)
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    for name, value in dict(threads=1, batch=4, sequence=256, passes=1, layers=12, heads=12, embed=768, vocab=50257,
                            steps=4).items():
        options.add_argument("--" + name, type=int, default=value)
    options.add_argument("--dtype", default="fp32", choices=["fp32", "bf16", "all_bf16"])
    options.add_argument("--compile", action="store_true")
    main(options.parse_args())
