#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the element-wise loops with two C libraries and compares the results.

Usage: elsewhere-loops.py FOLDER OTHER, two build folders with generated loops of the level
`baseline`, which call only the C library: a program that contains nothing else can be linked where
there is no GLib. The first is linked by musl-gcc, the other by gcc.

Integers and bools must be equal, and so must infinities and NaNs. Both libraries err by few units
in the last place, which an expression can amplify; using a float function in place of the double
one loses half of the digits, 29 bits, and a wrong function all of them. So at most the last 13 of
53 bits may differ, of floats the last 8 of 24; for results below 1 the tolerance is relative to 1.
"""

import math
import pathlib
import re
import struct
import subprocess
import sys

LOOP = re.compile(
    r"^void GTORCH_ISA_SYMBOL \((?P<name>\w+)\).*?\n\{\n(?P<body>.*?)^  GTORCH_(?:VECTOR_)?LOOP_(?P<inputs>[1-3]) "
    r"\((?P<output>[^,]+), (?P<type>[^,]+),",
    re.MULTILINE | re.DOTALL,
)
ATTR_INT = re.compile(r"attrs\[(\d)\]\.(?:number\.)?i\b")

# C type -> letter of the struct module, numbers of that letter, bits that must agree (None: all).
TYPES = {
    "float": ("f", 1, 16),
    "double": ("d", 1, 40),
    "float _Complex": ("f", 2, 16),
    "double _Complex": ("d", 2, 40),
    "GTorchComplex64": ("f", 2, 16),
    "GTorchComplex128": ("d", 2, 40),
    "gint32": ("i", 1, None),
    "gint64": ("q", 1, None),
    "guint8": ("B", 1, None),
}
N = 96  # more than the buffer of the loops, and not a multiple of it
SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, -0.5, 1e-30, 1e30, 3.0]

PROGRAM = """
#include <stdio.h>
#include <string.h>
typedef union { long i; double d; struct { double d; long i; int is_int; } number; void *list[2]; } Attr;
typedef void Loop (char *const *, const long *, long, const Attr *);
%(declarations)s
static const struct { const char *name; Loop *loop; int inputs, in_size, out_size; unsigned ints; } loops[] = {
%(entries)s
};
static char buffers[4][%(n)d * 16];

int
main (void)
{
  for (unsigned l = 0; l < sizeof loops / sizeof *loops; l++)
    {
      char *data[4];
      long strides[4] = { loops[l].out_size, loops[l].in_size, loops[l].in_size, loops[l].in_size };
      Attr attrs[4];

      for (int i = 0; i < 4; i++)
        {
          memset (&attrs[i], 0, sizeof attrs[i]);
          attrs[i].number.i = 2;
          if (loops[l].ints >> i & 1)
            attrs[i].i = 2;
          else
            attrs[i].d = 0.75;
          data[i] = buffers[i];
        }
      for (int i = 0; i < loops[l].inputs; i++)
        if (fread (buffers[i + 1], loops[l].in_size, %(n)d, stdin) != %(n)d)
          return 1;
      loops[l].loop (data, strides, %(n)d, attrs);
      if (fwrite (buffers[0], loops[l].out_size, %(n)d, stdout) != %(n)d)
        return 1;
    }
  return 0;
}
"""


class Loop:
    def __init__(self, match):
        self.name = match["name"]
        self.n_inputs = int(match["inputs"])
        self.input, self.output = TYPES[match["type"].strip()], TYPES[match["output"].strip()]
        self.ints = sum({1 << int(i) for i in ATTR_INT.findall(match["body"])})

    def size(self, kind):
        return struct.calcsize("=" + kind[0]) * kind[1]

    def entry(self):
        return (f'  {{ "{self.name}", {self.name}_baseline, {self.n_inputs}, {self.size(self.input)}, '
                f"{self.size(self.output)}, {self.ints} }},")

    def inputs(self, noise):
        """Special values, except for complex numbers, where libraries differ; then noise."""
        letter, parts, _ = self.input
        out = b""
        for operand in range(self.n_inputs):
            values = []
            for i in range(N * parts):
                if letter == "B":
                    values.append(noise() & 1)
                elif letter in "iq":
                    values.append(noise() % 17 - 8)
                elif parts == 1 and i < 72:
                    values.append(SPECIAL[i % 12 if operand == 0 else (i + i // 12 * (operand + 1)) % 12])
                else:
                    values.append((noise() % 65536 - 32768) / 8192)
            out += struct.pack(f"={len(values)}{letter}", *values)
        return out


def noise_from(state):
    def noise():
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return state >> 40

    return noise


def differ(a, b, bits):
    if bits is None or a == b:
        return a != b
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) != math.isnan(b)
    return math.isinf(a) or math.isinf(b) or abs(a - b) > max(1, abs(a), abs(b)) * 2.0**-bits


def outputs(compiler, folder, loops, stdin):
    program = folder / "loops"
    entries = {
        "n": N,
        "declarations": "\n".join(f"extern Loop {loop.name}_baseline;" for loop in loops),
        "entries": "\n".join(loop.entry() for loop in loops),
    }
    archives = [folder / f"gtorch/cpu/libgtorch-{part}-baseline.a" for part in ("loops", "isa")]
    program.with_suffix(".c").write_text(PROGRAM % entries)
    subprocess.run(
        [*compiler, "-o", program, program.with_suffix(".c"), *archives, "-lm"],
        check=True,
    )
    return subprocess.run([program], input=stdin, stdout=subprocess.PIPE, check=True).stdout


def main():
    folders = [pathlib.Path(name) for name in sys.argv[1:3]]
    loops = []
    for path in sorted((folders[0] / "gtorch").glob("gtorch-loops-*.c")):
        text = path.read_text()
        found = [Loop(match) for match in LOOP.finditer(text)]
        assert len(found) == len(re.findall(r"^void GTORCH_ISA_SYMBOL", text, re.MULTILINE)), path
        loops += found
    noise = noise_from(1)
    stdin = b"".join(loop.inputs(noise) for loop in loops)
    results = [
        outputs(compiler, folder, loops, stdin)
        for compiler, folder in zip((["musl-gcc", "-static"], ["gcc"]), folders)
    ]
    offset = n_values = n_equal = 0
    failed = []
    for loop in loops:
        letter, parts, bits = loop.output
        texts = [result[offset : offset + N * loop.size(loop.output)] for result in results]
        one, two = (struct.unpack(f"={N * parts}{letter}", text) for text in texts)
        offset += len(texts[0])
        n_values += len(one)
        n_equal += sum(a == b or (a != a and b != b) for a, b in zip(one, two))
        wrong = [(i // parts, a, b) for i, (a, b) in enumerate(zip(one, two)) if differ(a, b, bits)]
        failed += [f"{loop.name}: element {i} is {a}, not {b}" for i, a, b in wrong[:3]]
    assert offset == len(results[0]) == len(results[1])
    print("\n".join(failed), file=sys.stderr)
    print(f"{len(loops)} loops run, {n_values} values, {n_equal} equal, {len(failed)} wrong")
    return 1 if failed or not loops else 0


if __name__ == "__main__":
    sys.exit(main())
