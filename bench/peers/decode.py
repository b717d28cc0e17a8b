#!/usr/bin/env python3
"""Generation with GPT-2 124M, random weights: Kintsugi and transformers in turns, on the same threads, in one run. Prints
medians of tokens per second after the first token, their ratio, and the share of the bandwidth limit that ours reaches:
bytes of weights over the bandwidth of memory, which is measured before each start of ours (the median counts too, since it
changes on a machine that is shared; the best is printed beside it).

  bench/peers/decode.py [--rounds 5] [--length 128] [--prompt 16] [--dtypes fp32 bf16] [--prompts 1]

Python needs torch and transformers; KINTSUGI and PYTHON name other programs than build/app/kintsugi and python3."""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
THEIRS = """
import sys, time, torch
from transformers import GPT2LMHeadModel
from transformers.generation.streamers import BaseStreamer
folder, dtype, length, prompt, prompts, threads = sys.argv[1:]
torch.set_num_threads(int(threads))
model = GPT2LMHeadModel.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
ids = (torch.arange(int(prompt)) * 7 % 50257).repeat(int(prompts), 1)
def timed(n):
    start = time.perf_counter()
    with torch.no_grad():
        model.generate(ids, max_new_tokens=n, min_new_tokens=n, do_sample=False, pad_token_id=0)
    return time.perf_counter() - start
timed(4)
one = min(timed(1) for _ in range(3))
print((int(length) - 1) * int(prompts) / (timed(int(length)) - one))
"""


def make_model(folder, python):
    code = f"""
import torch
from transformers import GPT2Config, GPT2LMHeadModel
torch.manual_seed(1)
GPT2LMHeadModel(GPT2Config(bos_token_id=None, eos_token_id=None)).save_pretrained({str(folder)!r})
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
vocab = {{token: i for i, token in enumerate(alphabet)}}
merges = [(a, b) for a in alphabet for b in alphabet][: 50257 - len(vocab)]
for a, b in merges:
    vocab[a + b] = len(vocab)
tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.save({str(folder / "tokenizer.json")!r})
"""
    subprocess.run([python, "-c", code], check=True, stderr=subprocess.DEVNULL)


def ours(o, folder, dtype):
    """The rate between the first token and the last; of several prompts, whose texts come at the end, between two runs."""
    kintsugi = os.environ.get("KINTSUGI", str(ROOT / "build" / "app" / "kintsugi"))
    prompts = [word for i in range(o.prompts) for word in ("--prompt", chr(ord("a") + i) * o.prompt)]

    def run(length):
        command = [kintsugi, "generate", str(folder), "--dtype", dtype, "--length", str(length), "--temperature", "0",
                   "--threads", str(o.threads), *prompts]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            times = []
            while os.read(process.stdout.fileno(), 1 << 16):
                times.append(time.perf_counter())
        if process.returncode != 0:
            sys.exit("kintsugi failed: " + " ".join(command))
        return times

    times = run(o.length)
    if o.prompts == 1:
        return (len(times) - 3) / (times[-2] - times[1])  # the prompt comes first, the end of the line last
    start = time.perf_counter()
    run(o.length)
    whole = time.perf_counter() - start
    start = time.perf_counter()
    run(1)
    return (o.length - 1) * o.prompts / (whole - (time.perf_counter() - start))


def bandwidth(o):
    """Bytes per second that all threads read, ten times: of 512 MiB each."""
    code = f"""
import numpy, threading, time
parts = [numpy.ones(64 << 20, dtype=numpy.int64) for _ in range({o.threads})]
for _ in range(10):
    start = time.perf_counter()
    threads = [threading.Thread(target=part.max) for part in parts]
    [t.start() for t in threads], [t.join() for t in threads]
    print(len(parts) * parts[0].nbytes / (time.perf_counter() - start))
"""
    done = subprocess.run([o.python, "-c", code], capture_output=True, text=True, check=True)
    return [float(line) for line in done.stdout.split()]


def main(o):
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "gpt2"
        make_model(folder, o.python)
        (Path(work) / "theirs.py").write_text(THEIRS)
        print(f"GPT-2 124M, {o.prompts} prompts of {o.prompt} tokens, {o.length} tokens more, {o.threads} threads; medians of "
              f"{o.rounds} rounds")
        for dtype, torch_dtype, size in [("fp32", "float32", 4), ("bf16", "bfloat16", 2)]:
            if dtype not in o.dtypes:
                continue
            rates = {"kintsugi": [], "transformers": []}
            reads = []
            for _ in range(o.rounds):
                reads += bandwidth(o)
                rates["kintsugi"].append(ours(o, folder, dtype))
                done = subprocess.run([o.python, str(Path(work) / "theirs.py"), str(folder), torch_dtype, str(o.length),
                                       str(o.prompt), str(o.prompts), str(o.threads)], capture_output=True, text=True)
                if done.returncode != 0:
                    sys.exit(done.stderr[-800:])
                rates["transformers"].append(float(done.stdout.split()[-1]))
            a, b = (statistics.median(rates[who]) for who in ("kintsugi", "transformers"))
            limit = statistics.median(reads)
            weights = size * (12 * 12 * 768 * 768 + 50257 * 768)
            print(f"  {dtype}: kintsugi {a:.1f} tokens/s ({min(rates['kintsugi']):.1f} to {max(rates['kintsugi']):.1f}), "
                  f"transformers {b:.1f} ({min(rates['transformers']):.1f} to {max(rates['transformers']):.1f}): {a / b:.2f}; "
                  f"{100 * a / o.prompts * weights / limit:.0f}% of the bandwidth limit of {limit / 1e9:.1f} GB/s "
                  f"(best {max(reads) / 1e9:.1f})", flush=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in dict(rounds=5, length=128, prompt=16, prompts=1, threads=os.cpu_count()).items():
        options.add_argument("--" + name, type=int, default=value)
    options.add_argument("--dtypes", nargs="+", default=["fp32", "bf16"], choices=["fp32", "bf16"])
    options.set_defaults(python=os.environ.get("PYTHON", "python3"))
    main(options.parse_args())
