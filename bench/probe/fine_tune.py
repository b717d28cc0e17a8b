#!/usr/bin/env python3
"""Classification by fine-tuning: a small BERT of bytes, pre-trained on masked bytes of the texts and then trained on their labels.

    bench/probe/fine_tune.py build/app/kintsugi alloys_phases.csv [--steps 1500]

The file is FORGE's, with columns text and category. Rows are divided 80/10/10; each training run starts from the same
weights with another seed. Prints the accuracy on the validation and test rows, and that of the most frequent class.
"""
import argparse, collections, csv, json, pathlib, random, re, subprocess, tempfile

CONFIG = """
[model]
family = "bert"
layers = 3
embed = 64
heads = 4
vocab = 260
context = {length}
[data]
train = "train/train"
validation = "validate/train"
first_token = 258
separator_token = 259
[train]
folder = "masked"
sequence = {length}
global_batch = 32
learning_rate = 0.001
steps = {steps}
evaluate_every = {every}
[checkpoint]
every = {every}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", type=pathlib.Path)
    parser.add_argument("data")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=3)
    o = parser.parse_args()
    with open(o.data) as f:
        rows = [(r["text"], r["category"]) for r in csv.DictReader(f)]
    random.Random(1).shuffle(rows)
    names = sorted({label for _, label in rows})
    ends = [len(rows) * 8 // 10, len(rows) * 9 // 10, len(rows)]
    parts = dict(zip(["train", "validate", "test"], [rows[:ends[0]], rows[ends[0]:ends[1]], rows[ends[1]:]]))
    length = max(len(text.encode()) for text, _ in rows) + 2
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        def run(*arguments):
            return subprocess.run([o.command.resolve(), *map(str, arguments)], cwd=folder, check=True, text=True,
                                  stdout=subprocess.PIPE).stdout

        for part, some in parts.items():
            (folder / f"{part}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text, _ in some))
            (folder / f"{part}.csv").write_text("".join(f"{names.index(label)}\n" for _, label in some))
            run("prepare", f"{part}.jsonl", "--field", "text", "--tokenizer", "bytes", "--validation", 0, "--output", part)
        (folder / "run.toml").write_text(CONFIG.format(length=length, steps=o.steps, every=max(1, o.steps // 10)))
        run("train", "run.toml", "--set", "model.objective=masked", "data.mask_token=257")
        counts = collections.Counter(label for _, label in parts["test"])
        print(f"{len(rows)} texts, {len(names)} classes; most frequent class {max(counts.values()) / len(parts['test']):.4f}")
        for seed in range(1, o.seeds + 1):
            for start in ["masked", ""]:
                name = f"classes{seed}{start}"
                first = [f"train.init_from={start}", 'train.init_new=["head.", "pooler."]'] if start else []
                run("train", "run.toml", "--set", "model.objective=classes", f"model.outputs={len(names)}", f"train.folder={name}",
                    "data.train_labels=train.csv", "data.validation_labels=validate.csv", f"train.seed={seed}", *first)
                found = [re.search(r"top-1 +(\S+)%", run("evaluate", name, "--best", "--data", f"{part}/train", "--labels",
                                                         f"{part}.csv")).group(1) for part in ["validate", "test"]]
                print(f"seed {seed}, {'pre-trained' if start else 'from random weights'}: validation {found[0]}%, test {found[1]}%",
                      flush=True)


if __name__ == "__main__":
    main()
