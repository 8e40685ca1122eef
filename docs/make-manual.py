#!/usr/bin/env python3
# SPDX-FileCopyrightText: The GTorch authors
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs gi-docgen into a folder that is new each time.

Writing into the old one would leave pages of symbols that are gone, and the folder's time as it was,
and ninja would build the manual again and again.
"""

import os
import shutil
import subprocess
import sys


def main():
    gi_docgen, config, gir, content, output = sys.argv[1:]
    shutil.rmtree(output, ignore_errors=True)
    # A warning does not stop the build; tests/style/test-manual.py fails for it.
    return subprocess.run(
        [
            gi_docgen, "generate", "--quiet", "--no-namespace-dir",
            f"--config={config}", f"--content-dir={content}", f"--output-dir={output}",
            f"--add-include-path={os.path.dirname(gir)}", gir,
        ],
        check=False,
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
