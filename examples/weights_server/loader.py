"""Load a model's weights into the store once, and keep them there.

    python loader.py model.safetensors [--device 0]

Weights that the store has already are kept and not loaded again. SIGHUP makes it look at the file
anew: one that has changed is loaded as a new version, which replaces the one before.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

import hamr
import hamr.store

#: Seconds in which a new server hears of weights from the processes that have them.
PATIENCE = 2


def version_of(path: Path) -> dict[str, object]:
    """What tells a file, or a folder of them, from those that were loaded before."""
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    facts = [file.stat() for file in files]
    if not files:
        raise ValueError(f"{path} has no safetensors files")
    return {
        "source": str(path.resolve()),
        "bytes": sum(fact.st_size for fact in facts),
        "changed": max(fact.st_mtime_ns for fact in facts),
    }


def keep(client: hamr.store.Client, path: Path, name: str, device: int | None) -> hamr.store.Group:
    """The weights. They are loaded only if the store has not this version of the file."""
    version = version_of(path)
    try:
        group = client.get_group(name=name, wait=True, timeout=PATIENCE)
        if group.metadata == version:
            print(f"loader: found {group.id}", flush=True)
            return group
    except hamr.store.StoreTimeout:
        pass  # nobody has them
    id = client.load_group(
        path, device=device, name=name, metadata=version, pinned=True, replace=True
    )
    print(f"loader: loaded {id}", flush=True)
    return client.get_group(id)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, help="a safetensors file, or a folder of them")
    parser.add_argument("--device", type=int, help="a GPU's number; without it the host")
    parser.add_argument("--name", default="weights")
    chosen = parser.parse_args()

    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    # A byte for each SIGHUP, also while the weights are loaded.
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGHUP, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as SIGTERM: there is nothing to clear up

    try:
        client = hamr.store.connect()
        kept = keep(client, chosen.path, chosen.name, chosen.device)
    except (hamr.Error, OSError, ValueError) as error:
        sys.exit(f"loader: {error}")  # who started it starts it again
    while os.read(reader, 1 << 16):  # all that came meanwhile are one
        try:
            kept = keep(client, chosen.path, chosen.name, chosen.device)
        except (hamr.Error, OSError, ValueError) as error:
            print(f"loader: {kept.id} stays: {error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
