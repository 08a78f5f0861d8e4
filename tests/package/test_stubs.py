"""Names and their descriptions: docstrings, the stub of the C extension, and what help() shows."""

import ast
import inspect
import pickle
import types
from importlib import resources

import pytest

import hamr
from hamr import _native
from tests.support import producers

STUBS = [
    ast.parse((resources.files("hamr") / f"{n}.pyi").read_text())
    for n in ("_native", "_array", "_calls", "_stored")
]
STUB = ast.Module([node for stub in STUBS for node in stub.body], [])


def stub_names(body):
    names = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
    return names


def own_names(cls):
    """What a C type defines itself, but for what every object has and what slots bring."""
    return {name for name in vars(cls) if name not in vars(object) and name != "__module__"}


def test_the_stub_lists_what_the_extension_has():
    found = {name for name in vars(_native) if not name.startswith("__")}
    assert stub_names(STUB.body) == found


@pytest.mark.parametrize(
    "name", [node.name for node in STUB.body if isinstance(node, ast.ClassDef)]
)
def test_the_stub_lists_what_each_class_has(name):
    (node,) = [n for n in STUB.body if isinstance(n, ast.ClassDef) and n.name == name]
    found = own_names(getattr(_native, name))
    # Python 3.12 shows the C buffer slots as methods.
    listed = stub_names(node.body) - {"__buffer__", "__new__"}  # object has a __new__, too
    assert listed == found - {"__buffer__", "__release_buffer__"}


def test_the_stub_names_every_argument():
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef):
            documented = getattr(_native, node.name).__doc__
            arguments = [a.arg for a in node.args.posonlyargs]
            if node.args.vararg:
                arguments.append(f"*{node.args.vararg.arg}")
            assert documented.startswith(f"{node.name}({', '.join(arguments)})"), node.name


def test_methods_have_the_signatures_of_the_stub():
    """inspect, and with it help() and editors, reads them from the method tables."""
    (array,) = [n for n in STUB.body if isinstance(n, ast.ClassDef) and n.name == "Array"]
    for node in array.body:
        method = vars(_native.Array).get(getattr(node, "name", None))
        if not isinstance(method, types.MethodDescriptorType):
            continue
        signature = inspect.signature(method)
        given = node.args
        assert [p.name for p in signature.parameters.values()] == [
            a.arg
            for a in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.kwarg)
            if a is not None
        ], node.name
        defaults = [*given.defaults, *given.kw_defaults]
        shown = [p.default for p in signature.parameters.values() if p.default is not p.empty]
        assert shown == [ast.literal_eval(d) for d in defaults], node.name
        assert (inspect.getdoc(method) is None) is (node.name[0] == "_" != node.name[1])


@pytest.mark.parametrize("cls", [hamr.Buffer, hamr.Handle, hamr.Stream, hamr.Event, hamr.device])
def test_public_methods_have_signatures(cls):
    assert inspect.signature(cls)
    for name in dir(cls):
        if callable(getattr(cls, name)) and not name.startswith("_"):
            assert inspect.signature(getattr(cls, name)), name


def test_all_lists_what_is_there():
    assert sorted(hamr.__all__) == list(hamr.__all__)
    for name in hamr.__all__:
        assert hasattr(hamr, name)
    public = {
        name
        for name, value in vars(hamr).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    for name in hamr._NOT_STARRED:
        assert callable(getattr(hamr, name))
    assert public - set(hamr._NOT_STARRED) == set(hamr.__all__)


def test_a_star_import_takes_no_names_of_numpys_away():
    numpys = {"array", "asarray", "empty", "empty_like", "full", "ones", "zeros", "zeros_like"}
    assert not numpys & set(hamr.__all__)
    assert numpys <= set(hamr._NOT_STARRED) <= set(dir(hamr))
    code = "from numpy import *; from hamr import *; print(type(zeros(3)), type(array([1])))"
    assert producers.run_python(code).stdout.count("numpy.ndarray") == 2


@pytest.mark.parametrize("name", ["hamr", *hamr.__all__, *hamr._NOT_STARRED])
def test_public_names_have_docstrings(name):
    value = hamr if name == "hamr" else getattr(hamr, name)
    documented = inspect.getdoc(value if callable(value) or name == "hamr" else type(value))
    assert documented
    assert len(documented) > 10


@pytest.mark.parametrize("cls", [hamr.Buffer, hamr.Handle, hamr.Stream, hamr.Event, hamr.device])
def test_public_members_have_docstrings(cls):
    for name in dir(cls):
        if not name.startswith("_"):
            assert inspect.getdoc(getattr(cls, name)), name


def test_dir_lists_what_is_imported_late():
    code = (
        "import hamr, sys\n"
        "print(*set(hamr.__all__) - set(dir(hamr)), 'hamr._base.cuda_devices' in sys.modules)"
    )
    assert producers.run_python(code).stdout.split() == ["False"]


def test_dir_lists_nothing_else():
    listed = dir(hamr)
    dunders = (n for n in listed if n[:2] == "__")
    assert listed == sorted({*hamr.__all__, *hamr._NOT_STARRED, "__version__", *dunders})
    assert not [name for name in listed if name.startswith("_") and not name.endswith("__")]
    assert "__version__" in listed


@pytest.mark.parametrize("name", [*hamr.__all__, *hamr._NOT_STARRED])
def test_public_names_say_where_they_are(name):
    value = getattr(hamr, name)
    if isinstance(value, (type, types.FunctionType)):
        assert value.__module__ == "hamr"
        assert pickle.loads(pickle.dumps(value)) is value


def test_public_names_are_no_modules_whatever_was_imported():
    code = (
        "import hamr, importlib, inspect, pkgutil\n"
        "for module in pkgutil.walk_packages(hamr.__path__, 'hamr.'):\n"
        "    if module.name != 'hamr.__main__': importlib.import_module(module.name)\n"
        "import hamr.buffer, hamr.allocator\n"
        "print(*[n for n in hamr.__all__ if inspect.ismodule(getattr(hamr, n))])"
    )
    assert producers.run_python(code).stdout == "\n"


def test_the_package_says_that_it_is_typed():
    assert (resources.files("hamr") / "py.typed").is_file()


def test_no_sources_are_installed():
    installed = [path.name for path in resources.files("hamr").iterdir()]
    assert not [name for name in installed if name.endswith((".c", ".h", ".go"))]
