"""unicode_tables.py ONIGURUMA: writes kintsugi/text/unicode_tables_*.cpp, the sets of characters that patterns name.

ONIGURUMA is a checkout of the release that Hugging Face's tokenizers bundles (6.9.10, Unicode 16.0): its
src/unicode_property_data.c lists each property as ranges. Needs tokenizers, and unicodedata2 for the characters that Unicode
has added or moved since version 14, which is what older libraries are probed for.
"""
import re
import sys
import unicodedata

import unicodedata2
from tokenizers import normalizers as n, pre_tokenizers as p

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+,-./:;<=>@[]^_`{|}~"  # 90, for deltas
LINE = 108
PARTS = 4


def plain(name):
    return re.sub(r"[ _-]", "", name).lower()


def properties(path):
    """Property name -> ranges."""
    text = open(path).read()
    arrays = {}
    for name, body in re.findall(r"^CR_(\w+)\[\] = \{ \d+,\s*(.*?)\};", text, re.M | re.S):
        numbers = [int(x, 16) for x in re.findall(r"0x[0-9a-f]+", body)]
        arrays[name] = list(zip(numbers[::2], numbers[1::2]))
    for alias, name in re.findall(r"^#define CR_(\w+) CR_(\w+)$", text, re.M):
        arrays[alias] = arrays[name]
    listed = re.search(r"^const CodeRanges\[\] = \{\n(.*?)\};", text, re.M | re.S).group(1)
    by_index = [arrays[name] for name in re.findall(r"CR_(\w+),?", listed)]
    pool = dict(re.findall(r"char unicode_prop_name_pool_str(\d+)\[sizeof\(\"(\w+)\"\)\];", text))
    found = {}
    for slot, index in re.findall(r"pool_offset\((\d+)\), *(\d+)\}", text):
        found[pool[slot]] = by_index[int(index)]
    return found


def moved():
    """Characters of another category in version 14 than later: what a library's own tables may lack, or have too much."""
    return ranges_of(c for c in range(0x110000) if unicodedata.category(chr(c)) != unicodedata2.category(chr(c)))


def ranges_of(codes):
    ranges = []
    for c in codes:
        if ranges and ranges[-1][1] == c - 1:
            ranges[-1] = (ranges[-1][0], c)
        else:
            ranges.append((c, c))
    return ranges


def others():
    """What tokenizers' other parts take a character for, whose tables are of several versions: asked one by one."""
    codes = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
    cut = lambda part: [c for c in codes if len(part.pre_tokenize_str(f"x{chr(c)}x")) > 1]
    dropped = lambda part: [c for c in codes if part.normalize_str(f"x{chr(c)}x") == "xx"]
    bert = lambda **options: n.BertNormalizer(**{**dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False), **options})
    marks = dropped(n.StripAccents())
    yield "+number", cut(p.Digits())
    yield "+punctuation", cut(p.Punctuation())
    yield "+notword", cut(p.Whitespace())
    yield "+mark", marks
    yield "+nonspacing", dropped(bert(strip_accents=True))
    yield "+control", dropped(bert(clean_text=True))
    # Newer than the tables of the normal forms: they stay, and nothing is joined to them or sorted past them.
    decomposed = lambda form, c: unicodedata2.normalize(form, chr(c))
    newer = [c for c in codes if n.NFKD().normalize_str(chr(c)) == chr(c) != decomposed("NFKD", c)
             or n.NFD().normalize_str(chr(c)) == chr(c) != decomposed("NFD", c)
             or unicodedata2.combining(chr(c)) and c not in set_of_marks(marks)]
    yield "+unnormalized", newer


def set_of_marks(marks, made={}):
    return made.setdefault("set", set(marks))


def number(value):
    """Little-endian groups of the first half of the digits, ended by one of the second half."""
    half = len(DIGITS) // 2
    text = ""
    while value >= half:
        text += DIGITS[value % half]
        value //= half
    return text + DIGITS[half + value]


def encode(ranges):
    text, at = "", 0
    for first, last in ranges:
        text += number(first - at) + number(last - first)
        at = last
    return text


def quoted(text):
    lines = [text[i:i + LINE] for i in range(0, len(text), LINE)] or [""]
    return "\n     ".join(f'"{line}"' for line in lines)


def main():
    assert unicodedata.unidata_version == "14.0.0", "run it with Python 3.11"
    found = {plain(name): tuple(ranges) for name, ranges in properties(sys.argv[1] + "/src/unicode_property_data.c").items()}
    found["+moved"] = tuple(moved())
    for name, codes in others():
        found[name] = tuple(ranges_of(codes))
    sets = {}
    for name in sorted(found):
        sets.setdefault(found[name], []).append(name)
    rows = [(" ".join(names), encode(ranges)) for ranges, names in sets.items()]
    total = sum(len(text) for _, text in rows)
    part, size = [[]], 0
    for row in rows:
        if size > total * len(part) / PARTS:
            part.append([])
        part[-1].append(row)
        size += len(row[1])
    for i, part_rows in enumerate(part):
        with open(f"kintsugi/text/unicode_tables_{i + 1}.cpp", "w") as out:
            out.write("// Written by bench/tokenizers/unicode_tables.py: sets of characters of Unicode 16.0 by name.\n")
            out.write('#include "kintsugi/text/unicode_tables.h"\n\n// clang-format off\nnamespace kintsugi::text {\n\n')
            out.write(f"const UnicodeSet kUnicodeSets{i + 1}[] = {{\n")
            for names, text in part_rows:
                short = len(names) + len(text) < LINE - 8
                out.write(f'    {{"{names} ", "{text}"}},\n' if short else f"    {{{quoted(names + ' ')},\n     {quoted(text)}}},\n")
            out.write(f"}};\nconst size_t kNumUnicodeSets{i + 1} = {len(part_rows)};\n\n}}  // namespace kintsugi::text\n// clang-format on\n")


main()
