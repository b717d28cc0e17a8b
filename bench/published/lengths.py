#!/usr/bin/env python3
"""Which lengths of a sequence run out of memory, beside what Argonne's users of four nodes of eight A100 of 40 GB found.

    lengths.py KINTSUGI

The first rows are the table of Megatron-DeepSpeed's page on long sequences (examples_deepspeed/deepspeed4science/
megatron_long_seq_support/README.md of microsoft/Megatron-DeepSpeed): 30 billion parameters over 32 ranks. The old program
kept all activations, and each rank those outside of products whole; the new one splits them and the table of positions,
and computes activations again. The last rows are the table of S. Foreman, "Loooooooong Sequence Lengths" (2023): 25 billion
parameters with the new program and ZeRO-Offload. Sizes of the models: ALCF/model.sh of the same studies.
Those programs keep gradients for the whole step; ours does with two micro-batches, and needs less with one.
The exit code is 1 where ours differs.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

SELENE = pathlib.Path(__file__).resolve().parent.parent.parent / "clusters" / "selene.toml"

# name, embed, keys of [parallel], lengths in 1,024 tokens that ran, and that did not.
OLD = 'recompute = "none"'
NEW = 'recompute = "full"\nsequence_parallel = true\nrules = ["position -> tensor"]'
TABLE = [
    ("30B, old", 6144, OLD, [2, 4], [8, 16, 32, 64, 128, 256]),
    ("30B, new", 6144, NEW, [2, 4, 8, 16, 32, 64, 128, 256], []),
    ("25B, offload", 5760, NEW + '\noffload = "optimizer"', [128, 192, 360, 400, 420], []),
]

RUN = """[model]
layers = 64
embed = {embed}
heads = 64
vocab = 50304
context = {length}
[train]
sequence = {length}
global_batch = 2
micro_batch = 1
dtype = "bf16"
[parallel]
device = "cuda"
ranks = 32
tensor = 32
{parallel}
"""


def memory_of(kintsugi, **keys):
    """Of a rank, in GiB, and whether it fits."""
    with tempfile.TemporaryDirectory() as folder:
        run, cluster = pathlib.Path(folder) / "run.toml", pathlib.Path(folder) / "cluster.toml"
        run.write_text(RUN.format(**keys))
        cluster.write_text(re.sub(r'(?m)^memory = "80 GiB"', 'memory = "40 GiB"', SELENE.read_text()))
        command = [kintsugi, "plan", run, "--cluster", cluster]
        text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    line = re.search(r"(?m)^ +memory +([\d.]+) ([GT])iB of 40.0 GiB(.*)$", text)
    return float(line[1]) * {"G": 1, "T": 1024}[line[2]], "does not fit" not in line[3]


def main():
    wrong = 0
    print(f"{'model':14} {'tokens':>7} {'published':13} {'planned':>9}")
    for name, embed, parallel, ran, failed in TABLE:
        for length in sorted(ran + failed):
            gib, fits = memory_of(sys.argv[1], embed=embed, parallel=parallel, length=1024 * length)
            published = "runs" if length in ran else "out of memory"
            verdict = "" if fits == (length in ran) else "  differs"
            wrong += verdict != ""
            print(f"{name:14} {length:6}k {published:13} {gib:5.1f} GiB{verdict}", flush=True)
    print(f"{wrong} differ")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
