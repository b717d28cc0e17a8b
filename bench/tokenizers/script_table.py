"""script_table.py: writes kintsugi/text/script_table.cpp, the scripts as the pre-tokenizer UnicodeScripts of Hugging Face's
tokenizers tells them apart (Hiragana and Katakana are Han), asked character by character. Needs tokenizers.
"""
from tokenizers import pre_tokenizers

CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def main():
    split = pre_tokenizers.UnicodeScripts()
    parts = lambda a, b: len(split.pre_tokenize_str(a + b))
    # A character of no script joins both neighbours.
    script, rest = {}, []
    for c in CODES:
        latin, han = parts("a", chr(c)) == 1, parts("字", chr(c)) == 1
        if latin != han:
            script[c] = 0 if latin else 1
        elif not latin:
            rest.append(c)
    firsts = ["a", "字"]
    for c in rest:
        before = script.get(c - 1)
        known = [before] if before is not None and parts(firsts[before], chr(c)) == 1 else [
            i for i, first in enumerate(firsts) if parts(first, chr(c)) == 1]
        if not known:
            known = [len(firsts)]
            firsts.append(chr(c))
        script[c] = known[0]
    ranges = []
    for c, number in sorted(script.items()):
        if ranges and ranges[-1][1] == c - 1 and ranges[-1][2] == number:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, number])
    with open("kintsugi/text/script_table.cpp", "w") as out:
        out.write("// Written by bench/tokenizers/script_table.py.\n")
        out.write('#include "kintsugi/text/script_table.h"\n\n// clang-format off\nnamespace kintsugi::text {\n\n')
        out.write("const ScriptRange kScriptRanges[] = {\n")
        line = "   "
        for first, last, number in ranges:
            row = f" {{0x{first:X}, 0x{last:X}, {number}}},"
            if len(line) + len(row) > 119:
                out.write(line + "\n")
                line = "   "
            line += row
        out.write(f"{line}\n}};\nconst size_t kNumScriptRanges = {len(ranges)};\n\n")
        out.write("}  // namespace kintsugi::text\n// clang-format on\n")


main()
