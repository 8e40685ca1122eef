# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A screen in memory, of which pictures are taken.

Xvfb keeps its pixels in a file, in the format of xwd. Programs draw by cairo, which is the same on all machines.
"""

import contextlib
import ctypes
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
def window_manager(name):
    """Says on a display that there is a window manager, as there is on desktops: without one, GTK 4.8 asks the server
    in each frame, and its main loop waits for the answer, which comes late where programs compute on all processors."""
    try:
        x11 = ctypes.CDLL("libX11.so.6")
    except OSError:
        yield
        return
    pointer, window = ctypes.c_void_p, ctypes.c_ulong
    x11.XOpenDisplay.restype, x11.XDefaultRootWindow.restype = pointer, window
    x11.XCreateSimpleWindow.restype, x11.XInternAtom.restype = window, window
    display = pointer(x11.XOpenDisplay(name.encode()))
    root = window(x11.XDefaultRootWindow(display))
    own = window(x11.XCreateSimpleWindow(display, root, 0, 0, 1, 1, 0, window(0), window(0)))
    check = window(x11.XInternAtom(display, b"_NET_SUPPORTING_WM_CHECK", 0))
    for one in root, own:  # 33: a window, of 32 bits
        x11.XChangeProperty(display, one, check, window(33), 32, 0, ctypes.byref(own), 1)
    x11.XSync(display, 0)
    try:
        yield
    finally:
        x11.XCloseDisplay(display)


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
            if not number:
                yield None
                return
            with window_manager(f":{number}"):
                yield Screen(folder, number)
        finally:
            server.terminate()
            server.wait()
