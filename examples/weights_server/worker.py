"""Answer requests with products of the weights, which are used where they lie and never copied.

    python worker.py worker-0.sock

A request is a line of JSON on a connection to the socket, and so is the answer:
{"array": "layers.0.weight", "vector": [1, 2, 3]} → {"group": ID, "pid": PID, "product": […]}
"""

import argparse
import importlib.util
import json
import os
import signal
import socketserver
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import hamr
import hamr.store

MOST = 16 << 20  #: bytes of a request
TYPES = "float16", "bfloat16", "float32", "float64"  #: that PyTorch multiplies on a device


class Weights:
    """One version: arrays of NumPy, or of CuPy or PyTorch if they are on a device."""

    def __init__(self, group: hamr.store.Group) -> None:
        self.id, self.group = group.id, group  # which stays in the store, also if it was copied
        self.library = "numpy"
        if any(array.device >= 0 for array in group.values()):
            found = [name for name in ("cupy", "torch") if importlib.util.find_spec(name)]
            self.library = [*found, "numpy"][0]  # without either, a copy on the host
        self.arrays = getattr(group, self.library)()

    def operands(self, path: str, vector: Any) -> tuple[Any, np.ndarray]:
        """The array of a path, and a vector that it can be multiplied by."""
        array, numbers = self.arrays[path], np.asarray(vector, "f8")
        if array.ndim != 2 or numbers.shape != array.shape[1:]:
            raise ValueError(f"{path} of {array.shape} times a vector of {numbers.shape}")
        if self.library == "torch" and str(array.dtype).removeprefix("torch.") not in TYPES:
            raise ValueError(f"{path} of {array.dtype}: products are of {', '.join(TYPES)}")
        return array, numbers

    def product(self, array: Any, vector: np.ndarray) -> list[float]:
        """The product, computed where the array lies."""
        if self.library == "torch":
            import torch

            there = torch.tensor(vector, dtype=array.dtype, device=array.device)
            return (array @ there).tolist()
        if self.library == "cupy":
            import cupy

            with array.device:
                return (array @ cupy.asarray(vector, array.dtype)).tolist()
        return (array @ vector.astype(array.dtype)).tolist()


class Worker(socketserver.UnixStreamServer):
    """Answers one request after the other, each with the newest weights that there are then."""

    request_queue_size = 128

    def __init__(self, path: str, weights: Weights) -> None:
        Path(path).unlink(missing_ok=True)  # of a worker that was killed
        super().__init__(path, Request)
        self.weights = weights

    def follow(self, client: hamr.store.Client, name: str) -> None:
        """Take each new version. A request that is under way ends with the one before."""
        while True:
            try:
                with client.watch(name) as watch:  # the present version first
                    for id in watch:
                        if id != self.weights.id:
                            self.take(client, id)
            except hamr.store.StoreLost:
                time.sleep(0.1)  # the server is started again

    def take(self, client: hamr.store.Client, id: str) -> None:
        """Use a version from now on, if that is possible."""
        try:
            self.weights = Weights(client.get_group(id))
            print(f"worker {os.getpid()}: uses {id}", flush=True)
        except hamr.store.StoreLost:
            raise  # it is tried again
        except (hamr.Error, ValueError) as error:
            print(f"worker {os.getpid()}: does not use {id}: {error}", file=sys.stderr, flush=True)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """After an error of the device the worker ends, and another one starts in its place."""
        if not isinstance(sys.exception(), OSError):  # which is a client that has gone
            raise


class Request(socketserver.StreamRequestHandler):
    """A line, and its answer."""

    timeout = 10  # seconds for the request, and for the answer: others wait meanwhile

    def handle(self) -> None:
        """Read the request and write the answer; what is wrong with it is an answer, too."""
        weights = self.server.weights
        answer: dict[str, Any] = {"group": weights.id, "pid": os.getpid()}
        line = self.line()
        try:
            asked = json.loads(line)
            operands = weights.operands(asked["array"], asked["vector"])
        except (KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
            answer["error"] = f"{type(error).__name__}: {error}"
        else:
            answer["product"] = weights.product(*operands)
        self.wfile.write(json.dumps(answer).encode() + b"\n")

    def line(self) -> bytearray:
        """The request; TimeoutError if a client sends it too slowly."""
        line, until = bytearray(), time.monotonic() + self.timeout
        while b"\n" not in line[-1:] and len(line) < MOST:
            self.connection.settimeout(max(0.001, until - time.monotonic()))
            part = self.rfile.read1(MOST - len(line))
            if not part:
                break
            if time.monotonic() > until:
                raise TimeoutError("the request came too slowly")
            line += part
        self.connection.settimeout(self.timeout)
        return line


def ends(arguments: threading.ExceptHookArgs) -> None:
    """End the process with a thread that failed: it would keep an old version for ever."""
    threading.__excepthook__(arguments)
    os._exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("socket", help="where it answers")
    parser.add_argument("--name", default="weights")
    chosen = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as SIGTERM: there is nothing to clear up
    try:
        client = hamr.store.connect()
        # No variable but the worker's own has the weights: it would keep the first version.
        worker = Worker(chosen.socket, Weights(client.get_group(name=chosen.name, wait=True)))
    except hamr.store.StoreError as error:
        sys.exit(f"worker: {error}")  # who started it starts it again
    threading.excepthook = ends
    threading.Thread(target=worker.follow, args=(client, chosen.name), daemon=True).start()
    worker.serve_forever()


if __name__ == "__main__":
    main()
