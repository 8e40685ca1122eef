# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pictures as SVG, written as text: the manual's pictures need no library that draws."""

import html

BLUE, RED, GREEN, GREY, DARK = '#3584e4', '#c01c28', '#26a269', '#9a9996', '#3d3846'


class Picture:
    def __init__(self, width, height, title):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" font-family="Cantarell, DejaVu Sans, sans-serif" font-size="13">',
            f'<title>{html.escape(title)}</title>',
            f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
        ]

    def rect(self, x, y, width, height, fill):
        self.parts.append(f'<rect x="{x:.4g}" y="{y:.4g}" width="{width:.4g}" height="{height:.4g}" fill="{fill}"/>')

    def line(self, points, colour=BLUE, width=2):
        text = ' '.join(f'{x:.2f},{y:.2f}' for x, y in points)
        self.parts.append(f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="{width}"/>')

    def dot(self, x, y, radius, fill):
        self.parts.append(f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{radius}" fill="{fill}"/>')

    def text(self, x, y, text, colour=DARK, anchor='start', size=13):
        self.parts.append(f'<text x="{x:.2f}" y="{y:.2f}" fill="{colour}" text-anchor="{anchor}" font-size="{size}">'
                          f'{html.escape(text)}</text>')

    def save(self, path):
        with open(path, 'w', encoding='utf-8') as file:
            file.write('\n'.join([*self.parts, '</svg>', '']))


class Plot:
    """A part of a picture with axes."""

    def __init__(self, picture, box, xs, ys, names):
        """@box is left, top, width and height; @xs and @ys the first and the last value of each axis."""
        self.picture, self.box, self.xs, self.ys = picture, box, xs, ys
        left, top, width, height = box
        picture.line([(left, top), (left, top + height), (left + width, top + height)], GREY, 1)
        picture.text(left + width, top + height + 32, names[0], anchor='end')
        picture.text(left, top - 10, names[1])

    def place(self, x, y):
        left, top, width, height = self.box
        (x0, x1), (y0, y1) = self.xs, self.ys
        return left + width * (x - x0) / (x1 - x0), top + height * (1 - (y - y0) / (y1 - y0))

    def marks(self, xs, ys, unit=''):
        left, top, width, height = self.box
        for x in xs:
            self.picture.text(self.place(x, 0)[0], top + height + 17, f'{x:g}', GREY, 'middle', 11)
        for y in ys:
            here = self.place(0, y)[1]
            self.picture.line([(left, here), (left + width, here)], '#deddda', 1)
            self.picture.text(left - 6, here + 4, f'{y:g}{unit}', GREY, 'end', 11)

    def line(self, points, colour=BLUE):
        self.picture.line([self.place(x, y) for x, y in points], colour)
