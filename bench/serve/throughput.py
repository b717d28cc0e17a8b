#!/usr/bin/env python3
"""Tokens per second of `kintsugi serve`: requests one after another, then all at the same time, and transformers on the
same weights in the same run, where it is installed.

    bench/serve/throughput.py build/app/kintsugi MODEL [--requests 8] [--tokens 64] [--dtype bf16]
    bench/serve/throughput.py build/app/kintsugi --make FOLDER --bpe GPT2_BPE   # random weights in the shapes of GPT-2

MODEL is a Hugging Face folder with its tokenizer. Texts are greedy, never end early, and their prompts differ from the
first token on, so that none is found in a slot. Both programs get the same prompts as token ids.
"""
import argparse
import concurrent.futures
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
import urllib.request


def make_folder(folder, bpe):
    import torch
    import transformers
    torch.manual_seed(1)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    model.to(torch.bfloat16).save_pretrained(folder)
    shutil.copy(os.path.join(bpe, "encoder.json"), os.path.join(folder, "vocab.json"))
    shutil.copy(os.path.join(bpe, "vocab.bpe"), os.path.join(folder, "merges.txt"))
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
        json.dump({"tokenizer_class": "GPT2Tokenizer"}, f)
    return folder


class Server:
    def __init__(self, binary, model, arguments):
        self.process = subprocess.Popen([binary, "serve", model, "--port", "0", "--name", "m", *arguments],
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.port = int(re.search(r":(\d+)$", line.strip()).group(1))

    def complete(self, prompt, tokens, end):
        body = {"model": "m", "prompt": prompt, "max_tokens": tokens, "temperature": 0, "logit_bias": {str(end): -100}}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        answer = json.load(urllib.request.urlopen(request, timeout=600))
        assert answer["usage"]["completion_tokens"] == tokens, answer["usage"]
        return answer["choices"][0]["text"]

    def stop(self):
        self.process.terminate()
        return self.process.wait()


def timed(work):
    begin = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begin


def measure_server(o, prompts, end):
    server = Server(o.kintsugi, o.model, ["--dtype", o.dtype, "--threads", str(o.threads), "--slots", str(o.requests)])
    server.complete([end - 1] * 4, 4, end)
    alone, single = timed(lambda: [server.complete(p, o.tokens, end) for p in prompts])
    others = [[(i + 7) % end for i in p] for p in prompts]  # nothing of them is in a slot
    with concurrent.futures.ThreadPoolExecutor(len(prompts)) as pool:
        _, together = timed(lambda: list(pool.map(lambda p: server.complete(p, o.tokens, end), others)))
        again = list(pool.map(lambda p: server.complete(p, o.tokens, end), prompts))
    same = sum(a == b for a, b in zip(alone, again))
    assert server.stop() == 0
    return single, together, same


def measure_transformers(o, prompts, end):
    import torch
    import transformers
    torch.set_num_threads(o.threads)
    dtype = {"bf16": torch.bfloat16, "fp32": torch.float32}[o.dtype]
    model = transformers.AutoModelForCausalLM.from_pretrained(o.model, dtype=dtype)
    model.eval()

    def generate(rows):
        ids = torch.tensor(rows)
        with torch.inference_mode():
            model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=o.tokens, min_new_tokens=o.tokens,
                           do_sample=False, pad_token_id=end)

    generate([prompts[0][:4]])
    _, single = timed(lambda: [generate([p]) for p in prompts])
    _, together = timed(lambda: generate(prompts))
    return single, together, transformers.__version__


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kintsugi")
    parser.add_argument("model", nargs="?")
    parser.add_argument("--make")
    parser.add_argument("--bpe")
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=32, help="tokens of each prompt")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--dtype", default="bf16")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    o = parser.parse_args()
    if o.make:
        o.model = make_folder(o.make, o.bpe)
    with open(os.path.join(o.model, "config.json")) as f:
        vocab = json.load(f)["vocab_size"]
    draw = random.Random(1)
    end = vocab - 1  # GPT-2's end of a text
    prompts = [[draw.randrange(end) for _ in range(o.prompt)] for _ in range(o.requests)]
    made = o.requests * o.tokens
    print(f"{o.requests} requests, prompts of {o.prompt} tokens, {o.tokens} generated, {o.dtype}, {o.threads} threads")

    def row(name, single, together):
        print(f"{name:28} {made / single:9.1f} tokens/s one after another {made / together:9.1f} at the same time "
              f"({single / together:.2f} times)", flush=True)

    single, together, same = measure_server(o, prompts, end)
    row("kintsugi serve", single, together)
    print(f"{same} of {o.requests} texts at the same time are those alone")
    try:
        theirs_single, theirs_together, version = measure_transformers(o, prompts, end)
    except ImportError:
        print("transformers is not installed")
        return
    row(f"transformers {version}", theirs_single, theirs_together)
    print(f"kintsugi serve at the same time: {theirs_together / together:.2f} times transformers' batch")


if __name__ == "__main__":
    sys.exit(main())
