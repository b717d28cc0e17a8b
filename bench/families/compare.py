#!/usr/bin/env python3
"""Every family of models beside transformers: random small configurations, odd sizes, grouped heads.

    python3 -m venv venv && venv/bin/pip install torch transformers safetensors
    venv/bin/python bench/families/compare.py build/app/kintsugi [--families llama,qwen3] [--seeds 20] [--layouts]

For each it writes a folder by save_pretrained, runs `kintsugi evaluate FOLDER --ids ... --dump ...`, and compares the
logits (limit 1e-5 of the largest), the loss (1e-6) and the norm of every gradient (1e-4 of itself, or of the largest
where it is below a thousandth of that). With experts, loss and gradients include transformers' balance loss, where it has
one: of each layer, with a weight of 0.1 (transformers' own sum joins the tokens of all layers). --fp64: both sides in fp64, limits 1e-9, for those families of which
transformers computes all in it: gpt, bert. --layouts: also on several ranks. --round-trip: import, export, the same bytes,
and transformers' logits of what we wrote. Prints a line for each family, and ends with 1 where a limit was passed.
"""
import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.update(TRANSFORMERS_VERBOSITY="critical", HF_HUB_DISABLE_PROGRESS_BARS="1", TQDM_DISABLE="1")

import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers import (AutoConfig, AutoModelForCausalLM, BertForMaskedLM, BertForPreTraining,  # noqa: E402
                          BertForSequenceClassification)

BALANCE = 0.1  # weight of the balance loss
LAYOUTS = ["data=2", "data=2 zero=3", "tensor=2", "pipe=2", "context=2", "tensor=2 data=2"]
EXPERT_LAYOUTS = ["expert=2", "expert=2 zero=3"]  # of an even number of experts


def rope(r, kinds, pairs, context):
    kind = r.choice(kinds)
    if kind == "linear":
        return {"rope_type": "linear", "factor": r.choice([2.0, 3.5])}
    if kind == "llama3":
        return {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": context // 2}
    if kind == "yarn":
        return {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": context // 4,
                **r.choice([{}, {"beta_fast": 16.0, "beta_slow": 2.0}, {"attention_factor": 1.25},
                            {"truncate": False}, {"mscale": 1.0, "mscale_all_dim": 0.8}])}
    if kind == "longrope":
        return {"rope_type": "longrope", "short_factor": [1.0 + 0.1 * i for i in range(pairs)],
                "long_factor": [2.0 + 0.3 * i for i in range(pairs)],
                "original_max_position_embeddings": r.choice([8, context])}
    return None


class Sizes:
    def __init__(self, r):
        self.kv = r.choice([1, 2, 3])
        self.group = r.choice([1, 2, 3])
        self.heads = self.kv * self.group
        self.head = r.choice([4, 6, 8, 10])
        self.embed = self.heads * self.head
        self.ffn = r.choice([17, 24, 33, 40])
        self.layers = r.choice([1, 2, 3, 5])
        self.vocab = r.choice([51, 64, 97])
        self.context = r.choice([32, 48])
        self.sequence = r.choice([9, 16, 23])
        self.samples = 2 * r.choice([1, 2])
        self.task = ""  # of an encoder


def common(s, **more):
    return dict(vocab_size=s.vocab, hidden_size=s.embed, intermediate_size=s.ffn, num_hidden_layers=s.layers,
                num_attention_heads=s.heads, num_key_value_heads=s.kv, max_position_embeddings=s.context,
                **more)


def windows(r, s):
    if r.random() < 0.5:
        return {}
    window = r.choice([1, 3, 7])
    kinds = [r.choice(["full_attention", "sliding_attention"]) for _ in range(s.layers)]
    return {"use_sliding_window": True, "sliding_window": window, "layer_types": kinds}


def gpt(r, s):
    s.kv, s.group = s.heads, 1
    return "gpt2", dict(vocab_size=s.vocab, n_positions=s.context, n_embd=s.embed, n_layer=s.layers, n_head=s.heads,
                        n_inner=r.choice([None, s.ffn]), resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                        activation_function=r.choice(["gelu_new", "gelu", "relu", "silu"]),
                        tie_word_embeddings=r.random() < 0.7)


def llama(r, s):
    head = r.choice([None, 12]) or s.head
    return "llama", common(s, head_dim=head, attention_bias=r.random() < 0.3, mlp_bias=r.random() < 0.3,
                           tie_word_embeddings=r.random() < 0.3, rms_norm_eps=r.choice([1e-6, 1e-5]),
                           rope_theta=r.choice([10000.0, 500000.0]),
                           rope_scaling=rope(r, ["none", "linear", "llama3", "yarn"], head // 2, s.context))


def mistral(r, s):
    return "mistral", common(s, head_dim=r.choice([s.head, 12]), sliding_window=r.choice([None, 1, 5]))


def qwen2(r, s):
    return "qwen2", common(s, tie_word_embeddings=r.random() < 0.5, **windows(r, s),
                           rope_scaling=rope(r, ["none", "yarn"], s.head // 2, s.context))


def qwen3(r, s):
    return "qwen3", common(s, head_dim=r.choice([s.head, 12]), attention_bias=r.random() < 0.3, **windows(r, s))


def olmo2(r, s):
    return "olmo2", common(s, attention_bias=r.random() < 0.3, rope_theta=500000.0)


def olmo3(r, s):
    more = {"layer_types": windows(r, s).get("layer_types")}
    return "olmo3", common(s, sliding_window=r.choice([2, 5]), rope_theta=500000.0, **more,
                           rope_scaling=rope(r, ["none", "yarn"], s.head // 2, s.context))


def smollm3(r, s):
    more = {} if r.random() < 0.5 else {"no_rope_layers": [r.choice([0, 1]) for _ in range(s.layers)]}
    if r.random() < 0.3:
        more.update(use_sliding_window=True, sliding_window=4)
    return "smollm3", common(s, attention_bias=r.random() < 0.3, mlp_bias=r.random() < 0.3,
                             tie_word_embeddings=r.random() < 0.5, **more)


def phi3(r, s):
    scaling = rope(r, ["none", "longrope"], s.head // 2, s.context)
    more = {"original_max_position_embeddings": scaling.pop("original_max_position_embeddings")} if scaling else {}
    return "phi3", common(s, sliding_window=r.choice([None, 3]), rope_scaling=scaling, **more)


def gemma3(r, s):
    return "gemma3_text", common(s, head_dim=r.choice([s.head, 12]), query_pre_attn_scalar=r.choice([7, 16, 64]),
                                 sliding_window=r.choice([2, 5]), attention_bias=r.random() < 0.3,
                                 rope_scaling=rope(r, ["none", "linear"], s.head // 2, s.context))


def gptneox(r, s):
    s.kv, s.group = s.heads, 1
    c = common(s, rotary_pct=r.choice([0.25, 0.5, 1.0]) if s.head % 8 == 0 else 1.0,
               use_parallel_residual=r.random() < 0.6,
               hidden_act=r.choice(["gelu", "gelu_fast", "gelu_new"]), attention_bias=r.random() < 0.8,
               attention_dropout=0.0, hidden_dropout=0.0, tie_word_embeddings=False)
    c.pop("num_key_value_heads")
    return "gpt_neox", c


def gptj(r, s):
    s.kv, s.group = s.heads, 1
    return "gptj", dict(vocab_size=s.vocab, n_positions=s.context, n_embd=s.embed, n_layer=s.layers, n_head=s.heads,
                        rotary_dim=r.choice([2, 4, s.head]), n_inner=r.choice([None, s.ffn]), resid_pdrop=0,
                        embd_pdrop=0, attn_pdrop=0, tie_word_embeddings=False)


def experts(r, experts_key, per_token_key="num_experts_per_tok"):
    count = r.choice([2, 3, 4, 6])
    return {experts_key: count, per_token_key: r.randint(1, count)}


def mixtral(r, s):
    return "mixtral", common(s, head_dim=r.choice([s.head, 12]), sliding_window=r.choice([None, 5]),
                             **experts(r, "num_local_experts"))


def qwen3_moe(r, s):
    c = common(s, head_dim=r.choice([s.head, 12]), attention_bias=r.random() < 0.3, norm_topk_prob=r.random() < 0.5,
               moe_intermediate_size=s.ffn, decoder_sparse_step=1, mlp_only_layers=[], **experts(r, "num_experts"))
    return "qwen3_moe", c


def olmoe(r, s):
    return "olmoe", common(s, attention_bias=r.random() < 0.3, norm_topk_prob=r.random() < 0.5,
                           **experts(r, "num_experts"))


def deepseek_v3(r, s):
    s.kv, s.group = s.heads, 1
    groups, each = r.choice([(1, 4), (2, 2), (2, 3), (4, 2)])
    used = r.randint(1, groups)
    nope, turned = r.choice([4, 7, 10]), r.choice([2, 4, 8])
    c = common(s, moe_intermediate_size=r.choice([11, 16, 20]), n_routed_experts=groups * each, n_group=groups,
               topk_group=used, num_experts_per_tok=r.randint(1, used * each), n_shared_experts=r.choice([1, 2]),
               first_k_dense_replace=r.randrange(s.layers), routed_scaling_factor=r.choice([1.0, 2.5]),
               norm_topk_prob=r.random() < 0.7, q_lora_rank=r.choice([None, 9, 16]), kv_lora_rank=r.choice([5, 12]),
               qk_nope_head_dim=nope, qk_rope_head_dim=turned, v_head_dim=r.choice([3, nope, nope + turned, 19]),
               attention_bias=r.random() < 0.3, rope_interleave=r.random() < 0.7, num_nextn_predict_layers=0,
               rope_scaling=rope(r, ["none", "yarn", "yarn"], turned // 2, s.context))
    return "deepseek_v3", c


def gpt_oss(r, s):
    scaling = rope(r, ["none", "yarn", "yarn"], s.head // 2, s.context) or {"rope_type": "default"}
    kinds = [r.choice(["full_attention", "sliding_attention"]) for _ in range(s.layers)]
    return "gpt_oss", common(s, head_dim=r.choice([s.head, 12]), attention_bias=r.random() < 0.8,
                             sliding_window=r.choice([2, 5]), layer_types=r.choice([None, kinds]),
                             rope_parameters={"rope_theta": 150000.0, **scaling}, swiglu_limit=r.choice([0.7, 7.0]),
                             **experts(r, "num_local_experts"))


def bert(r, s):
    s.kv, s.group = s.heads, 1
    task = r.choice(["pretraining", "masked", "classes", "numbers"])
    more = {"masked": {}, "pretraining": {}, "classes": {"num_labels": r.choice([2, 3, 5])},
            "numbers": {"num_labels": r.choice([1, 2]), "problem_type": "regression"}}[task]
    c = common(s, type_vocab_size=r.choice([1, 2, 3]), hidden_act=r.choice(["gelu", "gelu_new", "relu"]),
               hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout=0.0,
               layer_norm_eps=r.choice([1e-12, 1e-6]), **more)
    c.pop("num_key_value_heads")
    s.task = task
    return "bert", c


FAMILIES = {f.__name__: f for f in (gpt, llama, mistral, qwen2, qwen3, olmo2, olmo3, smollm3, phi3, gemma3, gptneox,
                                    gptj, mixtral, qwen3_moe, olmoe, gpt_oss, deepseek_v3, bert)}


def randomize(model, seed):
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            noise = torch.randn(p.shape, generator=g, dtype=torch.float32)
            p.copy_(noise / math.sqrt(p.shape[-1]) if p.dim() > 1 else p * 0 + 0.7 + 0.2 * noise)
        for name, b in model.named_buffers():  # the balance of experts
            if name.endswith("e_score_correction_bias"):
                b.copy_(0.2 * torch.randn(b.shape, generator=g))


def make(family, seed):
    r = random.Random(f"{family} {seed}")
    s = Sizes(r)
    kind, settings = FAMILIES[family](r, s)
    settings = {k: v for k, v in settings.items() if v is not None or k in ("sliding_window", "q_lora_rank")}
    settings.update(bos_token_id=1, eos_token_id=2, pad_token_id=3)
    config = AutoConfig.for_model(kind, **settings)
    config.pad_token_id = None  # of an id of padding, transformers computes no gradient
    make_model = model_class(s.task)._from_config if s.task else AutoModelForCausalLM.from_config
    model = make_model(config, attn_implementation="eager", **plain_experts(config)).eval()
    randomize(model, seed)
    ids = [[r.randrange(s.vocab) for _ in range(s.sequence)] for _ in range(s.samples)]
    return model, {"ids": ids} if kind != "bert" else encoder_samples(r, s, config, ids)


def plain_experts(config):
    """The grouped products of torch need rows of multiples of 16 bytes."""
    has = hasattr(config, "num_experts") or hasattr(config, "num_local_experts")
    return {"experts_implementation": "eager"} if has else {}


def model_class(task):
    return {"pretraining": BertForPreTraining, "masked": BertForMaskedLM, "classes": BertForSequenceClassification,
            "numbers": BertForSequenceClassification}[task]


def encoder_samples(r, s, config, ids):
    """Padding at the end, labels of some ids, types, and what the task asks for of each sample."""
    for line in ids[1:]:
        for at in range(s.sequence - r.randrange(s.sequence // 2), s.sequence):
            line[at] = -1
    samples = {"ids": ids, "types": [[r.randrange(config.type_vocab_size) for _ in line] for line in ids]}
    if s.task in ("masked", "pretraining"):
        samples["labels"] = [[r.randrange(s.vocab) if i >= 0 and (at == 0 or r.random() < 0.3) else -1
                              for at, i in enumerate(line)] for line in ids]
    if s.task in ("pretraining", "classes"):
        samples["class"] = [[r.randrange(2 if s.task == "pretraining" else config.num_labels)] for _ in ids]
    if s.task == "numbers":
        samples["numbers"] = [[r.randrange(-20, 21) / 8 for _ in range(config.num_labels)] for _ in ids]
    return samples


def inputs_of(model, samples):
    tokens = torch.tensor(samples["ids"])
    if model.config.model_type != "bert":
        return dict(input_ids=tokens, labels=tokens, use_cache=False)
    inputs = dict(input_ids=tokens.clamp(min=0), attention_mask=(tokens >= 0).long(),
                  token_type_ids=torch.tensor(samples["types"]))
    if "labels" in samples:
        inputs["labels"] = torch.tensor([[x if x >= 0 else -100 for x in line] for line in samples["labels"]])
    sample = "labels"
    if isinstance(model, BertForPreTraining):
        sample = "next_sentence_label"
    if "class" in samples:
        inputs[sample] = torch.tensor(samples["class"])[:, 0]
    if "numbers" in samples:
        inputs["labels"] = torch.tensor(samples["numbers"])
        if model.config.num_labels == 1:
            inputs["labels"] = inputs["labels"][:, 0]
    return inputs


def balanced(model):
    """Whether transformers has a balance loss for the family."""
    return model.config.model_type in ("mixtral", "qwen3_moe", "olmoe", "gpt_oss")


def balance_of(model, out, samples):
    """Transformers' balance loss of each layer, which is experts_per_token where ours is 1; summed over layers."""
    loss_of = sys.modules[type(model).__module__].load_balancing_loss_func
    count, used = model.num_experts, model.num_experts_per_tok
    tokens = out.router_logits[0].shape[0] if out.router_logits[0].dim() == 2 else 0
    assert tokens == samples["ids"].__len__() * len(samples["ids"][0])
    return sum(loss_of((logits,), count, used) for logits in out.router_logits) / used


def expected(model, samples):
    model.zero_grad()
    with_balance = balanced(model)
    out = model(**inputs_of(model, samples), **({"output_router_logits": True} if with_balance else {}))
    balance = torch.zeros(())
    if with_balance:
        out.loss = out.loss - model.router_aux_loss_coef * out.aux_loss.to(out.loss.device)
        balance = balance_of(model, out, samples)
        out.loss = out.loss + BALANCE * balance
    if model.dtype == torch.float64 and model.config.model_type != "bert":  # whose loss is made in fp32
        tokens = torch.tensor(samples["ids"])
        out.loss = torch.nn.functional.cross_entropy(out.logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    out.loss.backward()
    logits, outputs = getattr(out, "prediction_logits", None), getattr(out, "seq_relationship_logits", None)
    if logits is None:
        logits = out.logits
        if isinstance(model, BertForSequenceClassification):
            logits, outputs = None, logits
    if logits is not None:  # at padding each side has its own
        logits = logits.detach() * (torch.tensor(samples["ids"]) >= 0)[..., None]
    return {"logits": logits, "outputs": None if outputs is None else outputs.detach(), "loss": out.loss.detach(),
            "padding": torch.tensor(samples["ids"]) < 0,
            "gradients": as_saved(model.config.model_type,
                                  {name: p.grad for name, p in model.named_parameters() if p.grad is not None})}


def as_saved(kind, gradients):
    """Transformers 5 has the experts of a layer in one parameter; files have tensors for each."""
    ours = ".block_sparse_moe.experts.{}.w{}.weight" if kind == "mixtral" else ".mlp.experts.{}.{}_proj.weight"
    names = ("1", "3", "2") if kind == "mixtral" else ("gate", "up", "down")
    saved = {}
    if kind == "gpt_oss":  # one tensor for all experts on disk too
        return gradients
    for name, g in gradients.items():
        layer = name.split(".mlp.")[0]
        if name.endswith("mlp.experts.gate_up_proj"):
            for e, both in enumerate(g):
                for which, part in zip(names, both.chunk(2)):
                    saved[layer + ours.format(e, which)] = part
        elif name.endswith("mlp.experts.down_proj"):
            for e, part in enumerate(g):
                saved[layer + ours.format(e, names[2])] = part
        elif name.endswith("mlp.gate.weight") and kind == "mixtral":
            saved[layer + ".block_sparse_moe.gate.weight"] = g
        else:
            saved[name] = g
    return saved


def evaluate(kintsugi, folder, work, samples, more=()):
    words = lambda line: " ".join(map(str, line))
    lines = []
    for i, line in enumerate(samples["ids"]):
        parts = [f"; {name} {words(list_[i])}" for name, list_ in samples.items() if name != "ids"]
        lines.append(words(line) + "".join(parts) + "\n")
    (work / "ids.txt").write_text("".join(lines))
    command = [kintsugi, "evaluate", str(folder), "--ids", str(work / "ids.txt"), "--dump", str(work / "dump"), *more]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip())
    return load_file(work / "dump")


def differences(found, want):
    """Of logits, loss, and the worst gradient's norm, with its name."""
    logits = 0.0
    for name in ("logits", "outputs"):
        if want[name] is None:
            continue
        got = found[name].double()
        if name == "logits":
            got[want["padding"]] = 0.0
        logits = max(logits, float((got - want[name].double()).abs().max() / want[name].abs().max()))
    total = float(found["loss"]) + BALANCE * float(found.get("balance", 0.0))
    loss = abs(total - float(want["loss"])) / abs(float(want["loss"]))
    others = ("logits", "outputs", "loss", "balance")
    found = {name: x.double() for name, x in found.items() if name not in others}
    missing = set(want["gradients"]) ^ {resolve(name, want["gradients"]) for name in found}
    if missing:
        raise RuntimeError(f"gradients on one side alone: {sorted(missing)[:6]}")
    norms = {resolve(name, want["gradients"]): x.norm() for name, x in found.items()}
    largest = max(float(x.double().norm()) for x in want["gradients"].values())
    worst, at = 0.0, ""
    for name, gradient in want["gradients"].items():
        norm = float(gradient.double().norm())
        d = abs(float(norms[name]) - norm) / max(norm, 1e-3 * largest)
        if d >= worst:
            worst, at = d, name
    return float(logits), loss, worst, at


def resolve(name, known):
    """Names in files and in modules differ in a prefix, and for GPT-NeoX in the head's."""
    for candidate in (name, name.replace("embed_out.", "lm_head."), name.split(".", 1)[-1]):
        if candidate in known:
            return candidate
    return name


def round_trip(kintsugi, folder, work, model, samples, want):
    run = lambda *a: subprocess.run([kintsugi, *map(str, a)], check=True, capture_output=True, text=True)
    run("import", folder, work / "run")
    run("export", work / "run", work / "again")
    one, two = load_file(folder / "model.safetensors"), load_file(work / "again" / "model.safetensors")
    if set(one) != set(two) or any(one[n].dtype != two[n].dtype or not torch.equal(one[n], two[n]) for n in one):
        raise RuntimeError("import and export changed a tensor")
    model = type(model).from_pretrained(work / "again", attn_implementation="eager",
                                        **plain_experts(model.config)).eval()
    got = expected(model, samples)
    logits, want = (got["logits"], want) if want["logits"] is not None else (got["outputs"], {"logits": want["outputs"]})
    # Two spellings of the tanh form of GELU are one here; theirs differ in rounding.
    limit = 1e-6 * want["logits"].abs().max() if getattr(model.config, "hidden_act", "") == "gelu_new" else 0.0
    if (logits - want["logits"]).abs().max() > limit:
        raise RuntimeError(f"transformers has other logits of what export wrote: {(logits - want['logits']).abs().max()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kintsugi")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--fp64", action="store_true")
    parser.add_argument("--layouts", action="store_true")
    parser.add_argument("--round-trip", action="store_true")
    o = parser.parse_args()
    failures = 0
    for family in o.families.split(","):
        most, runs = [0.0, 0.0, 0.0], 0
        for seed in range(o.first, o.first + o.seeds):
            with tempfile.TemporaryDirectory() as work:
                work = Path(work)
                model = None
                try:
                    model, samples = make(family, seed)
                    if o.fp64:
                        model.double()
                    want = expected(model, samples)
                    model.save_pretrained(work / "folder")
                    count = getattr(model.config, "num_experts", 0) or getattr(model.config, "num_local_experts", 0)
                    fitting = EXPERT_LAYOUTS if count and count % 2 == 0 else []
                    fitting = fitting + [l for l in LAYOUTS if "pipe" not in l or model.config.num_hidden_layers > 1]
                    layouts = [""] + ([random.Random(seed).choice(fitting)] if o.layouts else [])
                    for layout in layouts:
                        more = ["--dtype", "fp64"] if o.fp64 else []
                        more += ["--balance-weight", str(BALANCE)] if balanced(model) else []
                        more += ["--set", *(f"parallel.{word}" for word in layout.split())] if layout else []
                        d = differences(evaluate(o.kintsugi, work / "folder", work, samples, more), want)
                        runs += 1
                        most = [max(a, b) for a, b in zip(most, d)]
                        if any(x > (1e-9 if o.fp64 else limit) for x, limit in zip(d, (1e-5, 1e-6, 1e-4))):
                            raise RuntimeError(f"{layout or 'one rank'}: logits {d[0]:.2g}, loss {d[1]:.2g}, "
                                               f"gradient {d[2]:.2g} ({d[3]})")
                    if o.round_trip:
                        round_trip(o.kintsugi, work / "folder", work, model, samples, want)
                except Exception as error:  # noqa: BLE001: the next one is tried all the same
                    failures += 1
                    print(f"{family} seed {seed}: {error}")
                    if model is not None:
                        print("   ", json.dumps(model.config.to_diff_dict(), default=str))
        print(f"{family:8} {runs:3} runs: logits {most[0]:.1e}, loss {most[1]:.1e}, gradients {most[2]:.1e}", flush=True)
    print("no limit was passed" if not failures else f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
