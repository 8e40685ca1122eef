#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs gi-docgen into a folder that is new each time.

Arguments: gi-docgen, its configuration, the GIR, the new folder, the folders with pages and pictures.

Writing into the old one would leave pages of symbols that are gone, and the folder's time as it was,
and ninja would build the manual again and again.
"""

import os
import shutil
import subprocess
import sys


def main():
    gi_docgen, config, gir, output, *content = sys.argv[1:]
    shutil.rmtree(output, ignore_errors=True)
    return subprocess.run(
        [
            gi_docgen, "generate", "--quiet", "--fatal-warnings", "--no-namespace-dir", f"--config={config}",
            *[f"--content-dir={folder}" for folder in content], f"--output-dir={output}",
            *[f"--add-include-path={os.path.join(os.path.dirname(gir), '..', name)}"
              for name in ("introspection", "plot", os.path.basename(os.path.dirname(gir)))], gir,
        ],
        check=False,
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
