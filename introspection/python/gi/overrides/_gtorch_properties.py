# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The properties of the library's objects as attributes, added to each class when it is first used.

PyGObject allows any attribute on an object and stores it in the object's dictionary:
optimizer.learning_rate would be such an attribute, and a misspelled one would be no error. Here a
property is read and set under its name; assigning to a read-only or unknown name raises. Classes that a
program derives allow further names, like other Python classes."""

import functools
import importlib
import sys
import threading
import types

from gi.module import IntrospectionModule, get_introspection_module
from gi.repository import Gio, GLib, GObject

from gi.overrides import _gtorch_checked as checked
from gi.overrides._gtorch_later import FUNCTIONS, NAME, complete

OWN = ['gi.repository.GTorch', 'gi.overrides.GTorch', '__gi__']  # modules of the library's classes
SPACES = ['GTorch']  # its namespaces; those of the libraries beside it are before it
FLAGS = GObject.ParamFlags
WHOLE = tuple(GObject.GType.from_name(f'g{name}') for name in ('int', 'uint', 'int64', 'uint64'))


def python_class(kind):
    """Returns the class for a GType, which is created on first use."""
    space = next((one for one in SPACES if kind.name.startswith(one)), None)
    if kind.pytype is None and space is not None:
        getattr(get_introspection_module(space), kind.name.removeprefix(space))
    return kind.pytype


def shown_kind(kind):
    """The name of a GType as programs know it."""
    space = next((one for one in SPACES if kind.name.startswith(one)), '')
    return kind.name.removeprefix(space)


def spec_of(owner, name):
    """What GObject knows of the object's property, or None."""
    name = name.replace('_', '-')
    return next((spec for spec in GObject.list_properties(type(owner)) if spec.name == name), None)


def in_range(name, spec, value):
    """@value, which must be in the range of the property: GObject only warns of another one, and keeps the former."""
    if not hasattr(spec, 'minimum') or spec.flags & FLAGS.LAX_VALIDATION or spec.minimum <= value <= spec.maximum:
        return value
    raise ValueError(f'{name} must be from {spec.minimum:g} to {spec.maximum:g}, not {value}')


def convert(owner, spec, value, shown=None):
    """Converts a value that a program assigns to a property: PyGObject accepts any object for a bool. Messages call it
    @shown if it is an argument with another name."""
    from gi.overrides import _gtorch_convert as conversions

    kind = spec.value_type
    name = f'{owner.__name__}.{shown or spec.name.replace("-", "_")}'
    if kind.is_a(GObject.TYPE_ENUM):
        if kind.name == 'GTorchDType':
            return conversions.convert_dtype(value)
        return conversions.convert_enum(python_class(kind), value, name)
    if kind.name == 'GTorchSize':
        if isinstance(value, python_class(kind)):
            return value
        if value is None or isinstance(value, (str, bytes)):
            raise TypeError(f'{name} must be whole numbers, not {value!r}')
        try:
            return python_class(kind).new(conversions.convert_ints(value))
        except TypeError as error:
            raise TypeError(f'{name}: {error}') from None
    if kind.name == 'GTorchFactors':
        if value is None or isinstance(value, python_class(kind)):
            return value
        try:
            numbers = value if isinstance(value, (list, tuple)) else [value]
            return python_class(kind).new([conversions.convert_double(one) for one in numbers])
        except TypeError as error:
            raise TypeError(f'{name}: {error}') from None
    for types, function in (
        ((GObject.TYPE_BOOLEAN,), conversions.convert_bool),
        (WHOLE, conversions.convert_whole),
        ((GObject.TYPE_DOUBLE,), conversions.convert_double),
    ):
        if kind in types:
            try:
                return function(value, name)
            except GLib.Error as error:  # of a tensor of several elements
                raise ValueError(f'{name}: {error}') from None
    if kind.name == 'GTorchDevice':
        return conversions.convert_device(value)
    if kind.name == 'GFile' and value is not None:
        return conversions.convert_file(value, name)
    if kind == GObject.TYPE_STRING and isinstance(value, str):
        return conversions.convert_text(value, name)
    if kind.is_a(GObject.TYPE_OBJECT) and value is not None:
        if not isinstance(value, python_class(kind) or GObject.Object):
            raise TypeError(f'{name} must be a {shown_kind(kind)} or None, not {type(value).__name__}')
    return value


def assign(self, name, value, put, check):
    """Sets a property by @put. GObject takes any value of the type: what a constructor would refuse, by @check, is
    not kept, and raises."""
    if check is None:
        put(self, value)
        return
    former = GObject.Object.get_property(self, name)
    with GObject.Object.freeze_notify(self):
        put(self, value)
        try:
            check(self)
        except GLib.Error:
            put(self, former)
            raise


def computed(owner, name):
    """The tensor that a module computes under the name of a property, or None; raises what went wrong."""
    from gi.overrides._gtorch_parametrize import Computed, RawModule

    is_there = isinstance(owner, RawModule) and RawModule.is_computed(owner, name)
    return Computed.get_tensor(owner, name) if is_there else None


def attribute(spec, function=None, check=None):
    """A Python property for one of GObject's; @function sets it, and can report an error. @check is the method of the
    class that tells whether its settings are valid."""
    name = spec.name
    is_list, is_tensor = spec.value_type.name in ('GTorchSize', 'GTorchFactors'), spec.value_type.name == 'GTorchTensor'

    def put_checked(self, value):
        where = f'{type(self).__name__}.{name.replace("-", "_")}'
        GObject.Object.set_property(self, name, in_range(where, spec, value))

    put = function or put_checked

    def get(self):
        value = GObject.Object.get_property(self, name)
        if value is None and is_tensor:
            return computed(self, name.replace('-', '_'))
        return tuple(value.get_values()) if is_list and value is not None else value

    def set_(self, value):
        assign(self, name, convert(type(self), spec, value), put, check)

    def refuse(self, value):
        text = f'{type(self).__name__}.{name.replace("-", "_")} is fixed when the object is made'
        raise AttributeError(text)

    setter = None
    if spec.flags & FLAGS.CONSTRUCT_ONLY:
        setter = refuse
    elif spec.flags & FLAGS.WRITABLE:
        setter = set_
    return property(get if spec.flags & FLAGS.READABLE else None, setter)


def check_name(self, name):
    """Raises if @name cannot be set on an object of a class of the library."""
    cls = type(self)
    if name.startswith('_') or cls.__module__ not in OWN:
        return
    found = getattr(cls, name, None)
    if found is None and not hasattr(cls, name):
        raise AttributeError(f'{cls.__name__} has no attribute {name!r} that could be set')
    if not hasattr(type(found), '__set__'):
        raise AttributeError(f'{cls.__name__}.{name} cannot be set: it belongs to the class')


def refuse_attribute(self, name, _value):
    raise AttributeError(f'{type(self).__name__} has no attribute {name!r} that could be set')


def set_attribute(self, name, value):
    check_name(self, name)
    GObject.Object.__setattr__(self, name, value)


def checked_properties(cls, properties, _shown=types.MappingProxyType({})):
    """The values of properties for a new object, of which those of the library are converted."""
    specs = {spec.name.replace('-', '_'): spec for spec in GObject.list_properties(cls)}
    for key in properties:
        if key.replace('-', '_') not in specs:
            raise TypeError(f'{cls.__name__}() has no argument {key!r}')
    found = {}
    for key, value in properties.items():
        spec = specs[key.replace('-', '_')]
        found[key] = convert(cls, spec, value, _shown.get(key)) if spec.owner_type.name.startswith('GTorch') else value
    return found


def initialize(self, *args, _shown=types.MappingProxyType({}), **properties):
    """Makes the object of C with properties, which are checked as those that are set later. @_shown has the names of
    arguments that are not those of the properties."""
    cls = type(self)
    if args:
        raise TypeError(f'{cls.__name__}() takes nothing by position, but {len(args)} were given')
    if properties:
        properties = checked_properties(cls, properties, _shown)
    GObject.Object.__init__(self, **properties)
    if isinstance(self, Gio.Initable):
        self.init(None)  # the object is of no use before that, which may fail


initialize.__text_signature__ = '($self, **properties)'

def represent(self):
    """The text of an object without one of its own: PyGObject's has the name of the class in C."""
    space = type(self).__module__.rpartition('.')[2]
    return f'<{space if space in SPACES else "GTorch"}.{type(self).__name__} object at {id(self):#x}>'


def is_place(cls, name):
    """Tells whether it sets where a layer is created. PyTorch's layers have no such attribute, and those
    derived from them often do."""
    return name in ('device', 'dtype') and any(base.__name__ == 'Module' for base in cls.__mro__)


def _setter(cls, name):
    """The function that sets a property, and the one that checks the object then. The settings of an optimizer are set
    in all groups, or in none."""
    function = getattr(cls, f'set_{name}', None)
    if function is None and hasattr(cls, 'set_setting'):
        return (lambda self, value: cls.set_setting(self, name, [float(value)])), None
    return function, getattr(cls, 'check', None)


def prepare(cls):
    """Adds to @cls the properties that it adds to its parent's."""
    for spec in GObject.list_properties(cls):
        name = spec.name.replace('-', '_')
        if spec.owner_type == cls.__gtype__ and not hasattr(cls, name) and not is_place(cls, name):
            setattr(cls, name, attribute(spec, *_setter(cls, name)))
    if cls.__base__ is GObject.Object and cls.__name__ != 'Tensor':
        cls.__setattr__, cls.__init__ = set_attribute, initialize
        cls.__repr__ = represent
    checked.prepare(cls)


def final(cls):
    """A class whose objects only C can create: objects of a derived class would be of this class
    nevertheless."""

    def refuse(derived, **_options):
        if derived.__module__ == '__gi__':
            # a C class that is not in the typelib, such as that of the CPU
            derived.__name__, derived.__qualname__ = cls.__name__, cls.__name__
            return
        raise TypeError(f'{derived.__name__}: {cls.__name__} cannot be derived from')

    cls.__init_subclass__ = classmethod(refuse)
    return cls


MAKING = threading.RLock()
MADE_LATER = {}


class Module(IntrospectionModule):
    """The namespace, which prepares classes when they are created, and puts those of the overrides that are only made
    then in their places."""

    later = {}  # by the name of a class: makes the override class of it

    def __dir__(self):
        return sorted({*IntrospectionModule.__dir__(self), *FUNCTIONS})

    def __getattr__(self, name):
        made = IntrospectionModule.__getattr__(self, name)
        if isinstance(made, type) and issubclass(made, GObject.Object) and '__info__' in vars(made):
            prepare(made)
        elif isinstance(made, type) and issubclass(made, GObject.GBoxed):
            made.__setattr__ = refuse_attribute
        elif not isinstance(made, type):
            self.__dict__[name] = made = checked.function(name, made)
        if isinstance(made, type) and not issubclass(made, (GObject.GEnum, GObject.GFlags)):
            complete()
            if name not in self.later and NAME in sys.modules:  # the class of the overrides
                made = vars(sys.modules[NAME]).get(name, made)
        if name in self.later or name in MADE_LATER:
            with MAKING:  # threads that name it first at the same time get the same class
                make = self.later.get(name)
                if make is not None:
                    made = make(made)
                    name_functions(made, f'{name}.')
                    self.__dict__[name] = MADE_LATER[name] = made
                    del self.later[name]
                made = MADE_LATER.get(name, made)
        return made


def name_functions(owner, prefix=''):
    """Gives functions the names that they are called by, which errors about their arguments have."""
    for name, function in list(vars(owner).items()):
        if isinstance(function, staticmethod):
            function = function.__func__
        if name.startswith('_') or not isinstance(function, types.FunctionType):
            continue
        if '<' in function.__qualname__ or function.__name__ == name or function.__name__[0] == '_':
            function.__name__, function.__qualname__ = name, f'{prefix}{name}'


def make_later(names, make):
    """Lets @make (name, class of C) make the override classes of some names when a program, or C, first names them."""
    for name in names:
        Module.later[name] = functools.partial(make, name)


def show_later(module, names, namespace, missing=None):
    """Lets @module have such classes of the namespace; @missing tells of other names, which it has not."""

    def find(name):
        if name not in names:
            if missing is not None:
                missing(name)
            raise AttributeError(f'{module.__name__.partition("gi.repository.")[2]} has no {name}', name=name)
        return _shown(module, name, namespace)

    module.__getattr__ = find
    module.__dir__ = lambda: sorted({*vars(module), *names} - {'__getattr__', '__dir__'})


def _shown(module, name, owner):
    """PyGObject's module shows the class of C while the other one is made: threads wait for that."""
    with MAKING:
        if name not in module.__dict__:
            module.__dict__[name] = getattr(owner, name)
        return module.__dict__[name]


def import_later(module, part, classes, names, namespace):
    """Lets @module have classes of the namespace, whose override classes make() of a part makes, and other names of
    that part, which is imported when one of them is first named."""

    def imported():
        return importlib.import_module(f'gi.overrides.{part}')

    def find(name):
        if name not in names:
            raise AttributeError(f'{module.__name__.partition("gi.repository.")[2]} has no {name}', name=name)
        owner = namespace if name in classes else imported()
        return _shown(module, name, owner)

    names = {*classes, *names}
    make_later(classes, lambda name, raw: imported().make(name, raw))
    module.__getattr__ = find
    module.__dir__ = lambda: sorted({*vars(module), *names} - {'__getattr__', '__dir__'})


get_introspection_module('GTorch').__class__ = Module
