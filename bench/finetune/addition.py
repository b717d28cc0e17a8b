#!/usr/bin/env python3
"""A tiny model learns two-digit addition by rewards alone: a picture of the reward over steps.

    python3 bench/finetune/addition.py build/app/kintsugi --output addition.svg

First it learns from conversations until it gives some right answers; --right below 1 gives random two-digit answers to a share of
the sums. Then train.method = "grpo" rewards exact sums. Prints the reward of the first and the last steps, and
that of the most likely answers to held-out sums.
"""
import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path


def prompt(a, b):
    return f"{a:02d}+{b:02d}="


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def picture(rewards, held_out, path):
    width, height, left, top = 640, 300, 50, 20
    steps = len(rewards)

    def points(pairs):
        return " ".join(f"{left + width * x / steps:.1f},{top + height * (1 - y):.1f}" for x, y in pairs)

    smooth = [(i + 1, sum(rewards[max(0, i - 9):i + 1]) / min(10, i + 1)) for i in range(steps)]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + left + 20}" height="{height + top + 40}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#888"/>']
    for y in (0, 0.25, 0.5, 0.75, 1):
        parts.append(f'<text x="{left - 6}" y="{top + height * (1 - y) + 4:.1f}" text-anchor="end">{y:g}</text>')
    for x in range(0, steps + 1, max(1, steps // 5)):
        parts.append(f'<text x="{left + width * x / steps:.1f}" y="{top + height + 16}" text-anchor="middle">{x}</text>')
    parts += [f'<polyline points="{points(smooth)}" fill="none" stroke="#2060c0" stroke-width="2"/>',
              f'<polyline points="{points(held_out)}" fill="none" stroke="#c06020" stroke-width="2"/>',
              f'<text x="{left + 10}" y="{top + 18}" fill="#2060c0">reward of sampled answers, mean of 10 steps</text>',
              f'<text x="{left + 10}" y="{top + 34}" fill="#c06020">reward of the most likely answers, held-out sums</text>',
              f'<text x="{left + width / 2}" y="{top + height + 34}" text-anchor="middle">step</text></svg>']
    path.write_text("\n".join(parts) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kintsugi")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--warm-up", type=int, default=350, help="steps of conversations")
    parser.add_argument("--right", type=float, default=1.0, help="share of right answers among the conversations")
    parser.add_argument("--output", type=Path, default=Path("addition.svg"))
    options = parser.parse_args()
    kintsugi = str(Path(options.kintsugi).resolve())
    random.seed(1)
    sums = [(a, b) for a in range(100) for b in range(100) if a + b < 100]
    random.shuffle(sums)
    held_out, learnt = sums[:256], sums[256:]
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)

        def run(*words):
            done = subprocess.run([kintsugi, *words], cwd=here, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{' '.join(words)}\n{done.stderr}")

        (here / "text.txt").write_text("0123456789+=\n")
        run("prepare", "text.txt", "--tokenizer", "chars", "--output", "corpus")
        def said(a, b):
            return f"{a + b if random.random() < options.right else random.randrange(100):02d}"

        write_lines(here / "chats.jsonl", ({"prompt": prompt(a, b), "answer": said(a, b)} for a, b in learnt))
        for name, some in (("prompts", learnt), ("held_out", held_out)):
            write_lines(here / f"{name}.jsonl", ({"prompt": prompt(a, b), "answer": f"{a + b:02d}"} for a, b in some))
        common = ('[model]\nfamily = "llama"\nlayers = 2\nembed = 64\nheads = 4\n[data]\n'
                  'tokenizer = "corpus/tokenizer.json"\nchat_template = "none"\n')
        (here / "chats.toml").write_text(
            common + f'train = "chats.jsonl"\n[train]\nfolder = "chats"\nsteps = {options.warm_up}\nglobal_batch = 64\n'
            'sequence = 8\nlearning_rate = 0.003\n[parallel]\nthreads = 1\n')
        (here / "rewards.toml").write_text(
            common + 'train = "prompts.jsonl"\nvalidation = "held_out.jsonl"\n[train]\nmethod = "grpo"\n'
            f'init_from = "chats"\nfolder = "rewards"\nsteps = {options.steps}\nglobal_batch = 256\nmicro_batch = 128\n'
            'sequence = 8\nlearning_rate = 0.0005\nwarmup_steps = 20\nweight_decay = 0.0\nevaluate_every = 20\nevaluate_batches = 1\n'
            '[grpo]\ngroup = 8\nlength = 2\nreward = "exact"\n[parallel]\nthreads = 1\n')
        run("train", "chats.toml")
        run("train", "rewards.toml")
        lines = [json.loads(line) for line in (here / "rewards/metrics.jsonl").read_text().splitlines()]
    rewards = [line["reward"] for line in lines]
    greedy = [(line["step"], line["validation_reward"]) for line in lines if "validation_reward" in line]
    first, last = sum(rewards[:10]) / 10, sum(rewards[-10:]) / 10
    print(f"reward of sampled answers: {first:.3f} in the first 10 steps, {last:.3f} in the last")
    print(f"reward of the most likely answers to held-out sums: {greedy[0][1]:.3f} after {greedy[0][0]} steps, "
          f"{greedy[-1][1]:.3f} after {greedy[-1][0]}")
    print(f"largest gap between sampling and training: {max(line['rollout_gap'] for line in lines):.1e}; "
          f"{sum(line['seconds'] for line in lines) / len(lines):.3f} s per step, "
          f"{sum(line['rollout_seconds'] for line in lines) / len(lines):.3f} s of it sampling")
    picture(rewards, greedy, options.output)


if __name__ == "__main__":
    main()
