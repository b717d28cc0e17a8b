#!/usr/bin/env python3
"""The peer: a GPT-2 in PyTorch as its users write it today (compiled, fused AdamW, bf16 by autocast, the attention that
PyTorch chooses or, with --flash, its flash attention), on random tokens. Prints tokens/s of all steps after the warm-up,
and the peak of the memory.

torch_gpt2.py [--layers 12 --embed 768 --heads 12] [--batch 64 --micro 32 --sequence 1024 --vocab 50304] [--steps 20]
[--flash] [--eager]"""
import argparse
import contextlib
import time

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn import functional as F

p = argparse.ArgumentParser()
for name, default in dict(layers=12, embed=768, heads=12, batch=64, micro=32, sequence=1024, vocab=50304, steps=20,
                          warmup=5).items():
    p.add_argument(f"--{name}", type=int, default=default)
p.add_argument("--eager", action="store_true")
p.add_argument("--flash", action="store_true")
a = p.parse_args()
torch.manual_seed(1)
torch.set_float32_matmul_precision("high")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        e = a.embed
        self.n1, self.n2 = nn.LayerNorm(e), nn.LayerNorm(e)
        self.qkv, self.out = nn.Linear(e, 3 * e), nn.Linear(e, e)
        self.up, self.down = nn.Linear(e, 4 * e), nn.Linear(4 * e, e)

    def forward(self, x):
        b, t, e = x.shape
        q, k, v = (z.view(b, t, a.heads, -1).transpose(1, 2) for z in self.qkv(self.n1(x)).split(e, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, e)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(a.vocab, a.embed), nn.Embedding(a.sequence, a.embed)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(a.layers)), nn.LayerNorm(a.embed)
        self.head = nn.Linear(a.embed, a.vocab, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x, y):
        h = self.tokens(x) + self.positions(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            h = block(h)
        return F.cross_entropy(self.head(self.norm(h)).view(-1, a.vocab), y.view(-1))


model = Model().cuda()
count = sum(w.numel() for w in model.parameters())
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, fused=True)
run = model if a.eager else torch.compile(model)


def attention():
    return sdpa_kernel(SDPBackend.FLASH_ATTENTION) if a.flash else contextlib.nullcontext()


for step in range(a.steps + a.warmup):
    if step == a.warmup:  # from here on nothing waits for the device, as in a run that prints its loss now and then
        torch.cuda.synchronize()
        begin = time.perf_counter()
    tokens = torch.randint(a.vocab - 47, (a.batch, a.sequence + 1)).pin_memory().cuda(non_blocking=True)
    for i in range(0, a.batch, a.micro):
        piece = tokens[i:i + a.micro]
        with torch.autocast("cuda", torch.bfloat16), attention():
            loss = run(piece[:, :-1].contiguous(), piece[:, 1:].contiguous()) * (a.micro / a.batch)
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
torch.cuda.synchronize()
step = (time.perf_counter() - begin) / a.steps
rate = a.batch * a.sequence / step
flops = rate * (6 * count + 12 * a.layers * a.embed * a.sequence)
how = ("eager" if a.eager else "compiled") + (", flash attention" if a.flash else "")
print(f"PyTorch {torch.__version__}, {how}: {count:,} parameters, {step * 1e3:.1f} ms, {rate:,.0f} tokens/s, "
      f"{flops / 1e12:.0f} TFLOP/s, {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
