// SPDX-FileCopyrightText: The GTorch authors
// SPDX-License-Identifier: LGPL-2.1-or-later

// The library's functions as the typelib describes them, for tests of all of them.

import GIRepository from 'gi://GIRepository?version=2.0';
import 'gi://GTorch?version=1';

const {InfoType, TypeTag, Direction, ScopeType} = GIRepository;
const repository = GIRepository.Repository.get_default();

function infos(space = 'GTorch') {
    return Array.from({length: repository.get_n_infos(space)}, (_, i) => repository.get_info(space, i));
}

export function classes() {
    return infos().filter(info => info.get_type() === InfoType.OBJECT).map(info => info.get_name());
}

// Lists the classes that new can construct.
export function constructible() {
    const kinds = [InfoType.OBJECT, InfoType.STRUCT, InfoType.BOXED];
    return infos().filter(info => kinds.includes(info.get_type())).map(info => info.get_name())
        .filter(name => !/Class$|Private$/.test(name));
}

// The virtual functions of all classes, as Module.forward.
export function vfuncs() {
    return infos().filter(info => info.get_type() === InfoType.OBJECT).flatMap(info =>
        Array.from({length: GIRepository.object_info_get_n_vfuncs(info)}, (_, i) =>
            `${info.get_name()}.${GIRepository.object_info_get_vfunc(info, i).get_name()}`));
}

// The tag of a type, and the name of an enumeration or a class.
function typeOf(typeInfo) {
    const tag = GIRepository.type_info_get_tag(typeInfo);
    if (tag === TypeTag.ARRAY)
        return {...typeOf(GIRepository.type_info_get_param_type(typeInfo, 0)), isArray: true};
    if (tag !== TypeTag.INTERFACE)
        return {tag: GIRepository.type_tag_to_string(tag), type: null, isArray: false};
    const info = GIRepository.type_info_get_interface(typeInfo);
    const tags = {[InfoType.ENUM]: 'enum', [InfoType.FLAGS]: 'flags', [InfoType.CALLBACK]: 'callback'};
    const own = info.get_namespace() === 'GTorch';
    const type = own ? info.get_name() : `${info.get_namespace()}.${info.get_name()}`;
    return {tag: tags[info.get_type()] ?? 'object', type, isArray: false};
}

// Returns the arguments in JavaScript's form.
function argumentsOf(info) {
    const args = Array.from({length: GIRepository.callable_info_get_n_args(info)},
        (_, i) => GIRepository.callable_info_get_arg(info, i));
    const hidden = new Set();
    const types = [...args.map(arg => GIRepository.arg_info_get_type(arg)),
        GIRepository.callable_info_get_return_type(info)];
    for (const type of types) {
        if (GIRepository.type_info_get_tag(type) === TypeTag.ARRAY)
            hidden.add(GIRepository.type_info_get_array_length(type));
    }
    for (const arg of args) {
        hidden.add(GIRepository.arg_info_get_closure(arg));
        hidden.add(GIRepository.arg_info_get_destroy(arg));
    }
    return args.map((arg, i) => ({arg, i}))
        .filter(({arg, i}) => !hidden.has(i) && GIRepository.arg_info_get_direction(arg) !== Direction.OUT)
        .map(({arg}) => ({
            name: arg.get_name(),
            scope: GIRepository.arg_info_get_scope(arg),
            ...typeOf(GIRepository.arg_info_get_type(arg)),
        }));
}

// Lists everything that can be called: {owner, name, isMethod, args}; owner is null for functions
// of the namespace.
export function callables(space = 'GTorch') {
    const found = [];
    const add = (owner, info) => {
        const flags = GIRepository.function_info_get_flags(info);
        found.push({
            owner,
            name: info.get_name(),
            isMethod: Boolean(flags & GIRepository.FunctionInfoFlags.IS_METHOD),
            args: argumentsOf(info),
        });
    };
    for (const info of infos(space)) {
        const type = info.get_type();
        const [count, method] = {
            [InfoType.OBJECT]: ['object_info_get_n_methods', 'object_info_get_method'],
            [InfoType.STRUCT]: ['struct_info_get_n_methods', 'struct_info_get_method'],
            [InfoType.BOXED]: ['struct_info_get_n_methods', 'struct_info_get_method'],
            [InfoType.ENUM]: ['enum_info_get_n_methods', 'enum_info_get_method'],
            [InfoType.FLAGS]: ['enum_info_get_n_methods', 'enum_info_get_method'],
        }[type] ?? [];
        if (type === InfoType.FUNCTION)
            add(null, info);
        for (let i = 0; count !== undefined && i < GIRepository[count](info); i++)
            add(info.get_name(), GIRepository[method](info, i));
    }
    return found;
}

export const {NOTIFIED, CALL} = ScopeType;
