#!/usr/bin/env python3
"""check.py RUN...: reads the event files of each run's folder with TensorBoard's own reader, and compares every value
with metrics.jsonl. A run may have been killed and resumed. Needs: pip install tensorboard."""

import json
import math
import struct
import sys
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

TAGS = {  # tag: key of metrics.jsonl
    "loss/train": "loss",
    "loss/validation": "validation_loss",
    "train/learning_rate": "learning_rate",
    "train/gradient_norm": "gradient_norm",
    "train/tokens": "tokens",
    "speed/tokens_per_second": "tokens_per_second",
    "speed/flops_per_second": "flops_per_second",
    "speed/peak_share": "peak_share",
    "speed/seconds": "seconds",
    "memory/bytes": "memory_bytes",
}


def as_float32(value):
    """As an event keeps it; what is null was not finite."""
    return None if value is None else struct.unpack("f", struct.pack("f", value))[0]


def as_lines(sample):
    """As an event keeps a text: four spaces before each line."""
    return "    " + (sample["prompt"] + sample["text"]).replace("\n", "\n    ")


def check(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    reader = EventAccumulator(str(run), size_guidance={"scalars": 0, "tensors": 0})
    reader.Reload()
    faults = []
    domains = {key for line in lines for key in line if key.startswith("validation_loss.")}
    tags = TAGS | {"loss/" + key.replace("validation_loss.", "validation_"): key for key in sorted(domains)}
    if set(reader.Tags()["scalars"]) - set(tags):
        faults.append(f"unknown tags {sorted(set(reader.Tags()['scalars']) - set(tags))}")
    values, last_time = 0, 0.0
    for tag, key in tags.items():
        expected = [(line["step"], as_float32(line[key])) for line in lines if key in line]
        found = []
        if tag in reader.Tags()["scalars"]:
            events = reader.Scalars(tag)
            found = [(event.step, event.value if math.isfinite(event.value) else None) for event in events]
            times = [event.wall_time for event in events]
            if times != sorted(times) or times[0] < 1.6e9:
                faults.append(f"{tag}: wall times are not in order")
            last_time = max(last_time, times[-1])
        if found != expected:
            first = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), min(len(found), len(expected)))
            faults.append(f"{tag}: {len(found)} values for {len(expected)}; they differ from number {first} on:"
                          f" {found[first:first + 2]} for {expected[first:first + 2]}")
        values += len(found)
    for tag in [tag for tag in reader.Tags()["tensors"] if tag.startswith("samples/")]:
        number = int(tag.removeprefix("samples/")) - 1
        expected = [(line["step"], as_lines(line["samples"][number])) for line in lines if number < len(line.get("samples", []))]
        found = [(event.step, event.tensor_proto.string_val[0].decode()) for event in reader.Tensors(tag)]
        if found != expected:
            faults.append(f"{tag}: {len(found)} texts for {len(expected)}, or others")
        values += len(found)
    files = len(list(run.glob("events.out.tfevents.*")))
    print(f"{run}: {files} event files, {len(lines)} steps, {values} values of {len(tags)} tags, {len(faults)} faults")
    for fault in faults:
        print("  " + fault)
    return not faults


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(not all([check(Path(run)) for run in sys.argv[1:]]))
