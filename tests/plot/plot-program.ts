// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// A program that tsc --strict accepts, and whose marked lines it refuses; gjs runs what tsc makes of it.

import GTorch from 'gi://GTorch?version=1';
import GTorchPlot from 'gi://GTorchPlot?version=1';

declare function print(...values: unknown[]): void;

const losses = GTorch.rand([20]);
const figure: GTorchPlot.Figure = GTorchPlot.lines([losses, [1, 2, 3]], {labels: ['a', 'b']});
figure.title = 'Losses';
figure.scheme = 'dark';
const scheme: GTorchPlot.Scheme | null = figure.scheme;
const axes = figure.get_axes({column: 1});
axes.y_scale = 'log';
const line: GTorchPlot.Line = axes.add_line(null, losses, 'loss');
const style: GTorchPlot.Style | null = new GTorchPlot.Line('a', {style: 'points', color: '#1a5fb4'}).style;
const [there, x, y]: [boolean, number, number] = line.get_point(0);
axes.add_histogram(losses, {n_bins: 5, label: 'b'}).visible = false;
axes.add(new GTorchPlot.Histogram({label: 'c'}));
const [red]: number[] = GTorchPlot.Colormap.get_color('magma', 0.5);
figure.set_width_ratios([2, 1]);
const ratios: number[] = figure.get_width_ratios();

async function later(): Promise<boolean> {
    await line.set_values_async(null, losses);
    return await figure.save_async('losses.svg', {cancellable: null});
}

function refused() {
    // @ts-expect-error a text is no list of tensors
    GTorchPlot.lines('losses');
    // @ts-expect-error there is no such scheme
    figure.scheme = 'blue';
    // @ts-expect-error it cannot be set
    figure.n_rows = 3;
    // @ts-expect-error there is no such option
    axes.add_histogram(losses, {bins: 5});
    // @ts-expect-error a line is no image
    const image: GTorchPlot.Image = axes.add_line(null, losses);
    // @ts-expect-error a file is wanted
    figure.save(3);
    return image;
}

if (scheme !== GTorchPlot.Scheme.DARK || style !== GTorchPlot.Style.POINTS || !there || x + y + red === 0)
    throw new Error('something else');
if (ratios.length !== 2 || figure.to_bytes('svg').get_size() < 100)
    throw new Error('something else');
print(typeof later && typeof refused);
