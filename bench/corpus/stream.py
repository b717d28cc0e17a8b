#!/usr/bin/env python3
"""A large JSONL through the corpus pipeline: rate per core, peak of memory, and counts that add up.

    python3 bench/corpus/stream.py build/app/kintsugi --texts papers.jsonl input.txt --gigabytes 10

Documents are pieces of the given texts in random order; a share of them repeats an earlier document, or repeats it with a
word more. Runs the pipeline with quality rules and exact duplicates, then with near duplicates too, with a token per byte.
A core's rate is the input's bytes over the processor time of all threads. The input is written to --scratch, with about
three times its size of output, and all is deleted. Ends with 1 where a count is wrong or a rate or the memory misses its limit.
"""
import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = {"exact": (20, ""), "near": (8, "near = 0.8\n")}  # name: (limit in MB/s per core, more of [deduplicate])
MOST_BYTES = 1 << 30


def pool_of(texts):
    """All texts as one, of printable ASCII that needs no escapes in JSON."""
    all_texts = []
    for path in texts:
        content = path.read_text(errors="replace")
        all_texts += [json.loads(line)["text"] for line in content.splitlines()] if path.suffix == ".jsonl" else [content]
    text = re.sub(r"\{\{[^}]*\}\}", "", " ".join(all_texts))
    return re.sub(" +", " ", re.sub(r'[^ -~]|["\\]', " ", text))


def write_input(pool, path, wanted):
    """Writes documents of at least `wanted` bytes; returns what it made."""
    random.seed(3)
    made = {"documents": 0, "bytes": 0, "text_bytes": 0, "repeated": 0, "changed": 0}
    recent = []
    with open(path, "w", buffering=1 << 20) as to:
        while made["bytes"] < wanted:
            kind = random.random()
            if kind < 0.06 and recent:
                text = random.choice(recent)
                if kind < 0.03:
                    made["repeated"] += 1
                else:
                    at = text.index(" ", random.randrange(len(text) // 2))
                    text = f"{text[:at]} word{made['documents']}{text[at:]}"
                    made["changed"] += 1
            else:
                parts = []
                for _ in range(6):
                    at = pool.index(" ", random.randrange(len(pool) - 2000)) + 1
                    parts.append(pool[at:pool.index(" ", at + random.randrange(400, 900))])
                text = " ".join(parts)
                if len(recent) < 2000:
                    recent.append(text)
                else:
                    recent[random.randrange(2000)] = text
            line = f'{{"text": "{text}"}}\n'
            to.write(line)
            made["documents"] += 1
            made["bytes"] += len(line)
            made["text_bytes"] += len(text)
    return made


def run_pipeline(kintsugi, scratch, more, threads):
    """Counts of the domain, processor seconds, seconds, and the peak of memory in bytes."""
    (scratch / "pipeline.toml").write_text(
        f'[source.texts]\npath = "{scratch}/input.jsonl"\n[filter]\nquality = "gopher"\n[deduplicate]\n{more}')
    out = scratch / "out"
    start = time.time()
    child = subprocess.Popen([kintsugi, "prepare", "--pipeline", str(scratch / "pipeline.toml"), "--tokenizer", "bytes",
                              "--output", str(out)] + (["--threads", str(threads)] if threads else []),
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    message = child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(message.decode()[-800:])
    counts = json.loads((out / "counts.json").read_text())
    shutil.rmtree(out)
    return counts, used.ru_utime + used.ru_stime, time.time() - start, used.ru_maxrss * 1024


def what_is_wrong(counts, made, near):
    """Whether the counts do not add up to what was made; "" if they do."""
    domain = counts["domains"]["texts"]
    reasons = {reason: count for reason, count in domain.items() if isinstance(count, dict)}
    for unit, want in (("documents", made["documents"]), ("bytes", made["text_bytes"])):
        if (got := sum(count[unit] for count in reasons.values())) != want:
            return f"{got} {unit} in all, not {want}"
    # A repeated document that a rule of quality drops is not counted as a duplicate.
    lost = sum(count["documents"] for reason, count in reasons.items() if reason not in ("kept", "exact duplicate",
                                                                                         "near duplicate"))
    exact, similar = reasons["exact duplicate"]["documents"], reasons["near duplicate"]["documents"]
    if not made["repeated"] - lost <= exact <= made["repeated"]:
        return f"{exact} exact duplicates, of {made['repeated']} made"
    if near and similar < 0.99 * made["changed"] - lost:
        return f"{similar} near duplicates, of {made['changed']} made"
    return "" if near or similar == 0 else f"{similar} near duplicates without the search"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kintsugi")
    parser.add_argument("--texts", nargs="+", type=Path, required=True)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--scratch", type=Path, default=Path("."))
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    kintsugi = str(Path(options.kintsugi).resolve())
    wanted = int(options.gigabytes * 1e9)
    free = shutil.disk_usage(options.scratch).free
    if free < 4.5 * wanted:
        sys.exit(f"{options.scratch} has {free / 1e9:.1f} GB free; {4.5 * wanted / 1e9:.1f} are needed")
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        scratch = Path(folder)
        made = write_input(pool_of(options.texts), scratch / "input.jsonl", wanted)
        print(f"{made['documents']:,} documents, {made['bytes'] / 1e9:.2f} GB: {made['repeated']:,} repeat another, "
              f"{made['changed']:,} with a word more", flush=True)
        failed = False
        for name, (limit, more) in RUNS.items():
            counts, cpu, seconds, peak = run_pipeline(kintsugi, scratch, more, options.threads)
            rate = made["bytes"] / 1e6 / cpu
            wrong = what_is_wrong(counts, made, bool(more)) or (
                f"the limit is {limit} MB/s" if rate < limit else "more than 1 GiB" if peak >= MOST_BYTES else "")
            failed = failed or bool(wrong)
            kept = {reason: count["documents"] for reason, count in counts["domains"]["texts"].items()
                    if isinstance(count, dict) and count["documents"] > 0}
            print(f"{name:<6} {rate:6.1f} MB/s per core ({cpu:.0f} s of processor time, {seconds:.0f} s), peak "
                  f"{peak / (1 << 20):.0f} MiB; {', '.join(f'{reason} {n:,}' for reason, n in kept.items())}"
                  f"{'; ' + wrong if wrong else ''}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
