# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The namespaces of the libraries beside GTorch as modules of this package."""

import importlib
import sys

import gi

import gtorch  # noqa: F401: finds the typelibs of a wheel


def share(module, space, package):
    """Lets @module have the names of a namespace, version 1, whose typelib is of a package."""
    try:
        gi.require_version(space, '1')
        namespace = importlib.import_module(f'gi.repository.{space}')
    except (ImportError, ValueError) as error:
        raise ImportError(
            f'{module} needs {space}-1.typelib of the library {package}, which GTorch is built with if it finds what '
            f'that needs: {error}',
            name=module,
        ) from None

    def find(name):
        if name.startswith('__'):
            raise AttributeError(f'module {module!r} has no attribute {name!r}')
        try:
            value = getattr(namespace, name)
        except AttributeError:
            raise AttributeError(f'module {module!r} has no attribute {name!r}') from None
        setattr(sys.modules[module], name, value)
        return value

    def names():
        found = (name for name in dir(namespace) if not name.startswith('_'))
        return sorted(name for name in found if not name.endswith(('Class', 'Private')))

    return find, names
