#!/usr/bin/env python3
"""Steps of supervised fine-tuning, of all weights and of adapters, of a Llama of about 100M parameters: Kintsugi on
conversations, and transformers with PEFT on as many tokens, in turns, on the same threads. Prints medians of tokens per
second, and ours in our best dtype over theirs in its best.

    python3 -m venv venv && venv/bin/pip install torch transformers safetensors peft
    venv/bin/python bench/peft/step.py build/app/kintsugi

The first step of each does not count. Theirs in bf16 is autocast with fp32 weights, all_bf16 has bf16 weights; both use
PyTorch's fused AdamW and scaled_dot_product_attention. Adapters are of rank 8 on all linear layers of the blocks. A dtype of
theirs whose first step takes twice as long as that of fp32 ends after the second.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.update(TRANSFORMERS_VERBOSITY="critical", HF_HUB_DISABLE_PROGRESS_BARS="1", TQDM_DISABLE="1")

ROOT = Path(__file__).resolve().parents[2]
SIZES = dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, num_key_value_heads=12, intermediate_size=2048,
             vocab_size=8192, max_position_embeddings=512, tie_word_embeddings=False)
DTYPES = {"kintsugi": ["fp32", "bf16"], "peft": ["fp32", "bf16", "all_bf16"]}


def theirs(o):
    """In a process of its own: prints the seconds of each step."""
    import contextlib

    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    dtype = torch.bfloat16 if o.dtype == "all_bf16" else torch.float32
    model = AutoModelForCausalLM.from_pretrained(o.base, dtype=dtype, attn_implementation="sdpa")
    if o.method == "lora":
        model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"))
    model.train()
    weights = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=1e-4, weight_decay=0.1, fused=True)
    mixed = torch.autocast("cpu", torch.bfloat16) if o.dtype == "bf16" else contextlib.nullcontext()
    for step in range(o.steps):
        tokens = torch.randint(SIZES["vocab_size"], (o.batch, o.sequence))
        start = time.perf_counter()
        with mixed:
            loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        seconds = time.perf_counter() - start
        print(f"seconds {seconds:.4f}", flush=True)
        if step == 1 and o.limit > 0 and seconds > o.limit:
            break


def seconds_of(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-800:]}{done.stderr[-800:]}")
    return done.stdout


def ours(o, work, method, dtype, round_):
    """Seconds of the steps of a run."""
    folder = work / f"{method}_{dtype}_{round_}"
    run = work / "run.toml"
    run.write_text(f'''[model]
name = "{work}/base"
[data]
train = "{work}/chats.jsonl"
tokenizer = "{work}/corpus/tokenizer.json"
chat_template = "none"
[train]
init_from = "{work}/base"
folder = "{folder}"
steps = {o.steps}
global_batch = {o.batch}
sequence = {o.sequence}
dtype = "{dtype}"
learning_rate = 1e-4
[parallel]
device = "cpu"
threads = {o.threads}
''' + ("[lora]\nrank = 8\n" if method == "lora" else ""))
    seconds_of([o.kintsugi, "train", str(run)])
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line["seconds"] for line in lines]


def prepare(o, work):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("llama", head_dim=64, **SIZES))
    print(f"a Llama of {sum(p.numel() for p in model.parameters()) / 1e6:.1f}M parameters, {o.threads} threads, "
          f"{o.batch} samples of {o.sequence} tokens, {o.rounds} rounds of {o.steps - 1} steps", flush=True)
    model.save_pretrained(work / "base")
    text = subprocess.run([ROOT / "examples" / "write_text.sh", "4000"], capture_output=True, text=True, check=True).stdout
    (work / "text.txt").write_text(text)
    seconds_of([o.kintsugi, "prepare", str(work / "text.txt"), "--tokenizer", "bpe:512", "--output", str(work / "corpus")])
    words = text.split()
    with open(work / "chats.jsonl", "w") as to:
        for i in range(0, len(words) - 60, 60):
            to.write(json.dumps({"prompt": words[i], "answer": " ".join(words[i + 1:i + 60])}) + "\n")


def main(o):
    o.kintsugi = str(Path(o.kintsugi).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        prepare(o, work)
        for method in o.methods:
            seen = {}
            for round_ in range(o.rounds):
                fp32 = 0.0
                for who, dtypes in DTYPES.items():
                    for dtype in dtypes:
                        if who == "kintsugi":
                            seconds = ours(o, work, method, dtype, round_)
                        else:
                            text = seconds_of([sys.executable, __file__, "--theirs", "--base", str(work / "base"), "--method",
                                               method, "--dtype", dtype, "--steps", str(o.steps), "--batch", str(o.batch),
                                               "--sequence", str(o.sequence), "--threads", str(o.threads), "--limit",
                                               str(2 * fp32), o.kintsugi])
                            seconds = [float(s) for s in re.findall(r"seconds ([\d.]+)", text)]
                            fp32 = seconds[1] if dtype == "fp32" else fp32
                        seen.setdefault((who, dtype), []).extend(seconds[1:])
            rates = {}
            for (who, dtype), seconds in seen.items():
                rates[who, dtype] = o.batch * o.sequence / statistics.median(seconds)
                print(f"  {method:<5} {who:<9} {dtype:<9} {rates[who, dtype]:8.1f} tokens/s, {statistics.median(seconds):.3f} s"
                      f" a step ({min(seconds):.3f} to {max(seconds):.3f})", flush=True)
            best = {who: max(rate for (other, _), rate in rates.items() if other == who) for who in DTYPES}
            print(f"  {method}: ours over theirs, best dtype of each: {best['kintsugi'] / best['peft']:.2f}", flush=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("kintsugi")
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--steps", type=int, default=4)
    options.add_argument("--batch", type=int, default=4)
    options.add_argument("--sequence", type=int, default=256)
    options.add_argument("--threads", type=int, default=os.cpu_count())
    options.add_argument("--methods", nargs="+", default=["sft", "lora"], choices=["sft", "lora"])
    for hidden in ("--base", "--method", "--dtype"):
        options.add_argument(hidden, help=argparse.SUPPRESS)
    options.add_argument("--limit", type=float, default=0, help=argparse.SUPPRESS)
    options.add_argument("--theirs", action="store_true", help=argparse.SUPPRESS)
    parsed = options.parse_args()
    theirs(parsed) if parsed.theirs else main(parsed)
