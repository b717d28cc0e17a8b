"""Rows of published measurements as runs of ours: which machine and software, and the run.toml."""

import math
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
CLUSTERS = HERE.parent.parent / "clusters"

# By the beginning of a row's name: the set, its cluster, and what its software does otherwise.
SETS = [
    ("meg21-t1", "Megatron 2021, table 1", CLUSTERS / "selene.toml", "megatron-2021"),
    ("kor22-t5", "Korthikanti 2022, table 5", CLUSTERS / "selene.toml", "megatron-2022"),
    ("kor22-530B", "Korthikanti 2022, 8 replicas", CLUSTERS / "selene.toml", "megatron-2022"),
    ("vtrain", "vTrain", HERE / "a100_4nic.toml", "megatron-deepspeed"),
    ("dgxc", "DGXC H100", CLUSTERS / "dgx_h100.toml", "megatron-2025"),
    ("bloom-0228", "BLOOM", HERE / "a100_4opa.toml", "bloom-2022-bf16"),
    ("bloom-production", "BLOOM", HERE / "a100_4opa.toml", "bloom-2022-bf16"),
    ("bloom", "BLOOM", HERE / "a100_4opa.toml", "bloom-2022"),
    ("aurora70b", "AuroraGPT-70B", CLUSTERS / "aurora.toml", "megatron-deepspeed"),
    ("mosaic-a100", "llm-foundry A100", CLUSTERS / "selene.toml", "pytorch-fsdp"),
    ("titan-t1-eager", "torchtitan, table 1", CLUSTERS / "h100_500w.toml", "torchtitan"),
    ("titan-t1-compile", "torchtitan, table 1", CLUSTERS / "h100_500w.toml", "torchtitan-compile"),
    ("mcore-ci", "Megatron's tests", CLUSTERS / "dgx_h100.toml", "megatron-2025"),
]


def set_of(row):
    """(beginning of the row's name, name of the set, cluster, software), or None."""
    found = next((s for s in SETS if row["id"].startswith(s[0])), None)
    if found is None or row["precision"] != "fp8":
        return found
    begin, name, cluster, software = found
    return begin, name + ", fp8", cluster, software + "-fp8"


def number(row, key, otherwise=1):
    text = row[key].split()[0] if row[key] else ""
    return int(text) if text.isdigit() else otherwise


def model(row):
    multiple = 128 * number(row, "tp")  # the vocabulary is padded so that ranks have equal parts
    keys = {
        "layers": number(row, "layers"),
        "embed": number(row, "hidden"),
        "heads": number(row, "heads"),
        "kv_heads": number(row, "kv_heads"),
        "ffn": number(row, "ffn"),
        "vocab": math.ceil(number(row, "vocab", 32000) / multiple) * multiple,  # AuroraGPT's is that of Llama 2
        "family": "gpt",
    }
    name = row["id"]
    if (name.startswith("dgxc") and ("-8b-" in name or "-70b-" in name)) or name.startswith(("aurora", "titan")):
        keys["family"] = "llama"
    elif "n15b" in name or "n340b" in name:  # Nemotron: squared ReLU, rotary positions, no biases, a head of its own
        keys.update(activation="relu2", positions="rotary", bias=False, tied=False)
    elif name.startswith("mcore"):  # its test has two tables of the vocabulary
        keys.update(tied=False)
    elif name.startswith(("meg21", "kor22", "vtrain")):
        keys["dropout"] = 0.1
    return keys


def stages(row):
    """How many layers each chunk has: as many in each as in all others, but for BLOOM (DeepSpeed's partition_method)."""
    layers, chunks = number(row, "layers"), number(row, "pp") * number(row, "chunks")
    if not row["id"].startswith("bloom"):
        return [layers // chunks] * chunks if layers % chunks == 0 else None
    # Each has as many units as the largest must have, the last what is left. A unit is a layer; from 27 February on the
    # embedding at the first and that at the last chunk are one each.
    counted = "embedding counted" in row["note"] or row["id"] == "bloom-production"
    units = layers + 2 * counted
    largest = math.ceil(units / chunks)
    parts = [min(largest, units - largest * i) for i in range(chunks)]
    parts[0] -= counted
    parts[-1] -= counted
    return parts


def settings(row):
    """The run of a row as sections of a run.toml; None where this program has no such run."""
    if row["precision"].split()[0] not in ("fp16", "bf16", "fp32", "fp8"):
        return None
    tensor, chunks = number(row, "tp"), number(row, "chunks")
    layers = {"stages": " ".join(map(str, stages(row)))} if stages(row) and number(row, "pp") > 1 else {}
    recompute = {"none": "none", "full": "full", "selective-attn": "selective", "selective": "selective"}
    if row["id"].startswith("titan"):  # of operations: its profile says which are kept
        recompute["selective"] = "full"
    zero = row["zero"].split()[0][:1] if row["zero"] else "0"  # "3+hpZ(node)" is 3
    return {
        "model": model(row),
        "train": {
            "sequence": number(row, "seq"),
            "global_batch": number(row, "global_batch"),
            "micro_batch": number(row, "micro_batch"),
            "dtype": row["precision"].split()[0].replace("fp8", "bf16"),  # weights and what is no product
            # NeMo: grad_reduce_in_fp32 is off. llm-foundry: mixed_precision is PURE.
            "gradient_dtype": "bf16" if row["id"].startswith(("dgxc", "mosaic")) else "fp32",
        },
        "parallel": {
            "data": number(row, "dp"),
            "tensor": tensor,
            "pipe": number(row, "pp"),
            "context": number(row, "cp"),
            "chunks": chunks,
            "schedule": "interleaved" if chunks > 1 else "1f1b",
            "zero": int(zero),
            "sequence_parallel": row["sp"] == "1" and tensor > 1,
            "recompute": recompute[row["recompute"]],
            # NeMo's distributed optimizer splits over data x context.
            "shard_context": row["id"].startswith("dgxc") and zero != "0" and number(row, "cp") > 1,
            **layers,
        },
    }


def toml(run):
    def text(value):
        if isinstance(value, bool):
            return "true" if value else "false"
        return f'"{value}"' if isinstance(value, str) else str(value)

    return "".join(f"[{s}]\n" + "".join(f"{k} = {text(v)}\n" for k, v in keys.items()) for s, keys in run.items())


def seconds(row):
    """Of a step as it was measured; None where something else was."""
    value = float(row["measured"])
    l, h, s = number(row, "layers"), number(row, "hidden"), number(row, "seq")
    v, b, n = number(row, "vocab"), number(row, "global_batch"), number(row, "devices")
    if row["unit"] == "s_per_step":
        return value
    if row["unit"] == "samples_per_s":
        return b / value
    if row["unit"] == "tokens_per_s_per_device":
        return b * s / (n * value)
    # Narayanan et al. 2021, section 5.1: with recomputation.
    forward = 24 * b * s * l * h * h * (1 + s / (6 * h)) + 2 * b * s * h * v
    if row["unit"] == "hw_tflops_per_device":
        return (96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h))) / (n * value * 1e12)
    if row["unit"] == "mfu_percent_of_312":
        return 3 * forward / (n * value / 100 * 312e12)
    return None
