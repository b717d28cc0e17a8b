#!/usr/bin/env python3
"""Training steps of a mixture of experts: Kintsugi and transformers' Mixtral, in turns, on the same threads, in fp32. Prints
medians of tokens per second, and ours over the best of theirs: grouped products of PyTorch, batched, and a loop over experts.
Then the step of a dense model with the same active feed-forward width, by Kintsugi.

  bench/peers/moe_step.py [--rounds 3] [--steps 4] [--threads 2]

8 experts, 2 per token, about 100 million parameters. PYTHON must have torch and transformers; KINTSUGI is used instead of
build/app/kintsugi."""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = dict(layers=6, heads=8, kv_heads=8, embed=512, ffn=1024, vocab=16384)
EXPERTS, PER_TOKEN, BATCH, SEQUENCE = 8, 2, 4, 256

THEIRS = """
import sys, time, torch
from transformers import MixtralConfig, MixtralForCausalLM
threads, steps, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
layers, heads, kv_heads, embed, ffn, vocab, experts, per_token, batch, sequence = map(int, sys.argv[4:])
torch.set_num_threads(threads)
torch.manual_seed(1)
config = MixtralConfig(vocab_size=vocab, hidden_size=embed, intermediate_size=ffn, num_hidden_layers=layers,
                       num_attention_heads=heads, num_key_value_heads=kv_heads, num_local_experts=experts,
                       num_experts_per_tok=per_token, max_position_embeddings=sequence, sliding_window=None,
                       output_router_logits=True)
model = MixtralForCausalLM._from_config(config, attn_implementation="sdpa", experts_implementation=kind).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
for step in range(steps):
    tokens = torch.randint(0, vocab, (batch, sequence))
    begin = time.perf_counter()
    loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    if step:
        print("seconds", time.perf_counter() - begin)
print("parameters", sum(p.numel() for p in model.parameters()), "torch", torch.__version__)
"""


def ours(o, work, experts, ffn):
    keys = "\n".join(f"{key} = {value}" for key, value in dict(MODEL, ffn=ffn, experts=experts).items())
    (work / "run.toml").write_text(f'''[model]
family = "{"mixtral" if experts else "llama"}"
context = {SEQUENCE}
{keys}
[train]
global_batch = {BATCH}
micro_batch = {BATCH}
sequence = {SEQUENCE}
[parallel]
device = "cpu"
threads = {o.threads}
''')
    kintsugi = os.environ.get("KINTSUGI", str(ROOT / "build" / "app" / "kintsugi"))
    done = subprocess.run([kintsugi, "profile", str(work / "run.toml"), "--warm-up", "1", "--steps", str(o.steps - 1)],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    value, unit = re.search(r"([\d.]+) (m?s) a step", done.stdout).groups()
    return BATCH * SEQUENCE / (float(value) / (1000 if unit == "ms" else 1))


def theirs(o, kind):
    sizes = [MODEL[key] for key in ("layers", "heads", "kv_heads", "embed", "ffn", "vocab")]
    words = [o.threads, o.steps, kind, *sizes, EXPERTS, PER_TOKEN, BATCH, SEQUENCE]
    done = subprocess.run([os.environ.get("PYTHON", "python3"), "-c", THEIRS, *map(str, words)], capture_output=True,
                          text=True)
    if done.returncode:
        print(f"transformers {kind}: {done.stderr.strip().splitlines()[-1]}", flush=True)
        return 0.0
    seconds = [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("seconds")]
    return BATCH * SEQUENCE / statistics.mean(seconds)


def main(o):
    seen = {}
    with tempfile.TemporaryDirectory() as work:
        runs = {"kintsugi": lambda: ours(o, Path(work), EXPERTS, MODEL["ffn"]),
                "kintsugi, dense": lambda: ours(o, Path(work), 0, PER_TOKEN * MODEL["ffn"])}
        for kind in o.kinds:
            runs[f"transformers {kind}"] = lambda kind=kind: theirs(o, kind)
        for _ in range(o.rounds):
            for name, run in runs.items():
                seen.setdefault(name, []).append(run())
    median = {name: statistics.median(rates) for name, rates in seen.items()}
    for name, rates in seen.items():
        print(f"{name:<26} {median[name]:8.1f} tokens/s ({min(rates):.1f} to {max(rates):.1f})")
    best = max(rate for name, rate in median.items() if name.startswith("transformers"))
    print(f"ours over the best of transformers: {median['kintsugi'] / best:.2f}")
    print(f"a step with experts over the dense step: {median['kintsugi, dense'] / median['kintsugi']:.2f}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--steps", type=int, default=4)
    options.add_argument("--threads", type=int, default=os.cpu_count())
    options.add_argument("--kinds", nargs="+", default=["grouped_mm", "batched_mm", "eager"])
    main(options.parse_args())
