#!/usr/bin/env python3
"""Trains the same run in fp32 and in bf16, and prints how far the losses of its steps are apart: the largest difference
of one step, the mean difference, and that of means over 20 steps.

  bench/losses.py RUN.toml [--steps 500] [--set SECTION.KEY=VALUE ...]

KINTSUGI names another program than build/app/kintsugi."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def losses(o, dtype, folder):
    kintsugi = os.environ.get("KINTSUGI", str(ROOT / "build" / "app" / "kintsugi"))
    done = subprocess.run([kintsugi, "train", o.run, "--set", f"train.folder={folder}", f"train.dtype={dtype}",
                           f"train.steps={o.steps}", *o.set],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr[-800:])
    lines = [json.loads(line) for line in (Path(folder) / "metrics.jsonl").read_text().splitlines()]
    return {line["step"]: line["loss"] for line in lines if "loss" in line}


def difference(wide, narrow, name):
    """In words, of the losses of the same steps in fp32 and in another dtype."""
    apart = [n - w for w, n in zip(wide, narrow, strict=True)]
    means = [sum(apart[i:i + 20]) / len(apart[i:i + 20]) for i in range(0, len(apart), 20)]
    return (f"{len(wide)} steps, loss {wide[0]:.4f} to {wide[-1]:.4f} in fp32, {narrow[-1]:.4f} in {name}\n"
            f"apart: at most {max(map(abs, apart)):.4f} in one step, {max(map(abs, means)):.4f} over 20 steps, "
            f"{sum(apart) / len(apart):+.5f} on average")


def main(o):
    with tempfile.TemporaryDirectory() as work:
        wide, narrow = (losses(o, dtype, f"{work}/{dtype}") for dtype in ("fp32", "bf16"))
    print(difference([wide[step] for step in sorted(wide)], [narrow[step] for step in sorted(wide)], "bf16"))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("run")
    options.add_argument("--steps", type=int, default=500)
    options.add_argument("--set", nargs="*", default=[])
    main(options.parse_args())
