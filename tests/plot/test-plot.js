// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Plots in JavaScript: options, defaults, names of files, and what is converted.

import Gio from 'gi://Gio';
import GLib from 'gi://GLib';
import GTorch from 'gi://GTorch?version=1';
import GTorchPlot from 'gi://GTorchPlot?version=1';

import {add, assert, equal, run, throws} from '../bindings/tap.js';

const folder = GLib.dir_make_tmp('gtorch-plot-XXXXXX');
const path = name => GLib.build_filenamev([folder, name]);
const first = figure => Array.from(figure.get_axes().items)[0];
const size = name => Gio.File.new_for_path(path(name)).query_info('standard::size', 0, null).get_size();

add('files_are_named_by_their_paths', async () => {
    const figure = GTorchPlot.lines([GTorch.rand([5])]);
    figure.save(path('a.svg'));
    figure.save(Gio.File.new_for_path(path('b.svg')));
    equal(await figure.save_async(path('c.svg')), true);
    assert(['a.svg', 'b.svg', 'c.svg'].every(name => size(name) > 1000));
    throws(() => figure.save(path('a.bmp')), error => error.message.startsWith('plot_figure_save: '));
});

add('arguments_have_defaults_and_names', () => {
    const figure = GTorchPlot.histogram(GTorch.rand([100]), {n_bins: 7});
    const [bars] = figure.get_axes().items;
    equal(bars.n_bins, 7);
    equal(GTorchPlot.images(GTorch.rand([4, 2, 2]), {titles: ['a', 'b', 'c', 'd']}).n_columns, 2);
    const axes = new GTorchPlot.Figure().get_axes({column: 1});
    const line = axes.add_line({y: [1, 2, 4]});
    equal([line.n_points, line.label], [3, null]);
    equal(axes.add_line([0, 2], new Float64Array([1, 5]), {label: 'b'}).get_point(1), [true, 2, 5]);
    assert(figure.to_bytes().get_size() > 100);
});

add('objects_are_made_with_options', () => {
    const line = new GTorchPlot.Line('loss', {color: '#ff0000', style: 'both', width: 3});
    equal([line.label, line.color, line.style, line.width], ['loss', '#ff0000', GTorchPlot.Style.BOTH, 3]);
    const figure = new GTorchPlot.Figure({title: 'a', scheme: 'dark', width: 300});
    equal([figure.title, figure.scheme, figure.width], ['a', GTorchPlot.Scheme.DARK, 300]);
    equal(String(figure), '<Figure>');
    throws(() => new GTorchPlot.Figure({heigth: 3}), error => /no property heigth/.test(error.message));
    throws(() => new GTorchPlot.Line({color: 'red'}), error => /“red” is no colour/.test(error.message));
    throws(() => new GTorchPlot.Figure({scheme: 'blue'}), error => /'light' or 'dark'/.test(error.message));
});

add('numbers_out_of_range_are_refused_with_the_range', () => {
    const figure = new GTorchPlot.Figure();
    for (const name of ['width', 'height'])
        for (const value of [-1, 0.5, NaN, 1e300]) {
            const former = figure[name];
            const says = error => error instanceof RangeError &&
                error.message === `Figure.${name} must be from 1 to 14400, not ${value}`;
            throws(() => (figure[name] = value), says);
            throws(() => new GTorchPlot.Figure({[name]: value}), says);
            equal(figure[name], former);
        }
    figure.width = 14400;
    equal(figure.width, 14400);
});

add('lists_of_one_length_are_compared', () => {
    const line = new GTorchPlot.Line();
    line.set_points([1, 2, 3], [4, 5, 6]);
    equal(line.n_points, 3);
    throws(() => line.set_points([1, 2, 3], [4, 5]), error =>
        error.message.startsWith('plot_line_set_points: x has 3 numbers and y 2: both must have as many'));
});

// Of seconds, between which float32 has steps of 128.
add('arrays_keep_all_digits', async () => {
    const times = [1796043809.5, 1796043810, 1796043811];
    const axes = new GTorchPlot.Figure().get_axes();
    const line = axes.add_line(times, [1, 1e300, -1e-300]);
    equal([0, 1, 2].map(i => line.get_point(i)[1]), times);
    equal([0, 1, 2].map(i => line.get_point(i)[2]), [1, 1e300, -1e-300]);
    await line.set_values_async(times, times);
    equal(line.get_point(0), [true, times[0], times[0]]);
    equal(first(GTorchPlot.lines([times])).get_point(0), [true, 0, times[0]]);
    const many = Array.from({length: 100}, (_, i) => times[0] + i);
    line.set_values(many, many);
    equal(line.get_point(99), [true, many[99], many[99]]);
    equal(axes.add_histogram(times, {n_bins: 2}).get_bounds(), [times[0], times[2]]);
    equal(axes.add_image([times, times]).get_range(), [times[0], times[2]]);
    equal(first(GTorchPlot.image([[true, false]])).get_range(), [0, 1]);
    line.append(times[0], times[1]);
    equal(line.get_point(100), [true, times[0], times[1]]);
    equal(GTorch.tensor(times).dtype, GTorch.float32);
    equal(GTorch.tensor(many).dtype, GTorch.float32);
});

add('logarithmic_axes_refuse_what_has_no_place', () => {
    const axes = new GTorchPlot.Figure().get_axes();
    axes.set_y_limits(-1, 5);
    throws(() => {
        axes.y_scale = 'log';
    }, error => error.message.startsWith('plot_axes_set_y_scale: from -1 to 5: the ends of a logarithmic'));
    equal(axes.y_scale, GTorchPlot.Scale.LINEAR);
    axes.x_scale = 'log';
    throws(() => axes.set_x_limits(0, 5), error => /must be positive/.test(error.message));
});

await run();
