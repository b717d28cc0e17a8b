"""patterns.py SPLIT_TEXTS [--seed N] [--patterns N] [--texts N]: random patterns of Oniguruma's whole syntax, split as
Hugging Face's tokenizers split. Prints each difference and ends with 1 if there is one. Patterns that both refuse are
not counted, nor are those that only they refuse or give up at, and \\b in a look-behind; another that only we refuse is a difference.
"""
import argparse
import os
import random
import struct
import subprocess
import sys
import tempfile

from tokenizers import Regex, pre_tokenizers as p

PROPERTIES = ["L", "N", "P", "S", "M", "Z", "C", "Lu", "Ll", "Lo", "Lm", "Nd", "No", "Mn", "Sc", "Han", "Greek", "Latin",
              "Hiragana", "Cyrillic", "Alpha", "alnum", "Word", "Emoji", "Uppercase", "In_Cyrillic", "^L", "^Nd", "Any"]
POSIX = ["alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit", "word"]
LETTERS = "abcdeABCstfiKS019 \n_'-.,!é中αβДß"
NEW = "\U00031350\U000323af\U0001e4d0\U00010d40\U00010d50\U00010d70\u1c89\ua7cb\u0264\U00016d40\U000105c0"
PUBLISHED = [
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?"
    r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    " ?[^(\\s|[.,!?…。，、।۔،])]+", r"[\p{L}&&[^c]]+", r"(?<=[a-z])(?=[A-Z])", r"^\w", r"\h", r"[a[0-9]]+", r"(?=(\d{3})+(?!\d))",
    r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
]


class Drawer:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def pick(self, *makers):
        return self.r.choice(makers)()

    def escape(self, in_class):
        r = self.r
        kinds = [lambda: r"\p{%s}" % r.choice(PROPERTIES), lambda: r"\P{%s}" % r.choice(PROPERTIES), lambda: "\\" + r.choice("wWdDsShH"),
                 lambda: "\\" + r.choice("nrtfv"), lambda: "\\" + r.choice("-.*+?()[]|^$\\/#& "), lambda: r"\x{%x}" % ord(r.choice(LETTERS)),
                 lambda: r"\u%04x" % r.randrange(0x20, 0x500), lambda: r"\x%02x" % r.randrange(0x20, 0x7f), lambda: "\\pL"]
        if not in_class:
            kinds += [lambda: "\\" + r.choice("bBAzZGRNOK"), lambda: "\\" + r.choice("bB")]
        return r.choice(kinds)()

    def member(self, depth):
        r = self.r
        def span():
            a, b = sorted(r.sample(LETTERS.replace("-", "") , 2))
            return f"{a}-{b}" if a not in "^&]" else a
        kinds = [lambda: r.choice(LETTERS), lambda: r.choice(LETTERS), span, lambda: self.escape(True), lambda: self.escape(True),
                 lambda: "[:%s%s:]" % (r.choice(["", "", "^"]), r.choice(POSIX)), lambda: r.choice("(|.^$*&"), lambda: r.choice(NEW)]
        if depth < 2: kinds += [lambda: self.brackets(depth + 1)]
        return r.choice(kinds)()

    def brackets(self, depth=0):
        r = self.r
        operand = lambda: "".join(self.member(depth) for _ in range(r.randrange(1, 4)))
        inside = "&&".join(operand() for _ in range(r.choice([1, 1, 1, 1, 2, 3])))
        if r.random() < 0.1: inside = "-" + inside
        if r.random() < 0.1: inside += "-"
        if r.random() < 0.04: inside = "]" + inside
        return "[" + r.choice(["", "", "^"]) + inside + "]"

    def atom(self, depth):
        r = self.r
        kinds = [lambda: r.choice(LETTERS.replace(".", "")), lambda: r.choice(LETTERS.replace(".", "")), lambda: ".", lambda: self.escape(False),
                 lambda: self.escape(False), self.brackets, self.brackets, lambda: r.choice(["^", "$"]), lambda: r.choice(NEW)]
        if depth < 3:
            inner = lambda: self.alternatives(depth + 1)
            kinds += [lambda: "(?:%s)" % inner(), lambda: "(%s)" % inner(), lambda: "(?i:%s)" % inner(), lambda: "(?=%s)" % inner(),
                      lambda: "(?!%s)" % inner(), lambda: "(?<=%s)" % self.atom(3), lambda: "(?<!%s)" % self.atom(3), lambda: "(?>%s)" % inner(),
                      lambda: "(?%s)" % r.choice(["i", "m", "x", "-i", "im"]), lambda: "(?m:%s)" % inner(), lambda: "(?x: %s #c\n)" % inner(),
                      lambda: "(?#note)", lambda: "(?W:%s)" % inner(), lambda: "(?DS:%s)" % inner(), lambda: "(?P:%s)" % inner(),
                      lambda: "(?<n>%s)" % inner()]
        return r.choice(kinds)()

    def element(self, depth):
        r = self.r
        text = self.atom(depth)
        bare = text in ("^", "$") or text[:3] in ("(?=", "(?!", "(?#") or text[:2] == "(?" and text[-1] == ")" and ":" not in text and ">" not in text \
            or text[:3] == "(?<" or len(text) == 2 and text[0] == "\\" and text[1] in "bBAzZGK"
        if r.random() < (0.02 if bare else 0.4):
            text += r.choice(["?", "*", "+", "+", "{2}", "{1,3}", "{2,}", "{,2}", "??", "*?", "+?", "?+", "*+", "++", "{1,2}?", "{2}+", "{2}?"])
        return text

    def alternatives(self, depth=0):
        r = self.r
        return "|".join("".join(self.element(depth) for _ in range(r.randrange(1, 4))) for _ in range(r.choice([1, 1, 2, 3])))

    def text(self):
        r = self.r
        alphabet = r.choice([LETTERS, LETTERS + NEW, "aAbB1 \n", "".join(map(chr, (r.randrange(0x20, 0x3000) for _ in range(30)))) + "ab 1",
                             "SsſKkKßﬀﬁﬆİiı'tm d", NEW + "a \t"])
        return "".join(r.choice(alphabet) for _ in range(r.choice([1, 3, 8, 20])))


def record(text):
    data = text.encode()
    return struct.pack("<I", len(data)) + data


def theirs(pattern, texts):
    try:
        split = p.Split(Regex(pattern), "isolated")
        matched = p.Split(Regex(pattern), "removed")
    except Exception as error:
        return "refused"
    try:
        return [([e for _, (_, e) in split.pre_tokenize_str(t)], [e for _, (_, e) in matched.pre_tokenize_str(t)]) for t in texts]
    except BaseException:
        return "gives up"


def ours(line, texts):
    if line.startswith("refused"): return "gives up" if "gives up" in line else "refused"
    found = []
    for text, pieces in zip(texts, line[1:].split(";")):
        chars = {0: 0}
        at = 0
        for i, c in enumerate(text):
            at += len(c.encode())
            chars[at] = i + 1
        all_ends, kept, before = [], [], 0
        for piece in pieces.split():
            end = chars[int(piece.rstrip("*"))]
            if end > before:
                all_ends.append(end)
                if not piece.endswith("*"): kept.append(end)
            before = end
        found.append((all_ends, kept))
    return found


def run_ours(program, patterns, texts):
    """A line of the program for each pattern."""
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, n) for n in ("patterns", "texts", "output")]
        open(names[0], "wb").write(b"".join(map(record, patterns)))
        open(names[1], "wb").write(b"".join(map(record, texts)))
        subprocess.run([program, *names], check=True)
        lines = open(names[2]).read().split("\n")[:-1]
    merged = []
    for line in lines:  # an error may hold a line break of its pattern
        if line[:1] in "+-" and ";" in line or line.startswith("refused: ["): merged.append(line)
        else: merged[-1] += "\n" + line
    assert len(merged) == len(patterns), (len(merged), len(patterns))
    return merged


def differs(want, got, line):
    return want not in ("refused", "gives up", got) and "not supported" not in line


def shrink(program, pattern, text):
    """A shorter pattern with a difference on that text."""
    size = len(pattern) // 2
    while size > 0:
        tries = [pattern[:i] + pattern[i + size:] for i in range(0, len(pattern) - size + 1, max(1, size // 2))]
        lines = run_ours(program, tries, [text])
        for shorter, line in zip(tries, lines):
            want = theirs(shorter, [text])
            got = ours(line, [text])
            if isinstance(want, list) and isinstance(got, list) and want != got:
                pattern = shorter
                break
        else:
            size //= 2
            continue
        size = min(size, len(pattern) // 2)
    return pattern


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patterns", type=int, default=2000)
    parser.add_argument("--texts", type=int, default=50)
    options = parser.parse_args()
    draw = Drawer(options.seed)
    patterns = PUBLISHED + [draw.alternatives() for _ in range(options.patterns)]
    texts = [draw.text() for _ in range(options.texts)]
    merged = run_ours(options.program, patterns, texts)
    fast = refused = different = 0
    for pattern, line in zip(patterns, merged):
        want, got = theirs(pattern, texts), ours(line, texts)
        fast += line.startswith("+")
        refused += want == "refused"
        if not differs(want, got, line): continue
        different += 1
        if different > 20: continue
        print(repr(pattern), line[0])
        if isinstance(want, str) or isinstance(got, str):
            print("   theirs:", want if isinstance(want, str) else "accepted", " ours:", line[:300] if isinstance(got, str) else "accepted")
        else:
            i = next(i for i in range(len(texts)) if want[i] != got[i])
            print("   ", ascii(texts[i]), "theirs", want[i], "ours", got[i])
            print("    shorter:", repr(shrink(options.program, pattern, texts[i])))
    print(f"{len(patterns)} patterns, {refused} refused by both or by theirs, {fast} in the common subset, {len(texts)} texts each: {different} differences")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
