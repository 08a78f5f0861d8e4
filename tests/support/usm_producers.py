"""Objects that offer __sycl_usm_array_interface__ over NumPy's memory, and a record for dpctl."""

import ctypes
import sys
import types

import numpy as np

NAME = "__sycl_usm_array_interface__"
LINE = np.arange(6.0)
QUEUE, CONTEXT = "SyclQueueRef", "SyclContextRef"


class Queue:
    """What a queue is to hamr: something to wait for."""

    def __init__(self, then=lambda: None):
        self.waits, self.then = 0, then

    def wait(self):
        self.waits += 1
        self.then()


class Usm:
    """An object whose only protocol is the interface, and which says its kind."""

    usm_type = "shared"

    def __init__(self, interface):
        setattr(self, NAME, interface)


class Mute:
    """An object that has the interface and says nothing else."""

    def __init__(self, interface):
        setattr(self, NAME, interface)


def described(array, **changes):
    """The interface of an array's memory, with entries changed or, by ..., left out."""
    fields = {
        "shape": array.shape,
        "typestr": array.dtype.str,
        "data": (array.ctypes.data, not array.flags.writeable),
        "strides": tuple(s // array.itemsize for s in array.strides),
        "offset": 0,
        "version": 1,
        "syclobj": Queue(),
        **changes,
    }
    return {key: value for key, value in fields.items() if value is not ...}


def usm(array=LINE, cls=Usm, **changes):
    made = cls(described(array, **changes))
    made.array = array
    return made


class Record:
    """In place of dpctl: what it is asked, and what it answers."""

    def __init__(self, monkeypatch, kind="shared"):
        record = self
        self.kind, self.asked, self.queues, self.contexts = kind, [], [], []

        class MemoryUSMShared(np.ndarray):
            """Memory of dpctl's own, which exports a buffer: NumPy's."""

            flag = True

            def get_usm_type(self):
                return record.kind

            @property
            def __sycl_usm_array_interface__(self):
                return described(self, data=(self.ctypes.data, self.flag))

        def as_usm_memory(obj):
            self.asked.append(getattr(obj, NAME))
            if isinstance(self.kind, Exception):
                raise self.kind
            return types.SimpleNamespace(get_usm_type=lambda: self.kind)

        self.memory = types.ModuleType("dpctl.memory")
        self.memory.MemoryUSMShared = MemoryUSMShared
        self.memory.as_usm_memory = as_usm_memory
        self.dpctl = types.ModuleType("dpctl")
        self.dpctl.__path__ = []
        self.dpctl.memory = self.memory
        self.dpctl.SyclQueue = self.new_queue
        self.dpctl.SyclContext = self.new_context
        monkeypatch.setitem(sys.modules, "dpctl", self.dpctl)
        monkeypatch.setitem(sys.modules, "dpctl.memory", self.memory)

    def new_queue(self, capsule):
        self.queues.append((capsule, Queue()))
        return self.queues[-1][1]

    def new_context(self, capsule):
        self.contexts.append((capsule, object()))
        return self.contexts[-1][1]


_api = ctypes.PyDLL(None)  # functions of its own, whose types nobody else sets
new_capsule = _api.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
NAMES = {}


def capsule(name):
    return new_capsule(1, NAMES.setdefault(name, name.encode()), None)


def without_dpctl(monkeypatch):
    """From now on there is no dpctl, whatever is installed."""
    monkeypatch.setitem(sys.modules, "dpctl", None)
    monkeypatch.setitem(sys.modules, "dpctl.memory", None)
