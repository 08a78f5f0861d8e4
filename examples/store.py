"""A result that outlives its maker: one process makes it, others map the same memory.

Vineyard's way with GPU memory, in Python: a process creates a buffer in the store, fills it through
a mirror on the host, seals it and ends. Another gets it by its name, on a GPU if there is one, and
reads it where it is. Nothing is copied between them.
"""

import multiprocessing
import tempfile

import numpy as np

import hamr
import hamr.store


def producer(path: str, device: str) -> None:
    """Make a field in the store, and end."""
    with hamr.store.connect(path) as client:
        made = client.create((4, 250_000), "f4", device=device, metadata={"step": 7})
        with made, made.buffer.mirror() as field:  # written back, and sealed, at the end
            for row, values in enumerate(field):
                values[:] = row
        client.put_name("field", made.id)


def consumer(path: str) -> None:
    """Wait for the field, and read it where it is."""
    with hamr.store.connect(path) as client:
        id = client.get_name("field", wait=True, timeout=60)
        field = client.get(id)
        step = client.metadata(id)["step"]
        with field.mirror() as values:
            print(f"step {step}, sums of rows:", values.sum(axis=1))
        try:
            field.fill(0)
        except ValueError:
            print("sealed: nobody writes to it any more")


def main() -> None:
    """Run both, each in a process of its own."""
    device = "cuda:0" if hamr.backends()["cuda"]["devices"] else "cpu"
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as folder,
        hamr.store.Server(f"{folder}/store/socket", limit="host=64MiB,gpu=64MiB") as server,
        hamr.store.connect(server.path) as client,
    ):
        for work, arguments in ((producer, (device,)), (consumer, ())):
            process = context.Process(target=work, args=(server.path, *arguments))
            process.start()
            process.join()
            assert process.exitcode == 0
        id = client.get_name("field")
        view = client.get(id, device="cpu")[1:3, ::125_000]  # a part of it
        print("seen from here:", np.asarray(view).tolist())
        client.delete(id)
        print("objects left:", client.statistics()["objects"])


if __name__ == "__main__":
    main()
