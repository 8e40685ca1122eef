# SPDX-License-Identifier: LGPL-2.1-or-later
# SPDX-FileCopyrightText: The GTorch authors
"""The classes, enumerations and functions of the GIR in TypeScript, as gjs and the overrides show them."""

import xml.etree.ElementTree as ET

CORE = '{http://www.gtk.org/introspection/core/1.0}'
GLIB = '{http://www.gtk.org/introspection/glib/1.0}'
C_TYPE = '{http://www.gtk.org/introspection/c/1.0}type'
PLAIN = {
    'filename': 'string', 'gboolean': 'boolean', 'gdouble': 'number', 'gfloat': 'number', 'gint': 'number',
    'gpointer': 'any', 'gsize': 'number', 'guint': 'number', 'guint8': 'number', 'none': 'void', 'utf8': 'string',
    'gint64': 'number', 'guint64': 'number', 'Gio.ListModel': 'ListModel', 'Size': 'number | number[]',
    'Factors': 'number | number[]', 'GType': 'any', 'guint32': 'number', 'gint32': 'number',
}  # fmt: skip
GIVEN = {
    'Device': 'DeviceLike', 'GLib.Bytes': 'BytesLike', 'Gio.File': 'FileLike', 'gint64': 'IntLike',
    'guint64': 'IntLike', 'Size': 'Sizes | Size',
    'Factors': 'number | readonly number[] | Factors',
}  # fmt: skip
# What new takes, other than an object with properties.
PROPERTIES = '[properties?: {device?: DeviceLike | null, [name: string]: any}]'
PLACED = f'...args: {PROPERTIES} | [device: DeviceLike, more?: object]'
NEW = {
    'Device': 'where?: DeviceLike',
    'Event': 'options?: {flags?: number, enable_timing?: boolean, blocking?: boolean, interprocess?: boolean}',
    **dict.fromkeys(('DeviceMonitor', 'Generator', 'MemoryPool', 'Stream'), PLACED),
}
# Classes that are made by new of C, whose arguments are no properties.
MADE = {
    'ChainDataset', 'ConcatDataset', 'DeviceMesh', 'DistributedModule', 'FileStore', 'GraphedModule', 'ImageFolder',
    'IndexSource', 'ModuleShards', 'PackedSequence', 'ParamGroup', 'Parameter', 'PrefixStore', 'ProcessGroup',
    'SharedMemory', 'ShardedOptimizer', 'SpectralNorm', 'StackDataset', 'TcpStore', 'TensorDataset',
    'TransformerDecoder', 'TransformerEncoder', 'WeightedRandomSampler',
}
# Arguments of new that are properties of another name.
RENAMED = {('Trainer', 'loss'): 'loss_module'}
# Functions that give a promise when they are called without a callback.
AWAITED = 'Gio.AsyncReadyCallback'
OPEN = '[name: string]: any;'
# Functions of classes that refuse every function of JavaScript.
REFUSED = {('Profiler', 'set_stack_func')}
# TypeScript's own words, which are no names of parameters.
WORDS = {'default', 'function', 'in', 'new', 'var', 'with', 'package', 'private', 'public', 'enum', 'this'}


def forms(given):
    """Returns the lists of arguments with which a function can be called: by position, and with an object of those that
    are given by name."""
    n = max((i + 1 for i, (_, _, has_default) in enumerate(given) if not has_default), default=0)
    needed = [f'{key}: {kind}' for key, kind, _ in given[:n]]
    found = [', '.join([*needed, *(f'{key}?: {kind}' for key, kind, _ in given[n:])])]
    first = next((i for i, (_, _, has_default) in enumerate(given) if has_default), len(given))
    for i in range(first, len(given)):
        named = ', '.join(f'{key.rstrip("_")}{"?" if has else ""}: {kind}' for key, kind, has in given[i:])
        found.append(', '.join([*(f'{key}: {kind}' for key, kind, _ in given[:i]), f'options: {{{named}}}']))
    return found


def kinds_of(gir):
    """Returns the namespace of a GIR, and the kinds of what it has by name."""
    root = ET.parse(gir).getroot().find(CORE + 'namespace')
    return root, {e.get('name'): e.tag.removeprefix(CORE) for e in root if e.get('name')}


class Namespace:
    """The namespace of a GIR; @others are those of the GIRs that it includes."""

    def __init__(self, gir, hand, operations, defaults, others=()):
        self.hand, self.operations, self.defaults = hand, operations, defaults
        self.root, self.kinds = kinds_of(gir)
        for root, kinds in map(kinds_of, others):
            self.kinds |= {f'{root.get("name")}.{name}': kind for name, kind in kinds.items()}
        self.is_library = self.root.get('name') != 'GTorch'
        self.members = {}  # of classes: what is declared, by name
        self.interfaces = []  # the properties of classes

    def type_of(self, part, given):
        """Returns the type of a parameter, a result, a property or an element."""
        array = part.find(CORE + 'array')
        if array is not None:
            name = array.find(CORE + 'type').get('name')
            if given and name == 'gint64':
                return 'Sizes'
            element = self.type_of(array, given)
            return f'readonly ({element})[]' if given else f'({element})[]' if ' ' in element else f'{element}[]'
        found = part.find(CORE + 'type')
        if found is None:
            return 'any'
        name = found.get('name')
        if name == 'GLib.HashTable':
            return f'{{[name: string]: {self.named(found.findall(CORE + "type")[1].get("name"), given)}}}'
        return self.named(name, given)

    def named(self, name, given):
        space = 'GTorch.' if self.is_library else ''
        if given and self.is_library and name == 'GTorch.Tensor':
            return 'Elements'
        own = name.removeprefix(space)
        if given and own in GIVEN:
            return ' | '.join(f'{space}{one}' if one.endswith('Like') else one for one in GIVEN[own].split(' | '))
        if own in PLAIN:
            return f'{space}ListModel' if own == 'Gio.ListModel' else PLAIN[own]
        kind = self.kinds.get(name)
        if '.' in name and kind is None:
            return 'any'
        if kind in ('enumeration', 'bitfield'):
            return f'{name}Like' if given else name
        if kind == 'callback':
            return '(...args: any[]) => any'
        return name if kind in ('class', 'record') else 'any'

    def parameters(self, function, owner=None):
        """Returns the visible parameters of a function as name, type and whether it has a default, its further results,
        and whether it takes a callback."""
        node = function.find(CORE + 'parameters')
        every = node.findall(CORE + 'parameter') if node is not None else []
        hidden = set()
        for part in (*every, function.find(CORE + 'return-value')):
            array = part.find(CORE + 'array')
            places = [part.get('closure'), part.get('destroy'), array.get('length') if array is not None else None]
            hidden |= {int(place) for place in places if place is not None}
        given, results, waits = [], [], False
        for i, part in enumerate(every):
            if i in hidden:
                continue
            found = part.find(CORE + 'type')
            if found is not None and found.get('name') == AWAITED:
                waits = True
            elif part.get('direction') == 'out':
                results.append(self.type_of(part, False))
            else:
                kind = self.type_of(part, True)
                kind = f'({kind})' if '=>' in kind else kind
                may_be_null = part.get('nullable') == '1' or part.get('allow-none') == '1'
                name = part.get('name')
                has_default = self.defaults.of(owner, function.get('name'), name, may_be_null) is not None
                kind = f'{kind} | null' if may_be_null else kind
                given.append((f'{name}_' if name in WORDS else name, kind, has_default))
        return given, results, waits

    def result(self, function, results):
        value = function.find(CORE + 'return-value')
        first = self.type_of(value, False)
        if value.get('nullable') == '1':
            first = f'{first} | null'
        if not results:
            return first
        return results[0] if first == 'void' and len(results) == 1 else \
            f'[{", ".join([*([] if first == "void" else [first]), *results])}]'

    def finished(self, owner, name):
        """Returns what the promise of an asynchronous function gives."""
        names = (f'{name.removesuffix("_async")}_finish', f'{name.removesuffix("_async")}_finish_lists')
        for function in owner:
            if function.get('name') in names and function.tag in (CORE + 'method', CORE + 'function'):
                return self.result(function, self.parameters(function)[1])
        return 'any'

    def signatures(self, owner, function, head=''):
        name, space = function.get('name'), owner.get('name') if owner is not self.root else None
        given, results, waits = self.parameters(function, space)
        if not waits:
            return [f'{head}{name}({text}): {self.result(function, results)};' for text in forms(given)]
        result = f'Promise<{self.finished(owner, name)}>'
        texts = [f'{key}: {kind}' for key, kind, _ in given]
        callback = 'callback: (source: any, result: any) => void'
        return [
            *(f'{head}{name}({text}): {result};' for text in forms(given)),
            f'{head}{name}({", ".join([*texts, callback])}): void;',
        ]

    def is_shown(self, function, owner):
        name = function.get('name')
        base = name.removesuffix('_inplace').removesuffix('_scalar').removesuffix('_int')
        is_row = owner in (None, 'Tensor') and name in self.operations
        is_form = owner in (None, 'Tensor') and base in self.operations and base != name
        is_moved = function.get('moved-to') and not self.is_library
        return not (function.get('introspectable') == '0' or is_row or is_form or is_moved
                    or name in self.hand.get(owner, ()))

    def parents(self, node):
        """Returns the names of the classes above a class."""
        found, by_name = [], {e.get('name'): e for e in self.root.findall(CORE + 'class')}
        while (name := node.get('parent')) in by_name:
            found.append(name)
            node = by_name[name]
        return found

    def all_of(self, node, tag):
        """Returns the parts of a class and of the classes above it."""
        by_name = {e.get('name'): e for e in self.root.findall(CORE + 'class')}
        return [e for one in (node, *(by_name[name] for name in self.parents(node))) for e in one.findall(CORE + tag)]

    def is_open(self, node):
        """Whether objects have members that are not here: those of classes and interfaces of GTK."""
        others = {e.get('name') for e in node.findall(CORE + 'implements')} - {'Gio.ListModel'}
        parent = node.get('parent', '')
        return self.is_library and bool(others or '.' in parent and parent != 'GObject.Object')

    def constructors(self, node):
        """Returns what new takes: an object with properties, or the arguments of new of C by position before it."""
        name = node.get('name')
        if name in NEW:
            return [f'constructor({NEW[name]});']
        anything = '{[name: string]: any}'
        known = {}
        for prop in self.all_of(node, 'property'):
            if prop.get('writable') == '1':
                kind = self.type_of(prop, True)
                kind = kind if kind in ('IntLike', 'boolean', 'number') else f'{kind} | null'
                known[prop.get('name').replace('-', '_')] = kind
        derived = {'Module', 'Optimizer', 'LRScheduler', 'Tensor'} & {name, *self.parents(node)}
        properties = anything if derived or name in MADE else f'PropertyOptions.{name}'
        if properties is not anything:
            more = [f'    {OPEN}'] if self.is_open(node) else []
            members = (f'    {key}?: {kind};' for key, kind in known.items())
            self.interfaces += [f'interface {name} {{', *members, *more, '}']
        lines = [f'constructor(properties?: {properties});']
        new = next((e for e in node.findall(CORE + 'constructor') if e.get('name') == 'new'), None)
        if derived - {'Optimizer'} and name not in MADE or new is None or new.get('introspectable') == '0':
            return lines
        given, _, _ = self.parameters(new, name)
        given = [(RENAMED.get((name, key), key), kind, has_default) for key, kind, has_default in given]
        if not given:
            return lines
        n = max((i + 1 for i, (_, _, has_default) in enumerate(given) if not has_default), default=0)
        texts = [f'{key}: {kind}' for key, kind, _ in given]
        more = f'more?: {properties}'
        for i in range(max(n, 1), len(given) + 1):
            lines.append(f'constructor({", ".join([*texts[:i], more])});')
        return lines

    def properties(self, node):
        for prop in node.findall(CORE + 'property'):
            name = prop.get('name').replace('-', '_')
            kind = self.type_of(prop, False)
            if kind not in ('any', 'boolean', 'number', 'string'):
                kind = f'{kind} | null'
            is_fixed = prop.get('writable') != '1' or prop.get('construct-only') == '1'
            is_free = node.get('name') in self.module_names()
            given = self.type_of(prop, True)
            wide = None if is_fixed or is_free or given == kind.removesuffix(' | null') else f'{given} | null'
            yield name, kind, wide, is_fixed and not is_free

    def module_names(self):
        """Classes whose members are properties that can be replaced."""
        if not hasattr(self, '_modules'):
            self._modules = {e.get('name') for e in self.root.findall(CORE + 'class')
                             if 'Module' in (e.get('name'), *self.parents(e))}
        return self._modules

    def class_lines(self, node):
        name, parents = node.get('name'), self.parents(node)
        above = set().union(*(self.members.get(parent, set()) for parent in parents)) if parents else set()
        hand = self.hand.get(name, set()).union(*(self.hand.get(parent, set()) for parent in parents))
        own, lines = set(), []
        for key, kind, wide, is_fixed in self.properties(node):
            if key in hand or key in above or 'Tensor' in (name, *parents) and key in self.operations:
                continue
            own.add(key)
            if wide is None:
                lines.append(f'{"readonly " if is_fixed else ""}{key}: {kind};')
            else:
                lines += [f'get {key}(): {kind};', f'set {key}(value: {wide});']
        taken = set(own)
        virtual = {e.get('name') for e in self.all_of(node, 'virtual-method')}
        for method in node.findall(CORE + 'method'):
            key = method.get('name')
            if not self.is_shown(method, name) or key in taken:
                continue
            own.add(key)
            if key in virtual:  # what overrides it has arguments and results of its own
                lines.append(f'{key}(...args: any[]): any;')
                continue
            lines += self.signatures(node, method)
            if key in above or key in hand:
                lines.append(f'{key}(...args: any[]): any;')
        for vfunc in node.findall(CORE + 'virtual-method'):
            key = vfunc.get('name')
            if key not in own | above | hand and vfunc.get('introspectable') != '0':
                own.add(key)
                lines.append(f'{key}(...args: any[]): any;')
        if any(e.get('name') == 'Gio.ListModel' for e in node.findall(CORE + 'implements')):
            lines += ['get_n_items(): number;', 'get_item(position: number): any;']
        for function in (*node.findall(CORE + 'constructor'), *node.findall(CORE + 'function')):
            is_refused = (name, function.get('name')) in REFUSED
            if function.get('introspectable') == '0' or function.get('moved-to') or is_refused:
                continue
            lines += self.signatures(node, function, 'static ')
            if parents:
                lines.append(f'static {function.get("name")}(...args: any[]): any;')
        self.members[name] = own
        base = 'GTorch.BaseObject' if self.is_library else 'BaseObject'
        parent = parents[0] if parents else base if node.tag == CORE + 'class' else None
        head = f'class {name} extends {parent} {{' if parent else f'class {name} {{'
        make = self.constructors(node) if node.tag == CORE + 'class' else ['protected constructor();']
        lines += [OPEN] if self.is_open(node) else []
        return [head, *(f'    {line}' for line in (*make, *lines)), '}']

    def classes(self):
        nodes = self.root.findall(CORE + 'class')
        nodes.sort(key=lambda node: (len(self.parents(node)), node.get('name')))
        records = [e for e in self.root.findall(CORE + 'record') if e.get(GLIB + 'is-gtype-struct-for') is None]
        return [line for node in (*nodes, *records) for line in self.class_lines(node)]

    def enums(self):
        lines = []
        for node in (*self.root.findall(CORE + 'enumeration'), *self.root.findall(CORE + 'bitfield')):
            name = node.get('name')
            if name == 'Error':
                continue
            members = node.findall(CORE + 'member')
            texts = [m.get(GLIB + 'nick') or m.get('name').replace('_', '-') for m in members]
            names = sorted({one for text in texts for one in (text, text.replace('-', '_'))})
            lines += [f'enum {name} {{', *(f'    {m.get("name").upper()} = {m.get("value")},' for m in members), '}']
            lines.append(f'type {name}Like = {name} | {" | ".join(repr(text) for text in names)};')
            functions = [f for f in node.findall(CORE + 'function') if f.get('introspectable') != '0']
            if functions:
                texts = [text for f in functions for text in self.signatures(node, f, 'function ')]
                lines += [f'namespace {name} {{', *(f'    {text}' for text in texts), '}']
        return lines

    def functions(self):
        found = [f for f in self.root.findall(CORE + 'function') if self.is_shown(f, None)]
        return [line for f in found for line in self.signatures(self.root, f, 'function ')]
