"""Ask a worker for a product.

python ask.py worker-0.sock layers.0.weight 1 2 3
"""

import json
import socket
import sys
from collections.abc import Sequence
from typing import Any


def ask(path: str, array: str, vector: Sequence[float], timeout: float = 10) -> dict[str, Any]:
    """A worker's answer; OSError if there is no worker, or if it ends meanwhile."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout)
        connection.connect(path)
        with connection.makefile("rw") as lines:
            lines.write(json.dumps({"array": array, "vector": vector}) + "\n")
            lines.flush()
            line = lines.readline()
    if not line.endswith("\n"):
        raise ConnectionResetError(f"the worker at {path} ended before it had answered")
    return json.loads(line)


if __name__ == "__main__":
    print(ask(sys.argv[1], sys.argv[2], [float(text) for text in sys.argv[3:]]))
