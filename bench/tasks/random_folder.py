#!/usr/bin/env python3
"""Writes a small Hugging Face folder with random weights and a tokenizer trained on a text, for bench/tasks/harness.py.

    bench/tasks/random_folder.py FOLDER --family gpt2|llama|qwen3 --text FILE [--seed N]
"""
import argparse, os, pathlib

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--family", default="llama", choices=["gpt2", "llama", "qwen3"])
    parser.add_argument("--text", required=True)
    parser.add_argument("--seed", type=int, default=1)
    o = parser.parse_args()
    import tokenizers, torch, transformers
    folder = pathlib.Path(o.folder)
    folder.mkdir(parents=True)
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.train([o.text], tokenizers.trainers.BpeTrainer(vocab_size=600, special_tokens=["<|endoftext|>"],
               initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|endoftext|>",
                                         bos_token="<|endoftext|>").save_pretrained(folder)
    sizes = dict(vocab_size=600, bos_token_id=0, eos_token_id=0, initializer_range=0.15)
    wide = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
                max_position_embeddings=320)
    config = {"gpt2": lambda: transformers.GPT2Config(n_embd=48, n_layer=3, n_head=4, n_positions=320, **sizes),
              "llama": lambda: transformers.LlamaConfig(**wide, **sizes),
              "qwen3": lambda: transformers.Qwen3Config(head_dim=16, **wide, **sizes)}[o.family]()
    torch.manual_seed(o.seed)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.save_pretrained(folder)


if __name__ == "__main__":
    main()
