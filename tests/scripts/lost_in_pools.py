"""A pool gets and gives memory that is gone: python -m … lost_in_pools METHOD FOLDER."""

import multiprocessing
import pickle
import sys

import numpy as np

import hamr
from hamr.store import ObjectNotFound, Server, StoreLost, connect

SHARED = hamr.Allocator.shared


class Carried:
    """A pickle that is opened while another one is."""

    def __init__(self, text):
        self.text = text

    def __reduce__(self):
        return pickle.loads, (self.text,)


class Named(hamr.Buffer):
    pass


def total(array):
    return float(np.asarray(array).sum())


def opened(handle):
    return float(hamr.open_shared(handle)[0])


def make(kind):
    if kind == "handle":
        return hamr.zeros(10).share()
    made = Named(10, "f8", SHARED, fill=1)
    made.name = "a state"
    carried = Carried(pickle.dumps(made))
    made.close()  # as the worker does when it has sent the result, sooner or later
    return carried


def refused(error, call, *arguments):
    """The words of an error that comes, in place of an end that does not."""
    try:
        found = call(*arguments)
    except error as caught:
        return str(caught)
    raise AssertionError(f"{found!r} came in place of {error}")


def main(method, folder):
    context = multiprocessing.get_context(method)
    temporary = hamr.Buffer(10, "f8", SHARED)
    gone = Carried(pickle.dumps(temporary))
    temporary.close()
    server = Server(f"{folder}/store/socket")
    client = connect(server.path)
    found = client.get(client.put(np.ones(5)))
    deleted = Carried(pickle.dumps(found))
    client.delete(next(client.list()).id)
    del found
    lost = Carried(deleted.text.replace(b"store/socket", b"other/socket"))
    with context.Pool(1, maxtasksperchild=1) as pool:

        def wait(function, argument):
            return pool.apply_async(function, (argument,)).get(60)

        assert "not there any more" in refused(ValueError, wait, total, gone)
        assert "there is no object" in refused(ObjectNotFound, wait, total, deleted)
        assert "other/socket" in refused(StoreLost, wait, total, lost)
        returned = wait(make, "buffer")
        assert "cannot be opened: ValueError" in repr(returned), returned
        for use in (
            total,
            len,
            hamr.buffer,
            lambda b: b.shape,
            lambda b: b[0],
            lambda b: np.ones(1) + b,
        ):
            assert "not there any more" in refused(ValueError, use, returned)
        assert "not there any more" in refused(ValueError, wait, total, returned)
        # Its worker serves the descriptors, and ends with the task.
        handle = wait(make, "handle")
        if not isinstance(handle, hamr.SharedHandle):
            refused(Exception, opened, handle)
        assert wait(total, hamr.Buffer(3, fill=2)) == 6
    server.close()
    print("all refused")


if __name__ == "__main__":
    main(*sys.argv[1:])
