"""Random tokenizer.json files for compare.py: patterns over the whole syntax, behaviours, added tokens, templates, and
vocabularies with gaps and repeated merges."""
import json

from patterns import PUBLISHED, Drawer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers as p, trainers

WORDS = ["the", "Hello", "don't", "a b", "<x>", "[SEP]", "</s>", " lead", "trail ", "日本", "naïve", "12", "\n\n", "ab", "X"]


def bases(lines):
    """One small model of each kind, as JSON."""
    byte_level = Tokenizer(models.BPE())
    byte_level.pre_tokenizer, byte_level.decoder = p.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    byte_level.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=600, initial_alphabet=p.ByteLevel.alphabet(), show_progress=False))
    characters = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    characters.train_from_iterator([w for line in lines for w in line.split(" ")], trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<unk>"], limit_alphabet=150, show_progress=False))
    words = Tokenizer(models.WordLevel(unk_token="<unk>"))
    words.pre_tokenizer = p.Whitespace()
    words.train_from_iterator(lines, trainers.WordLevelTrainer(vocab_size=600, special_tokens=["<unk>"], show_progress=False))
    pieces = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    pieces.pre_tokenizer = p.Whitespace()
    pieces.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=600, special_tokens=["[UNK]"], limit_alphabet=150, show_progress=False))
    return [json.loads(t.to_str()) for t in (byte_level, byte_level, characters, words, pieces)]


def splitter(r, drawer):
    kind = r.randrange(8)
    if kind < 5:
        pattern = r.choice(PUBLISHED) if kind == 0 else drawer.alternatives()
        behavior = r.choice(["Isolated", "Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"])
        return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": r.random() < 0.2}
    return r.choice([{"type": "Digits", "individual_digits": r.random() < 0.5}, {"type": "Punctuation", "behavior": "Isolated"},
                     {"type": "UnicodeScripts"}, {"type": "FixedLength", "length": r.choice([1, 3, 5])},
                     {"type": "CharDelimiterSplit", "delimiter": r.choice(" ea")}, {"type": "WhitespaceSplit"},
                     {"type": "Split", "pattern": {"String": r.choice([" ", "e", "th", "\n"])}, "behavior": "Isolated", "invert": False}])


def irregular(r, model):
    """Gaps between ids, and merges that are there twice."""
    vocab = model["vocab"]
    if r.random() < 0.4:
        first, width = r.randrange(300, 500), r.choice([1, 5, 300])
        model["vocab"] = {t: i if i < first else i + width for t, i in vocab.items()}
    if model.get("merges") and r.random() < 0.4:
        model["merges"] += [r.choice(model["merges"][-50:]) for _ in range(3)]


def draw(r, bases_):
    """A tokenizer.json, and the ids before and behind each text."""
    document = json.loads(json.dumps(r.choice(bases_)))
    drawer = Drawer(r.random())
    byte_level = bool(document["pre_tokenizer"]) and document["pre_tokenizer"]["type"] == "ByteLevel"
    steps = [splitter(r, drawer) for _ in range(r.choice([1, 1, 2]))]
    if byte_level:
        steps.append({"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": r.random() < 0.3})
    document["pre_tokenizer"] = steps[0] if len(steps) == 1 else {"type": "Sequence", "pretokenizers": steps}
    document["normalizer"] = r.choice([None, None, {"type": "NFC"}, {"type": "Lowercase"}, {"type": "NFKC"},
                                       {"type": "Replace", "pattern": {"Regex": r.choice([" {2,}", "[0-9]", "e$", "^t"])}, "content": "x"}])
    irregular(r, document["model"])
    flag = lambda: r.random() < 0.25
    document["added_tokens"] = [
        {"id": r.choice([len(document["model"]["vocab"]) + i, 2000 + i, 5]), "content": r.choice(WORDS), "single_word": flag(),
         "lstrip": flag(), "rstrip": flag(), "normalized": flag(), "special": flag()} for i in range(r.choice([0, 1, 3]))]
    tokenizer = Tokenizer.from_str(json.dumps(document))
    ids = tokenizer.get_vocab()
    names = [n for n in ids if n.strip()]
    before, after = ([r.choice(names) for _ in range(r.choice([0, 0, 1, 2]))] for _ in range(2))
    piece = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}
    body = lambda name, kind: {"Sequence": {"id": name, "type_id": kind}}
    if before or after:
        document["post_processor"] = {
            "type": "TemplateProcessing", "single": [*map(piece, before), body("A", 0), *map(piece, after)],
            "pair": [*map(piece, before), body("A", 0), body("B", 1), *map(piece, after)],
            "special_tokens": {n: {"id": n, "ids": [ids[n]], "tokens": [n]} for n in before + after}}
    return document, [ids[n] for n in before], [ids[n] for n in after]


def is_defined(tokenizer, document):
    """Whether no two tokens have one id: else what ids mean follows from the order of a hash table."""
    ids = list(tokenizer.get_vocab().values())
    return len(set(ids)) == len(ids)
