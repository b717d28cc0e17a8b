#!/usr/bin/env python3
"""flip.py PID SEED: flips one bit in the memory of a rank that computes on the host: in the states at the beginning of its
largest anonymous mapping (weights, then optimizer states). Prints the address."""
import random
import re
import sys

pid, seed = int(sys.argv[1]), int(sys.argv[2])
largest = (0, 0)
with open(f"/proc/{pid}/maps") as maps:
    for line in maps:
        found = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw-p [0-9a-f]+ 00:00 0 *$", line)
        if found:
            begin, end = (int(x, 16) for x in found.groups())
            if end - begin > largest[1] - largest[0]:
                largest = (begin, end)
begin, end = largest
draw = random.Random(seed)
with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
    for _ in range(1000):
        # Of a float that is no zero, a high bit of the mantissa: byte 2 of 4, little-endian.
        at = begin + 4 * draw.randrange((end - begin) // 32)
        memory.seek(at)
        value = bytearray(memory.read(4))
        if value[3] in (0, 0x80) or value == b"\0\0\0\0":
            continue
        value[2] ^= 0x20
        memory.seek(at)
        memory.write(value)
        print(hex(at))
        sys.exit(0)
sys.exit("no state found")
