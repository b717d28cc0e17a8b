#!/usr/bin/env python3
"""Token files beside Megatron's own reader: megatron.core.datasets.indexed_dataset sees the tokens that were written.

    python3 -m venv venv && venv/bin/pip install torch numpy && venv/bin/pip install --no-deps megatron-core
    venv/bin/python bench/corpus/token_files.py build/app/kintsugi

Prepares random documents by a pipeline file, with a token per byte and an end of text, and reads the token file with
Megatron's IndexedDataset: the number of documents, and every token of each. Ends with 1 where one differs.
"""
import argparse
import json
import random
import subprocess
import sys
import tempfile
import types
from importlib.util import find_spec
from pathlib import Path


def indexed_dataset():
    """Megatron's module alone: megatron.core imports what its models need."""
    core = Path(next(iter(find_spec("megatron").submodule_search_locations))) / "core"
    package = types.ModuleType("megatron.core")
    package.__path__ = [str(core)]
    utils = types.ModuleType("megatron.core.utils")
    utils.log_single_rank = lambda *_, **__: None
    datasets = types.ModuleType("megatron.core.datasets")
    datasets.__path__ = [str(core / "datasets")]
    sys.modules.update({"megatron.core": package, "megatron.core.utils": utils, "megatron.core.datasets": datasets})
    from megatron.core.datasets.indexed_dataset import IndexedDataset
    return IndexedDataset


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kintsugi")
    parser.add_argument("--count", type=int, default=2000, help="documents")
    options = parser.parse_args()
    kintsugi = str(Path(options.kintsugi).resolve())
    random.seed(7)
    texts = ["".join(random.choice(["a", "b ", "é", "字", "\n", "12", " "]) for _ in range(random.randrange(1, 200))) + str(i)
             for i in range(options.count)]
    dataset = indexed_dataset()
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        (here / "corpus.toml").write_text('[source.texts]\npath = "texts.jsonl"\n')
        done = subprocess.run([kintsugi, "prepare", "--pipeline", "corpus.toml", "--tokenizer", "bytes", "--validation", "0",
                               "--output", "corpus"], cwd=here, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        read = dataset(str(here / "corpus/texts/train"))
        if len(read) != len(texts):
            sys.exit(f"{len(read)} documents instead of {len(texts)}")
        ends = {int(read[i][-1]) for i in range(len(texts))}
        wrong = sum(list(read[i][:-1]) != list(text.encode()) for i, text in enumerate(texts))
        tokens = sum(len(read[i]) for i in range(len(texts)))
    print(f"{len(texts)} documents, {tokens} tokens: {wrong} documents differ, end of text {sorted(ends)}")
    sys.exit(1 if wrong or len(ends) != 1 else 0)


if __name__ == "__main__":
    main()
