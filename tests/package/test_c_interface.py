"""hamr/functions.h: another extension's or program's way to the core."""

import ctypes
import os
import subprocess

import pytest

import hamr
from hamr import _native
from hamr._base.errors import KINDS
from hamr._base.library import core
from tests.package.test_headers import LANGUAGES
from tests.support import function_table
from tests.support.paths import ROOT

CLIENT = ROOT / "tests" / "package" / "client.c"

PARAMETERS = [
    pytest.param(name, marks=pytest.mark.skipif(not command, reason=f"no {name} compiler"))
    for name, (_, command) in LANGUAGES.items()
]


def getter():
    """The function that gives out the table, as PyCapsule_Import would find it."""
    read = ctypes.pythonapi.PyCapsule_GetPointer
    read.restype, read.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_void_p(read(_native.functions, b"hamr._native.functions"))


@pytest.fixture(params=PARAMETERS)
def client(request, tmp_path):
    """The client's functions: each gives its status and what it reports."""
    standard, command = LANGUAGES[request.param]
    output = tmp_path / "client.so"
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", f"-I{hamr.get_include()}"]
    source = tmp_path / "client"
    source.write_text('#ifdef __cplusplus\nextern "C" {\n#endif\n' + CLIENT.read_text())
    with source.open("a") as file:
        file.write("#ifdef __cplusplus\n}\n#endif\n")
    flags += ["-x", request.param, "-shared", "-fPIC"]
    subprocess.run([*command, *flags, source, "-o", output], check=True)
    library = ctypes.CDLL(os.fspath(output))
    library.table.restype = ctypes.c_void_p

    def call(name):
        report = ctypes.create_string_buffer(4096)
        status = getattr(library, name)(getter(), report, ctypes.c_size_t(len(report)))
        return status, report.value.decode()

    call.table = lambda: library.table(getter())
    return call


def test_a_client_makes_changes_and_reads_an_array(client):
    assert client("use") == (0, "{1, 1, 1, 1, 7, 7}")


def test_a_client_is_told_what_is_wrong(client):
    status, report = client("ask_too_much")
    kinds = [KINDS.index(kind) + 1 for kind in (ValueError, ValueError, hamr.OutOfMemory)]
    assert (status, report) == (0, f"{' '.join(map(str, kinds))} {2**48}")


def test_a_client_sees_the_backends(client):
    status, report = client("list_backends")
    assert status == 0
    assert report.split() == [
        f"{name}:{int(row['available'])}:{row['allocators'][0]}"
        for name, row in hamr.backends().items()
    ]


def test_a_forked_child_gives_out_a_table_of_its_own(client):
    mine = client.table()
    assert mine == core().Table()
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        status, report = client("use")
        fine = status == 0 and client.table() not in (None, mine)
        os.write(writer, f"{fine} {report}".encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(reader, 4096) == b"True {1, 1, 1, 1, 7, 7}"
    os.close(reader)
    os.close(writer)


def test_the_table_has_no_hole():
    hamr.Buffer(1)
    assert all(function_table.entry(name).value for name in function_table.entries())
