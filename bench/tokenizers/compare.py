#!/usr/bin/env python3
"""Compares ids, decoded text and speed with Hugging Face's tokenizers and with sentencepiece.

usage: compare.py ENCODE_TEXTS CORPUS [NAME...]

Trains one tokenizer per family on CORPUS (a text file) with the trainers of these two libraries (pip install tokenizers
sentencepiece), encodes 10,000 random Unicode strings and the corpus with both programs, and prints a line per family:
how many strings differ, and MB/s in one thread. Fails where a string differs.
"""
import os, random, struct, subprocess, sys, tempfile, time, unicodedata

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
import sentencepiece
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

COUNT = 10000
BYTES = [f"<0x{b:02X}>" for b in range(256)]
SPECIAL = ["<unk>", "<s>", "</s>"]


def random_texts(count):
    """Words of the corpus' scripts, spaces of all kinds, punctuation, marks, and characters from all of Unicode that
    were assigned before Unicode 9: libraries disagree about later ones."""
    rng = random.Random(1)
    old = [c for c in map(chr, range(1, 0x30000)) if unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Cs", "Co")]
    words = ["the", "Hello", "don't", "do not", "I'm", "naïve", "Ünï", "日本語", "мир", "ﬁne", "e\u0301", "①", "Ⅷ", "½", "İ",
             "가각", "ㄱ", "กำ", "हिन्दी", "👍🏽", "👨‍👩‍👧", "…", "''", "##", "▁", "</s>", "<s>", "<unk>", "[SEP]", "1234", "３", "٣"]
    spaces = [" ", "  ", "\n", "\t", "\r\n", "\u00a0", "\u3000", "\u200b", "\u2028", "\ufeff", "\u00ad", "\x7f", "   \n "]
    marks = list("!?.,;:'\"()[]{}<>@#$%^&*-_=+|\\/~`") + ["—", "«", "»", "。", "、", "€", "٪"]
    texts = []
    for _ in range(count):
        parts = []
        for _ in range(rng.randrange(0, 24)):
            kind = rng.randrange(10)
            if kind < 3:
                parts.append(rng.choice(words))
            elif kind < 6:
                parts.append(" " if rng.randrange(3) else rng.choice(spaces))
            elif kind < 7:
                parts.append(rng.choice(marks))
            elif kind < 9:
                parts.append("".join(rng.choice("aabcdeeefghiijklmnoopqrssttuvwxyz") for _ in range(rng.randrange(1, 9))))
            else:
                parts.append(rng.choice(old))
        texts.append("".join(parts))
    return texts


def bpe(lines, normalizer, splitter, decoder, alphabet=(), **options):
    trained = {k: v for k, v in options.items() if k in ("continuing_subword_prefix", "end_of_word_suffix")}
    tokenizer = Tokenizer(models.BPE(unk_token=None if alphabet else "<unk>", **options))
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, splitter, decoder
    special = SPECIAL + (BYTES if options.get("byte_fallback") else [])
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=4000, special_tokens=special, initial_alphabet=list(alphabet), limit_alphabet=max(200, len(alphabet)),
        show_progress=False, **trained))
    return tokenizer


def unigram(lines, normalizer, splitter, decoder, **options):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, splitter, decoder
    tokenizer.train_from_iterator(lines, trainers.UnigramTrainer(
        vocab_size=4000, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False))
    return tokenizer


def word_piece(lines, normalizer, splitter):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, splitter, decoders.WordPiece()
    tokenizer.train_from_iterator(lines, trainers.WordPieceTrainer(
        vocab_size=4000, special_tokens=["[UNK]", "[CLS]", "[SEP]"], limit_alphabet=200, show_progress=False))
    return tokenizer


def word_level(lines, splitter):
    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.NFD(), normalizers.StripAccents(),
                                                 normalizers.Lowercase()])
    tokenizer.pre_tokenizer = splitter
    tokenizer.train_from_iterator(lines, trainers.WordLevelTrainer(vocab_size=4000, special_tokens=SPECIAL,
                                                                   show_progress=False))
    return tokenizer


def sentence_piece(corpus, folder, kind, **options):
    prefix = os.path.join(folder, kind)
    sentencepiece.SentencePieceTrainer.train(input=corpus, model_prefix=prefix, model_type=kind, vocab_size=3000,
                                             hard_vocab_limit=False, minloglevel=2, **options)
    return prefix + ".model"


def charsmap_of(path):
    from sentencepiece import sentencepiece_model_pb2 as pb  # needs protobuf
    model = pb.ModelProto()
    model.ParseFromString(open(path, "rb").read())
    return model.normalizer_spec.precompiled_charsmap


def families(lines, corpus, folder):
    n, p, d = normalizers, pre_tokenizers, decoders
    mark = "▁"
    llama = d.Sequence([d.Replace(mark, " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)])
    words = [w for line in lines for w in line.replace(" ", " ▁").split(" ")]
    yield "llama", lambda: bpe_of_words(words, llama)
    for scheme in ("always", "first", "never"):
        for split in (True, False):
            yield f"metaspace-{scheme}-{split}", lambda scheme=scheme, split=split: retarget(
                bpe(lines, None, p.Metaspace(prepend_scheme=scheme), d.Metaspace(prepend_scheme=scheme),
                    fuse_unk=split), p.Metaspace(prepend_scheme=scheme, split=split))
    yield "gemma", lambda: bpe(lines, n.Replace(" ", mark), p.Split(mark, "merged_with_next"),
                               d.Sequence([d.Replace(mark, " "), d.ByteFallback(), d.Fuse()]),
                               byte_fallback=True, fuse_unk=True)
    yield "suffix", lambda: bpe(lines, n.Sequence([n.NFC(), n.Lowercase()]), p.BertPreTokenizer(),
                                d.BPEDecoder(), end_of_word_suffix="</w>")
    yield "prefix", lambda: bpe(lines, n.NFKC(), p.Whitespace(), d.WordPiece(), continuing_subword_prefix="##")
    yield "byte-level", lambda: bpe(lines, n.NFC(), p.ByteLevel(add_prefix_space=True), d.ByteLevel(),
                                    p.ByteLevel.alphabet())
    yield "byte-level-lower", lambda: bpe(lines, n.Lowercase(), p.ByteLevel(add_prefix_space=True), d.ByteLevel(),
                                          p.ByteLevel.alphabet())
    yield "unigram", lambda: unigram(lines, n.NFKC(), p.Metaspace(), d.Metaspace())
    yield "unigram-nmt", lambda: unigram(lines, n.Sequence([n.Nmt(), n.NFKD(), n.StripAccents(),
                                                            n.Replace(Regex(" {2,}"), " ")]),
                                         p.Sequence([p.WhitespaceSplit(), p.Metaspace()]), d.Metaspace())
    yield "bert", lambda: word_piece(lines, n.BertNormalizer(), p.BertPreTokenizer())
    yield "bert-cased", lambda: word_piece(lines, n.BertNormalizer(lowercase=False), p.BertPreTokenizer())
    yield "whitespace", lambda: word_level(lines, p.Sequence([p.Whitespace(), p.Digits(individual_digits=True)]))
    yield "digits", lambda: word_level(lines, p.Sequence([p.WhitespaceSplit(), p.Digits(), p.Punctuation()]))
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        yield f"split-{behavior}", lambda b=behavior: word_level(lines, p.Sequence([p.Split(Regex("[ae]"), b),
                                                                                   p.Punctuation(b)]))
        yield f"inverted-{behavior}", lambda b=behavior: word_level(lines, p.Split(Regex("[a-m]+"), b, invert=True))
    yield "precompiled", lambda: unigram(lines, n.Precompiled(charsmap_of(sentence_piece(corpus, folder, "unigram"))),
                                         p.Metaspace(), d.Metaspace())
    yield "spm-bpe", lambda: sentence_piece(corpus, folder, "bpe", byte_fallback=True,
                                            normalization_rule_name="identity", remove_extra_whitespaces=False)
    yield "spm-bpe-nfkc", lambda: sentence_piece(corpus, folder, "bpe", user_defined_symbols=["<sep>", "ab"])
    yield "spm-unigram", lambda: sentence_piece(corpus, folder, "unigram")
    yield "spm-unigram-bytes", lambda: sentence_piece(corpus, folder, "unigram", byte_fallback=True,
                                                      add_dummy_prefix=False, user_defined_symbols=["<sep>", "ab"])
    yield "spm-char", lambda: sentence_piece(corpus, folder, "char")
    yield "spm-word", lambda: sentence_piece(corpus, folder, "word")


def bpe_of_words(words, decoder):
    """As Llama 2: no pre-tokenizer, so that the whole text is one word. Trained on words."""
    tokenizer = bpe(words, None, None, decoder, byte_fallback=True, fuse_unk=True)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return tokenizer


def retarget(tokenizer, splitter):
    tokenizer.pre_tokenizer = splitter
    return tokenizer


def write_texts(path, texts):
    with open(path, "wb") as file:
        for text in texts:
            data = text.encode()
            file.write(struct.pack("<I", len(data)) + data)


def read_results(path):
    data, at, results = open(path, "rb").read(), 0, []
    while at < len(data):
        (count,) = struct.unpack_from("<I", data, at)
        ids = list(struct.unpack_from(f"<{count}i", data, at + 4))
        at += 4 + 4 * count
        (size,) = struct.unpack_from("<I", data, at)
        results.append((ids, data[at + 4:at + 4 + size].decode(errors="replace")))
        at += 4 + size
    return results


def best_rate(texts, encode):
    size = sum(len(text.encode()) for text in texts)
    best = 0
    for _ in range(2):
        begin = time.perf_counter()
        for text in texts:
            encode(text)
        best = max(best, size / (time.perf_counter() - begin) / 1e6)
    return best


def main():
    program, corpus, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    lines = open(corpus, encoding="utf-8").read().split("\n")
    texts = random_texts(COUNT)
    whole = "\n".join(lines)
    parts = [whole[i:i + 20000] for i in range(0, len(whole), 20000)]
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        random_file, corpus_file, out = (os.path.join(folder, name) for name in ("random", "corpus", "out"))
        write_texts(random_file, texts + parts[:5])
        write_texts(corpus_file, parts)
        for name, make in families(lines, corpus, folder):
            if names and not any(name.startswith(n) for n in names):
                continue
            made = make()
            if isinstance(made, str):
                path, theirs = made, sentencepiece.SentencePieceProcessor(model_file=made)
                encode, decode = theirs.encode, theirs.decode
            else:
                path = os.path.join(folder, name + ".json")
                made.save(path)
                theirs = made  # not read from the file: Hugging Face's reader rounds the last bit of some scores
                encode = lambda text: theirs.encode(text, add_special_tokens=False).ids
                decode = lambda ids: theirs.decode(ids, skip_special_tokens=False)
            done = subprocess.run([program, path, random_file, out], capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{name:24} {done.stderr.strip()}")
                failed = True
                continue
            bad = []
            for text, (ids, decoded) in zip(texts + parts[:5], read_results(out)):
                expected = encode(text)
                if ids != expected or decoded != decode(expected):
                    bad.append((text, expected, ids, decode(expected), decoded))
            for text, expected, ids, their_text, our_text in sorted(bad, key=lambda b: len(b[0]))[:2]:
                print(f"  {text!r:.200}\n    {expected} {their_text!r:.200}\n    {ids} {our_text!r:.200}")
            ours = float(subprocess.run([program, path, corpus_file], capture_output=True, text=True).stdout)
            rate = best_rate(parts, encode)
            print(f"{name:24} {len(bad):5} differ   {ours:8.1f} MB/s, theirs {rate:6.2f} MB/s: {ours / rate:5.1f} times",
                  flush=True)
            failed = failed or bool(bad)
    sys.exit(failed)


main()
