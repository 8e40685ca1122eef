// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// The trainer. JavaScript runs in one thread: a trainer does its work in the main loop, step by step, unless
// the program says that it may have a thread of its own.

/* exported overrideWidget setup */

const {GLib, GObject} = imports.gi;
const convert = imports.overrides._gtorch_convert;
const {bytes} = imports.overrides._gtorch_calls;
const {sampleOf, valueOf} = imports.overrides._gtorch_data;
const {SUCCESS, callableBySuper, derivable, isProgramsOwn} = imports.overrides._gtorch_derived;
const {failureOf, noting, restore, restoring} = imports.overrides._gtorch_errors;

let GTorch;

const LOCAL = Symbol('has functions of the program');
const THROWN = Symbol('has thrown');

function mustBeLoss(what, value) {
    if (!(value instanceof GTorch.Tensor))
        throw new TypeError(`${what} must return the loss, a tensor, not ${convert.describe(value)}`);
    return value;
}

function isOwn(object) {
    return object instanceof GObject.Object && isProgramsOwn(object.constructor);
}

// Whether a step of the module calls functions of the program: of its classes, or hooks.
function isLocalModule(module) {
    if (!(module instanceof GTorch.Module))
        return false;
    const list = module.get_modules();
    for (let i = 0; i < list.get_n_items(); i++) {
        const one = list.get_item(i);
        if (isOwn(one) || one.has_hooks())
            return true;
    }
    return false;
}

function isLocalLoader(loader) {
    return loader instanceof GTorch.DataLoader && (loader[LOCAL] === true ||
        [loader.dataset, loader.sampler, loader.batch_sampler].some(isOwn));
}

function isLocalScheduler(scheduler) {
    return isOwn(scheduler) || scheduler instanceof GTorch.LambdaLR ||
        scheduler instanceof GTorch.MultiplicativeLR;
}

// What must be called in this thread, as far as it is known; null: nothing.
function whatIsLocal(trainer) {
    const parts = {
        'its class': isOwn(trainer), 'a function, metric, log or schedule': trainer[LOCAL] === true,
        'the optimizer': isOwn(trainer.optimizer), 'the module': isLocalModule(trainer.module),
        'loss_module': isLocalModule(trainer.loss_module), 'the loader': isLocalLoader(trainer.loader),
        'validation_loader': isLocalLoader(trainer.validation_loader),
    };
    return Object.keys(parts).find(name => parts[name]) ?? null;
}

// Refuses a run of the trainer in a thread of its own if it would call functions of this one.
function checkThread(name, trainer) {
    const what = trainer?.threaded ? whatIsLocal(trainer) : null;
    if (what !== null) {
        throw new Error(`${name}: threaded is true, and ${what} has functions or hooks of ` +
            'JavaScript, which can be called in the thread of the program alone: threaded must be false');
    }
}

// Throws what a handler has thrown where the run ends with the error that it became.
function rethrowing(trainer, func) {
    try {
        return func();
    } catch (error) {
        const {thrown, message} = trainer?.[THROWN] ?? {};
        throw message !== undefined && error.message === message ? thrown : error;
    } finally {
        if (trainer?.[THROWN])
            trainer[THROWN] = null;
    }
}

// A widget whose runs are those of its trainer.
function overrideWidget(prototype) {
    const {run_async: runAsync, run_finish: runFinish} = prototype;
    prototype.run_finish = convert.counted('run_finish', function (result) {
        return rethrowing(this.trainer, () => runFinish.call(this, result));
    }, 1);
    prototype.run_async = function (...given) {
        if (given.length <= 1) // more are refused
            checkThread('run_async', this.trainer);
        return runAsync.apply(this, given);
    };
    Object.defineProperty(prototype.run_async, 'length', {value: runAsync.length, configurable: true});
}

// An exception of a handler of a signal ends the run.
function overrideHandlers(prototype) {
    for (const name of ['connect', 'connect_after']) {
        const raw = prototype[name];
        prototype[name] = function (signal, handler, ...more) {
            if (typeof handler !== 'function')
                return raw.call(this, signal, handler, ...more);
            return raw.call(this, signal, (trainer, ...values) => {
                try {
                    return handler.call(trainer, trainer, ...values);
                } catch (thrown) {
                    const error = failureOf(thrown, `a handler of ${signal}`);
                    if (!trainer.fail(error))
                        throw thrown; // no run ends with it, and gjs logs it
                    trainer[THROWN] = {thrown, message: error.message};
                    return undefined;
                }
            }, ...more);
        };
    }
}

// Marks the object if the value that the method gets is one of the program's.
function marking(prototype, name, place, isTheirs) {
    const raw = prototype[name];
    prototype[name] = function (...given) {
        if (isTheirs(given[place]))
            this[LOCAL] = true;
        return raw.apply(this, given);
    };
}

// What C only warns of: its functions that set others have no error.
function mustBeIdle(name, trainer) {
    if (trainer instanceof GTorch.Trainer && trainer.is_running()) {
        throw new GLib.Error(GTorch.Error, GTorch.Error.INVALID,
            `trainer_${name}: a run of this trainer goes on`);
    }
}

function overrideSteps(prototype) {
    for (const name of ['set_training_step', 'set_validation_step']) {
        const raw = prototype[name];
        prototype[name] = convert.counted(name, function (func) {
            mustBeIdle(name, this);
            if (func === null) {
                raw.call(this, null);
                return;
            }
            convert.plainFunction(name, func);
            this[LOCAL] = true;
            raw.call(this, (trainer, sample) => noting(() => {
                const loss = convert.finished(name, func(trainer, valueOf(sample)));
                return mustBeLoss(`the function of ${name}()`, loss);
            }));
        }, 1);
    }
}

// The functions of what checkpoints have of the program's own.
function overrideStates(prototype) {
    const saved = value => bytes('set_save_function', 'what its function returns', value ?? undefined);
    const answers = {set_save_function: saved, set_load_function: value => value !== false};
    for (const [name, answer] of Object.entries(answers)) {
        const raw = prototype[name];
        prototype[name] = convert.counted(name, function (func) {
            mustBeIdle(name, this);
            if (func === null) {
                raw.call(this, null);
                return;
            }
            convert.plainFunction(name, func);
            this[LOCAL] = true;
            raw.call(this, (...given) => noting(() => answer(convert.finished(name, func(...given)))));
        }, 1);
    }
    restore(prototype, 'save_checkpoint', 'load_checkpoint');
    const {resume_finish: resumeFinish} = prototype;
    prototype.resume_finish = function (...given) { // resume_async() calls it
        return resumeFinish.apply(this, given).at(-1);
    };
}

function overrideRuns(prototype) {
    const {run, run_async: runAsync, run_finish: runFinish} = prototype;
    prototype.run = convert.counted('run', function (cancellable = null) {
        return rethrowing(this, () => restoring(() => run.call(this, cancellable)));
    }, 1);
    prototype.run_finish = convert.counted('run_finish', function (result) { // run_async() calls it
        return rethrowing(this, () => runFinish.call(this, result));
    }, 1);
    prototype.run_async = function (...given) {
        if (given.length <= 2) // more are refused
            checkThread('run_async', this);
        return runAsync.apply(this, given);
    };
    const {resume} = prototype;
    prototype.resume = convert.counted('resume', function (cancellable = null) {
        return restoring(() => resume.call(this, cancellable)).at(-1);
    }, 1);
    Object.defineProperty(prototype, 'results', {
        configurable: true,
        get() {
            return Object.fromEntries(this.get_result_names().map(name => [name, this.get_result(name)]));
        },
    });
}

// Steps are made in this thread unless a program says otherwise: which hooks and functions of JavaScript they
// call is known in part only, and in another thread they would not be called.
function overrideConstruction(Trainer) {
    const init = Trainer.prototype._init;
    const make = Trainer.new;
    Trainer.prototype._init = function (...given) {
        const made = init.apply(this, given);
        if (given.at(-1)?.threaded === undefined)
            this.threaded = false;
        return made;
    };
    Trainer.new = convert.counted('Trainer.new', (...given) => {
        const made = make.apply(Trainer, given);
        made.threaded = false;
        return made;
    }, make.length);
}

function setup(namespace) {
    GTorch = namespace;
    overrideConstruction(GTorch.Trainer);
    const step = {
        call: (self, func, [sample]) => func.call(self, valueOf(sample)),
        result: mustBeLoss,
    };
    derivable(GTorch.Trainer, {training_step: step, validation_step: step});
    derivable(GTorch.Metric, {update: SUCCESS, reset: SUCCESS});
    derivable(GTorch.Log, {write: SUCCESS, flush: SUCCESS, close: SUCCESS});
    overrideHandlers(GTorch.Trainer.prototype);
    overrideSteps(GTorch.Trainer.prototype);
    overrideRuns(GTorch.Trainer.prototype);
    overrideStates(GTorch.Trainer.prototype);
    marking(GTorch.Trainer.prototype, 'add_metric', 1, isOwn);
    marking(GTorch.Trainer.prototype, 'add_log', 0, isOwn);
    marking(GTorch.Trainer.prototype, 'add_scheduler', 0, isLocalScheduler);
    marking(GTorch.DataLoader.prototype, 'set_collate', 0, func => func !== null);
    restore(GTorch.Metric.prototype, 'update', 'compute', 'compute_value', 'reset');
    restore(GTorch.Log.prototype, 'write', 'flush', 'close');
    callableBySuper(GTorch.Metric.prototype, ['update', 'compute', 'reset']);
    callableBySuper(GTorch.Log.prototype, ['write', 'flush', 'close']);
    callableBySuper(GTorch.Trainer.prototype, ['training_step', 'validation_step'],
        given => given.length === 1 ? [sampleOf(given[0])] : given);
}
