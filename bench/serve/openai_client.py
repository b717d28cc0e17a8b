#!/usr/bin/env python3
"""The official `openai` client (PyPI) against `kintsugi serve MODEL --chat chatml`: completions, chats, streams, errors.

    bench/serve/openai_client.py http://127.0.0.1:8000/v1
"""
import concurrent.futures
import sys

import openai


def main():
    client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    greedy = {"model": model, "max_tokens": 10, "temperature": 0}
    prompt, messages = "Question: How", [{"role": "user", "content": "Hi"}]
    whole = client.completions.create(prompt=prompt, logprobs=2, **greedy)
    text = whole.choices[0].text
    assert len(whole.choices[0].logprobs.tokens) == whole.usage.completion_tokens
    assert text == "".join(c.choices[0].text for c in client.completions.create(prompt=prompt, stream=True, **greedy))
    chat = client.chat.completions.create(messages=messages, logprobs=True, top_logprobs=2, **greedy)
    parts = list(client.chat.completions.create(messages=messages, stream=True, stream_options={"include_usage": True},
                                                **greedy))
    assert chat.choices[0].message.content == "".join(p.choices[0].delta.content or "" for p in parts if p.choices)
    assert parts[-1].usage.completion_tokens == chat.usage.completion_tokens
    for wrong, status in [({"model": "other", "prompt": "a"}, 404), ({"model": model, "prompt": "a", "logprobs": 50}, 400),
                          ({"model": model, "prompt": "a " * 100_000}, 400)]:
        try:
            client.completions.create(**wrong)
            raise AssertionError(f"no error: {wrong['model']}")
        except openai.APIStatusError as error:
            assert error.status_code == status, error
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        texts = list(pool.map(lambda _: client.completions.create(prompt=prompt, **greedy).choices[0].text, range(32)))
    assert texts == [text] * 32
    drawn = [[c.text for c in client.completions.create(model=model, prompt=prompt, max_tokens=8, seed=5, n=3).choices]
             for _ in range(2)]
    assert drawn[0] == drawn[1] and len(set(drawn[0])) > 1
    print(f"openai {openai.__version__}: all as expected")


if __name__ == "__main__":
    main()
