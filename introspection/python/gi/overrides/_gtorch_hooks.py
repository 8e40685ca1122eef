# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions that an object of C keeps.

Python's collector cannot look into C: a function there that leads back to its object keeps it, and itself, for
ever. So C is given a function that leads nowhere, and the real one is in the dictionary of the object, where the
collector sees it. PyGObject keeps that dictionary for as long as the object lives.

A method of another object of C is kept weakly: it is gone when its object is. The two may hold each other in C as
well, as a module does its children and parameters, and hooks there are mostly methods of the module above.

Tensors have no such dictionary: their hooks live on in the graph when the Python object is gone. A function there
that leads back to its tensor keeps it until the hook is removed."""

from types import MethodType
from weakref import WeakMethod

from gi.repository import GObject


def weakly(function):
    """What calls @function; if that is a method of an object of C, for as long as there is the object."""
    if not isinstance(function, MethodType) or not isinstance(function.__self__, GObject.Object):
        return function
    weak = WeakMethod(function)

    def call(*args):
        method = weak()
        return None if method is None else method(*args)

    return call


class Kept:
    """The functions that an object keeps, by their numbers."""

    ATTRIBUTE = '_kept_functions'

    def __init__(self, owner):
        self.functions = {}
        setattr(owner, Kept.ATTRIBUTE, self)

    def add(self, owner, number, function):
        is_own = getattr(function, '__self__', None) is owner
        self.functions[number] = function if is_own else weakly(function)

    def call(self, number, *args):
        return self.functions[number](*args)


def kept(owner):
    return owner.__dict__.get(Kept.ATTRIBUTE) or Kept(owner)


def check(raw, function):
    if not callable(function):
        raise TypeError(f'{raw.__name__}(): the hook {function!r} cannot be called')


def register(raw, owner, function, *data):
    """Calls raw (owner, function, data), a method whose function is called with the owner first."""
    check(raw, function)
    number = None

    def call(module, *args):
        return kept(module).call(number, module, *args)

    mine = kept(owner)
    number = raw(owner, call, *data)
    mine.add(owner, number, function)
    return number


def register_weakly(raw, owner, function, *data):
    check(raw, function)
    return raw(owner, weakly(function), *data)


def remove(raw, owner, number):
    removed = raw(owner, number)
    if removed:
        kept(owner).functions.pop(number, None)
    return removed
