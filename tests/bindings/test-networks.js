// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Recurrent networks, which take and give states.

import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const {nn} = GTorch;
const x = GTorch.randn([5, 2, 3]);

tap.add('results_have_the_states', () => {
    const [y, h] = nn.GRU(3, 4, {num_layers: 2}).forward(x);
    tap.equal([y.shape, h.shape], [[5, 2, 4], [2, 2, 4]]);
    const lstm = nn.LSTM(3, 4, {bidirectional: true});
    const [z, [hidden, cell]] = lstm.forward(x);
    tap.equal([z.shape, hidden.shape, cell.shape], [[5, 2, 8], [2, 2, 4], [2, 2, 4]]);
    const [again] = lstm.forward(x, [GTorch.zeros([2, 2, 4]), GTorch.zeros([2, 2, 4])]);
    tap.equal(again.toArray(), z.toArray());
    tap.equal(lstm.call(x)[0].toArray(), z.toArray());
});

tap.add('cells_give_the_next_states', () => {
    const step = x.select(0, 0);
    tap.equal(nn.RNNCell(3, 4).forward(step).shape, [2, 4]);
    tap.equal(nn.GRUCell(3, 4).forward(step, GTorch.ones([2, 4])).shape, [2, 4]);
    const [h, c] = nn.LSTMCell(3, 4).forward(step);
    tap.equal([h.shape, c.shape], [[2, 4], [2, 4]]);
});

tap.add('networks_can_be_derived_from', () => {
    const Last = GObject.registerClass(class Last extends nn.LSTM {
        forward(input) {
            return super.forward(input)[0].select(0, -1);
        }
    });
    const last = new Last(3, 4);
    tap.equal(last.forward(x).shape, [2, 4]);
    tap.equal(nn.Sequential([last, nn.Linear(4, 1)]).forward(x).shape, [2, 1]);
});

tap.add('hooks_run_once', () => {
    let n = 0;
    const gru = nn.GRU(3, 4);
    gru.register_forward_hook(() => {
        n++;
    });
    gru.forward(x);
    tap.equal(n, 1);
    gru.call(x, GTorch.zeros([1, 2, 4]));
    tap.equal(n, 2);
});

tap.add('packed_sequences_are_those_without_padding', () => {
    const {rnn} = nn.utils;
    const lstm = nn.LSTM(3, 4);
    const packed = rnn.pack_padded_sequence(x, [2, 5], {enforce_sorted: false});
    tap.assert(packed instanceof rnn.PackedSequence, 'a PackedSequence');
    tap.equal([packed.data.shape, packed.batch_sizes.toArray()], [[7, 3], [2, 2, 1, 1, 1]]);
    const [output, [h, c]] = lstm.forward(packed);
    tap.equal([h.shape, c.shape], [[1, 2, 4], [1, 2, 4]]);
    for (const shape of [[1, 7, 2], [2, 2]]) {
        const text = `[${shape.join(', ')}]`;
        tap.throws(() => nn.GRU(3, 2).forward(packed, GTorch.ones(shape)),
            ({message}) => message.includes(text) && message.includes('must be [1, 2, 2]'));
    }
    const [y, lengths] = rnn.pad_packed_sequence(output);
    tap.equal([y.shape, lengths.toArray()], [[5, 2, 4], [2, 5]]);
    const [alone] = lstm.forward(x.narrow(0, 0, 2).narrow(1, 0, 1));
    tap.assert(GTorch.allclose(y.narrow(0, 0, 2).narrow(1, 0, 1), alone, 1e-4, 1e-5), 'the same');
    const list = rnn.unpack_sequence(packed);
    tap.equal(list.map(one => one.shape), [[2, 3], [5, 3]]);
    tap.equal(rnn.pad_sequence(list, {batch_first: true, padding_side: 'left'}).shape, [2, 5, 3]);
    tap.equal(rnn.unpad_sequence(rnn.pad_sequence(list), [2, 5])[0].toArray(), list[0].toArray());
    tap.equal(rnn.pack_sequence(list, false).data.shape, [7, 3]);
    tap.throws(() => rnn.pack_padded_sequence(x, [2, 5]), error => error.message.includes('descending'));
    tap.throws(() => rnn.pack_padded_sequence(x, 2), error => error.message.includes('lengths'));
    tap.throws(() => rnn.pad_sequence(list, {padding_side: 'top'}), error => error.message.includes('side'));
});

tap.add('wrong_states_are_refused', () => {
    const h = GTorch.zeros([1, 2, 4]);
    tap.throws(() => nn.LSTM(3, 4).forward(x, h),
        error => error.message.includes('hidden state and the cell'));
    tap.throws(() => nn.GRU(3, 4).forward(x, [h, h]), error => error.message.includes('must be a tensor'));
    tap.throws(() => nn.GRU(3, 4).forward(1), error => error.message.includes('GRU.forward'));
    tap.throws(() => nn.GRU(3, 4).forward(x, GTorch.zeros([1, 3, 4])),
        error => error.message.includes('it must be [1, 2, 4]'));
});

await tap.run();
