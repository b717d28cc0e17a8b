#!/usr/bin/env python3
"""Simulated step times beside published measurements.

    published.py KINTSUGI ROWS.CSV [--trust A] [--only TEXT]

For each row it writes the run as a run.toml, lets `kintsugi plan --cluster` simulate it, and prints both figures with
their ratio; then, for each set, the mean, the median and the worst difference. The files in clusters/ describe the
machines; no figure belongs to a row.
"""

import argparse
import csv
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
CLUSTERS = HERE.parent.parent / "clusters"

# By the beginning of a row's name: the set, its cluster, and what its software does otherwise.
SETS = [
    ("meg21-t1", "Megatron 2021, table 1", CLUSTERS / "selene.toml", "megatron-2021"),
    ("kor22-t5", "Korthikanti 2022, table 5", CLUSTERS / "selene.toml", "megatron-2022"),
    ("kor22-530B", "Korthikanti 2022, 8 replicas", CLUSTERS / "selene.toml", "megatron-2022"),
    ("vtrain", "vTrain", HERE / "a100_4nic.toml", "megatron-2022"),
    ("dgxc", "DGXC H100", CLUSTERS / "dgx_h100.toml", "megatron-2025"),
]


def number(row, key, otherwise=1):
    text = row[key].split()[0] if row[key] else ""
    return int(text) if text else otherwise


def settings(row):
    """The run of a row as sections of a run.toml; None where this program has no such run."""
    if row["precision"] not in ("fp16", "bf16", "fp32") or "bloom" in row["id"]:
        return None
    tensor, pipe = number(row, "tp"), number(row, "pp")
    multiple = 128 * tensor  # the vocabulary is padded so that ranks have equal parts
    model = {
        "layers": number(row, "layers"),
        "embed": number(row, "hidden"),
        "heads": number(row, "heads"),
        "kv_heads": number(row, "kv_heads"),
        "ffn": number(row, "ffn"),
        "vocab": math.ceil(number(row, "vocab") / multiple) * multiple,
        "family": "gpt",
    }
    name = row["id"]
    if name.startswith("dgxc") and ("-8b-" in name or "-70b-" in name):
        model["family"] = "llama"
    elif "n15b" in name or "n340b" in name:  # Nemotron: squared ReLU, rotary positions, no biases, a head of its own
        model.update(activation="relu2", positions="rotary", bias=False, tied=False)
    elif name.startswith(("meg21", "kor22", "vtrain")):
        model["dropout"] = 0.1
    chunks = number(row, "chunks")
    recompute = {"none": "none", "full": "full", "selective-attn": "selective", "selective": "selective"}
    return {
        "model": model,
        "train": {
            "sequence": number(row, "seq"),
            "global_batch": number(row, "global_batch"),
            "micro_batch": number(row, "micro_batch"),
            "dtype": row["precision"],
        },
        "parallel": {
            "data": number(row, "dp"),
            "tensor": tensor,
            "pipe": pipe,
            "context": number(row, "cp"),
            "chunks": chunks,
            "schedule": "interleaved" if chunks > 1 else "1f1b",
            "zero": number(row, "zero", 0),
            "sequence_parallel": row["sp"] == "1" and tensor > 1,
            "recompute": recompute[row["recompute"]],
        },
    }


def toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def measured(row):
    """Seconds of a step."""
    value = float(row["measured"])
    l, h, s = number(row, "layers"), number(row, "hidden"), number(row, "seq")
    v, b, n = number(row, "vocab"), number(row, "global_batch"), number(row, "devices")
    if row["unit"] == "s_per_step":
        return value
    # Narayanan et al. 2021, section 5.1: with recomputation.
    forward = 24 * b * s * l * h * h * (1 + s / (6 * h)) + 2 * b * s * h * v
    if row["unit"] == "hw_tflops_per_device":
        return (96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h))) / (n * value * 1e12)
    if row["unit"] == "mfu_percent_of_312":
        return 3 * forward / (n * value / 100 * 312e12)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kintsugi")
    parser.add_argument("rows")
    parser.add_argument("--trust", default="A")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    found = {}
    with open(args.rows, newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["trust"] == args.trust and args.only in r["id"]]
    print(f"{'row':36} {'published':>10} {'simulated':>10} {'difference':>10}")
    for row in rows:
        kind = next((k for k in SETS if row["id"].startswith(k[0])), None)
        seconds, run = measured(row), settings(row)
        if kind is None or seconds is None or run is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path, times = pathlib.Path(folder) / "run.toml", pathlib.Path(folder) / "times.csv"
            path.write_text(
                "".join(f"[{s}]\n" + "".join(f"{k} = {toml(v)}\n" for k, v in keys.items()) for s, keys in run.items())
            )
            command = [args.kintsugi, "plan", path, "--cluster", kind[2], "--software", kind[3], "--times", times]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                print(f"{row['id']:36} {seconds:10.3f} {'':>10} {done.stderr.strip().splitlines()[-1][:150]}")
                continue
            with open(times, newline="") as file:
                simulated = float(next(csv.DictReader(file))["step"])
        difference = simulated / seconds - 1
        found.setdefault(kind[1], []).append(difference)
        print(f"{row['id']:36} {seconds:10.3f} {simulated:10.3f} {100 * difference:+9.2f}%", flush=True)
    print()
    for name, list_ in found.items():
        sizes = [abs(d) for d in list_]
        print(
            f"{name:30} {len(list_):3} rows: mean {100 * statistics.mean(sizes):5.2f}%, median"
            f" {100 * statistics.median(sizes):5.2f}%, worst {100 * max(sizes):5.2f}%, mean with its sign"
            f" {100 * statistics.mean(list_):+5.2f}%"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
