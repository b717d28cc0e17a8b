#!/usr/bin/env python3
"""Compares `kintsugi evaluate --task` with lm-evaluation-harness, document by document.

    bench/tasks/harness.py build/app/kintsugi MODEL --task arc_easy --data FILE [--limit N] [--layouts "tensor=2,pipe=2"]

The harness runs its own task (its templates, its metrics) over `local-completions`, against `kintsugi serve` on the same
model; with --transformers also on transformers itself. Of each document the choices must be the same and the
log-likelihoods within 1e-5 of their size; accuracies and standard errors must be equal. Needs lm_eval[api] (PyPI), and
transformers and torch for --transformers. Nothing is downloaded.
"""
import argparse, json, math, os, pathlib, re, subprocess, sys, tempfile, time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def records(path):
    text = pathlib.Path(path).read_text()
    return json.loads(text) if text.lstrip().startswith("[") else [json.loads(line) for line in text.splitlines()]


# The columns that the harness expects, from the published files.
def arc(path):
    for r in records(path):
        q = r["question"]
        yield {"id": r["id"], "question": q["stem"], "answerKey": r["answerKey"],
               "choices": {"text": [c["text"] for c in q["choices"]], "label": [c["label"] for c in q["choices"]]}}


def openbookqa(path):
    for r in arc(path):
        yield {"question_stem": r.pop("question"), **r}


def piqa(path):
    labels = pathlib.Path(re.sub(r"\.jsonl$", "-labels.lst", str(path))).read_text().split()
    for r, label in zip(records(path), labels, strict=True):
        yield {**r, "label": int(label)}


def wikitext(path):
    for r in records(path):
        yield {"page": r.get("page") or r["text"]}


FORMS = {"wikitext": ("wikitext/wikitext", wikitext), "arc_easy": ("arc/arc_easy", arc),
         "arc_challenge": ("arc/arc_challenge", arc),
         "openbookqa": ("openbookqa/openbookqa", openbookqa), "piqa": ("piqa/piqa", piqa), "sciq": ("sciq/sciq", records)}


def harness_task(name, data, folder, limit):
    import lm_eval
    from lm_eval.tasks._yaml_loader import load_yaml
    where, convert = FORMS[name]
    config = load_yaml(pathlib.Path(lm_eval.__file__).parent / "tasks" / (where + ".yaml"))
    file = folder / f"{name}.jsonl"
    rows = list(convert(data))[:limit]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for key in ("tag", "training_split", "test_split", "dataset_name"):
        config.pop(key, None)
    config.update(task=f"local_{name}", dataset_path="json", validation_split="validation",
                  dataset_kwargs={"data_files": {"validation": str(file)}})
    return config


def run_harness(model, model_args, task, batch):
    import lm_eval
    found = lm_eval.simple_evaluate(model=model, model_args=model_args, tasks=[task], log_samples=True, batch_size=batch,
                                    bootstrap_iters=1000, cache_requests=False)
    samples = sorted(found["samples"][task["task"]], key=lambda s: s["doc_id"])
    responses = [[r[0] if isinstance(r[0], tuple) else (r[0], None) for r in s["resps"]] for s in samples]
    return found["results"][task["task"]], responses


class Server:
    def __init__(self, command, model, arguments):
        self.process = subprocess.Popen([command, "serve", model, "--port", "0", "--name", "model", *arguments],
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.url = re.search(r"http://\S+", line).group(0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def native(command, model, task, data, limit, arguments, folder):
    if limit:
        rows = records(data)[:limit]
        cut = folder / ("cut" + pathlib.Path(data).suffix)
        cut.write_text("".join(json.dumps(r) + "\n" for r in rows))
        labels = pathlib.Path(re.sub(r"\.jsonl$", "-labels.lst", str(data)))
        if labels.exists():
            (folder / "cut-labels.lst").write_text("\n".join(labels.read_text().split()[:limit]) + "\n")
        data = cut
    dump = folder / "dump.jsonl"
    begun = time.time()
    out = subprocess.run([command, "evaluate", model, "--task", task, "--data", str(data), "--dump", str(dump), *arguments],
                         check=True, text=True, stdout=subprocess.PIPE).stdout
    seconds = time.time() - begun
    found = re.findall(r"^(acc\w*|\w+_perplexity|bits_per_byte) +(\S+) ± (\S+)$", out, re.M)
    metrics = {m: (float(v), float(e)) for m, v, e in found}
    return metrics, [json.loads(line) for line in dump.read_text().splitlines()], seconds, out


def compare(what, ours, theirs):
    """The largest relative difference of log-likelihoods, and how many choices and greedy matches differ."""
    worst, choices, greedy, count = 0.0, 0, 0, 0
    for document, responses in zip(ours, theirs, strict=True):
        a, b = document["log_likelihoods"], [r[0] for r in responses]
        worst = max([worst] + [abs(x - y) / max(1, abs(y)) for x, y in zip(a, b, strict=True)])
        choices += a.index(max(a)) != b.index(max(b))
        greedy += sum(r[1] is not None and x != bool(r[1]) for x, r in zip(document["greedy"], responses, strict=True))
        count += len(a)
    print(f"{what}: {len(ours)} documents, {count} requests; log-likelihoods differ by {worst:.1e} at most, "
          f"{choices} choices and {greedy} greedy matches differ")
    return worst <= 1e-5 and choices == 0 and greedy == 0


def compare_metrics(what, ours, theirs):
    good = True
    for metric, (value, error) in ours.items():
        v, e = theirs[f"{metric},none"], theirs.get(f"{metric}_stderr,none")
        if not metric.startswith("acc"):  # of texts, the harness has no error
            e = error
        good = good and math.isclose(value, v, rel_tol=1e-5, abs_tol=5e-5) and math.isclose(error, e, abs_tol=5e-5)
        print(f"{what}: {metric} {value:.4f} ± {error:.4f}, theirs {v:.4f} ± {e:.4f}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("model")
    parser.add_argument("--task", default="arc_easy", choices=FORMS)
    parser.add_argument("--data", required=True)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--layouts", default="", help="of the native evaluation too: tensor=2,pipe=2")
    parser.add_argument("--transformers", action="store_true")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"], help="of transformers")
    o = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        task = harness_task(o.task, o.data, folder, o.limit)
        threads = ["--threads", str(o.threads)]
        with Server(o.command, o.model, threads) as server:
            import requests
            context = requests.get(server.url + "/v1/models").json()["data"][0]["max_model_len"]
            begun = time.time()
            theirs, responses = run_harness("local-completions", {
                "model": "model", "max_length": context,
                "base_url": server.url + "/v1/completions", "num_concurrent": 1, "tokenized_requests": True,
                "tokenizer_backend": "remote"}, task, o.batch)
            served = time.time() - begun
        # One token of the context is left for the answer: requests are cut at context - 1 tokens.
        metrics, ours, _, _ = native(o.command, o.model, o.task, o.data, o.limit,
                                     ["--sequence", str(context - 2), *threads], folder)
        good &= compare("harness on kintsugi serve", ours, responses)
        good &= compare_metrics("harness on kintsugi serve", metrics, theirs)
        metrics, whole, seconds, out = native(o.command, o.model, o.task, o.data, o.limit,
                                              ["--batch", str(o.batch), *threads], folder)
        print(out, end="")
        for layout in filter(None, o.layouts.split(",")):
            _, split, _, _ = native(o.command, o.model, o.task, o.data, o.limit,
                                    ["--set", *(f"parallel.{part}" for part in layout.split("+"))], folder)
            good &= compare(f"native, {layout}", split, [list(zip(d["log_likelihoods"], d["greedy"])) for d in whole])
        if o.transformers:
            import torch
            torch.set_num_threads(o.threads)
            from lm_eval.models.huggingface import HFLM
            model, took = HFLM(pretrained=o.model, dtype=o.dtype, device="cpu", add_bos_token=False, batch_size=o.batch), [0.0]
            score = model._loglikelihood_tokens

            def timed(*arguments, **named):
                begun = time.time()
                result = score(*arguments, **named)
                took[0] += time.time() - begun
                return result

            model._loglikelihood_tokens = timed
            theirs, responses = run_harness(model, None, task, o.batch)
            good &= compare("harness on transformers", whole, responses)
            good &= compare_metrics("harness on transformers", metrics, theirs)
            rate = float(re.search(r"(\S+) documents/s", out).group(1))
            print(f"documents/s, without loading the model: native {rate:.2f}, harness on transformers "
                  f"{len(whole) / took[0]:.2f}, ratio {rate * took[0] / len(whole):.2f}; harness on kintsugi serve "
                  f"{len(whole) / served:.2f}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
