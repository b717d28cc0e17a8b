#!/usr/bin/env python3
"""Chat templates beside transformers: the text of random conversations, and the spans that the loss counts.

    python3 -m venv venv && venv/bin/pip install torch transformers jinja2
    git clone https://github.com/huggingface/trl
    venv/bin/python bench/finetune/templates.py build/app/kintsugi trl/trl/chat_templates

Renders 1,000 random conversations per template with `kintsugi show --chat` and with apply_chat_template of the published Jinja
templates, which TRL keeps in files. The spans that the loss counts are compared with those found in the text: each answer's
content, what opens it and the token that stops it. Where there is a variant of a template with `{% generation %}` marks, also compares with
its spans; those of qwen3 and gpt-oss are others (thoughts in every turn, the header of the turn). Prints a line per template,
and ends with 1 where a text or a found span differs.
"""
import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from transformers.utils.chat_template_utils import _compile_jinja_template, _render_with_assistant_indices

# Ours, the file, special tokens, whether there may be a system turn, and whether there must be one.
TEMPLATES = [
    ("chatml", "qwen2_5", {}, "always"),
    ("qwen3", "qwen3", {}, "maybe"),
    ("llama3", "llama3", {"bos_token": ""}, "maybe"),
    ("gemma", "gemma3", {"bos_token": ""}, "maybe"),
    ("gemma", "gemma", {"bos_token": ""}, "never"),
    ("gpt-oss", "gptoss", {"strftime_now": lambda _: "2025-08-05"}, "maybe"),
    ("llama2", None, {"bos_token": "<s>", "eos_token": "</s>"}, "maybe"),
    ("mistral", None, {"bos_token": "<s>", "eos_token": "</s>"}, "never"),
]
# Short ones that TRL has no file of, as published with the models.
TEXTS = {
    "llama2": "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = "
              "messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}"
              "{% endif %}{% for message in loop_messages %}{% if loop.index0 == 0 and system_message != false %}{% set "
              "content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set "
              "content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + "
              "content.strip() + ' [/INST]' }}{% else %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}"
              "{% endfor %}",
    "mistral": "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{ '[INST] ' + "
               "message['content'] + ' [/INST]' }}{% else %}{{ message['content'] + eos_token}}{% endif %}{% endfor %}",
}
WORDS = ["one", "two ", " three", "\n", "\n\n", "<b>", "é", "字", "{{ x }}", "{}", "assistant", "42", ". ", "<|im_end|>",
         "[INST]", "\t", "'", '"']


def content():
    return "x" + "".join(random.choice(WORDS) for _ in range(random.randrange(1, 9))) + random.choice(["", "y", " "])


def conversation(system):
    messages = []
    if system == "always" or (system == "maybe" and random.random() < 0.5):
        messages.append({"role": "system", "content": content()})
    for _ in range(random.randrange(1, 4)):
        messages += [{"role": "user", "content": content()}, {"role": "assistant", "content": content()}]
    return messages


STOPS = {"chatml": ["<|im_end|>"], "qwen3": ["<|im_end|>"], "llama3": ["<|eot_id|>"], "gemma": ["<end_of_turn>"],
         "gpt-oss": ["<|return|>", "<|end|>"], "llama2": ["</s>"], "mistral": ["</s>"]}


# What a model writes after the prompt for its turn, before the content.
OPENINGS = {"qwen3": ["", "<think>\n\n</think>"], "gpt-oss": ["<|channel|>final<|message|>"]}


def finds_spans(chat, parts, openings, stops):
    """Whether the counted parts are each answer's content, with what opens and stops it, and nothing else but white space."""
    text = "".join(part["text"] for part in parts)
    at, counted = 0, []
    for part in parts:
        end = at + len(part["text"])
        if part["answer"] and counted and counted[-1][1] == at:
            counted[-1][1] = end
        elif part["answer"]:
            counted.append([at, end])
        at = end
    at, wanted = 0, []
    for message in chat:
        content = message["content"].strip()
        begin = text.index(content, at)
        at = begin + len(content)
        if message["role"] == "assistant":
            wanted.append((begin, at))
    return len(counted) == len(wanted) and all(
        got[0] <= want[0] and got[1] > want[1] and text[got[0]:want[0]].strip() in openings and text[want[1]:got[1]].strip() in stops
        for got, want in zip(counted, wanted))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kintsugi")
    parser.add_argument("templates", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    random.seed(5)
    failures = 0
    for ours, name, tokens, system in TEMPLATES:
        jinja = TEXTS[ours] if name is None else (options.templates / f"{name}.jinja").read_text()
        chats = [conversation(system) for _ in range(options.count)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "chats.jsonl"
            path.write_text("".join(json.dumps({"messages": chat}) + "\n" for chat in chats))
            done = subprocess.run([options.kintsugi, "show", str(path), "--chat", ours], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        here = [json.loads(line)["parts"] for line in done.stdout.splitlines()]
        template = _compile_jinja_template(jinja)
        marked = options.templates / f"{name}_training.jinja"
        spans_of = _compile_jinja_template(marked.read_text()) if name and marked.exists() else None
        same, equal_spans, found, first = 0, 0, 0, None
        for chat, parts in zip(chats, here):
            text = "".join(part["text"] for part in parts)
            want = template.render(messages=chat, add_generation_prompt=False, **tokens)
            if ours in ("llama2", "mistral"):  # the tokenizer adds the first token, and ours ends a turn with the next one's
                want = want.removeprefix("<s>") + ("<s>" if ours == "llama2" else "")
            same += text == want
            found += finds_spans(chat, parts, OPENINGS.get(ours, [""]), STOPS[ours])
            if text != want and first is None:
                first = (text, want)
            if spans_of is None:
                continue
            answers = [part["text"] for part in parts if part["answer"]]
            rendered, indices = _render_with_assistant_indices(
                compiled_template=spans_of, messages=chat, tools=None, documents=None, add_generation_prompt=False, **tokens)
            with_marks = [rendered[begin:end] for begin, end in indices]
            # A mark may include the newline after the stop token, or the one before the answer.
            equal_spans += len(answers) == len(with_marks) and all(
                a.strip("\n") == b.strip("\n") for a, b in zip(answers, with_marks))
        spans = f", {equal_spans} with the marked spans" if spans_of is not None else ""
        print(f"{ours:10} {name or 'published':10} {same} of {len(chats)} equal, {found} with the spans in the text{spans}")
        failures += found < len(chats)
        if same < len(chats):
            failures += 1
            print(f"  here  {first[0]!r}\n  there {first[1]!r}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
