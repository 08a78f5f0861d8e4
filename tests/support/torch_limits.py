"""What ends a process that runs a certain torch, found out in another process."""

import functools
import subprocess
import sys

NEGATIVE = "import numpy, torch; torch.from_dlpack(numpy.ones(2)[::-1])"


@functools.cache
def ends_at_negative_strides() -> bool:
    """PyTorch 2.11 aborts where a DLPack tensor has them, whoever made it; 2.15 refuses them."""
    done = subprocess.run([sys.executable, "-c", NEGATIVE], capture_output=True, check=False)
    return done.returncode < 0
