# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A screen in memory, of which pictures are taken.

Xvfb keeps its pixels in a file, in the format of xwd. Programs draw by cairo, which is the same on all machines.
"""

import contextlib
import os
import shutil
import struct
import subprocess
import tempfile
import zlib

WIDTH, HEIGHT = 1000, 720


class Screen:
    def __init__(self, folder, number):
        self.folder = folder
        self.environment = {
            **os.environ,
            "DISPLAY": f":{number}",
            "GDK_BACKEND": "x11",
            "GSK_RENDERER": "cairo",
            "GTK_A11Y": "none",
            "GTK_THEME": "",
            "GSETTINGS_BACKEND": "memory",
        }
        del self.environment["GTK_THEME"]

    def pixels(self):
        """Returns width, height and the pixels as rows of red, green and blue."""
        with open(os.path.join(self.folder, "Xvfb_screen0"), "rb") as file:
            data = file.read()
        head = struct.unpack(">25I", data[:100])
        width, height, row, n_colors = head[4], head[5], head[12], head[19]
        start = head[0] + 12 * n_colors
        rows = []
        for y in range(height):
            line = data[start + y * row:start + y * row + 4 * width]
            rgb = bytearray(3 * width)
            rgb[0::3], rgb[1::3], rgb[2::3] = line[2::4], line[1::4], line[0::4]
            rows.append(bytes(rgb))
        return width, height, rows

    def save(self, path):
        width, height, rows = self.pixels()
        save_png(path, width, height, rows)

    def n_colors(self):
        """How many colours there are: some where nothing is drawn, and many where a window is."""
        _width, _height, rows = self.pixels()
        data = b"".join(rows)
        return len({data[i:i + 3] for i in range(0, len(data), 3)})


def save_png(path, width, height, rows):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b""))


@contextlib.contextmanager
def screen():
    """A screen, or None where there is no Xvfb."""
    program = shutil.which("Xvfb")
    if program is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        read, write = os.pipe()
        server = subprocess.Popen(
            [program, "-displayfd", str(write), "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-fbdir", folder,
             "-nolisten", "tcp", "-noreset"],
            pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(write)
        try:
            with os.fdopen(read) as file:
                number = file.readline().strip()
            yield Screen(folder, number) if number else None
        finally:
            server.terminate()
            server.wait()
