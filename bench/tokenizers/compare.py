#!/usr/bin/env python3
"""Compares ids, decoded text and speed with Hugging Face's tokenizers and with sentencepiece.

usage: compare.py [--seed N] [--size N] [--megabytes N] [--rounds N] [--random N] ENCODE_TEXTS CORPUS [NAME...]

Trains one tokenizer per pipeline on CORPUS (a text file) with the trainers of these two libraries (pip install tokenizers
sentencepiece protobuf), encodes 10,000 random Unicode strings and the corpus with both programs, and prints a line per
pipeline: how many strings differ, and MB/s of processor time in one thread, in turns: the medians, and the median of the
ratios with their range. `fast` is the ratio to encode_batch_fast, which keeps no offsets. Fails where a string differs.
--random N compares N random tokenizers too (random_tokenizers.py), each with 200 strings, and what they put around texts.
NAME is a pipeline, or what names begin with; those of pipelines.py are the families', trained to --size tokens.
"""
import argparse, collections, json, os, random, statistics, struct, subprocess, sys, tempfile, time, unicodedata

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RUST_BACKTRACE"] = "0"
import sentencepiece
from pipelines import FAMILIES
from random_tokenizers import bases, draw, is_defined
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

COUNT = 10000
BYTES = [f"<0x{b:02X}>" for b in range(256)]
SPECIAL = ["<unk>", "<s>", "</s>"]


def random_texts(count, seed):
    """Words of the corpus' scripts, spaces of all kinds, punctuation, marks, and characters from all of Unicode that
    were assigned before Unicode 9: libraries disagree about later ones."""
    rng = random.Random(seed)
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


def pipelines(lines, corpus, folder, size):
    for name, make in FAMILIES.items():
        yield name, lambda make=make: make(lines, size)
    n, p, d = normalizers, pre_tokenizers, decoders
    mark = "▁"
    llama = d.Sequence([d.Replace(mark, " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)])
    words = [w for line in lines for w in line.replace(" ", " ▁").split(" ")]
    yield "words", lambda: bpe_of_words(words, llama)
    for scheme in ("always", "first", "never"):
        for split in (True, False):
            yield f"metaspace-{scheme}-{split}", lambda scheme=scheme, split=split: retarget(
                bpe(lines, None, p.Metaspace(prepend_scheme=scheme), d.Metaspace(prepend_scheme=scheme),
                    fuse_unk=split), p.Metaspace(prepend_scheme=scheme, split=split))
    yield "marks", lambda: bpe(lines, n.Replace(" ", mark), p.Split(mark, "merged_with_next"),
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
    yield "bert-small", lambda: word_piece(lines, n.BertNormalizer(), p.BertPreTokenizer())
    yield "bert-small-cased", lambda: word_piece(lines, n.BertNormalizer(lowercase=False), p.BertPreTokenizer())
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


def rate_of(texts, encode):
    """MB/s of this thread's processor time, which load on the machine changes less than time."""
    size = sum(len(text.encode()) for text in texts)
    begin = time.thread_time()
    encode(texts)
    return size / (time.thread_time() - begin) / 1e6


def encode_each(encode):
    def run(texts):
        for text in texts:
            encode(text)
    return run


def measure(run_ours, texts, encode, fast, rounds):
    """In turns, after a round that only warms up: our rates, theirs, and theirs without offsets."""
    rounds_of = [(run_ours(), rate_of(texts, encode), rate_of(texts, fast)) for _ in range(rounds + 1)][1:]
    ratios = [ours / theirs for ours, theirs, _ in rounds_of]
    median = statistics.median
    return (f"{median(r[0] for r in rounds_of):7.1f} MB/s, theirs {median(r[1] for r in rounds_of):5.2f} MB/s: "
            f"{median(ratios):5.1f} times ({min(ratios):.1f} to {max(ratios):.1f}), fast {median(r[0] / r[2] for r in rounds_of):5.1f}")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1, help="of the random strings")
    parser.add_argument("--size", type=int, default=4000, help="tokens of a family's vocabulary")
    parser.add_argument("--megabytes", type=int, default=1, help="the corpus is cut or repeated to this size to measure")
    parser.add_argument("--rounds", type=int, default=3, help="measurements; 0 measures nothing")
    parser.add_argument("--random", type=int, default=0, help="random tokenizers; with names, these alone are left out")
    parser.add_argument("program")
    parser.add_argument("corpus")
    parser.add_argument("names", nargs="*")
    return parser.parse_args()


def compare_random(options, lines, texts, folder):
    """Returns how many random tokenizers differ."""
    rng = random.Random(options.seed)
    made, differ, apart, path, file, out = bases(lines), 0, collections.Counter(), *(os.path.join(folder, n) for n in ("t.json", "texts", "out"))
    for number in range(options.random):
        try:
            document, before, after = draw(rng, made)
            theirs = Tokenizer.from_str(json.dumps(document))
        except Exception:
            apart["their reader refuses"] += 1
            continue
        some = rng.sample(texts, 200)
        json.dump(document, open(path, "w"))
        write_texts(file, some)
        done = subprocess.run([options.program, path, file, out], capture_output=True, text=True)
        if not is_defined(theirs, document):
            if done.returncode == 0:
                print(f"random {number}: two tokens of one id are read: {json.dumps(document)[:300]}")
                differ += 1
            apart["two tokens of one id"] += 1
            continue
        try:
            expected = [theirs.encode(text, add_special_tokens=False).ids for text in some]
        except BaseException:
            apart["their pattern gives up"] += 1
            continue
        if done.returncode != 0:
            if "not supported" in done.stderr or "gives up" in done.stderr:
                apart["we say that it is not supported or gives up"] += 1
                continue
            print(f"random {number}: {done.stderr.strip()[:300]}")
            differ += 1
            continue
        results = read_results(out)
        bad = [(t, e, ids) for t, e, (ids, _) in zip(some, expected, results) if ids != e]
        around = results[len(some)][0]
        if around != before + [-1] + after:
            print(f"random {number}: around texts are {around}, expected {before} and {after}")
        for text, ids, ours in bad[:1]:
            parts = {k: document[k] for k in ("normalizer", "pre_tokenizer", "added_tokens")}
            print(f"random {number}: {len(bad)} differ: {text!r:.200}\n    {ids}\n    {ours}\n    {json.dumps(parts)[:600]}")
        differ += bool(bad) or around != before + [-1] + after
    print(f"random                   {differ:5} of {options.random} differ; not compared: "
          + ", ".join(f"{n} ({why})" for why, n in sorted(apart.items())), flush=True)
    return differ


def main():
    options = arguments()
    program, corpus, names = options.program, options.corpus, options.names
    lines = open(corpus, encoding="utf-8").read().split("\n")
    whole = "\n".join(lines)
    parts = [whole[i:i + 20000] for i in range(0, len(whole), 20000)]
    texts = random_texts(COUNT, options.seed) + parts[:5]
    most = options.megabytes * 50
    measured = (parts * (most // len(parts) + 1))[:most]
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        random_file, measured_file, out = (os.path.join(folder, name) for name in ("random", "measured", "out"))
        write_texts(random_file, texts)
        write_texts(measured_file, measured)
        for name, make in pipelines(lines, corpus, folder, options.size):
            if names and not any(name.startswith(n) for n in names):
                continue
            made = make()
            if isinstance(made, str):
                path, theirs = made, sentencepiece.SentencePieceProcessor(model_file=made)
                encode, decode = theirs.encode, theirs.decode
                fast = encode_each(encode)
            else:
                path = os.path.join(folder, name + ".json")
                made.save(path)
                theirs = made  # not read from the file: Hugging Face's reader rounds the last bit of some scores
                encode = lambda text: theirs.encode(text, add_special_tokens=False).ids
                decode = lambda ids: theirs.decode(ids, skip_special_tokens=False)
                fast = lambda texts: theirs.encode_batch_fast(texts, add_special_tokens=False)
            done = subprocess.run([program, path, random_file, out], capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{name:24} {done.stderr.strip()}")
                failed = True
                continue
            bad = []
            for text, (ids, decoded) in zip(texts, read_results(out)):
                expected = encode(text)
                if ids != expected or decoded != decode(expected):
                    bad.append((text, expected, ids, decode(expected), decoded))
            for text, expected, ids, their_text, our_text in sorted(bad, key=lambda b: len(b[0]))[:2]:
                print(f"  {text!r:.200}\n    {expected} {their_text!r:.200}\n    {ids} {our_text!r:.200}")
            run_ours = lambda: float(subprocess.run([program, path, measured_file], capture_output=True, text=True).stdout)
            speed = measure(run_ours, measured, encode_each(encode), fast, options.rounds) if options.rounds else ""
            print(f"{name:24} {len(bad):5} differ   {speed}", flush=True)
            failed = failed or bool(bad)
        if options.random:
            failed = compare_random(options, lines, texts, folder) > 0 or failed
    sys.exit(failed)


main()
