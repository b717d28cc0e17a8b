#!/usr/bin/env python3
"""Adapters beside PEFT: what PEFT writes is read here, what is written here PEFT reads, with equal logits.

    python3 -m venv venv && venv/bin/pip install torch transformers safetensors peft
    venv/bin/python bench/peft/compare.py build/app/kintsugi

For each family it makes a small random model and a random adapter, and compares logits (limit 1e-5 of the largest):
PEFT's with those of `kintsugi evaluate ADAPTER`; PEFT's on what `kintsugi export` makes of the imported adapter; and
transformers' on what `export --merge` makes. For mixtures of experts, whose experts PEFT no longer trains as modules, the
adapter is written here with the names of PEFT's earlier versions, which it converts. Prints a line for each, and ends with 1 where a limit was passed.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.update(TRANSFORMERS_VERBOSITY="critical", HF_HUB_DISABLE_PROGRESS_BARS="1", TQDM_DISABLE="1")

import torch  # noqa: E402
from peft import LoraConfig, PeftModel, get_peft_model  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402

COMMON = dict(vocab_size=97, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, max_position_embeddings=32,
              tie_word_embeddings=False)
MODELS = {
    "llama": (AutoConfig.for_model("llama", intermediate_size=40, num_key_value_heads=2, head_dim=8, **COMMON),
              ["q_proj", "v_proj", "o_proj", "up_proj", "down_proj"]),
    "qwen2": (AutoConfig.for_model("qwen2", intermediate_size=40, num_key_value_heads=3, **COMMON), "all-linear"),
    "gpt_neox": (AutoConfig.for_model("gpt_neox", intermediate_size=40, **COMMON),
                 ["query_key_value", "dense", "dense_4h_to_h"]),
    "gpt2": (AutoConfig.for_model("gpt2", vocab_size=97, n_embd=48, n_layer=2, n_head=6, n_positions=32, n_inner=40),
             ["c_attn", "c_proj", "c_fc"]),
    "mixtral": (AutoConfig.for_model("mixtral", intermediate_size=40, num_key_value_heads=2, num_local_experts=4,
                                     num_experts_per_tok=2, sliding_window=None, **COMMON), ["w1", "w2", "w3", "q_proj"]),
    "qwen3_moe": (AutoConfig.for_model("qwen3_moe", moe_intermediate_size=40, num_key_value_heads=2, head_dim=8,
                                       num_experts=4, num_experts_per_tok=2, **COMMON),
                  ["gate_proj", "up_proj", "down_proj", "v_proj"]),
}


def logits_here(kintsugi, model, ids, scratch):
    (scratch / "ids.txt").write_text(" ".join(map(str, ids)) + "\n")
    subprocess.run([kintsugi, "evaluate", str(model), "--ids", str(scratch / "ids.txt"), "--dump",
                    str(scratch / "dump")], check=True, capture_output=True)
    return load_file(scratch / "dump")["logits"].reshape(len(ids), -1).double()


def logits_there(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].double()


def write_adapter(name, config, targets, base, folder):
    """A random adapter with a module for each expert."""
    widths = {"w1": (48, 40), "w3": (48, 40), "w2": (40, 48), "gate_proj": (48, 40), "up_proj": (48, 40),
              "down_proj": (40, 48), "q_proj": (48, 48), "v_proj": (48, 16)}
    at = "block_sparse_moe" if name == "mixtral" else "mlp"
    tensors = {}
    for layer in range(config.num_hidden_layers):
        for target in targets:
            heads = target in ("q_proj", "v_proj")
            for part in ["self_attn"] if heads else [f"{at}.experts.{e}" for e in range(4)]:
                into, out = widths[target]
                key = f"base_model.model.model.layers.{layer}.{part}.{target}"
                tensors[f"{key}.lora_A.weight"] = 0.3 * torch.randn(4, into)
                tensors[f"{key}.lora_B.weight"] = 0.3 * torch.randn(out, 4)
    folder.mkdir()
    save_file(tensors, folder / "adapter_model.safetensors", {"format": "pt"})
    (folder / "adapter_config.json").write_text(json.dumps({
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": str(base), "r": 4, "lora_alpha": 10,
        "lora_dropout": 0.0, "target_modules": targets, "bias": "none"}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kintsugi")
    arguments = parser.parse_args()
    failed = False
    for name, (config, targets) in MODELS.items():
        torch.manual_seed(3)
        with tempfile.TemporaryDirectory() as folder:
            scratch = Path(folder)
            AutoModelForCausalLM.from_config(config).save_pretrained(scratch / "base")
            base = AutoModelForCausalLM.from_pretrained(scratch / "base")
            has_experts = name in ("mixtral", "qwen3_moe")
            if has_experts:
                write_adapter(name, config, targets, scratch / "base", scratch / "adapter")
                model = PeftModel.from_pretrained(base, scratch / "adapter")
            else:
                lora = LoraConfig(r=4, lora_alpha=10, target_modules=targets, task_type="CAUSAL_LM",
                                  rank_pattern={"down_proj": 2} if name == "llama" else {},
                                  fan_in_fan_out=name == "gpt2")
                model = get_peft_model(base, lora)
                for key, weight in model.named_parameters():
                    if "lora_" in key:
                        torch.nn.init.normal_(weight, std=0.3)
                model.base_model.model.name_or_path = str(scratch / "base")
                model.peft_config["default"].base_model_name_or_path = str(scratch / "base")
                model.save_pretrained(scratch / "adapter")
            ids = [int(i) for i in torch.randint(0, 97, (20,))]
            want = logits_there(model.eval(), ids)
            run = lambda *words: subprocess.run([arguments.kintsugi, *map(str, words)], check=True,  # noqa: E731
                                                capture_output=True)
            run("import", scratch / "adapter", scratch / "run")
            run("export", scratch / "run", scratch / "again")
            run("export", scratch / "adapter", scratch / "merged", "--merge")
            fresh = AutoModelForCausalLM.from_pretrained(scratch / "base")
            found = {"read here": logits_here(arguments.kintsugi, scratch / "adapter", ids, scratch),
                     "imported": logits_here(arguments.kintsugi, scratch / "run", ids, scratch),
                     "read by PEFT": logits_there(PeftModel.from_pretrained(fresh, scratch / "again").eval(), ids),
                     "merged": logits_there(AutoModelForCausalLM.from_pretrained(scratch / "merged").eval(), ids)}
            plain = (logits_there(AutoModelForCausalLM.from_pretrained(scratch / "base").eval(), ids) - want).abs().max()
            shown = []
            for what, logits in found.items():
                far = float((logits - want).abs().max() / want.abs().max())
                failed |= not far < 1e-5
                shown.append(f"{what} {far:.1e}")
            print(f"{name}: {', '.join(shown)}; without the adapter {float(plain / want.abs().max()):.1e}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
