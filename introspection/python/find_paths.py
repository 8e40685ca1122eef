# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints where this Python searches for modules below a prefix, relative to the prefix; the folder of its
headers, if they are installed; and the suffix of its extension modules."""

import importlib.util
import os
import site
import sys
import sysconfig


def modules_folder(prefix):
    """Below its own prefixes a Python searches the folders of its `site`, which Debian has changed, but
    not for virtual environments; the folder of PyGObject itself is preferred. Other prefixes need
    PYTHONPATH, and any folder will do."""
    gi = importlib.util.find_spec('gi')
    folders = site.getsitepackages()
    if gi is not None and gi.origin is not None:
        folders.insert(0, os.path.dirname(os.path.dirname(gi.origin)))
    for folder in folders:
        below = os.path.relpath(folder, prefix)
        if below.split(os.sep)[0].startswith('lib'):  # not local/lib, which is another prefix
            return below
    if 'deb_system' in sysconfig.get_scheme_names():
        return os.path.join('lib', f'python{sysconfig.get_python_version()}', 'dist-packages')
    return os.path.relpath(sysconfig.get_path('purelib', vars={'base': prefix}), prefix)


def main():
    include = sysconfig.get_path('include')
    print(modules_folder(sys.argv[1]))
    print(include if os.path.exists(os.path.join(include, 'Python.h')) else '')
    print(sysconfig.get_config_var('EXT_SUFFIX'))


if __name__ == '__main__':
    main()
