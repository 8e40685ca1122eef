// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Modules written in JavaScript, layers, optimizers.

import GLib from 'gi://GLib';
import GObject from 'gi://GObject';
import GTorch from 'gi://GTorch?version=1';

import * as tap from './tap.js';

const {nn} = GTorch;

const Net = GObject.registerClass(class Net extends GTorch.Module {
    constructor() {
        super();
        this.first = nn.Linear(2, 8);
        this.second = nn.Linear(8, 1, {bias: false});
        this.scale = nn.Parameter(GTorch.ones([1]));
    }

    forward(x) {
        return this.second.forward(this.first.forward(x).tanh()).mul(this.scale);
    }
});

const Broken = GObject.registerClass(class Broken extends GTorch.Module {
    forward() {
        throw new RangeError('from within');
    }
});

const NoTensor = GObject.registerClass(class NoTensor extends GTorch.Module {
    forward() {
        return 3;
    }
});

const Outer = GObject.registerClass(class Outer extends GTorch.Module {
    constructor(inner) {
        super();
        this.inner = inner;
    }

    forward(x) {
        return this.inner.call(x);
    }
});

function isOriginal(error) {
    return error instanceof RangeError && error.message === 'from within';
}

tap.add('assigned_modules_and_parameters_belong_to_the_module', () => {
    const net = new Net();
    const names = net.named_parameters().map(([name]) => name).sort();
    tap.equal(names, ['first.bias', 'first.weight', 'scale', 'second.weight']);
    tap.equal(net.named_children().map(([name]) => name), ['first', 'second']);
    tap.equal(net.parameters().length, 4);
});

tap.add('modules_within_modules_are_found', () => {
    const chain = nn.Sequential(new Outer(new Net()), nn.ReLU());
    tap.equal(chain.parameters().length, 4);
    tap.assert(chain.get_parameter_names(true).includes('0.inner.first.weight'));
});

tap.add('forward_in_javascript_is_called_from_c', () => {
    GTorch.manual_seed(1);
    const [net, x] = [new Net(), GTorch.randn([3, 2])];
    const chain = nn.Sequential(net, nn.ReLU());
    tap.equal(chain.forward(x).shape, [3, 1]);
    tap.equal(chain.forward(x).toArray(), net.forward(x).relu().toArray());
    tap.equal(net.call(x).toArray(), net.forward(x).toArray());
});

tap.add('exceptions_propagate_unchanged', () => {
    const x = GTorch.ones([1]);
    tap.throws(() => new Broken().call(x), isOriginal);
    tap.throws(() => new Outer(new Broken()).call(x), isOriginal);
    tap.throws(() => nn.Sequential(new Broken()).forward(x), isOriginal);
});

tap.add('a_wrong_result_of_forward_is_a_type_error', () => {
    tap.throws(() => new NoTensor().call(GTorch.ones([1])),
        error => error instanceof TypeError && error.message.includes('not a tensor'));
});

tap.add('an_error_of_the_library_passes_through_forward', () => {
    tap.throws(() => new Net().call(GTorch.ones([3, 5])),
        error => error.matches(GTorch.Error, GTorch.Error.SHAPE) && error.message.includes('[3, 5]'));
});

function train(make) {
    GTorch.manual_seed(3);
    const net = new Net();
    const x = GTorch.randn([64, 2]);
    const y = x.sum({dim: [1], keepdim: true}).mul(0.5);
    const optimizer = make(net.parameters());
    const lossOf = nn.MSELoss();
    const losses = [];
    for (let i = 0; i < 60; i++) {
        losses.push(GTorch.tidy(() => {
            optimizer.zero_grad();
            const loss = lossOf.forward(net.call(x), y);
            loss.backward();
            optimizer.step();
            return loss.item();
        }));
    }
    return losses;
}

tap.add('optimizers_learn', () => {
    const {SGD, Adam, AdamW} = GTorch.optim;
    for (const make of [
        params => SGD(params, {lr: 0.1, momentum: 0.9}),
        params => Adam(params, {lr: 0.05, betas: [0.9, 0.99], weight_decay: 1e-4}),
        params => AdamW(params, 0.05),
    ]) {
        const losses = train(make);
        tap.assert(losses.at(-1) < 0.1 * losses[0], `${losses[0]} to ${losses.at(-1)}`);
    }
});

tap.add('learning_rate_can_be_read_and_set', () => {
    const optimizer = GTorch.optim.SGD([nn.Parameter(GTorch.ones([1]))], {lr: 0.5});
    tap.equal(optimizer.lr, 0.5);
    optimizer.lr = 0.25;
    tap.equal(optimizer.learning_rate, 0.25);
});

tap.add('optimizers_take_the_arguments_of_their_rows', () => {
    const {SGD, Adam, AdamW, RMSprop} = GTorch.optim;
    const weight = () => [nn.Parameter(GTorch.ones([1]))];
    const adam = Adam(weight(), 0.1, [0.5, 0.75], 1e-4, 0.02, true);
    tap.equal([adam.lr, adam.beta1, adam.beta2, adam.eps, adam.amsgrad], [0.1, 0.5, 0.75, 1e-4, true]);
    tap.equal(adam.get_param_groups().get_item(0).weight_decay, 0.02);
    tap.equal(AdamW(weight()).get_param_groups().get_item(0).weight_decay, 0.01);
    tap.equal(RMSprop(weight(), {alpha: 0.9, centered: true, capturable: true}).capturable, true);
    tap.equal(SGD(weight(), {lr: GTorch.tensor(0.5), fused: true, foreach: null, maximize: true}).lr, 0.5);
    const says = part => error => error.message.includes(part);
    tap.throws(() => SGD(weight(), {differentiable: true}), says('differentiable'));
    tap.throws(() => SGD(weight(), {fused: true, foreach: true}), error => error.message.includes('fused'));
    tap.throws(() => Adam(weight(), {betas: 0.5}), error => error.message.includes('betas'));
    tap.throws(() => SGD(weight(), {nesterov: true}), error => error.message.includes('momentum > 0'));
});

tap.add('optimizers_take_groups', () => {
    const weight = () => nn.Parameter(GTorch.ones([1]));
    const {SGD} = GTorch.optim;
    const rates = optimizer => Array.from({length: optimizer.get_param_groups().get_n_items()},
        (_, i) => optimizer.get_param_groups().get_item(i)).map(group => [group.lr, group.weight_decay]);
    const sgd = SGD([{params: [weight()], lr: 0.5}, {params: [weight()], weight_decay: 0.25}], {lr: 0.125});
    tap.equal(rates(sgd), [[0.5, 0], [0.125, 0.25]]);
    sgd.add_param_group({params: new Set([weight()]), lr: 2, initial_lr: 4});
    sgd.add_param_group({params: nn.Linear(1, 1).get_parameters(true)});
    tap.equal(rates(sgd).slice(2), [[2, 0], [0.125, 0]]);
    sgd.get_param_groups().get_item(2).lr = 3;
    tap.equal([rates(sgd)[2], sgd.get_param_groups().get_item(2).initial_learning_rate], [[3, 0], 4]);
    tap.equal(rates(SGD(nn.Linear(1, 1).parameters().values(), {lr: 1})), [[1, 0]]);

    const refused = [
        [[], 'no parameters'], [nn.Sequential().parameters(), 'no parameters'],
        [nn.ReLU().get_parameters(true), 'no parameters'],
        [undefined, 'params must be'], [null, 'params must be'],
        [5, 'params must be'], ['text', 'params must be'], [{params: [weight()]}, 'params must be'],
        [nn.Linear(1, 1), 'not Linear; its parameters()'], [nn.Sequential(nn.ReLU()), 'not Sequential'],
        [weight(), 'not Parameter'], [[5], 'not number 5'], [[weight(), {params: [weight()]}], 'not Object'],
        [[{lr: 1}], 'params is missing'], [[{params: undefined}], 'params is undefined'],
        [[{params: [weight()], momentun: 1}], 'momentun is no setting of a group'],
        [[{params: [weight()], lr: 'x'}], 'lr must be a number'], [[{params: nn.ReLU()}], 'not ReLU'],
    ];
    for (const [params, says] of refused) {
        tap.throws(() => SGD(params, {lr: 1}), error =>
            (error instanceof TypeError || error instanceof RangeError) && error.message.includes(says));
    }
    tap.throws(() => sgd.add_param_group({params: [5]}), error => error instanceof TypeError);
});

tap.add('groups_have_all_settings', () => {
    const [first, second, third] = [1, 2, 3].map(() => nn.Parameter(GTorch.ones([2])));
    const {Adam, LBFGS, SGD} = GTorch.optim;
    const adam = Adam([{params: [first], betas: [0.5, 0.25], amsgrad: true}, {params: [second]}],
        {lr: 0.125, betas: [0.75, 0.5]});
    const groups = adam.get_param_groups();
    const settings = name => Array.from({length: groups.get_n_items()}, (_, i) =>
        groups.get_item(i).get_setting(name));
    tap.equal(settings('betas'), [[0.5, 0.25], [0.75, 0.5]]);
    tap.equal([settings('amsgrad'), adam.defaults.amsgrad, adam.defaults.betas],
        [[true, false], false, [0.75, 0.5]]);
    tap.equal([adam.defaults.lr, adam.defaults.foreach, adam.defaults.capturable], [0.125, null, false]);
    adam.beta1 = 0.625;
    tap.equal(settings('betas'), [[0.625, 0.25], [0.625, 0.5]]);
    groups.get_item(1).set_setting('betas', [0.125, 0]);
    groups.get_item(1).set_setting('maximize', true);
    adam.add_param_group({params: [third]});
    tap.equal(settings('betas'), [[0.625, 0.25], [0.125, 0], [0.625, 0.5]]);
    tap.equal([settings('maximize'), settings('lr')], [[false, true, false], [0.125, 0.125, 0.125]]);

    const says = text => error => error.message.includes(text);
    tap.throws(() => groups.get_item(0).set_setting('momentum', 1), says('no setting “momentum”'));
    tap.throws(() => groups.get_item(0).set_setting('betas', 1), says('betas is 2 numbers, not 1'));
    tap.throws(() => groups.get_item(0).set_setting('betas', [1, 0.5]), says('beta1 is 1'));
    tap.throws(() => groups.get_item(0).set_setting('amsgrad', 1), says('amsgrad must be true or false'));
    tap.throws(() => (adam.beta2 = 2), says('beta2 is 2'));
    tap.throws(() => adam.set_setting('betas', ['x', 1]), says('betas must be a number'));
    tap.throws(() => SGD([{params: [first], nesterov: true, momentum: 0}], {lr: 1}), says('nesterov needs'));
    tap.throws(() => SGD([{params: [first], differentiable: true}], {lr: 1}), says('differentiable'));
    tap.equal(settings('betas'), [[0.625, 0.25], [0.125, 0], [0.625, 0.5]]);

    tap.equal(adam.state.size, 0);
    first.sum().backward();
    adam.step();
    tap.equal([...adam.state.keys()], [first]);
    tap.equal(Object.keys(adam.state.get(first)), ['exp_avg', 'exp_avg_sq', 'max_exp_avg_sq', 'step']);
    tap.equal(adam.state.get(first).step.item(), 1);

    const lbfgs = LBFGS([{params: [second], history_size: 3, line_search_fn: 'strong_wolfe'}]);
    const [only] = [lbfgs.get_param_groups().get_item(0)];
    tap.equal(['history_size', 'line_search_fn', 'max_eval'].map(name => only.get_setting(name)),
        [3, 'strong_wolfe', null]);
    // without a constructor
    const made = new GTorch.Adam({learning_rate: 0.25, beta1: 0.5});
    made.add_param_group({params: [third]});
    tap.equal([made.lr, made.get_param_groups().get_item(0).get_setting('betas')], [0.25, [0.5, 0.999]]);
    const cycle = new GTorch.OneCycleLR({optimizer: made, max_lr: 0.5, total_steps: 4, div_factor: 4});
    cycle.initial_step();
    tap.equal([made.lr, made.beta1], [0.125, 0.95]);
});

tap.add('containers_take_modules_and_functions_take_tensors', () => {
    const isType = part => error => error instanceof TypeError && error.message.includes(part);
    for (const [given, found] of [[[nn.ReLU(), 5], 'number 5'], [[null], 'null'], [[3], 'number 3'],
        [[undefined], 'undefined'], [[[nn.ReLU(), 'x']], 'string x']])
        tap.throws(() => nn.Sequential(...given), isType(`Sequential: modules are wanted, not ${found}`));
    const Unchanged = GObject.registerClass(class Unchanged extends GTorch.Function {
        forward(_context, x) {
            return x.mul(1);
        }
    });
    const x = GTorch.ones([1]);
    for (const given of [[x], [], [[x], 1], [null]])
        tap.throws(() => new Unchanged().apply(...given), isType('Unchanged.apply: an array of tensors'));
    tap.equal(new Unchanged().apply([x])[0].item(), 1);
    tap.throws(() => nn.Parameter(3), isType('data must be a tensor'));
    tap.equal(new nn.Parameter(x, {requires_grad: false}).requires_grad, false);
});

tap.add('schedules_set_the_learning_rate', () => {
    const {StepLR, CosineAnnealingLR, LRScheduler} = GTorch.optim.lr_scheduler;
    const optimizer = GTorch.optim.SGD([nn.Parameter(GTorch.ones([1]))], {lr: 1});
    const schedule = StepLR(optimizer, {step_size: 2, gamma: 0.5});
    const rates = [];
    for (let i = 0; i < 5; i++) {
        rates.push(optimizer.lr);
        schedule.step();
    }
    tap.equal(rates, [1, 1, 0.5, 0.5, 0.25]);
    const other = StepLR(optimizer, 1);
    other.load_state_dict(schedule.state_dict());
    tap.equal([other.last_epoch, other.step_size, other.gamma], [5, 2, 0.5]);
    tap.equal(CosineAnnealingLR(optimizer, 4, {eta_min: 0.5}).eta_min, 0.5);
    tap.throws(() => StepLR(optimizer, 0), error => error.message.includes('step_size is 0'));

    const Halves = GObject.registerClass(class Halves extends LRScheduler {
        vfunc_compute(group, base) {
            if (this.last_epoch > 2)
                throw new RangeError('no such epoch');
            return base / 2 ** this.last_epoch;
        }
    });
    const sgd = GTorch.optim.SGD([nn.Parameter(GTorch.ones([1]))], {lr: 1});
    const halves = new Halves({optimizer: sgd});
    halves.step();
    tap.equal([halves.optimizer.lr, halves.last_epoch], [0.5, 1]);
    halves.step();
    tap.equal(halves.optimizer.lr, 0.25);
    tap.throws(() => halves.step(),
        error => error instanceof RangeError && error.message === 'no such epoch');
    tap.equal([halves.optimizer.lr, halves.last_epoch], [0.25, 2]);
});

tap.add('schedules_call_functions_and_other_schedules', () => {
    const schedules = GTorch.optim.lr_scheduler;
    const sgd = () => GTorch.optim.SGD([nn.Parameter(GTorch.ones([1]))], {lr: 1, momentum: 0.5});
    const run = (optimizer, schedule, n) => Array.from({length: n}, () => {
        const {lr} = optimizer;
        schedule.step();
        return lr;
    });
    let optimizer = sgd();
    const decay = schedules.LambdaLR(optimizer, epoch => 1 / 2 ** epoch);
    tap.equal(run(optimizer, decay, 4), [1, 0.5, 0.25, 0.125]);
    optimizer = sgd();
    tap.equal(run(optimizer, schedules.MultiplicativeLR(optimizer, [epoch => epoch]), 4), [1, 1, 2, 6]);
    optimizer = sgd();
    const steps = schedules.MultiStepLR(optimizer, [1, 3], {gamma: 0.5});
    tap.equal(run(optimizer, steps, 5), [1, 0.5, 0.5, 0.25, 0.25]);
    optimizer = sgd();
    const cyclic = schedules.CyclicLR(optimizer, 1, 3, 2, {base_momentum: 0.25, max_momentum: 0.75});
    tap.equal([optimizer.lr, optimizer.momentum], [1, 0.75]);
    tap.equal(run(optimizer, cyclic, 5), [1, 2, 3, 2, 1]);
    tap.equal([optimizer.lr, optimizer.momentum], [2, 0.5]);
    optimizer = sgd();
    const one = schedules.OneCycleLR(optimizer, {
        max_lr: 2, epochs: 1, steps_per_epoch: 5, pct_start: 0.6, anneal_strategy: 'linear', div_factor: 2,
        final_div_factor: 4, base_momentum: 0.5, max_momentum: 1,
    });
    tap.equal(run(optimizer, one, 5), [1, 1.5, 2, 1.125, 0.25]);
    optimizer = sgd();
    const plateau = schedules.ReduceLROnPlateau(optimizer, {factor: 0.5, patience: 0, min_lr: 0.375});
    for (const metric of [1, 2, GTorch.tensor(3)])
        plateau.step(metric);
    tap.equal([optimizer.lr, plateau.best, plateau.last_epoch], [0.375, 1, 3]);
    optimizer = sgd();
    const parts = [schedules.ExponentialLR(optimizer, 0.5), schedules.StepLR(optimizer, 2, {gamma: 0.5})];
    tap.equal(run(optimizer, schedules.SequentialLR(optimizer, parts, [2]), 5), [1, 0.5, 1, 1, 0.5]);
    optimizer = sgd();
    const chained = schedules.ChainedScheduler(
        [schedules.ExponentialLR(optimizer, 0.5), schedules.StepLR(optimizer, 2, {gamma: 0.5})]);
    tap.equal(run(optimizer, chained, 4), [1, 0.5, 0.125, 0.0625]);
    tap.assert('schedulers.1.step_size' in chained.state_dict());
    optimizer = sgd();
    const {SWALR} = GTorch.optim.swa_utils;
    const swa = SWALR(optimizer, {swa_lr: 0.5, anneal_epochs: 2, anneal_strategy: 'linear'});
    tap.equal(run(optimizer, swa, 4), [1, 0.75, 0.5, 0.5]);
});

tap.add('exceptions_of_functions_of_schedules_arrive', () => {
    const {LambdaLR, CyclicLR, OneCycleLR, ReduceLROnPlateau, ChainedScheduler} = GTorch.optim.lr_scheduler;
    const isType = text => error => error instanceof TypeError && error.message.includes(text);
    const sgd = GTorch.optim.SGD([nn.Parameter(GTorch.ones([1]))], {lr: 1});
    const thrown = {reason: 'too late'};
    const schedule = LambdaLR(sgd, epoch => {
        if (epoch > 0)
            throw thrown;
        return 1;
    });
    tap.throws(() => schedule.step(), error => error === thrown);
    tap.throws(() => ChainedScheduler([schedule]).step(), error => error === thrown);
    tap.equal([schedule.last_epoch, sgd.lr], [0, 1]);
    tap.throws(() => LambdaLR(sgd, () => 'fast'), isType('fast'));
    tap.throws(() => LambdaLR(sgd, 3), isType('a function is wanted'));
    tap.throws(() => CyclicLR(sgd, 0.1, 1, {gama: 1}), isType('no option gama'));
    tap.throws(() => OneCycleLR(sgd, 1), isType('total_steps is missing'));
    tap.throws(() => ReduceLROnPlateau(sgd, {factor: 1}), error => error.message.includes('factor is 1'));
    tap.throws(() => ReduceLROnPlateau(sgd).step(), isType('metrics is missing'));
});

tap.add('optimizers_that_are_no_formulas_have_pytorchs_arguments', () => {
    const {Adafactor, Muon, NAdam, ASGD} = GTorch.optim;
    const matrix = () => nn.Parameter(GTorch.ones([2, 3]));
    const step = (optimizer, weight) => {
        weight.sum().backward();
        optimizer.step();
        return weight.toArray()[0][0];
    };
    let weight = matrix();
    const factor = Adafactor([weight], {lr: 0.5, eps: [null, 0.25], d: 2});
    tap.equal([factor.eps2, factor.d, factor.lr], [0.25, 2, 0.5]);
    tap.assert(Math.abs(step(factor, weight) - 0.5) < 1e-6);
    weight = matrix();
    const muon = Muon([weight], {ns_coefficients: [1, 0, 0], adjust_lr_fn: null, lr: 0.5, weight_decay: 0});
    tap.assert(Math.abs(step(muon, weight) - (1 - 0.5 / Math.sqrt(6))) < 1e-2);
    tap.throws(() => Muon([nn.Parameter(GTorch.ones([2]))]),
        error => error.message.includes('must be matrices'));
    for (const kind of [NAdam, ASGD]) {
        weight = matrix();
        tap.assert(step(kind([weight], {lr: 0.125}), weight) < 1);
    }
});

tap.add('weights_are_averaged', () => {
    const {AveragedModel, update_bn} = GTorch.optim.swa_utils;
    const {get_ema_avg_fn, get_ema_multi_avg_fn} = GTorch.optim.swa_utils;
    const {get_swa_avg_fn, get_swa_multi_avg_fn} = GTorch.optim.swa_utils;
    const net = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1));
    const average = options => {
        const model = AveragedModel(net, options);
        for (const value of [0, 4, 8]) {
            GTorch.no_grad(() => net.get_module('0').weight.fill_(value));
            model.update_parameters(net);
        }
        tap.equal(model.n_averaged.item(), 3);
        return model.get_module('module').get_module('0').weight.item();
    };
    tap.equal(average({}), 4);
    tap.equal(average({avg_fn: get_swa_avg_fn()}), 4);
    tap.equal(average({multi_avg_fn: get_swa_multi_avg_fn(), use_buffers: true}), 4);
    tap.equal(average({avg_fn: get_ema_avg_fn(0.5)}), 5);
    tap.equal(average({multi_avg_fn: get_ema_multi_avg_fn(0.5)}), 5);
    tap.equal(average({avg_fn: (averaged, current, n) => averaged.mul(0).add(n)}), 2);
    const isType = text => error => error instanceof TypeError && error.message.includes(text);
    tap.throws(() => average({avg_fn: () => 3}), isType('not a tensor'));
    tap.throws(() => average({avg_fn: () => 3, multi_avg_fn: () => 3}), isType('both'));
    tap.throws(() => get_ema_avg_fn(2), error => error instanceof RangeError);
    tap.throws(() => AveragedModel(3), isType('must be a module'));

    update_bn([GTorch.ones([4, 1]), [GTorch.zeros([4, 1]), null]], net);
    const norm = net.get_module('1');
    tap.equal(norm.num_batches_tracked.item(), 2);
    tap.assert(Math.abs(norm.momentum - 0.1) < 1e-12);
    tap.throws(() => update_bn([3], net), isType('not a tensor'));
    tap.throws(() => update_bn(3, net), isType('iterable'));
});

tap.add('lbfgs_makes_steps_by_a_closure', () => {
    const weight = nn.Parameter(GTorch.ones([2, 3]));
    const {LBFGS, SGD} = GTorch.optim;
    const lbfgs = LBFGS([weight], {line_search_fn: 'strong_wolfe', max_iter: 5});
    tap.equal([lbfgs.max_iter, lbfgs.history_size, lbfgs.lr], [5, 100, 1]);
    let calls = 0;
    const closure = () => {
        calls++;
        lbfgs.zero_grad();
        const loss = weight.sub(3).pow(2).sum();
        loss.backward();
        return loss;
    };
    tap.equal(lbfgs.step(closure).item(), 24);
    tap.assert(calls > 1 && Math.abs(weight.toArray()[0][0] - 3) < 1e-5);
    tap.assert(lbfgs.step_closure(() => closure().item()) < 1e-8);
    tap.assert(SGD([weight], {lr: 0.1}).step_closure(closure).item() < 1e-8);
    const isInvalid = text => error => error.message.includes(text);
    tap.throws(() => lbfgs.step(), isInvalid('needs a closure'));
    tap.throws(() => lbfgs.step(3), error => error instanceof TypeError);
    tap.throws(() => lbfgs.step(() => {
        throw new RangeError('no data');
    }), error => error instanceof RangeError && error.message === 'no data');
    const groups = [{params: [weight]}, {params: [nn.Parameter(GTorch.ones([1]))]}];
    tap.throws(() => LBFGS(groups), isInvalid('2 groups'));
    tap.throws(() => GTorch.optim.SparseAdam, isInvalid('no sparse tensors'));
});

tap.add('gradients_are_clipped_together', () => {
    const {utils} = nn;
    const params = [nn.Parameter(GTorch.zeros([2])), nn.Parameter(GTorch.ones([1]))];
    params[0].grad = GTorch.tensor([3, -4], {dtype: GTorch.float32});
    tap.equal(utils.get_total_norm([params[0].grad]).item(), 5);
    tap.equal(utils.clip_grad_norm_(params, 10).item(), 5);
    tap.equal(params[0].grad.toArray(), [3, -4]);
    tap.equal(utils.clip_grad_norm_(params, {max_norm: 1, norm_type: Infinity}).item(), 4);
    tap.assert(Math.abs(params[0].grad.toArray()[1] + 1) < 1e-6);
    utils.clip_grad_value_(params, 0.5);
    tap.equal(params[0].grad.toArray(), [0.5, -0.5]);
    tap.equal(utils.parameters_to_vector(params).toArray(), [0, 0, 1]);
    utils.vector_to_parameters(GTorch.tensor([4, 5, 6], {dtype: GTorch.float32}), params);
    tap.equal(params.map(param => param.toArray()), [[4, 5], [6]]);
    const isType = text => error => error instanceof TypeError && error.message.includes(text);
    tap.throws(() => utils.clip_grad_norm_([3], 1), isType('must be tensors'));
    tap.throws(() => utils.clip_grad_norm_(params, 1, {foreach: 1}), isType('foreach'));
    tap.throws(() => utils.vector_to_parameters(GTorch.ones([2]), params),
        error => error.message.includes('have 3 elements'));
});

tap.add('unknown_and_missing_arguments_are_type_errors', () => {
    const says = part => error => error instanceof TypeError && error.message.includes(part);
    tap.throws(() => nn.Linear(2), says('out_features'));
    tap.throws(() => nn.Linear(2, 3, {bais: true}), says('bais'));
    tap.throws(() => GTorch.optim.SGD([], {mometum: 1}), says('mometum'));
    tap.throws(() => nn.MSELoss({reduction: 'none at all'}), says('none at all'));
});

tap.add('state_goes_from_one_module_to_another', () => {
    const [a, b, x] = [new Net(), new Net(), GTorch.ones([2, 2])];
    tap.assert(JSON.stringify(a.forward(x).toArray()) !== JSON.stringify(b.forward(x).toArray()));
    b.load_state_dict(a.state_dict());
    tap.equal(a.forward(x).toArray(), b.forward(x).toArray());
    tap.throws(() => b.load_state_dict({nobody: x}), error => error.message.includes('nobody'));
});

tap.add('a_load_that_fails_changes_nothing', () => {
    const trained = kind => {
        const parameters = [GTorch.ones([2, 2]), GTorch.ones([3])];
        parameters.forEach(parameter => (parameter.requires_grad = true));
        const optimizer = kind(parameters);
        parameters.map(parameter => parameter.mul(parameter).sum()).forEach(loss => loss.backward());
        optimizer.step();
        return optimizer;
    };
    const values = state => JSON.stringify(Object.keys(state).sort()
        .map(name => [name, state[name].toArray()]));
    const adam = parameters => GTorch.optim.Adam(parameters);
    const used = new GTorch.GradScaler();
    used.scale(GTorch.ones([]));
    const huge = GTorch.ones([5, 4, 3]);
    const wrong = [null, undefined, 'text', {}, 3, huge, huge.to(GTorch.complex64)];
    let failed = 0;
    for (const [subject, source] of [[new Net(), new Net()], [trained(adam), trained(adam)],
        [new GTorch.GradScaler(), used], [used, new GTorch.GradScaler()]]) {
        const good = source.state_dict();
        for (const name of Object.keys(good)) {
            for (const value of wrong) {
                const before = values(subject.state_dict());
                tap.throws(() => subject.load_state_dict({...good, [name]: value}), () => true);
                tap.equal(values(subject.state_dict()), before);
                failed++;
            }
        }
        const expected = values(good);
        subject.load_state_dict(good);
        tap.equal(values(subject.state_dict()), expected);
    }
    tap.assert(failed > 100);
});

tap.add('train_and_eval_reach_the_children', () => {
    const drop = nn.Sequential(nn.Dropout(0.9));
    const x = GTorch.ones([100]);
    tap.equal(drop.eval().forward(x).toArray(), x.toArray());
    tap.assert(drop.train().forward(x).toArray().includes(0));
    tap.throws(() => nn.Dropout(2), error => error instanceof GLib.Error &&
        error.message.includes('within [0, 1]'));
});

tap.add('layers_have_defaults', () => {
    const [image, row] = [GTorch.randn([2, 4, 6, 6]), GTorch.randn([3, 4])];
    const shapes = [
        [nn.Conv2d(4, 8, 3), image, [2, 8, 4, 4]], [nn.MaxPool2d(2), image, [2, 4, 3, 3]],
        [nn.AvgPool2d(3), image, [2, 4, 2, 2]], [nn.AdaptiveAvgPool2d(1), image, [2, 4, 1, 1]],
        [nn.BatchNorm2d(4), image, [2, 4, 6, 6]], [nn.Flatten(), image, [2, 144]],
        [nn.LayerNorm(4), row, [3, 4]], [nn.BatchNorm1d(4), row, [3, 4]], [nn.Dropout(), row, [3, 4]],
        [nn.Embedding(5, 2), GTorch.tensor([0, 4]), [2, 2]],
        ...['GELU', 'LeakyReLU', 'Softmax', 'LogSoftmax', 'Identity', 'SiLU', 'Sigmoid', 'Tanh']
            .map(name => [nn[name](), row, [3, 4]]),
    ];
    for (const [layer, x, shape] of shapes)
        tap.equal(layer.forward(x).shape, shape);
    for (const name of ['MSELoss', 'L1Loss', 'BCEWithLogitsLoss'])
        tap.equal(nn[name]().forward(row, row.sigmoid()).shape, []);
    for (const name of ['CrossEntropyLoss', 'NLLLoss'])
        tap.equal(nn[name]().forward(row, GTorch.tensor([0, 1, 3])).shape, []);
});

tap.add('hooks_see_and_replace_gradients', () => {
    const net = nn.Tanh();
    const x = GTorch.tensor([1, 2], {dtype: GTorch.float64, requires_grad: true});
    const run = () => {
        x.grad = null;
        net.forward(x).sum().backward();
        return x.grad.clone();
    };
    const plain = run();
    const seen = [];
    const before = net.register_full_backward_pre_hook((_net, grads) => void seen.push(grads.length));
    net.register_full_backward_hook((_net, inputs, outputs) => {
        seen.push([inputs.length, outputs.length]);
        return inputs[0].mul(3);
    });
    tap.assert(run().allclose(plain.mul(3)));
    tap.equal(seen, [1, [1, 1]]);
    net.remove_hook(before);
    net.register_full_backward_pre_hook((_net, [grad]) => [grad.mul(2)]);
    tap.assert(run().allclose(plain.mul(6)));
    const layer = nn.Linear(2, 1);
    let none = null;
    layer.register_full_backward_hook((_layer, [grad]) => void (none = grad));
    layer.forward(GTorch.ones([1, 2])).sum().backward();
    tap.equal(none, null);
    tap.throws(() => net.register_full_backward_hook(() => null, {first: true}), error =>
        error.message.includes('first'));
});

tap.add('extra_states_are_in_the_state', () => {
    const Counted = GObject.registerClass(class CountedState extends GTorch.Module {
        n = 3;

        get_extra_state() {
            if (this.n === 0)
                throw new RangeError('nothing');
            return GTorch.tensor(this.n);
        }

        set_extra_state(state) {
            this.n = state.item();
        }
    });
    const [net, other] = [nn.Sequential(new Counted()), nn.Sequential(new Counted())];
    net.get_module('0').n = 7;
    const state = net.state_dict();
    tap.equal(Object.keys(state), ['0._extra_state']);
    other.load_state_dict(state);
    tap.equal(other.get_module('0').n, 7);
    other.get_module('0').n = 0;
    tap.throws(() => other.state_dict(), error => error instanceof RangeError);
});

tap.add('hooks_have_places', () => {
    const net = nn.Linear(2, 1);
    const seen = [];
    net.register_forward_hook((_net, _inputs, output) => void seen.push(output === null ? '-' : 'b'),
        {always_call: true});
    net.register_forward_hook(() => void seen.push('a'), {prepend: true});
    net.register_forward_pre_hook(() => void seen.push(2));
    net.register_forward_pre_hook(() => void seen.push(1), {prepend: true});
    net.forward(GTorch.ones([1, 2]));
    tap.equal(seen.splice(0), [1, 2, 'a', 'b']);
    tap.throws(() => net.forward(GTorch.ones([1, 3])), () => true);
    tap.equal(seen, [1, 2, '-']);
});

tap.add('a_custom_forward_runs_hooks', () => {
    const Sum = GObject.registerClass(class Sum extends GTorch.Module {
        forward(...inputs) {
            return inputs.reduce((sum, x) => sum.add(x));
        }
    });
    const Twice = GObject.registerClass(class Twice extends Sum {
        forward(...inputs) {
            return super.forward(...inputs).mul(2);
        }
    });
    const Same = GObject.registerClass(class Same extends Twice {});
    for (const [Class, factor] of [[Sum, 1], [Twice, 2], [Same, 2]]) {
        const net = new Class();
        const seen = [];
        const x = GTorch.ones([1]);
        tap.equal([net.forward(x).item(), net.forward(x, x).item()], [factor, 2 * factor]);
        const ids = [
            net.register_forward_pre_hook((_net, inputs) => {
                seen.push(inputs.length);
                return inputs.map(one => one.mul(3));
            }),
            net.register_forward_hook((_net, inputs, output) => {
                seen.push(inputs.length);
                return output.add(1);
            }),
        ];
        const ways = [
            () => net.forward(x), () => net.call(x), () => nn.Sequential(net).forward(x),
            () => net.forward(x, x), () => net.call(x, x),
        ];
        ways.forEach((call, i) => {
            const n = i < 3 ? 1 : 2;
            tap.equal(call().item(), 3 * n * factor + 1);
            tap.equal(seen.splice(0), [n, n]);
        });
        ids.forEach(id => net.remove_hook(id));
        tap.equal(net.forward(x).item(), factor);
        tap.equal(seen, []);
    }
});

tap.add('a_custom_forward_accepts_other_objects', () => {
    const Pick = GObject.registerClass(class Pick extends GTorch.Module {
        forward(options, list) {
            return [options.name, ...list];
        }
    });
    tap.equal(new Pick().forward({name: 'a'}, [1, 2]), ['a', 1, 2]);
});

tap.add('derived_layers_can_call_super', () => {
    const Double = GObject.registerClass(class Double extends GTorch.Linear {
        forward(x) {
            return super.forward(x).mul(2);
        }
    });
    const Eightfold = GObject.registerClass(class Eightfold extends Double {
        forward(x) {
            return super.forward(x).mul(4);
        }
    });
    const x = GTorch.ones([1, 2]);
    for (const [Class, factor] of [[Double, 2], [Eightfold, 8]]) {
        const net = new Class({in_features: 2, out_features: 3});
        net.check();
        let n = 0;
        net.register_forward_hook(() => void n++);
        const plain = GTorch.linear(x, net.weight, net.bias).mul(factor);
        for (const call of [() => net.forward(x), () => net.call(x), () => nn.Sequential(net).forward(x)])
            tap.assert(call().sub(plain).abs().max().item() < 1e-5);
        tap.equal(n, 3);
    }
    const Bare = GObject.registerClass(class Bare extends GTorch.Module {
        forward(x) {
            return super.forward(x);
        }
    });
    tap.throws(() => new Bare().forward(x), error => error.message.includes('forward'));
});

tap.add('a_forward_can_be_awaited', async () => {
    const layer = nn.Linear(3, 2);
    const x = GTorch.ones([4, 3]);
    tap.equal((await layer.forward_async(x, null)).toArray(), layer.forward(x).toArray());
});

tap.add('gradients_are_scaled', async () => {
    const weight = GTorch.ones([2]).requires_grad_();
    const optimizer = GTorch.optim.SGD([weight], {lr: 0.5});
    const scaler = new GTorch.GradScaler({scale_factor: 1024});
    let heard = 0;
    scaler.connect('overflow', () => heard++);
    for (const factor of [1, Infinity]) {
        optimizer.zero_grad();
        const loss = GTorch.autocast(weight.get_device(), () => weight.mul(factor).sum());
        scaler.scale(loss).backward();
        await scaler.step_async(optimizer, null);
        scaler.update();
    }
    tap.equal(weight.toArray(), [0.5, 0.5]);
    tap.equal([heard, scaler.get_scale()], [1, 512]);
    tap.equal(scaler.scale([GTorch.ones([]), GTorch.ones([])]).map(x => x.item()), [512, 512]);
    const other = new GTorch.GradScaler();
    other.load_state_dict(scaler.state_dict());
    tap.equal(other.get_scale(), 512);
    other.scale(GTorch.ones([]));
    other.update(8);
    tap.equal(other.get_scale(), 8);
    tap.throws(() => scaler.update(), error => error.message.includes('no gradients'));
});

tap.add('modules_and_functions_are_replayed_as_graphs', () => {
    const net = new Net();
    const x = GTorch.randn([4, 2]);
    const graphed = GTorch.GraphedModule.new(net, [x]);
    const expected = net.forward(x).toArray();
    const swap = GTorch.GraphedModule.new_for_func(inputs => [inputs[1], inputs[0].mul(inputs[1])], [x, x]);

    GTorch.make_graphed_callables([graphed, swap], null);
    tap.equal(graphed.forward(x).toArray(), expected);
    graphed.forward(x).sum().backward();
    tap.assert(graphed.parameters().every(p => p.grad !== null));
    tap.equal(swap.run([x, x])[1].toArray(), x.mul(x).toArray());
    tap.throws(() => graphed.forward(GTorch.randn([5, 2])), error => error instanceof GLib.Error &&
        error.message.includes('in the capture it had [4, 2]'));
});

const Parts = GObject.registerClass(class Parts extends GTorch.Module {
    _init() {
        super._init();
        this.fc = new nn.Linear(2, 3);
        this.w = nn.Parameter(GTorch.ones([3]));
        this.register_buffer('b', GTorch.zeros([1]), true);
    }

    forward(x) {
        return this.fc.forward(x).mul(this.w);
    }
});

// Changes of a module, with the names of its members after each: parameters, modules, buffers.
const CHANGES = {
    'nothing': [_m => {}, ['fc.bias', 'fc.weight', 'w'], ['fc'], ['b']],
    'delete of a module': [m => delete m.fc, ['w'], [], ['b']],
    'delete of a parameter': [m => delete m.w, ['fc.bias', 'fc.weight'], ['fc'], ['b']],
    'null for a module': [m => (m.fc = null), ['w'], [], ['b']],
    'null for a parameter': [m => (m.w = null), ['fc.bias', 'fc.weight'], ['fc'], ['b']],
    'another module': [m => (m.fc = new nn.ReLU()), ['w'], ['fc'], ['b']],
    'another parameter': [m => (m.w = nn.Parameter(GTorch.zeros([1]))),
        ['fc.bias', 'fc.weight', 'w'], ['fc'], ['b']],
    'a module for a parameter': [m => (m.w = new nn.ReLU()), ['fc.bias', 'fc.weight'], ['fc', 'w'], ['b']],
    'a parameter for a module': [m => (m.fc = nn.Parameter(GTorch.ones([1]))), ['fc', 'w'], [], ['b']],
    'a second name': [m => (m.g = m.fc) && delete m.fc, ['g.bias', 'g.weight', 'w'], ['g'], ['b']],
    'unregister of a module': [m => m.unregister('fc'), ['w'], [], ['b']],
    'unregister of a parameter': [m => m.unregister('w'), ['fc.bias', 'fc.weight'], ['fc'], ['b']],
    'unregister of a buffer': [m => m.unregister('b'), ['fc.bias', 'fc.weight', 'w'], ['fc'], []],
    'register_module': [m => m.register_module('fc', new nn.ReLU()), ['w'], ['fc'], ['b']],
};

tap.add('members_are_what_the_properties_hold', () => {
    for (const [what, [change, parameters, modules, buffers]] of Object.entries(CHANGES)) {
        for (const looksBefore of [false, true]) {
            const m = new Parts();
            if (looksBefore)
                m.state_dict();
            change(m);
            tap.equal([what, m.get_parameter_names(true).sort()], [what, parameters]);
            tap.equal([what, m.get_child_names().sort()], [what, modules]);
            tap.equal([what, m.get_buffer_names(true)], [what, buffers]);
            tap.equal([what, Object.keys(m.state_dict()).sort()], [what, [...parameters, ...buffers].sort()]);
            tap.equal(m.parameters().length, parameters.length);
            const [param] = m.parameters().filter(p => p === m.w);
            tap.equal([what, param !== undefined], [what, m.w instanceof GTorch.Parameter]);
            if (modules.includes('fc'))
                tap.assert(m.children().includes(m.fc), what);
        }
    }
});

tap.add('transformers_take_arguments_by_name', () => {
    const x = GTorch.ones([3, 2, 8]);
    const mask = GTorch.Transformer.generate_square_subsequent_mask(3);
    const [output, weights] = nn.MultiheadAttention(8, 2).forward(x, x, x, {average_attn_weights: false});
    tap.equal([output.shape, weights.shape], [[3, 2, 8], [2, 2, 3, 3]]);
    tap.equal(nn.MultiheadAttention(8, 2).forward(x, x, x, null, false)[1], null);
    const layer = nn.TransformerEncoderLayer(8, 2, 6, {activation: y => y.tanh()});
    const encoder = nn.TransformerEncoder(layer, 2, {norm: nn.LayerNorm(8)});
    tap.equal(encoder.num_layers, 2);
    tap.equal(encoder.forward(x, {mask, is_causal: true}).shape, [3, 2, 8]);
    const model = nn.Transformer(8, 2, 1, 1, 6, {activation: 'gelu', custom_encoder: encoder});
    tap.equal(model.forward(x, x, {tgt_mask: mask}).shape, [3, 2, 8]);
    tap.throws(() => model.forward(x), error => error.message.includes('tgt'));
    tap.throws(() => encoder.forward(x, {is_causal: 1}), error => error.message.includes('is_causal'));
    tap.throws(() => nn.TransformerEncoder(nn.ReLU(), 2), error => error.message.includes('encoder_layer'));
    tap.throws(() => nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2), 0),
        error => error.message.includes('num_layers'));
});

tap.add('c_calls_layers_of_transformers_that_programs_derive', () => {
    let n = 0;
    const Layer = GObject.registerClass(class OwnEncoderLayer extends nn.TransformerEncoderLayer {
        forward(...given) {
            n++;
            return super.forward(...given).mul(2);
        }
    });
    const Attention = GObject.registerClass(class OwnAttention extends GTorch.Attention {
        forward(query) {
            return [query.mul(0), null];
        }
    });
    const x = GTorch.ones([3, 2, 8]);
    const layers = [new Layer(8, 2, 6), new Layer(8, 2, 6)];
    const encoder = GTorch.TransformerEncoder.new_from_layers(layers, null);
    tap.equal(encoder.forward(x).shape, [3, 2, 8]);
    tap.equal(n, 2);
    layers[0].register_module('self_attn', new Attention());
    tap.equal(layers[0].forward(x).shape, [3, 2, 8]);
    tap.throws(() => nn.TransformerEncoder(layers[0], 2),
        error => error.message.includes('another language'));
});

await tap.run();
