#!/usr/bin/env python3
"""Compares `kintsugi evaluate --task core` with nanochat's evaluation of CORE, document by document.

    bench/tasks/core.py build/app/kintsugi MODEL --nanochat core_eval.py --data local_data [--limit N]

MODEL is a Hugging Face folder. `local_data` is that of llm-foundry (or eval_data of nanochat's bundle); of each task whose
file it has, the first N lines are evaluated. `core_eval.py` is nanochat's and runs on transformers. Answers must be the same,
and the mean losses of choices within 1e-5, if it returns them. Needs torch, transformers and jinja2. Nothing is downloaded.
"""
import argparse, importlib.util, json, os, pathlib, random, subprocess, sys, tempfile

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TOKENIZERS_PARALLELISM="false")

CORE = pathlib.Path(__file__).parents[2] / "tasks/core.json"
KINDS = {"query_choices": "multiple_choice", "context_options": "schema", "context_continuation": "language_modeling"}


def cut_data(data, folder, limit):
    """The tasks of CORE with a file, their records, and a group of them in `folder`."""
    tasks, records = [], {}
    for task in json.loads(CORE.read_text())["tasks"]:
        if not (data / task["file"]).exists():
            print(f"{task['name']}: no file")
            continue
        lines = (data / task["file"]).read_text().splitlines()[:limit]
        (folder / task["file"]).parent.mkdir(exist_ok=True)
        (folder / task["file"]).write_text("".join(line + "\n" for line in lines))
        records[task["name"]] = [json.loads(line) for line in lines]
        tasks.append(task)
    (folder / "group.json").write_text(json.dumps({"name": "core", "tasks": tasks}))
    return tasks, records


class Model:
    def __init__(self, path):
        import torch, transformers
        self.model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        self.max_seq_len = self.model.config.max_position_embeddings + 1  # the last token is only a label

    def __call__(self, ids):
        import torch
        # The label of the last token of a full text is not read: one position fewer.
        if ids.shape[1] == self.max_seq_len:
            logits = self.model(ids[:, :-1]).logits
            return torch.cat([logits, torch.zeros_like(logits[:, :1])], dim=1)
        return self.model(ids).logits


class Tokenizer:
    def __init__(self, path):
        import transformers
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(path)

    def get_bos_token_id(self):
        return self.tokenizer.bos_token_id

    def __call__(self, prompts, prepend):
        return [[prepend] + self.tokenizer.encode(p, add_special_tokens=False) for p in prompts]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("model")
    parser.add_argument("--nanochat", required=True)
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--limit", type=int, default=40)
    o = parser.parse_args()
    spec = importlib.util.spec_from_file_location("core_eval", o.nanochat)
    core = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)
    good, centered = True, []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tasks, records = cut_data(o.data, folder, o.limit)
        command = [o.command, "evaluate", o.model, "--task", folder / "group.json", "--data", folder, "--dump", folder / "dump.jsonl"]
        out = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
        print(out, end="")
        ours = [json.loads(line) for line in (folder / "dump.jsonl").read_text().splitlines()]
    model, tokenizer = Model(o.model), Tokenizer(o.model)
    for task in tasks:
        data, kind = records[task["name"]], KINDS[task["like"]]
        random.Random(1337).shuffle(data)
        meta = {"task_type": kind, "num_fewshot": task["shots"], "continuation_delimiter": task.get("delimiter", " ")}
        mine = [d for d in ours if d["task"] == task["name"]]
        worst, differ, right = None, 0, 0
        for i, document in enumerate(mine):
            found = core.evaluate_example(i, model, tokenizer, data, "cpu", meta)
            correct, info = found if isinstance(found, tuple) else (found, None)  # some versions return only the first
            right += correct
            if kind == "language_modeling":
                differ += document["greedy"][0] != correct
                continue
            losses = [-p / n for p, n in zip(document["log_likelihoods"], document["tokens"])]
            differ += (losses.index(min(losses)) == document["label"]) != correct
            if info is None:
                continue
            worst = max([worst or 0.0] + [abs(a - b) for a, b in zip(losses, info["scores"], strict=True)])
        centered.append((right / len(mine) - task["chance"]) / (1 - task["chance"]))
        print(f"{task['name']}: {len(mine)} documents, {differ} answers differ"
              f"{'' if worst is None else f', losses by {worst:.1e} at most'}; accuracy of {right / len(mine):.4f}", flush=True)
        good &= differ == 0 and (worst or 0) <= 2e-5 and len(mine) == len(data)  # nanochat rounds to 5 digits
    print(f"mean centered accuracy of nanochat: {sum(centered) / len(centered):.4f}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
