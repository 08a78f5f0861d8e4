"""C that a benchmark measures others by, compiled where it runs."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def compiled(source: Path) -> Iterator[str]:
    """The path of a library of a C file, "" where there is no compiler."""
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, source.stem + ".so")
        for compiler in (os.environ.get("CC", ""), "gcc", "cc", "clang"):
            words = shlex.split(compiler)
            if not words or shutil.which(words[0]) is None:
                continue
            command = [*words, "-O2", "-shared", "-fPIC", "-o", library, os.fspath(source)]
            if subprocess.run(command, check=False, capture_output=True).returncode == 0:
                yield library
                return
        yield ""
