// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Safe and unsafe programs with streams and backward passes, under GTORCH_CHECK=streams=fatal.

import GTorch from 'gi://GTorch?version=1';
import * as tap from './tap.js';

// A loss that is computed on its own stream; `main` is the current stream.
class Program {
    constructor(name) {
        this.device = GTorch.Device.new_from_string(name);
        [this.main, this.work, this.s] = [0, 1, 2].map(() => GTorch.Stream.new(this.device, 0));
    }

    run(func) {
        let result;
        this.main.run(() => {
            this.x = GTorch.full([64], 2, {device: this.device, dtype: GTorch.float32}).requires_grad_();
            this.work.wait_stream(this.main);
            this.work.run(() => {
                this.y = this.x.mul(this.x);
                this.loss = this.y.sum();
                return true;
            });
            result = func(this);
            return true;
        });
        return result;
    }

    ones() {
        return GTorch.ones([64], {device: this.device});
    }
}

const within = (stream, func) => {
    let result;
    stream.run(() => {
        result = func();
        return true;
    });
    return result;
};

const safe = {
    grads_in_the_same_context: p => within(p.s, () => {
        p.loss.backward();
        return p.x.grad.sum().item();
    }),
    grads_in_another_context_that_waits: p => {
        within(p.s, () => p.loss.backward());
        p.main.wait_stream(p.s);
        return p.x.grad.sum().item();
    },
    initial_gradient_in_the_same_context: p => within(p.s, () => {
        p.y.backward(p.ones());
        return p.x.grad.sum().item();
    }),
    initial_gradient_of_another_context_that_is_waited_for: p => {
        const initial = p.ones();
        p.s.wait_stream(p.main);
        return within(p.s, () => {
            initial.record_stream(p.s);
            p.y.backward(initial);
            return p.x.grad.sum().item();
        });
    },
    results_in_another_context_that_waits: p => {
        const [grad] = within(p.s, () => GTorch.autograd_grad(p.loss, p.x));
        p.main.wait_stream(p.s);
        return grad.sum().item();
    },
};

const unsafe = {
    grads_in_another_context: p => {
        within(p.s, () => p.loss.backward());
        return p.x.grad.sum().item();
    },
    initial_gradient_of_another_context: p => {
        const initial = p.ones();
        return within(p.s, () => p.y.backward(initial));
    },
    results_in_another_context: p => {
        const [grad] = within(p.s, () => GTorch.autograd_grad(p.loss, p.x));
        return grad.sum().item();
    },
};

for (const device of ['cpu', 'cuda']) {
    for (const [name, program] of Object.entries(safe))
        tap.add(`safe_on_${device}_${name}`, () => tap.equal(new Program(device).run(program), 256));

    for (const [name, program] of Object.entries(unsafe)) {
        tap.add(`unsafe_on_${device}_${name}`, () => tap.throws(() => new Program(device).run(program),
            error => error.message.includes('streams: two streams use one tensor')
                && error.message.includes('called by ') && error.message.includes('; and by ')));
    }
}

function sumWhileNumbersAreWritten(name, waits) {
    const device = GTorch.Device.new_from_string(name);
    const [stream, work] = [0, 1].map(() => GTorch.Stream.new(device, 0));
    const a = within(stream, () => {
        const numbers = GTorch.empty([100, 100], {device});
        // the fake driver has no random number kernels
        return name === 'cuda' ? numbers.fill_(0) : numbers.normal_();
    });
    if (waits)
        work.wait_stream(stream);
    return within(work, () => a.sum().item());
}

for (const device of ['cpu', 'cuda']) {
    tap.add(`sum_is_in_order_on_${device}`,
        () => tap.assert(Math.abs(sumWhileNumbersAreWritten(device, true)) < 600));
    tap.add(`sum_may_begin_too_early_on_${device}`,
        () => tap.throws(() => sumWhileNumbersAreWritten(device, false),
            error => error.message.includes(device === 'cuda' ? 'fill_ on stream' : 'normal_ on stream')
                && error.message.includes('and sum on stream')));
}

tap.add('hooks_run_on_the_stream_of_forward', () => new Program('cpu').run(p => {
    const seen = [];
    p.y.register_hook(() => {
        seen.push(GTorch.Stream.get_current(p.device));
        return null;
    });
    within(p.s, () => p.loss.backward());
    tap.equal(seen.length, 1);
    tap.assert(seen[0] === p.work);
}));

await tap.run();
