# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints where this Python looks for modules below a prefix, and its headers, if they are installed."""

import os
import sys
import sysconfig

prefix = sys.argv[1]
if 'deb_system' in sysconfig.get_scheme_names():
    version = 'python3' if prefix == '/usr' else f'python{sysconfig.get_python_version()}'
    print(os.path.join(prefix, 'lib', version, 'dist-packages'))
else:
    print(sysconfig.get_path('purelib', vars={'base': prefix}))
include = sysconfig.get_path('include')
print(include if os.path.exists(os.path.join(include, 'Python.h')) else '')
