#!/usr/bin/env python3
"""Random models of every family, trained for a step, exported and read by transformers.

    venv/bin/python bench/families/export.py build/app/kintsugi [--count 200] [--first 0] [--seed 1] [--families llama,gemma3]

What `check` says of export before the training must be what `export` does after it; of what was exported, transformers'
logits, in fp32 or fp64, must be those of `evaluate --ids` within 1e-5 of the largest (of the run and of the folder), and
`generate` must continue a text alike from the run and from the folder, and as transformers does. Half of the corpora begin
their documents with a token. Prints a line for each failure and the counts, and ends with 1 if anything failed.
"""
import argparse
import copy
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.update(TRANSFORMERS_VERBOSITY="critical", HF_HUB_DISABLE_PROGRESS_BARS="1", TQDM_DISABLE="1")

import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer, BertForMaskedLM, BertForPreTraining  # noqa: E402

FAMILIES = ["gpt", "llama", "mistral", "qwen2", "qwen3", "olmo2", "olmo3", "smollm3", "phi3", "gemma3", "gptneox", "gptj",
            "mixtral", "qwen3_moe", "olmoe", "gpt_oss", "deepseek_v3", "bert"]
WORDS = "the old baker sees a small dog behind the mill and reads of seven hills near a quiet river".split()


def toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def model_keys(r, family):
    """Keys of [model]: sizes that always fit, and now and then any other key."""
    heads, head = r.choice([1, 2, 4]), r.choice([4, 8, 12])
    keys = dict(family=family, layers=r.choice([1, 2, 3, 4, 7]), heads=heads, embed=heads * head, ffn=r.choice([16, 24, 36]),
                context=r.choice([24, 32]))
    if family not in ("gpt", "gptneox", "gptj", "bert"):
        keys["kv_heads"] = r.choice([k for k in (1, 2, 4) if heads % k == 0])
        if r.random() < 0.3:
            keys["head_dim"] = r.choice([4, 6, 8])
    if family == "gptj":
        keys["rotary_dims"] = r.choice([2, 4])
    if family in ("mixtral", "qwen3_moe", "olmoe", "gpt_oss"):
        keys["experts"] = r.choice([2, 3, 4])
        keys["experts_per_token"] = r.choice([1, 2])
    if family == "gpt_oss":
        keys["window"] = r.choice([2, 5, 20])
    if family == "deepseek_v3":
        groups, each, turned = r.choice([1, 2, 3]), r.choice([2, 4]), r.choice([2, 4, 8])
        used = r.randint(1, groups)
        keys.update(kv_heads=heads, head_dim=r.choice([4, 7]), kv_rank=r.choice([5, 12]), query_rank=r.choice([0, 9]),
                    rotary_head_dim=turned, value_head_dim=r.choice([0, 3, 12]), experts=groups * each, expert_groups=groups,
                    groups_per_token=used, experts_per_token=r.randint(1, used * each), shared_experts=r.choice([0, 1, 2]),
                    dense_layers=r.randrange(keys["layers"]), dense_ffn=r.choice([0, 20]))
    head = keys.get("rotary_head_dim", keys.get("head_dim", head))
    factors = [1.0 + i for i in range(head // 2)]
    sometimes = [
        dict(norm_epsilon=1e-3), dict(tied=True), dict(tied=False), dict(bias=True), dict(bias=False),
        dict(bias_query_key_value=True), dict(bias_output=True), dict(bias_ffn=True), dict(activation="silu"),
        dict(activation="gelu"), dict(activation="relu"), dict(gated=True), dict(norm="layer"), dict(norm="rms"),
        dict(norm_place="both"), dict(query_key_norm="head"), dict(residual="parallel"), dict(positions="rotary"),
        dict(rope_theta=777.0), dict(rope_theta_window=99.0), dict(rotary_dims=2), dict(rotary_interleaved=True),
        dict(window=5), dict(window=0), dict(window=5, window_layers=["window", "full"]),
        dict(window_layers=["window", "window", "window", "window", "window", "full"]),
        dict(rotary_layers=["rotary", "rotary", "none"]), dict(attention_scale=0.4), dict(attention_softcap=20.0),
        dict(embed_scale=2.0), dict(rope_scaling="linear", rope_factor=2.5),
        dict(rope_scaling="llama3", rope_factor=4.0, rope_original_context=16),
        dict(rope_scaling="yarn", rope_factor=2.0, rope_original_context=16),
        dict(rope_scaling="yarn", rope_factor=2.0, rope_original_context=16, rope_truncate=False, rope_magnitude=1.2),
        dict(rope_scaling="longrope", rope_original_context=16, rope_short_factors=factors, rope_long_factors=factors[::-1]),
        dict(router_normalize=False), dict(rope_factor=3.0), dict(rope_magnitude=1.1), dict(bias_head=True), dict(bias_norm=True),
        dict(vocab=320), dict(dropout=0.1), dict(attention_sinks=True), dict(gate_clamp=2.0), dict(gate_clamp=0.0),
        dict(gate_slope=1.3), dict(router_scores="sigmoid"), dict(router_scores="softmax"), dict(router_bias=True),
        dict(router_bias=False), dict(router_linear_bias=True), dict(router_scale=1.5), dict(shared_experts=1), dict(query_rank=6),
        dict(embed_norm=True), dict(kv_heads=1), dict(rotary_dims=4), dict(window=40), dict(rope_scaling="none"),
        dict(rope_scaling="yarn", rope_factor=4.0, rope_original_context=8, rope_beta_fast=8.0, rope_beta_slow=2.0),
        dict(rope_scaling="yarn", rope_factor=2.0, rope_original_context=16, rope_score_magnitude=0.7)]
    for _ in range(r.choice([0, 0, 1, 1, 2])):
        keys.update(r.choice(sometimes))
    return keys


class Bench:
    def __init__(self, program, folder):
        self.program, self.folder = os.path.abspath(program), Path(folder)
        self.run("prepare", "text.txt", "--tokenizer", "bpe:300", "--output", "plain")
        self.run("prepare", "text.txt", "--tokenizer", "plain/tokenizer.json", "--document-begin", "<|endoftext|>",
                 "--output", "begun")

    def run(self, *words, fails=False):
        done = subprocess.run([self.program, *map(str, words)], cwd=self.folder, capture_output=True, text=True, errors="replace",
                              env=dict(os.environ))
        if done.returncode != 0 and not fails:
            raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()[-400:]}")
        return done

    def one(self, r, family, number):
        keys, corpus = model_keys(r, family), r.choice(["plain", "begun"])
        path = self.folder / f"{number}.toml"
        path.write_text("[model]\n" + "".join(f"{k} = {toml(v)}\n" for k, v in keys.items()) +
                        f'[data]\ntrain = "{corpus}/train"\n' + ('mask_token = 5\n' if family == "bert" else "") +
                        f'[train]\nfolder = "run{number}"\nsteps = 2\nsequence = 16\nglobal_batch = 2\nlearning_rate = 0.05\n')
        checked = self.run("check", path.name, fails=True)
        if checked.returncode != 0:
            return "refused"  # no model at all
        why = [line for line in checked.stdout.splitlines() if line.startswith("# this model cannot be exported")]
        self.run("train", path.name)
        exported = self.run("export", f"run{number}", f"folder{number}", fails=True)
        if (exported.returncode != 0) != bool(why):
            raise RuntimeError(f"check says {why}, export {exported.stderr.strip()}")
        if why:
            return "not exported"
        self.compare(r, family, f"run{number}", self.folder / f"folder{number}")
        return "exported"

    def compare(self, r, family, run, folder):
        classes = {"bert": BertForPreTraining}
        model = classes.get(family, AutoModelForCausalLM).from_pretrained(folder, attn_implementation="eager").float().eval()
        ids = [[r.randrange(250) for _ in range(16)] for _ in range(2)]
        (self.folder / "ids.txt").write_text("".join(" ".join(map(str, row)) + "\n" for row in ids))
        with torch.no_grad():
            out = model(torch.tensor(ids))
        theirs = out.prediction_logits if family == "bert" else out.logits
        if family != "bert":
            for source in (run, folder.name):
                self.run("evaluate", source, "--ids", "ids.txt", "--dump", "dump.safetensors")
                mine = load_file(self.folder / "dump.safetensors")["logits"].reshape(theirs.shape)
                error = (mine - theirs).abs().max() / theirs.abs().max()
                if not error < 1e-5:  # some models amplify rounding: compare with their fp64
                    with torch.no_grad():
                        exact = copy.deepcopy(model).double()(torch.tensor(ids)).logits
                    error = (mine - exact).abs().max() / exact.abs().max()
                if not error < 1e-5:
                    raise RuntimeError(f"logits of {source} differ by {error:.2e} of the largest")
            words = ["--prompt", "The old baker", "--temperature", "0", "--length", "8"]
            texts = {self.run("generate", source, *words).stdout for source in (run, folder.name)}
            tokenizer = AutoTokenizer.from_pretrained(folder)
            prompt = tokenizer("The old baker", return_tensors="pt").input_ids
            made = model.generate(prompt, max_new_tokens=8, do_sample=False, pad_token_id=0)
            texts.add(tokenizer.decode(made[0], skip_special_tokens=True) + "\n")
            if len(texts) > 1:
                raise RuntimeError(f"texts differ: {texts}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first model, each drawn by its number")
    parser.add_argument("--families", default=",".join(FAMILIES))
    o = parser.parse_args()
    torch.set_num_threads(1)
    r = random.Random(o.seed)
    counts, failures = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        text = "\n\n".join(" ".join(r.choice(WORDS) for _ in range(40)) for _ in range(60))
        Path(folder, "text.txt").write_text(text)
        bench = Bench(o.program, folder)
        families = o.families.split(",")
        for number in range(o.first, o.first + o.count):
            family = families[number % len(families)]
            r = random.Random(f"{o.seed} {number}")
            try:
                result = bench.one(r, family, number)
            except Exception as error:
                failures += 1
                keys = Path(folder, f"{number}.toml").read_text().replace("\n", "; ")
                print(f"FAILED {family} {number}: {error}\n  {keys}", flush=True)
                result = "failed"
            counts[result] = counts.get(result, 0) + 1
    print(", ".join(f"{count} {result}" for result, count in sorted(counts.items())))
    sys.exit(1 if failures else 0)


main()
