# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The base classes of PyTorch's data pipes, which are data sets whose steps are methods: IterDataPipe and MapDataPipe
of GTorch.utils.data, and their decorators. The pipes themselves (map, batch, shuffle …) are not here: a loader does
that."""

import contextlib
import functools
import inspect
import typing

from gi.overrides._gtorch_datasets import HERE, Dataset, IterableDataset, Sample


class _Registered:
    """Methods that functional_datapipe() adds: the class of the name, made with the pipe as its first argument."""

    functions: typing.ClassVar[dict] = {}

    def __getattr__(self, name):
        if name in self.functions:
            return functools.partial(self.functions[name], self)
        raise AttributeError(f'{type(self).__name__!r} object has no attribute {name!r}')

    @classmethod
    def register_function(cls, function_name, function):
        """Adds a method to all pipes of the kind."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name, cls_to_register, enable_df_api_tracing=False):
        """Adds a method that makes a pipe of the class."""
        if function_name in cls.functions:
            raise Exception(f'functional_datapipe(): {function_name!r} has been taken by another class')
        cls.functions[function_name] = cls_to_register


class IterDataPipe(_Registered, IterableDataset[Sample]):
    """An iterable data set whose steps are methods."""

    functions: typing.ClassVar[dict] = {}

    def reset(self):
        """Goes back to the beginning. A class of a program's says what that is."""

    def __getstate__(self):
        return self.__dict__


class DFIterDataPipe(IterDataPipe[Sample]):
    """An iterable data set of data frames."""


class MapDataPipe(_Registered, Dataset[Sample]):
    """A data set with indices whose steps are methods."""

    functions: typing.ClassVar[dict] = {}

    def __getstate__(self):
        return self.__dict__


class DataChunk(list, typing.Generic[Sample]):
    """A list of samples that shows its elements."""

    def __init__(self, items):
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent=''):
        """The elements as a text."""
        return f'{indent}[{", ".join(str(one) for one in self)}]'

    def raw_iterator(self):
        """An iterator of the elements."""
        yield from self.items


class functional_datapipe:
    """Makes a class of pipes a method of all pipes."""

    def __init__(self, name, enable_df_api_tracing=False):
        self.name, self.enable_df_api_tracing = name, enable_df_api_tracing

    def __call__(self, cls):
        kind = IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe
        if not issubclass(cls, kind):
            raise TypeError(f'functional_datapipe() is for classes of pipes, not {cls.__name__}')
        kind.register_datapipe_as_function(self.name, cls)
        return cls


class _Switch:
    """A setting, which a block may change."""

    is_on = False


class guaranteed_datapipes_determinism(contextlib.ContextDecorator):
    """A block in which pipes that are marked by non_deterministic() cannot be made."""

    def __init__(self):
        self.before, _Switch.is_on = _Switch.is_on, True

    def __enter__(self):
        return None

    def __exit__(self, *_):
        _Switch.is_on = self.before


class non_deterministic:
    """Marks a class of pipes, or by a function its objects, whose order differs from time to time."""

    def __init__(self, arg):
        self.cls = arg if inspect.isclass(arg) else None
        self.deterministic_fn = None if self.cls else arg
        if self.cls is not None and not issubclass(self.cls, IterDataPipe):
            raise TypeError(f'non_deterministic() is for classes of IterDataPipe, not {arg.__name__}')

    def __call__(self, *args, **kwargs):
        if self.cls is not None:
            if _Switch.is_on:
                raise TypeError(f'{self.cls.__name__} is not deterministic: see guaranteed_datapipes_determinism')
            return self.cls(*args, **kwargs)
        self.cls = args[0]
        return self.deterministic_wrapper_fn

    def deterministic_wrapper_fn(self, *args, **kwargs):
        """Makes an object of the class, unless that is not deterministic and must be."""
        if _Switch.is_on and self.deterministic_fn(*args, **kwargs):
            raise TypeError(f'{self.cls.__name__} is not deterministic: see guaranteed_datapipes_determinism')
        return self.cls(*args, **kwargs)


_validates = True


def argument_validation(f):
    """Does nothing, as there are no types of pipes to be checked."""
    return f


def runtime_validation(f):
    """Does nothing, as there are no types of pipes to be checked."""
    return f


class runtime_validation_disabled(contextlib.ContextDecorator):
    """A block without checks of types, of which there are none."""

    def __init__(self):
        self.before = _validates

    def __enter__(self):
        return None

    def __exit__(self, *_):
        return None


ALL = (DFIterDataPipe, DataChunk, IterDataPipe, MapDataPipe, argument_validation, functional_datapipe,
       guaranteed_datapipes_determinism, non_deterministic, runtime_validation,
       runtime_validation_disabled)  # fmt: skip
for _one in ALL:
    _one.__module__ = HERE
