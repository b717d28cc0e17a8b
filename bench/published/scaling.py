#!/usr/bin/env python3
"""How a step grows from 128 to 512 H100 with the samples per device unchanged, simulated and published.

    scaling.py KINTSUGI [--jobs N]

Source: llm-foundry@c90b9b31, scripts/train/benchmarking/README.md, "H100 80GB BF16 (Large Scale, >= 128 GPUs)". PyTorch
FSDP, amp_bf16: weights are gathered in bf16, gradients reduced in fp32. None of these rows was used for a profile or a
cluster's file. The exit code is 1 if a growth differs from the published one by more than GATE points.
"""

import argparse
import concurrent.futures
import sys

from published import plan
from rows import CLUSTERS

GATE = 7

# Layers, width, heads; samples of 2,048 tokens per device; ZeRO level; recomputation; tokens/s per device on 128, 256, 512.
MODELS = {
    "70b": (80, 8192, 64, 8, 3, "full", (1058, 1035, 1007)),
    "30b": (48, 7168, 56, 8, 3, "full", (2199, 2148, 2115)),
    "13b": (40, 5120, 40, 16, 3, "full", (5080, 4989, 4952)),
    "7b": (32, 4096, 32, 6, 3, "none", (10475, 10119, 9670)),
    "3b": (32, 2560, 20, 8, 2, "none", (23422, 22772, 21664)),
    "1b": (24, 2048, 16, 12, 2, "none", (44123, 42555, 39837)),
}
DEVICES = (128, 256, 512)
SEQUENCE = 2048


def settings(name, devices):
    layers, width, heads, samples, zero, recompute, _ = MODELS[name]
    return {
        "model": {"family": "gpt", "layers": layers, "embed": width, "heads": heads, "vocab": 50432},
        "train": {
            "sequence": SEQUENCE,
            "global_batch": samples * devices,
            "micro_batch": samples,
            "dtype": "bf16",
        },
        "parallel": {"data": devices, "zero": zero, "recompute": recompute},
    }


def simulated(kintsugi, name, devices, software):
    cluster = CLUSTERS / "dgx_h100.toml"
    table = plan(kintsugi, settings(name, devices), ["--cluster", cluster, "--software", software, "--times"])
    if isinstance(table, str):
        sys.exit(table)
    return float(table[0]["step"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kintsugi")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--software", default="pytorch-fsdp")
    args = parser.parse_args()
    wrong = 0
    print(f"{'model':6} {'128 devices':>22} {'growth to 256':>16} {'growth to 512':>16}")
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        tasks = {(m, d): pool.submit(simulated, args.kintsugi, m, d, args.software) for m in MODELS for d in DEVICES}
        for name, values in MODELS.items():
            samples, rates = values[3], values[6]
            published = [samples * SEQUENCE / rate for rate in rates]
            ours = [tasks[name, d].result() for d in DEVICES]
            text = f"{name:6} {published[0]:8.3f} s, {ours[0]:8.3f} s"
            for i in (1, 2):
                growth = [100 * (steps[i] / steps[0] - 1) for steps in (published, ours)]
                text += f" {growth[0]:+6.1f}%, {growth[1]:+5.1f}%"
                wrong += abs(growth[0] - growth[1]) > GATE
            print(text, flush=True)
    print("published, simulated")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
