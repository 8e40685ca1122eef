# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the libraries beside GTorch have in Python beside introspection, such as that for plots. Their overrides are
tables, written by generator/bindings: functions check and convert their arguments, which have defaults and may be given
by name, and the properties of objects are attributes.

    figure = GTorchPlot.lines([losses], labels=['training'])
    figure.save('losses.svg')
"""

import importlib
import inspect

from gi.module import FunctionInfo, IntrospectionModule, get_introspection_module
from gi.repository import Gio, GLib, GObject

from gi.overrides import _gtorch_convert as conversions
from gi.overrides._gtorch_bind import REQUIRED, bind
from gi.overrides._gtorch_convert import GTorch, RawTensor
from gi.overrides._gtorch_properties import FLAGS, OWN, SPACES, attribute, represent, set_attribute

CAIRO = 'object:cairo.Context'  # which PyGObject checks, if it has its part for cairo
EXACT = 2**53  # integers up to it are numbers of C
BITS = {'int32': 32, 'uint8': 8, 'uint32': 32, 'int64': 64, 'uint64': 64}


def look_up(path):
    """What has a name of a table: those of other namespaces than GTorch begin with theirs."""
    space, _dot, name = path.rpartition('.')
    if '.' in space:
        return getattr(look_up(space), name)
    if space and space not in SPACES and space != 'Gio':
        return getattr(getattr(GTorch, space), name)
    return getattr(Gio if space == 'Gio' else importlib.import_module(f'gi.repository.{space or "GTorch"}'), name)


# --- arguments ---


def _whole(kind, value, where):
    value = conversions.convert_whole(value, where)
    bits, is_unsigned = BITS[kind], kind.startswith('u')
    least = 0 if is_unsigned else -(2 ** (bits - 1))
    most = 2**bits - 1 if is_unsigned else 2 ** (bits - 1) - 1
    if not least <= value <= most:
        raise OverflowError(f'{where} must be from {least} to {most}, not {conversions.shown(value)}')
    return value


def _tensor(value, where):
    if isinstance(value, RawTensor):
        return value
    if isinstance(value, (list, tuple, range)) or hasattr(value, '__array_interface__'):
        from gi.overrides._gtorch_create import as_shown

        return as_shown(value)
    raise TypeError(f'{where} must be a Tensor, an array or a list of numbers, not {type(value).__name__}')


PLAIN = {
    'bool': conversions.convert_bool,
    'bytes': lambda value, where: value if isinstance(value, GLib.Bytes) else GLib.Bytes.new(value),
    'device': lambda value, _where: conversions.convert_device(value),
    'double': conversions.convert_double,
    'file': conversions.convert_file,
    'tensor': _tensor,
    'text': conversions.convert_text,
}


def _one(kind, value, where):
    """Converts an argument, or an element of a list."""
    try:
        return _converted(kind, value, where)
    except (TypeError, ValueError, OverflowError, GLib.Error) as error:
        if str(error).startswith(where):
            raise
        builtin = next((one for one in (TypeError, OverflowError) if isinstance(error, one)), ValueError)
        raise builtin(f'{where}: {error}') from None


def _converted(kind, value, where):
    if kind in PLAIN:
        return PLAIN[kind](value, where)
    if kind in BITS:
        return _whole(kind, value, where)
    what, _colon, path = kind.partition(':')
    if what == 'enum':
        return conversions.convert_enum(look_up(path), value, where)
    return conversions.of_type(value, look_up(path), where)


def _several(kind, values, where):
    if isinstance(values, (str, bytes, RawTensor)):
        raise TypeError(f'{where} must be a list, not {type(values).__name__}')
    return [_one(kind, value, f'{where}[{i}]') for i, value in enumerate(conversions.listed(values, where))]


def _checks(name, entry):
    """The conversions of a function's arguments: position, kind, whether it is a list, what errors call it, and whether
    it may be None, which those may be that are None by default."""
    defaults, names = entry.get('defaults', {}), list(_defaults(entry))
    return [
        (names.index(key), kind.removesuffix('[]'), kind.endswith('[]'), f'{name}(): {key}',
         defaults.get(key, REQUIRED) is None)
        for _place, key, kind in entry.get('args', ())
        if kind != CAIRO
    ]


def _convert(checks, values):
    """Converts the arguments of a call, in order."""
    for i, kind, is_list, where, may_be_none in checks:
        value = values[i]
        if value is None and may_be_none or kind == 'double' and type(value) is float and not is_list:
            continue
        if kind == 'double' and type(value) is int and -EXACT <= value <= EXACT:
            continue
        values[i] = _several(kind, value, where) if is_list else _one(kind, value, where)


def _same_length(name, arrays, names, values):
    """Raises if lists that have one length in C have several."""
    lengths = [len(values[names.index(key)]) for key in arrays]
    if len(set(lengths)) > 1:
        found = ' and '.join(f'{n} of {key}' for n, key in zip(lengths, arrays))
        raise ValueError(f'{name}(): {" and ".join(arrays)} must have as many elements, not {found}')


def _defaults(entry):
    """The defaults of a function's arguments, in order."""
    known = entry.get('defaults', {})
    found = {}
    for name in entry.get('names', entry.get('given', ())):
        value = known.get(name, REQUIRED)
        if isinstance(value, str):
            value = value.strip('"') if value[:1] == '"' else look_up(value)
        found[name] = value
    return found


def _signature(spec, head, is_async):
    kind, parameters = inspect.Parameter.POSITIONAL_OR_KEYWORD, []
    may = True  # no argument without a default comes after one with a default
    for name, value in reversed(spec.items()):
        may = may and value is not REQUIRED
        parameters.insert(0, inspect.Parameter(name, kind, default=value if may else inspect.Parameter.empty))
    parameters = [*(inspect.Parameter(name, kind) for name in head), *parameters]
    if is_async:
        parameters.append(inspect.Parameter('user_data', inspect.Parameter.VAR_POSITIONAL))
    return inspect.Signature(parameters)


def wrapped(name, raw, entry, whole, head=()):
    """The function @raw of C, called @whole, whose arguments the entry of the table describes."""
    is_async = 'given' in entry
    spec, checks, arrays = _defaults(entry), _checks(name, entry), entry.get('same_length')
    if is_async:
        spec['callback'] = None
    n_head, count, names = len(head), len(head) + len(spec), list(spec)

    def call(*args, **options):
        if options or len(args) != count:
            if n_head > len(args):
                raise TypeError(f'{name}() needs self')
            bound = bind(name, spec, args[n_head:count] if is_async else args[n_head:], options)
            values = [bound[key] for key in names]
        else:
            values = [*args[n_head:]]
        if checks:
            _convert(checks, values)
        if arrays is not None:
            _same_length(name, arrays, names, values)
        if is_async and values[-1] is not None and not callable(values[-1]):
            raise TypeError(f'{name}(): callback must be a function or None, not {type(values[-1]).__name__}')
        try:
            return raw(*args[:n_head], *values, *(args[count:] if is_async else ()))
        except TypeError as error:  # of PyGObject, which names no function
            raise TypeError(f'{name}(): {error}') from None

    call.__name__, call.__qualname__, call.__doc__, call.__wrapped__ = name, whole, raw.__doc__, raw
    call.__signature__ = _signature(spec, head, is_async)
    return call


# --- classes ---


def _initialize(names, base):
    """The constructor of a class: the arguments of new() in C by position or by name, and properties by name. They are
    assigned, which may raise, except those that C takes when the object is made."""

    def __init__(self, *args, **properties):
        cls = type(self)
        if len(args) > len(names):
            raise TypeError(f'{cls.__name__}() takes {len(names)} arguments by position; {len(args)} were given')
        for key, value in zip(names, args):
            if key in properties:
                raise TypeError(f'{cls.__name__}() was given {key} twice')
            properties[key] = value
        specs = {spec.name.replace('-', '_'): spec for spec in GObject.list_properties(cls)}
        now, later = {}, {}
        for key, value in properties.items():
            spec = specs.get(key.replace('-', '_'))
            if spec is None:
                raise TypeError(f'{cls.__name__}() has no argument {key!r}')
            if not spec.flags & FLAGS.WRITABLE:
                raise TypeError(f'{cls.__name__}(): {key} can only be read')
            is_later = _is_own(spec.owner_type) and not spec.flags & (FLAGS.CONSTRUCT | FLAGS.CONSTRUCT_ONLY)
            (later if is_later else now)[key.replace('-', '_')] = value
        base.__init__(self, **now)
        for key, value in later.items():
            setattr(self, key, value)

    return __init__


def _is_own(kind):
    return any(kind.name.startswith(space) for space in SPACES[:-1])


def replace(cls, entries):
    """Lets the functions of a class check their arguments."""
    own = vars(cls)
    for name, entry in entries['methods'].items():
        if isinstance(own.get(name), FunctionInfo):
            setattr(cls, name, wrapped(name, own[name], entry, f'{cls.__name__}.{name}', ('self',)))
    for name, entry in entries['statics'].items():
        if isinstance(own.get(name), FunctionInfo):
            setattr(cls, name, staticmethod(wrapped(name, getattr(cls, name), entry, f'{cls.__name__}.{name}')))


def _prepare(cls, entries):
    """Adds to a class the checks of its functions, and its properties as attributes."""
    replace(cls, entries)
    if not issubclass(cls, GObject.Object):
        return
    for spec in GObject.list_properties(cls):
        name = spec.name.replace('-', '_')
        if spec.owner_type == cls.__gtype__ and not hasattr(cls, name):
            found = attribute(spec)
            setter = getattr(cls, f'set_{name}', None)
            is_set_by = setter is not None and spec.flags & FLAGS.WRITABLE and not spec.flags & FLAGS.CONSTRUCT_ONLY
            setattr(cls, name, property(found.fget, setter) if is_set_by else found)
    if cls.__base__.__module__ not in OWN:  # the first one of the library
        cls.__setattr__, cls.__repr__ = set_attribute, represent
    names = list(entries['statics'].get('new', {}).get('names', ()))
    first = next(one for one in cls.__mro__ if one.__module__ not in OWN)
    cls.__init__ = _initialize(names, first)


class Library(IntrospectionModule):
    """The namespace of a library beside GTorch, which prepares classes and functions when they are first named."""

    def __getattr__(self, name):
        made = IntrospectionModule.__getattr__(self, name)
        table = self.__dict__['_gt_table']
        if isinstance(made, FunctionInfo) and name in table['functions']:
            self.__dict__[name] = made = wrapped(name, made, table['functions'][name], name)
        elif isinstance(made, type) and name in table['owners']:
            _prepare(made, table['owners'][name])
        return made


def setup(name, table):
    """Sets up the namespace by its table."""
    module = get_introspection_module(name)
    SPACES.insert(0, name)
    OWN.append(f'gi.repository.{name}')
    module.__dict__['_gt_table'] = table
    module.__class__ = Library
