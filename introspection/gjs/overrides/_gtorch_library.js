// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// What is done to GTorch and to the libraries beside it, such as that for plots, whose overrides are written
// by generator/bindings: their functions check and convert arguments, have defaults and take options by name,
// and their classes refuse wrong properties.
//
//     const figure = GTorchPlot.lines([losses], {labels: ['training']});
//     figure.save('losses.svg');

/* exported overrideText setup */

const {GObject} = imports.gi;
const async = imports.overrides._gtorch_async;
const calls = imports.overrides._gtorch_calls;
const convert = imports.overrides._gtorch_convert;
const defaults = imports.overrides._gtorch_defaults;
const properties = imports.overrides._gtorch_properties;
const {overrideWidget} = imports.overrides._gtorch_train;

// Makes toString() the library's to_string(), where there is one, and the name of the class elsewhere. JSON,
// as which console.log() shows objects, has the lines of that text; of tensors, see overrideTensor(). Those
// that are derived from the classes in others have texts of their own.
function overrideText(namespace, names, others = []) {
    const asJSON = {
        toJSON(_key) {
            return convert.lines(this.toString());
        },
    };
    for (const name of names) {
        const prototype = namespace[name].prototype ?? {};
        if (Object.hasOwn(prototype, 'to_string') && prototype.to_string.length === 0) {
            convert.addMethods(prototype, {
                toString() {
                    return this.to_string();
                },
            });
        } else if (Object.getPrototypeOf(prototype) instanceof GObject.Object &&
            !others.some(klass => prototype instanceof klass)) {
            convert.addMethods(prototype, {
                toString() {
                    return `<${convert.nameOf(this.constructor)}>`;
                },
            });
        }
        if (prototype instanceof GObject.Object && !Object.hasOwn(prototype, 'toJSON'))
            convert.addMethods(prototype, asJSON);
    }
}

// Sets up a library beside GTorch by its table.
function setup(namespace, name, table) {
    imports.gi.GTorch.get_default_dtype(); // its overrides come first
    properties.install({namespace, prefix: name, ...table});
    calls.install(namespace, table);
    defaults.setup(namespace, table);
    async.install(namespace, table);
    overrideText(namespace, table.classes);
    if (table.classes.includes('TrainerProgress'))
        overrideWidget(namespace.TrainerProgress.prototype);
}
