"""Writes a Hugging Face folder with the shape of GPT-2 and random weights; needs nothing but Python.

    python3 bench/folders/make_gpt2.py FOLDER [fp32 | bf16 | fp16] [layers, 48] [embed, 1600] [vocab, 50257]

The default is GPT-2 XL, 1,557,611,200 parameters. Elements are between 0.0078 and 0.031 (fp16: 0.0625), or minus that.
"""

import json
import os
import random
import sys

NAMES = {"fp32": ("F32", 4, "float32"), "bf16": ("BF16", 2, "bfloat16"), "fp16": ("F16", 2, "float16")}


def random_block(dtype, size, count):
    """`count` random elements. The last byte of each is its sign and the upper bits of its exponent."""
    upper = 0x28 if dtype == "fp16" else 0x3C
    block = bytearray(count * size)
    for byte in range(size):
        block[byte::size] = random.randbytes(count)
    block[size - 1 :: size] = bytes(block[size - 1 :: size]).translate(bytes(b & 0x80 | upper for b in range(256)))
    return bytes(block)


def main():
    folder, dtype = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "bf16"
    layers, embed, vocab = (int(sys.argv[i]) if len(sys.argv) > i else n for i, n in ((3, 48), (4, 1600), (5, 50257)))
    name, size, torch_dtype = NAMES[dtype]
    shapes = {"wte.weight": [vocab, embed], "wpe.weight": [1024, embed]}
    for layer in range(layers):
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"h.{layer}.{norm}.{part}": [embed] for part in ("weight", "bias")}
        products = {"attn.c_attn": (embed, 3 * embed), "attn.c_proj": (embed, embed)}
        products |= {"mlp.c_fc": (embed, 4 * embed), "mlp.c_proj": (4 * embed, embed)}
        for product, (rows, columns) in products.items():
            shapes |= {f"h.{layer}.{product}.weight": [rows, columns], f"h.{layer}.{product}.bias": [columns]}
    shapes |= {f"ln_f.{part}": [embed] for part in ("weight", "bias")}

    header, end = {"__metadata__": {"format": "pt"}}, 0
    for tensor, shape in sorted(shapes.items()):
        begin, elements = end, 1
        for dim in shape:
            elements *= dim
        end += elements * size
        header["transformer." + tensor] = {"dtype": name, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)

    os.makedirs(folder)
    random.seed(1)
    block = random_block(dtype, size, 4 << 20)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for begin in range(0, end, len(block)):
            file.write(block[: end - begin])
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": vocab, "n_positions": 1024}
    config |= {"n_embd": embed, "n_layer": layers, "n_head": embed // 64, "activation_function": "gelu_new"}
    config |= {"layer_norm_epsilon": 1e-5, "tie_word_embeddings": True, "torch_dtype": torch_dtype}
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file, indent=2)
    print(f"{end // size} parameters, {end} bytes")


main()
