"""The peer: one training step of GPT-2 (124M) in PyTorch, eager, on the CPU. Prints tokens per second, one line a step.

python3 gpt2_torch.py THREADS STEPS BATCH SEQUENCE [compile] [bf16 | all_bf16]

bf16: autocast, with weights in fp32, as Kintsugi keeps masters in fp32. all_bf16: weights and optimizer state in bf16."""
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

LAYERS, HEADS, EMBED, VOCAB, POSITIONS = 12, 12, 768, 50257, 1024


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(EMBED), nn.LayerNorm(EMBED)
        self.qkv, self.out = nn.Linear(EMBED, 3 * EMBED), nn.Linear(EMBED, EMBED)
        self.up, self.down = nn.Linear(EMBED, 4 * EMBED), nn.Linear(4 * EMBED, EMBED)

    def forward(self, x):
        b, s, e = x.shape
        q, k, v = (t.view(b, s, HEADS, e // HEADS).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(EMBED, dim=2))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(o.transpose(1, 2).reshape(b, s, e))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.positions = nn.Embedding(VOCAB, EMBED), nn.Embedding(POSITIONS, EMBED)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(EMBED)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, labels):
        x = self.table(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.norm(x) @ self.table.weight.T
        return F.cross_entropy(logits.reshape(-1, VOCAB), labels.reshape(-1))


def main(threads, steps, batch, sequence, compiled=False, dtype="fp32"):
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = GPT2().to(torch.bfloat16 if dtype == "all_bf16" else torch.float32)
    step = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    for i in range(steps):
        tokens = torch.randint(VOCAB, (batch, sequence + 1))
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bf16"):
            loss = step(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        value = loss.item()
        print(f"{batch * sequence / (time.perf_counter() - start):.1f} tokens/s, loss {value:.3f}", flush=True)


if __name__ == "__main__":
    dtypes = [word for word in sys.argv[5:] if word.endswith("bf16")]
    main(*map(int, sys.argv[1:5]), compiled="compile" in sys.argv[5:], dtype=(dtypes + ["fp32"])[0])
