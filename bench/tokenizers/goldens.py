#!/usr/bin/env python3
"""Writes kintsugi/text/pipeline_goldens_test.h: tiny tokenizers with what Hugging Face's tokenizers makes of a few texts.

usage: goldens.py > kintsugi/text/pipeline_goldens_test.h

The vocabularies of BERT differ from run to run, since the trainer of WordPiece decides ties at random.
"""
import json
from pipelines import FAMILIES
from tokenizers import Regex, Tokenizer, decoders as d, models, normalizers as n, pre_tokenizers as p, processors

TEXTS = ["", " ", "the low lower", " the  low\n", "The LOW, lówer!", "low<s>low  e", "日本 low", "e\u0301 ﬁ \u00a0x", "ab-low--", "a1 23b"]
FAMILY_TEXTS = TEXTS + ["I'll say the 12345 lowest, DON'T\n\n\n  you?  ", "<|endoftext|>the<|user|>  low <eos>[SEP]\u2581\u2581x\t\r\n",
                        "naïve 👍🏽 мир \u200b"]
LINES = ["The lower the river was, the slower the boats went.", "I'll say what they'd said: don't wait, it's 1234 or 56789.",
         "We've seen nothing newer; the newest is the widest.", "    if (low < 10) return lower;", "low lower lowest, slow slower slowest",
         "THE NEWER, THE LOWER! They're here, and we're there.", "naïve cafés"] * 3
LETTERS = list("abcdefghijklmnopqrstuvwxyz") + ["▁"]
BYTES = [f"<0x{b:02X}>" for b in range(256)]
MERGES = [("l", "o"), ("lo", "w"), ("▁", "low"), ("e", "r"), ("t", "h"), ("th", "e"), ("▁", "the"), ("▁", "▁")]


def vocabulary(tokens):
    return {token: i for i, token in enumerate(dict.fromkeys(tokens))}


def bpe(merges=MERGES, extra=(), **options):
    cut = len(options.get("continuing_subword_prefix") or "")
    tokens = ["<unk>", "<s>", "</s>", *extra, *LETTERS]
    for left, right in merges:
        tokens += [left, right, left + right[cut:]]
    return models.BPE(vocab=vocabulary(tokens), merges=list(merges), unk_token="<unk>", **options)


def unigram(**options):
    words = ["▁the", "▁low", "low", "er", "▁l", "ow", "▁"] + LETTERS[:-1]
    scores = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)] + [(w, -1.5 - 0.37 * i) for i, w in enumerate(words)]
    if options.get("byte_fallback"):
        scores += [(b, -30.0) for b in BYTES]
    return models.Unigram(scores, 0, **options)


def word_piece():
    return models.WordPiece(vocabulary(["[UNK]", "<s>", "</s>", "the", "low", "##er", "l", "##o", "##w", ",", "!", "日", "e", "-"]),
                            unk_token="[UNK]")


def word_level():
    return models.WordLevel(vocabulary(["<unk>", "<s>", "</s>", "the", "low", "lower", "The", "LOW", ",", "!", "-", "--", "a", "1", "2",
                                        "3", "23", "b", "ab", "-low", "low-", "ab-", "e", "w", "lo", "wer"]), unk_token="<unk>")


def make(model, normalizer=None, splitter=None, decoder=None, special=True):
    tokenizer = Tokenizer(model)
    if normalizer: tokenizer.normalizer = normalizer
    if splitter: tokenizer.pre_tokenizer = splitter
    if decoder: tokenizer.decoder = decoder
    if special: tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return tokenizer


def tokenizers():
    llama = n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")])
    back = d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)])
    yield "Llama", make(bpe(extra=BYTES, fuse_unk=True, byte_fallback=True), llama, None, back)
    yield "FusedUnknown", make(bpe(fuse_unk=True), llama, None, back)
    yield "IgnoredMerges", make(bpe(MERGES[:3], ["▁lower"], ignore_merges=True), None, p.Metaspace(), d.Metaspace())
    for scheme in ("always", "first", "never"):
        yield "Metaspace_" + scheme, make(bpe(), None, p.Metaspace(prepend_scheme=scheme), d.Metaspace(prepend_scheme=scheme))
    yield "Suffix", make(bpe([("l", "o"), ("lo", "w</w>")], ["w</w>", "e</w>"], end_of_word_suffix="</w>"), n.Lowercase(),
                         p.BertPreTokenizer(), d.BPEDecoder())
    yield "Prefix", make(bpe([("l", "##o"), ("lo", "##w")], ["##o", "##w", "##e"], continuing_subword_prefix="##"), n.NFKC(),
                         p.Whitespace(), d.WordPiece())
    yield "Unigram", make(unigram(), n.Sequence([n.Nmt(), n.NFKC(), n.Replace(Regex(" {2,}"), " ")]), p.Metaspace(), d.Metaspace())
    yield "UnigramBytes", make(unigram(byte_fallback=True), n.Strip(), p.Metaspace(), d.Sequence([d.ByteFallback(), d.Metaspace()]))
    yield "Bert", make(word_piece(), n.BertNormalizer(), p.BertPreTokenizer(), d.WordPiece())
    yield "BertCased", make(word_piece(), n.BertNormalizer(lowercase=False), p.BertPreTokenizer(), d.WordPiece(cleanup=False))
    yield "Digits", make(word_level(), n.Sequence([n.NFD(), n.StripAccents()]),
                         p.Sequence([p.WhitespaceSplit(), p.Digits(individual_digits=True), p.Punctuation("contiguous")]))
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        yield "Split_" + behavior, make(word_level(), None, p.Sequence([p.WhitespaceSplit(), p.Split("-", behavior)]))
        yield "Inverted_" + behavior, make(word_level(), None, p.Split(Regex("[a-z]+"), behavior, invert=True))
    # Its words are spelled in the characters that stand for bytes: the letters of the merges stand for themselves.
    yield "ByteLevelNormalizer", make(bpe([*MERGES[:2], ("Ġ", "low")], sorted(p.ByteLevel.alphabet())), n.Sequence([n.Lowercase(), n.ByteLevel()]), None,
                                      d.ByteLevel())
    yield "ByteLevelLower", make(unigram(), n.Lowercase(), p.ByteLevel(), d.ByteLevel())


def quoted(text):
    return '"' + "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in text.encode()) + '"'


def families():
    """Of families with one pipeline the first."""
    seen = set()
    for name, train in FAMILIES.items():
        tokenizer = train(LINES, 90)
        if tokenizer.to_str() not in seen:
            seen.add(tokenizer.to_str())
            yield name, tokenizer


def print_goldens(list_name, tokenizers, texts):
    print(f"inline const std::vector<GoldenTokenizer> {list_name} = {{")
    for name, tokenizer in tokenizers:
        print(f'{{"{name}", R"json({json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))})json", {{')
        for text in texts:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            decoded = tokenizer.decode(ids, skip_special_tokens=False)
            print(f"  {{{quoted(text)}, {{{', '.join(map(str, ids))}}}, {quoted(decoded)}}},")
        print("}},")
    print("};\n")


def main():
    print("// Written by bench/tokenizers/goldens.py: tiny tokenizers, and what Hugging Face's tokenizers makes of texts.")
    print("#pragma once\n\n#include <cstdint>\n#include <vector>\n\n// clang-format off\nnamespace kintsugi::text {\n")
    print("struct Golden {\n  const char* text;\n  std::vector<int32_t> ids;\n  const char* decoded;\n};")
    print("struct GoldenTokenizer {\n  const char* name;\n  const char* json;\n  std::vector<Golden> texts;\n};\n")
    print_goldens("kGoldens", tokenizers(), TEXTS)
    print("// The families' pipelines, trained by Hugging Face's trainers.")
    print_goldens("kFamilyGoldens", families(), FAMILY_TEXTS)
    print("}  // namespace kintsugi::text\n// clang-format on")


main()
