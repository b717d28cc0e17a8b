#!/usr/bin/env python3
"""Times of one layer of a model of 22 billion parameters beside Korthikanti et al. 2022, table 4.

    layer_times.py KINTSUGI

A layer is half of what 48 layers take longer than 46, without the update, whose time is measured by a run of two
micro-batches: a step is m micro-batches and an update. None of these figures is in the rows of published.py.
"""

import csv
import pathlib
import subprocess
import sys
import tempfile

CLUSTER = pathlib.Path(__file__).resolve().parent.parent.parent / "clusters" / "selene.toml"

# sequence_parallel, recompute, milliseconds of the forward and the backward pass of a layer.
TABLE_4 = [
    (False, "none", 19.6),
    (True, "none", 19.0),
    (False, "full", 27.2),
    (False, "selective", 20.9),
    (True, "selective", 20.3),
]

RUN = """[model]
layers = {layers}
embed = 6144
heads = 64
vocab = 51200
dropout = 0.1
[train]
sequence = 2048
global_batch = {batch}
micro_batch = 4
dtype = "fp16"
[parallel]
tensor = 8
sequence_parallel = {sequence_parallel}
recompute = "{recompute}"
"""


def step(kintsugi, **keys):
    with tempfile.TemporaryDirectory() as folder:
        path, times = pathlib.Path(folder) / "run.toml", pathlib.Path(folder) / "times.csv"
        path.write_text(RUN.format(**keys))
        command = [kintsugi, "plan", path, "--cluster", CLUSTER, "--software", "megatron-2022", "--times", times]
        subprocess.run(command, capture_output=True, check=True)
        with open(times, newline="") as file:
            return float(next(csv.DictReader(file))["step"])


def main():
    print(f"{'sequence parallel':18} {'recompute':10} {'published':>10} {'simulated':>10} {'difference':>10}")
    for sequence_parallel, recompute, published in TABLE_4:
        keys = {"sequence_parallel": str(sequence_parallel).lower(), "recompute": recompute}
        micro_batch = [
            step(sys.argv[1], layers=layers, batch=8, **keys) - step(sys.argv[1], layers=layers, batch=4, **keys)
            for layers in (46, 48)
        ]
        ours = 1000 * (micro_batch[1] - micro_batch[0]) / 2
        print(
            f"{keys['sequence_parallel']:18} {recompute:10} {published:7.1f} ms {ours:7.1f} ms"
            f" {100 * (ours / published - 1):+9.1f}%"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
