"""The pipelines of the families' published tokenizers, each trained by Hugging Face's own trainers."""
from tokenizers import AddedToken, Regex, Tokenizer, decoders as d, models, normalizers as n, pre_tokenizers as p, processors, trainers

BYTES = [f"<0x{b:02X}>" for b in range(256)]
MARK = "▁"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BLOOM = " ?[^(\\s|[.,!?…。，、।۔،])]+"
# Syntax that PCRE2 lacks: an intersection of classes, and a look-behind.
INTERSECTION = r"[\p{L}&&[^A-Z]]+|[A-Z]+(?<=[A-Z])| ?[[:punct:]&&[^'_]]+|\s+(?!\S)|\s|\p{N}{1,3}|."
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def train_byte_level(lines, size, pre_tokenizer, special=("<|endoftext|>",), normalizer=None, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, d.ByteLevel()
    if normalizer: tokenizer.normalizer = normalizer
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size + 256, special_tokens=list(special), initial_alphabet=p.ByteLevel.alphabet(), show_progress=False))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def split_bytes(pattern):
    return p.Sequence([p.Split(Regex(pattern), "isolated"), p.ByteLevel(add_prefix_space=False, use_regex=False)])


def train_sentencepiece_bpe(lines, size, normalizer, pre_tokenizer, decoder, special=("<unk>", "<s>", "</s>"), **options):
    """BPE over characters, trained on words: the published ones have no token with a space behind another character."""
    tokenizer = Tokenizer(models.BPE(unk_token=special[0], byte_fallback=True, **options))
    words = (word for line in lines for word in line.replace(" ", " " + MARK).split(" "))
    tokenizer.train_from_iterator(words, trainers.BpeTrainer(
        vocab_size=size + len(BYTES), special_tokens=[*special, *BYTES], limit_alphabet=200, show_progress=False))
    # The byte tokens are of the model alone: what is special is found in texts.
    made = Tokenizer(tokenizer.model)
    made.add_special_tokens(list(special))
    if normalizer: made.normalizer = normalizer
    if pre_tokenizer: made.pre_tokenizer = pre_tokenizer
    made.decoder = decoder
    return made


def train_llama2(lines, size):
    return train_sentencepiece_bpe(lines, size, n.Sequence([n.Prepend(MARK), n.Replace(" ", MARK)]), None,
                                   d.Sequence([d.Replace(MARK, " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)]), fuse_unk=True)


def train_mistral(lines, size):
    """As its folder is written since Metaspace can be without cuts."""
    return train_sentencepiece_bpe(lines, size, None, p.Metaspace(prepend_scheme="first", split=False),
                                   d.Sequence([d.Replace(MARK, " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)]), fuse_unk=True)


def train_phi3(lines, size):
    tokenizer = train_llama2(lines, size)
    tokenizer.add_special_tokens([AddedToken(t, rstrip=True, normalized=False) for t in ("<|user|>", "<|assistant|>", "<|end|>")])
    return tokenizer


def train_gemma3(lines, size):
    # The normalizer leaves no space: its pre-tokenizer cuts nothing.
    tokenizer = train_sentencepiece_bpe(lines, size, n.Replace(" ", MARK), p.Split(" ", "merged_with_previous"),
                                        d.Sequence([d.Replace(MARK, " "), d.ByteFallback(), d.Fuse()]),
                                        special=("<unk>", "<pad>", "<eos>", "<bos>"), fuse_unk=True)
    tokenizer.add_tokens([AddedToken(c * k, normalized=False) for k in (2, 3, 4) for c in ("\n", MARK)])
    return tokenizer


def train_neox(lines, size):
    tokenizer = train_byte_level(lines, size, p.ByteLevel(add_prefix_space=False), ("<|endoftext|>", "<|padding|>"), n.NFC())
    tokenizer.add_tokens([AddedToken(" " * k, normalized=True) for k in range(2, 8)])
    return tokenizer


def train_gptj(lines, size):
    tokenizer = train_byte_level(lines, size, p.ByteLevel(add_prefix_space=False))
    tokenizer.add_tokens([AddedToken(f"<|extratoken_{i}|>", normalized=True) for i in (1, 2, 3)])
    return tokenizer


def train_bert(lines, size, lowercase):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = n.BertNormalizer(lowercase=lowercase), p.BertPreTokenizer()
    tokenizer.decoder = d.WordPiece()
    tokenizer.train_from_iterator(lines, trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=special, limit_alphabet=200, show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


LLAMA3_SPECIAL = ("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>")

# name -> tokenizer trained on lines to about `size` tokens besides single bytes
FAMILIES = {
    "gpt2": lambda lines, size: train_byte_level(lines, size, p.ByteLevel(add_prefix_space=False)),
    "gptj": train_gptj,
    "gptneox": train_neox,
    "olmo": train_neox,
    "olmo2": lambda lines, size: train_byte_level(lines, size, split_bytes(LLAMA3)),
    "llama3": lambda lines, size: train_byte_level(lines, size, split_bytes(LLAMA3), LLAMA3_SPECIAL, ignore_merges=True),
    "smollm2": lambda lines, size: train_byte_level(
        lines, size, p.Sequence([p.Digits(individual_digits=True), p.ByteLevel(add_prefix_space=False)])),
    "smollm3": lambda lines, size: train_byte_level(lines, size, split_bytes(LLAMA3), LLAMA3_SPECIAL, ignore_merges=True),
    "qwen2": lambda lines, size: train_byte_level(lines, size, split_bytes(QWEN2), ("<|endoftext|>", "<|im_start|>", "<|im_end|>"), n.NFC()),
    "bloom": lambda lines, size: train_byte_level(lines, size, split_bytes(BLOOM), ("<unk>", "<s>", "</s>", "<pad>")),
    "intersection": lambda lines, size: train_byte_level(lines, size, split_bytes(INTERSECTION)),
    "llama2": train_llama2,
    "mistral": train_mistral,
    "phi3": train_phi3,
    "gemma3": train_gemma3,
    "bert-uncased": lambda lines, size: train_bert(lines, size, True),
    "bert-cased": lambda lines, size: train_bert(lines, size, False),
}
