// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// Modules that are lists and dictionaries, of modules and of parameters. Lists have length and at(),
// dictionaries the methods of Map, and both can be iterated.

/* exported setup */

const convert = imports.overrides._gtorch_convert;
const {asClass} = imports.overrides._gtorch_derived;
const {adopt, items} = imports.overrides._gtorch_members;

let GTorch;

function mustBe(Kind, what, value) {
    if (!(value instanceof Kind)) {
        const kind = convert.nameOf(Kind);
        throw new TypeError(`${what} takes values of ${kind}, not ${convert.describe(value)}`);
    }
    return value;
}

function isTensor(value) {
    return value instanceof GTorch.Tensor && !(value instanceof GTorch.Parameter);
}

function asParameter(what, value) {
    return mustBe(GTorch.Parameter, what, isTensor(value) ? GTorch.Parameter.new(value, true) : value);
}

function asModule(what, value) {
    mustBe(GTorch.Module, what, value);
    adopt(value);
    return value;
}

function addList(name, valuesOf) {
    const {prototype} = GTorch[name];
    Object.defineProperty(prototype, 'length', {
        configurable: true,
        get() {
            return valuesOf(this).length;
        },
    });
    prototype[Symbol.iterator] = function () {
        return valuesOf(this)[Symbol.iterator]();
    };
    convert.addMethods(prototype, {
        at(position) {
            return valuesOf(this).at(position);
        },
    });
}

function addDictionary(name, kind, asValue) {
    const {prototype} = GTorch[name];
    const namesOf = module => module.get_member_names(GTorch.MemberKind[kind]);
    const read = (module, key) => module[`get_${kind.toLowerCase()}`](key);

    Object.defineProperty(prototype, 'size', {
        configurable: true,
        get() {
            return namesOf(this).length;
        },
    });
    prototype[Symbol.iterator] = function () {
        return this.entries();
    };
    convert.addMethods(prototype, {
        has(key) {
            return namesOf(this).includes(key);
        },
        get(key) {
            return this.has(key) ? read(this, key) : undefined;
        },
        set(key, value) {
            this[`register_${kind.toLowerCase()}`](key, asValue(`${name}.set`, value));
            return this;
        },
        delete(key) {
            const found = this.has(key);
            if (found)
                this.unregister(key);
            return found;
        },
        clear() {
            namesOf(this).forEach(key => this.unregister(key));
        },
        keys() {
            return namesOf(this)[Symbol.iterator]();
        },
        values() {
            return namesOf(this).map(key => read(this, key))[Symbol.iterator]();
        },
        entries() {
            return namesOf(this).map(key => [key, read(this, key)])[Symbol.iterator]();
        },
    });
}

// Returns the class of a list, which takes an array of values.
function list(name, asValue) {
    const klass = GTorch[name];
    return asClass(name, klass, (Class, given) => {
        const {values = []} = convert.bind(name, [{name: 'values'}], given);
        if (typeof values?.[Symbol.iterator] !== 'function')
            throw new TypeError(`${name}: an array is wanted, not ${convert.describe(values)}`);
        const made = Reflect.construct(klass, [], Class);
        [...values].map(value => asValue(name, value)).forEach(value => made.append(value));
        return made;
    });
}

// Returns the class of a dictionary, which takes an object, a Map, or pairs of names and values.
function dictionary(name) {
    const klass = GTorch[name];
    return asClass(name, klass, (Class, given) => {
        if (given.length > 1)
            convert.surplus(name, given.length, 1);
        const [values = []] = given;
        const isPair = one => Array.isArray(one) && one.length === 2;
        const isIterable = typeof values?.[Symbol.iterator] === 'function';
        if (isIterable ? ![...values].every(isPair) : !convert.isOptions(values)) {
            throw new TypeError(`${name}: an object, a Map or pairs of names and values are wanted, not ` +
                convert.describe(values));
        }
        const made = Reflect.construct(klass, [], Class);
        const pairs = typeof values?.[Symbol.iterator] === 'function' ? [...values] : Object.entries(values);
        pairs.forEach(([key, value]) => made.set(key, value));
        return made;
    });
}

function setup(namespace) {
    GTorch = namespace;
    const modules = module => items(module.get_children());
    const parameters = module => module.get_member_names(GTorch.MemberKind.PARAMETER)
        .map(name => module.get_parameter(name));

    addList('Sequential', modules);
    addList('ModuleList', modules);
    addList('ParametrizationList', modules);
    addList('ParameterList', parameters);
    addDictionary('ModuleDict', 'MODULE', asModule);
    addDictionary('ParameterDict', 'PARAMETER', asParameter);
    return {
        ModuleDict: dictionary('ModuleDict'),
        ModuleList: list('ModuleList', asModule),
        ParameterDict: dictionary('ParameterDict'),
        ParameterList: list('ParameterList', asParameter),
    };
}
