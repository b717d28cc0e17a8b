#!/usr/bin/env python3
"""Training steps of GPT: Kintsugi and PyTorch, eager and compiled, in turns, on the same threads, in one run. Prints
medians of tokens per second and peaks of memory, and for each shape ours in our best dtype over PyTorch's in its best.

  bench/peers/step.py [--rounds 5] [--steps 4] [--shapes 4x256 1x1024 baby 1x8192] [--dtypes fp32 bf16]

A round starts each program once; the first step, which touches memory or compiles, does not count. PyTorch's bf16 is
autocast, with weights in fp32 as ours has masters; all_bf16 has weights and moments in bf16 too. Programs in
KINTSUGI and PYTHON are used instead of build/app/kintsugi and python3; if that has no torch, it is installed from PyPI
into build/peers, about 1 GB."""
import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GPT2 = dict(layers=12, heads=12, embed=768, vocab=50257)
SHAPES = {
    "4x256": dict(GPT2, batch=4, sequence=256, passes=1),
    "1x1024": dict(GPT2, batch=1, sequence=1024, passes=1),
    "1x8192": dict(GPT2, batch=1, sequence=8192, passes=1),
    "baby": dict(layers=6, heads=6, embed=384, vocab=65, batch=64, sequence=256, passes=1),
    "baby8": dict(layers=6, heads=6, embed=384, vocab=65, batch=64, sequence=256, passes=8),  # in passes of 8 samples
}


def python_with_torch():
    def has_torch(python):
        return subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0

    python = os.environ.get("PYTHON", "python3")
    if has_torch(python):
        return python
    folder = ROOT / "build" / "peers"
    python = str(folder / "bin" / "python3")
    if not Path(python).exists() or not has_torch(python):
        print("installing PyTorch into build/peers", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "torch", "numpy"], check=True)
    return python


def peak_of(command):
    """The output of a program, and its peak of memory in MiB, by the system's count."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
        text = done.stdout if done.returncode == 0 else b"failed: " + done.stderr[-800:]
        with os.fdopen(write, "wb") as to:
            to.write(f"{peak}\n".encode() + text)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as source:
        peak, text = source.read().split("\n", 1)
    os.waitpid(child, 0)
    if text.startswith("failed"):
        sys.exit(f"{command[0]} {text}")
    return text, int(peak)


def ours(o, work, shape, dtype):
    sizes = "\n".join(f"{key} = {shape[key]}" for key in ("layers", "heads", "embed", "vocab"))
    run = work / "run.toml"
    run.write_text(f'''[model]
family = "gpt"
context = {shape["sequence"]}
{sizes}
[train]
global_batch = {shape["batch"]}
micro_batch = {shape["batch"] // shape["passes"]}
sequence = {shape["sequence"]}
dtype = "{dtype}"
[parallel]
threads = {o.threads}
''')
    kintsugi = os.environ.get("KINTSUGI", str(ROOT / "build" / "app" / "kintsugi"))
    text, peak = peak_of([kintsugi, "profile", str(run), "--warm-up", "1", "--steps", str(o.steps - 1)])
    seconds = float(re.search(r"([\d.]+) ms a step", text)[1]) / 1000
    return shape["batch"] * shape["sequence"] / seconds, peak


def theirs(o, python, shape, dtype, compiled):
    sizes = [word for key, value in shape.items() for word in ("--" + key, str(value))]
    text, peak = peak_of([python, str(ROOT / "bench" / "peers" / "torch_step.py"), *sizes, "--threads", str(o.threads),
                          "--steps", str(o.steps), "--dtype", dtype, *(["--compile"] if compiled else [])])
    rates = [float(line.split()[0]) for line in text.splitlines() if line.endswith("tokens/s")]
    return len(rates[1:]) / sum(1 / rate for rate in rates[1:]), peak


def main(o):
    python = python_with_torch()
    version = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    print(f"{o.threads} threads, PyTorch {version.stdout.strip()}, medians of {o.rounds} rounds, {o.steps - 1} steps each")
    with tempfile.TemporaryDirectory() as work:
        for name in o.shapes:
            shape = SHAPES[name]
            contenders = {}
            for dtype in o.dtypes:
                contenders[f"kintsugi {dtype}"] = lambda d=dtype: ours(o, Path(work), shape, d)
                for d in [dtype] + (["all_bf16"] if dtype == "bf16" else []):
                    contenders[f"pytorch {d}"] = lambda d=d: theirs(o, python, shape, d, False)
                    contenders[f"pytorch {d} compiled"] = lambda d=d: theirs(o, python, shape, d, True)
            seen = {contender: [] for contender in contenders}
            for _ in range(o.rounds):
                for contender, run in contenders.items():
                    seen[contender].append(run())
            print(f"\n{name}: {shape}")
            speed = {}
            for contender, rounds in seen.items():
                rates = sorted(rate for rate, _ in rounds)
                speed[contender] = statistics.median(rates)
                peak = statistics.median(peak for _, peak in rounds)
                print(f"  {contender:<26} {speed[contender]:9.1f} tokens/s ({rates[0]:.1f} to {rates[-1]:.1f})"
                      f"  {peak:7.0f} MiB", flush=True)

            def best(who, dtypes):
                return max(rate for contender, rate in speed.items() if contender.startswith(who) and
                           contender.split()[1] in dtypes)

            print(f"  ours over PyTorch, best dtype of each: {best('kintsugi', o.dtypes) / best('pytorch', o.dtypes):.2f}")
            if "bf16" in o.dtypes:
                print(f"  the same with all_bf16 among its dtypes: "
                      f"{best('kintsugi', o.dtypes) / best('pytorch', o.dtypes + ['all_bf16']):.2f}", flush=True)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--steps", type=int, default=4)
    options.add_argument("--threads", type=int, default=os.cpu_count())
    options.add_argument("--shapes", nargs="+", default=["4x256", "1x1024", "baby", "1x8192"], choices=list(SHAPES))
    options.add_argument("--dtypes", nargs="+", default=["fp32", "bf16"], choices=["fp32", "bf16"])
    main(options.parse_args())
