#!/usr/bin/env python3
"""Damages a Hugging Face folder in some 65 ways, and gives each to every verb that reads one.

    bench/folders/bad.py [KINTSUGI] [--only TEXT] [--verbose]

A verb must end with 0, or with 1 and one line that begins with "error: [" and leave nothing behind; `import` must refuse
every folder but those that are named `fine` here. Prints what was not so, and counts; --verbose prints every answer.
The folder is made by kintsugi itself (a llama of 3 layers in several files). Needs nothing but Python.
"""

import argparse
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

WEIGHT = "model.layers.1.mlp.down_proj.weight"
RUN = """[model]
family = "llama"
layers = 3
embed = 48
heads = 6
kv_heads = 2
ffn = 96
[data]
train = "corpus/train"
[train]
folder = "made"
steps = 1
global_batch = 2
sequence = 16
"""
FINE_TUNE = """[model]
name = "./bad"
[data]
train = "corpus/train"
[train]
init_from = "./bad"
folder = "tuned"
steps = 1
global_batch = 2
sequence = 16
"""
# What a verb is called with, and the folder that it writes.
VERBS = {
    "import": ("import bad imported", "imported"),
    "evaluate": ("evaluate bad --ids ids.txt", None),
    "generate": ("generate bad --prompt the --length 4", None),
    "train": ("train tune.toml", "tuned"),
    "plan": ("plan bad", None),
    "export": ("export bad exported", "exported"),
    "show": ("show bad", None),
}


def edit_json(name, change):
    def damage(folder):
        path = folder / name
        value = json.loads(path.read_text())
        change(value)
        path.write_text(json.dumps(value))

    return damage


def config(**keys):
    def change(value):
        for key, new in keys.items():
            value.pop(key, None) if new is None else value.update({key: new})

    return edit_json("config.json", change)


def index(change):
    return edit_json("model.safetensors.index.json", lambda value: change(value["weight_map"]))


def file_of(folder, tensor=WEIGHT):
    return folder / json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"][tensor]


def tensor(change):
    """`change` gets the header and the bytes of the file that holds WEIGHT."""

    def damage(folder):
        path = file_of(folder)
        data = path.read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        header, body = json.loads(data[8 : 8 + length]), bytearray(data[8 + length :])
        change(header, body)
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(body))

    return damage


def text(name, content):
    return lambda folder: (folder / name).write_text(content)


def instead_of_part(make):
    def damage(folder):
        path = file_of(folder)
        path.unlink()
        make(path)

    return damage


def shorten(size):
    return lambda folder: os.truncate(file_of(folder), size)


def without_weights(then=lambda folder: None):
    def damage(folder):
        for path in folder.glob("model*"):
            path.unlink()
        then(folder)

    return damage


def not_finite(header, body):
    begin = header[WEIGHT]["data_offsets"][0]
    body[begin : begin + 12] = struct.pack("<3f", float("nan"), float("inf"), float("nan"))


def as_links(folder):
    """As the hub's cache keeps a folder: links to files that lie elsewhere."""
    blobs = folder.parent / "blobs"
    shutil.rmtree(blobs, ignore_errors=True)
    blobs.mkdir()
    for path in list(folder.iterdir()):
        shutil.move(path, blobs / path.name)
        path.symlink_to(os.path.relpath(blobs / path.name, folder))


def turned(header, _):
    header[WEIGHT]["shape"].reverse()


def of_type(name):
    return lambda header, _: header[WEIGHT].update(dtype=name)


def pipe_in_place_of_config(folder):
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")


def other_tokenizer_type(folder):
    path = folder / "tokenizer.json"
    value = json.loads(path.read_text())
    value["model"] = {"type": "CTC", "vocab": {}}
    path.write_text(json.dumps(value))


CONFIGS = {
    "model_type": ["mamba2", None, 3],
    "hidden_act": ["mish2"],
    "attention_bias": ["yes"],
    "rope_parameters": [{"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}],
    "quantization_config": [{"quant_method": "gptq"}],
    "num_experts": [8],
    "num_local_experts": [4],
    "sliding_window": [16],
    "partial_rotary_factor": [0.5],
    "use_mup": [True],
    "hidden_size": [50],
    "num_key_value_heads": [4],
    "num_hidden_layers": [0, 2, 4],
    "vocab_size": [-1, 3000],
    "head_dim": [7],
    "embedding_multiplier": [2.0],
    "logits_soft_cap": [30.0],
    "layer_types": [["full_attention", "linear_attention", "full_attention"]],
    "tie_word_embeddings": ["true", True],
    "new_unknown_switch": [True],
    "rms_norm_eps": [0],
    "max_position_embeddings": [10**12],
}
DAMAGE = {
    **{f"config.json: {key} = {value}": config(**{key: value}) for key, values in CONFIGS.items() for value in values},
    "config.json: empty": text("config.json", ""),
    "config.json: a list": text("config.json", "[]"),
    "config.json: 100,000 deep": text("config.json", '{"a":' * 100000 + "1" + "}" * 100000),
    "config.json: 80 MB": text("config.json", '{"a":"' + "x" * 80_000_000 + '"}'),
    "config.json: none": lambda folder: (folder / "config.json").unlink(),
    "config.json: a FIFO": pipe_in_place_of_config,
    "tensor: shape turned": tensor(turned),
    "tensor: of I64": tensor(of_type("I64")),
    "tensor: of F8_E4M3": tensor(of_type("F8_E4M3")),
    "tensor: of half its bytes": tensor(of_type("BF16")),
    "tensor: of an unknown type": tensor(of_type("Q4")),
    "tensor: another name": tensor(lambda header, _: header.update({"model.layers.1.mlp.other": header.pop(WEIGHT)})),
    "tensor: not finite": tensor(not_finite),
    "part: none": instead_of_part(lambda path: None),
    "part: a FIFO": instead_of_part(os.mkfifo),
    "part: a folder": instead_of_part(os.mkdir),
    "part: a link to nowhere": instead_of_part(lambda path: path.symlink_to("nowhere")),
    "part: 100 bytes short": lambda folder: os.truncate(file_of(folder), file_of(folder).stat().st_size - 100),
    "part: 4 bytes": shorten(4),
    "part: empty": shorten(0),
    "index: to the folder above": index(lambda map: map.update({WEIGHT: "../good/" + map[WEIGHT]})),
    "index: by a folder to that above": index(lambda map: map.update({WEIGHT: "a/../../good/" + map[WEIGHT]})),
    "index: an absolute path": index(lambda map: map.update({WEIGHT: "/etc/" + map[WEIGHT]})),
    "index: a tensor less": index(lambda map: map.pop(WEIGHT)),
    "index: a tensor more": index(lambda map: map.update({"more.weight": map[WEIGHT]})),
    "index: another file": index(lambda map: map.update({WEIGHT: map["model.embed_tokens.weight"]})),
    "index: empty": text("model.safetensors.index.json", ""),
    "index: no map": text("model.safetensors.index.json", "{}"),
    "index: none": lambda folder: (folder / "model.safetensors.index.json").unlink(),
    "weights: pickled": without_weights(lambda folder: (folder / "pytorch_model.bin").write_bytes(b"x")),
    "weights: pickled parts": without_weights(text("pytorch_model.bin.index.json", "{}")),
    "weights: none": without_weights(),
    "tokenizer: 200,000 deep": text("tokenizer.json", "[" * 200000),
    "tokenizer: empty": text("tokenizer.json", ""),
    "tokenizer: of an unknown type": other_tokenizer_type,
}
FINE = {
    "as it was made": lambda folder: None,
    "config.json: pretraining_tp = 2": config(pretraining_tp=2),  # these two change nothing in a llama
    "config.json: is_decoder = False": config(is_decoder=False),
    "links, as in the hub's cache": as_links,
    "tokenizer: none": lambda folder: (folder / "tokenizer.json").unlink(),
}


class Bench:
    def __init__(self, kintsugi, work, verbose):
        self.kintsugi, self.work, self.verbose = kintsugi, work, verbose
        self.answers = self.refused = self.findings = 0

    def run(self, line):
        return subprocess.run(
            [self.kintsugi] + line.split(), capture_output=True, text=True, errors="replace", timeout=120, cwd=self.work
        )

    def make(self):
        (self.work / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 400)
        (self.work / "ids.txt").write_text(" ".join(str(5 + i % 200) for i in range(12)) + "\n")
        (self.work / "run.toml").write_text(RUN)
        (self.work / "tune.toml").write_text(FINE_TUNE)
        for line in (
            "prepare text.txt --tokenizer bytes --output corpus",
            "train run.toml",
            "export made good --shard-size 0.04MB",
        ):
            done = self.run(line)
            if done.returncode != 0:
                sys.exit(f"kintsugi {line}: {done.stderr}")

    def finding(self, name, verb, what):
        self.findings += 1
        print(f"{name}: {verb}: {what}")

    def try_verb(self, name, verb, must_refuse):
        line, made = VERBS[verb]
        if made:
            shutil.rmtree(self.work / made, ignore_errors=True)
        try:
            done = self.run(line)
        except subprocess.TimeoutExpired:
            self.finding(name, verb, "did not end in two minutes")
            return
        self.answers += 1
        self.refused += done.returncode == 1
        errors = [line for line in done.stderr.splitlines() if line and not line.startswith(("warning: ", "note: "))]
        if self.verbose:
            print(f"{name}: {verb}: {done.returncode} {' // '.join(errors)[:300]}")
        if done.returncode not in (0, 1):
            self.finding(name, verb, f"exit {done.returncode}: {done.stderr[:300]}")
        elif done.returncode == 1:
            if len(errors) != 1 or not errors[0].startswith("error: ["):
                self.finding(name, verb, f"not one line: {errors}")
            if made and verb != "train" and (self.work / made).exists():
                self.finding(name, verb, f"left {made} behind")
        if verb == "import" and must_refuse != (done.returncode == 1):
            self.finding(name, verb, "was accepted" if must_refuse else f"was refused: {errors}")

    def try_folder(self, name, damage, must_refuse):
        bad = self.work / "bad"
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(self.work / "good", bad)
        damage(bad)
        for verb in VERBS:
            self.try_verb(name, verb, must_refuse)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kintsugi", nargs="?", default="build/app/kintsugi")
    parser.add_argument("--only", default="", help="folders whose name has this text")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(os.path.abspath(options.kintsugi), pathlib.Path(work), options.verbose)
        bench.make()
        folders = 0
        for must_refuse, cases in ((False, FINE), (True, DAMAGE)):
            for name, damage in cases.items():
                if options.only in name:
                    folders += 1
                    bench.try_folder(name, damage, must_refuse)
    print(f"{folders} folders, {bench.answers} answers, {bench.refused} refusals, {bench.findings} findings")
    return 1 if bench.findings or not folders else 0


if __name__ == "__main__":
    sys.exit(main())
