# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""GTorch under PyTorch's names: `import gtorch as torch`.

The namespace is that of `from gi.repository import GTorch`, version 1, and so are its objects: programs may use both.
Submodules can be imported as PyTorch's: `import gtorch.nn as nn`, `from gtorch.nn import functional as F`,
`from gtorch.optim.lr_scheduler import StepLR`.
"""

import os
import sys

try:
    import gi
    from gi._gi import FunctionInfo as _FunctionInfo
except ImportError as _error:
    raise ImportError(
        f'gtorch needs PyGObject (Debian: python3-gi), which this Python, {sys.executable} {sys.version.split()[0]}, '
        f'does not have: {_error}'
    ) from None

# In a wheel the library and its typelib lie here.
_LIBRARY = os.path.join(os.path.dirname(__file__), 'lib')
if os.path.isdir(_LIBRARY):
    gi.require_version('GIRepository', '2.0')
    from gi.repository import GIRepository

    GIRepository.Repository.prepend_search_path(_LIBRARY)
    GIRepository.Repository.prepend_library_path(_LIBRARY)

try:
    gi.require_version('GTorch', '1')
except ValueError as _error:
    raise ImportError(
        f'{_error}: GI_TYPELIB_PATH must have the folder of GTorch-1.typelib, which '
        '“pkg-config --variable=typelibdir gtorch-1” tells'
    ) from None

from gi.overrides._gtorch_size import Size  # noqa: E402, F401: in the namespace it is that of the library
from gi.repository import GTorch as _namespace  # noqa: E402: the version comes first
from gi.overrides import _gtorch_absent as _absent  # noqa: E402
from gi.overrides import _gtorch_later as _later  # noqa: E402
from gi.overrides._gtorch_arguments import described as _described  # noqa: E402

_PREFIX = f'{_later.NAME}.'
_FILES = ('array_api', 'distributed', 'gtk', 'plot')  # submodules that are files, which few programs need


def _share_submodules():
    """Lets each submodule be imported under this name, too: it is the same module."""
    here = sys.modules[__name__]
    for name, module in [*sys.modules.items()]:
        if name.startswith(_PREFIX):
            short = name[len(_PREFIX):]
            sys.modules[f'{__name__}.{short}'] = module
            if '.' not in short:
                setattr(here, short, module)


_later.Finder(__name__, (*_FILES, '_beside'))
_later.when_complete(_share_submodules)


def __getattr__(name):
    if name.startswith('__') and name != '__version__':  # of which Python asks each module
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    if name in _FILES:
        import importlib

        return importlib.import_module(f'{__name__}.{name}')
    try:
        value = getattr(_namespace, name)
    except AttributeError:
        text = f'module {__name__!r} has no attribute {name!r}{_absent.text("", name)}'
        raise AttributeError(text, name=name) from None
    if type(getattr(value, '__wrapped__', value)) is _FunctionInfo and not name.endswith(('_async', '_finish')):
        value = _described(value)  # a function of the typelib, of which PyGObject does not tell the arguments
    globals()[name] = value
    return value


def __dir__():
    names = {name for name in dir(_namespace) if not name.startswith('_')} | {'__version__'}
    structs = {f'{name}{end}' for name in names for end in ('Class', 'Private')}  # of classes, which C alone has
    return sorted(names - structs)
