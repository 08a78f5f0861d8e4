"""Write docs/pygpu-names.md: the names of PybindGPU, PyCUDA and hamr.pygpu, side by side.

python -m build_support.pygpu_table [--check] [--pycuda SOURCES]

hamr.pygpu's names are those of the installed package. Those of the other two are recorded in
docs/results; --pycuda records PyCUDA's anew, from its unpacked source distribution.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "pygpu-names.md"
RESULTS = ROOT / "docs" / "results"
PYBINDGPU = RESULTS / "names-pybindgpu.json"
PYCUDA = RESULTS / "names-pycuda.json"

#: The element types in names, for which <dt> stands.
TYPES = (
    *("int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)
_TYPED = re.compile(rf"_({'|'.join(TYPES)})$")

#: Protocols, which are members with names like Python's own. Operators that compute are left out.
PROTOCOLS = {
    *("__getitem__", "__setitem__", "__len__", "__int__", "__array__", "__array_interface__"),
    *("__cuda_array_interface__", "__dlpack__", "__dlpack_device__", "__copy__"),
}

#: What is called otherwise here: PyCUDA's name, and ours, of hamr.pygpu or as hamr.….
IN_PLACE = {
    "driver.Context.get_device": "cudaGetDevice",
    "driver.Context.push": "cudaSetDevice",
    "driver.Context.synchronize": "cudaDeviceSynchronize",
    "driver.Device": "cudaDeviceProp",
    "driver.Device.can_access_peer": "hamr.peer_access",
    "driver.Device.compute_capability": "cudaDeviceProp.major",
    "driver.Device.count": "cudaGetDeviceCount",
    "driver.Device.get_attribute": "cudaDeviceProp",
    "driver.Device.get_attributes": "cudaDeviceProp",
    "driver.Device.name": "cudaDeviceProp.name",
    "driver.Device.pci_bus_id": "cudaDeviceProp.pciBusID",
    "driver.Device.total_memory": "cudaDeviceProp.totalGlobalMem",
    "driver.DeviceAllocation": "DeviceAllocator_<dt>",
    "driver.Event": "cudaEvent_t",
    "driver.Event.query": "cudaEventQuery",
    "driver.Event.record": "cudaEventRecord",
    "driver.Event.synchronize": "cudaEventSynchronize",
    "driver.Event.time_since": "cudaEventElapsedTime",
    "driver.Event.time_till": "cudaEventElapsedTime",
    "driver.Function": "Function",
    "driver.Function.__call__": "Function.__call__",
    "driver.HostAllocation": "HostAllocator",
    "driver.Module": "Module",
    "driver.Module.get_function": "Module.function",
    "driver.PagelockedHostAllocation": "PagelockedAllocator",
    "driver.Stream": "cudaStream_t",
    "driver.Stream.is_done": "cudaStreamQuery",
    "driver.Stream.synchronize": "cudaStreamSynchronize",
    "driver.Stream.wait_for_event": "cudaStreamWaitEvent",
    "driver.get_driver_version": "nvml.cuda_driver_version",
    "driver.managed_empty": "hamr.Buffer",
    "driver.mem_alloc": "DeviceAllocator_<dt>",
    "driver.mem_get_info": "hamr.memory_info",
    "driver.memcpy_dtod": "hamr.copy_many",
    "driver.memcpy_dtoh": "GPUArray.get",
    "driver.memcpy_dtoh_async": "GPUArray.get",
    "driver.memcpy_htod": "GPUArray.set",
    "driver.memcpy_htod_async": "GPUArray.set_async",
    "driver.memcpy_peer": "hamr.copy_many",
    "driver.memset_d32": "GPUArray.fill",
    "driver.module_from_buffer": "Module",
    "driver.module_from_file": "Module",
    "driver.pagelocked_empty": "PagelockedAllocator",
    "driver.to_device": "to_gpu",
    "compiler.SourceModule": "compile",
    "compiler.compile": "compile",
}

NONE = "—"


def recorded(path: Path) -> dict[str, Any]:
    """Return a package's recorded names: version, how they were obtained, and a list by place."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def members(cls: type) -> list[str]:
    """Return the names of a class that its users type, without those that are left to NumPy."""
    left = left_to_numpy(cls)
    return [n for n in dir(cls) if (not n.startswith("_") or n in PROTOCOLS) and n not in left]


def left_to_numpy(cls: type) -> set[str]:
    """Return the names whose error says what to write in their place."""
    from hamr._buffer.operators import _LeftToNumPy

    return {name for name in dir(cls) if isinstance(getattr(cls, name, None), _LeftToNumPy)}


def collapsed(names: list[str]) -> list[str]:
    """Return names with one in place of those that differ by an element type alone."""
    kept: dict[str, None] = {}
    by_stem: dict[str, set[str]] = {}
    for name in names:
        found = _TYPED.search(name)
        if found:
            by_stem.setdefault(name[: found.start()], set()).add(found[1])
    for name in names:
        found = _TYPED.search(name)
        stem = name[: found.start()] if found else ""
        whole = bool(stem) and by_stem[stem] == set(TYPES)
        kept[f"{stem}_<dt>" if whole else name] = None
    return list(kept)


def own() -> dict[str, list[str]]:
    """Return hamr.pygpu's names by place: "" is the module, a class its members."""
    module = importlib.import_module("hamr.pygpu")
    places = {"": collapsed([*module.__all__])}
    for name in places[""]:
        found = getattr(module, name.replace("<dt>", "float64"), None)
        if isinstance(found, type):
            places[name] = members(found)
    for part in ("gpuarray", "nvml"):
        submodule = importlib.import_module(f"hamr.pygpu.{part}")
        listed = getattr(submodule, "__all__", None) or [
            name
            for name, value in vars(submodule).items()
            if getattr(value, "__module__", "") == submodule.__name__ and not name.startswith("_")
        ]
        places[part] = collapsed(sorted(listed))
    places["nvml.Device"] = members(importlib.import_module("hamr.pygpu.nvml").Device)
    return places


def exists(name: str) -> bool:
    """Whether a name is there: of hamr.pygpu, or hamr.…."""
    dotted = name.replace("<dt>", "float64")
    root, path = ("hamr", dotted[5:]) if dotted.startswith("hamr.") else ("hamr.pygpu", dotted)
    value: object = importlib.import_module(root)
    if path.startswith("nvml."):
        value, path = importlib.import_module("hamr.pygpu.nvml"), path[5:]
    for part in path.split("."):
        value = getattr(value, part, None)
    return value is not None


def _row(name: str, *cells: str) -> str:
    return f"| `{name}` | {' | '.join(cells)} |"


def _yes(is_there: bool) -> str:
    return "yes" if is_there else NONE


def _instead(name: str, there: bool) -> str:
    if there:
        return "yes"
    other = IN_PLACE.get(name, "")
    return f"`{other}`" if other and exists(other) else NONE


def _table(names: set[str], cells: Any) -> list[str]:
    head = ["| name | PybindGPU | PyCUDA | hamr.pygpu |", "|---|---|---|---|"]
    return head + [_row(name, *cells(name)) for name in sorted(names, key=lambda n: (n.lower(), n))]


def table(pybindgpu: dict[str, Any], pycuda: dict[str, Any], ours: dict[str, list[str]]) -> str:
    """Return the page's text."""
    one, two = pybindgpu["names"], pycuda["names"]
    module = {*one[""], *one["gpuarray"]}
    arrays = {*two["gpuarray"]}
    mine = {*ours[""], *ours["gpuarray"]}
    refused = left_to_numpy(importlib.import_module("hamr.pygpu").GPUArray)

    def of_module(name: str) -> tuple[str, str, str]:
        first = "`.gpuarray`" if name in module and name not in one[""] else _yes(name in module)
        here = "`.gpuarray`" if name in mine and name not in ours[""] else ""
        second = "`.gpuarray`" if name in arrays else NONE
        return first, second, here or _instead(f"gpuarray.{name}", name in mine)

    def of_array(name: str) -> tuple[str, str, str]:
        there = name in ours["GPUArray"]
        first, second = name in one["GPUArray"], name in two["GPUArray"]
        if name in refused:
            return _yes(first), _yes(second), "an error that names NumPy's"
        return _yes(first), _yes(second), _instead(f"GPUArray.{name}", there)

    lines = [
        "# Names of PybindGPU, PyCUDA and hamr.pygpu",
        "",
        "What is called the same here, what is called otherwise, and what is not there. Written by",
        "`python -m build_support.pygpu_table` from the modules' own listings:",
        "",
        f"- PybindGPU {pybindgpu['version']}: {pybindgpu['obtained']}.",
        f"- PyCUDA {pycuda['version']}: {pycuda['obtained']}.",
        "- hamr.pygpu: what the installed package lists.",
        "",
        f"`<dt>` is each of {', '.join(TYPES)}.",
        f"{NONE} is a name that is not there: hamr computes nothing, so that PyCUDA's arithmetic",
        "is left to the user's kernels. Operators are not listed.",
        "[docs/pygpu.md](pygpu.md) says what the names do.",
        "",
        "## The module, and its `gpuarray`",
        "",
        *_table(module | arrays | mine, of_module),
        "",
        "## `GPUArray`",
        "",
        *_table({*one["GPUArray"], *two["GPUArray"], *ours["GPUArray"]}, of_array),
        "",
        "## Other classes of PybindGPU's",
        "",
    ]
    rows: set[str] = set()
    for place in one:
        if place not in ("", "gpuarray", "GPUArray"):
            rows |= {f"{place}.{n}" for n in {*one[place], *ours.get(place, ())}}

    def of_class(row: str) -> tuple[str, str, str]:
        place, name = row.split(".", 1)
        return _yes(name in one[place]), NONE, _yes(name in ours.get(place, ()))

    lines += _table(rows, of_class)
    lines += [
        "",
        "## `hamr.pygpu.nvml`",
        "",
        "What it has beyond PybindGPU's four names: "
        + ", ".join(f"`{n}`" for n in ours["nvml"] if n not in one[""])
        + ". A `Device` has "
        + ", ".join(f"`{n}`" for n in ours["nvml.Device"])
        + ".",
        "",
        "## PyCUDA's driver and compiler",
        "",
        "Its documented names of device control, memory, streams and kernels, and what takes their",
        "place, of hamr.pygpu or of hamr itself.",
        "",
    ]
    names = {f"driver.{n}" for n in two["driver"]} | {f"compiler.{n}" for n in two["compiler"]}
    lines += _table(names, lambda row: (NONE, "yes", _instead(row, False)))
    return "\n".join(lines) + "\n"


# PyCUDA's names.

_DIRECTIVE = re.compile(
    r"^( *)\.\. (module|currentmodule|function|class|method|staticmethod|attribute):: *([\w.]+)",
    re.MULTILINE,
)
#: Of the driver's documentation: what is about textures, graphs, IPC and such has no likeness here.
MATTER = re.compile(
    r"(Device|Context|Stream|Event|DeviceAllocation|HostAllocation|PagelockedHostAllocation|Module|"
    r"Function|SourceModule|DynamicSourceModule)(\.\w+)?$|mem_get_info$|mem_alloc|to_device$|"
    r"from_device|pagelocked_|managed_|memcpy_[hd]to[hd]|memcpy_peer|memset_d(8|16|32)|module_from|"
    r"get_version$|get_driver_version$|init$|compile$"
)


def directives(text: str) -> dict[str, list[str]]:
    """Return the names that a page of documentation describes, by module."""
    found: dict[str, list[str]] = {}
    module, classes = "", [(-1, "")]
    for spaces, kind, name in _DIRECTIVE.findall(text):
        if kind in ("module", "currentmodule"):
            module = name
            continue
        depth = len(spaces)
        while classes[-1][0] >= depth:
            classes.pop()
        full = f"{classes[-1][1]}.{name}" if classes[-1][1] else name
        if kind == "class":
            classes.append((depth, name))
        found.setdefault(module, []).append(full)
    return found


def pycuda_names(sources: Path) -> dict[str, Any]:
    """Return PyCUDA's names, from its unpacked source distribution."""
    version = re.search(r"^Version: (.*)$", (sources / "PKG-INFO").read_text(), re.MULTILINE)
    tree = ast.parse((sources / "pycuda" / "gpuarray.py").read_text())
    made = (ast.FunctionDef, ast.ClassDef)
    module = [n.name for n in tree.body if isinstance(n, made)]
    for node in tree.body:
        if isinstance(node, ast.Assign):
            module += [t.id for t in node.targets if isinstance(t, ast.Name)]
    array = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "GPUArray")
    inside = {n.name for n in ast.walk(array) if isinstance(n, ast.FunctionDef)}
    inside |= {
        n.attr
        for n in ast.walk(array)
        if isinstance(n, ast.Attribute)
        and isinstance(n.ctx, ast.Store)
        and isinstance(n.value, ast.Name)
        and n.value.id == "self"
    }
    documented = directives((sources / "doc" / "driver.rst").read_text())
    return {
        "package": "PyCUDA",
        "version": version[1] if version else "unknown",
        "obtained": "the Python of pycuda.gpuarray, and the driver's documentation, in the source "
        "distribution on PyPI",
        "names": {
            "gpuarray": sorted({n for n in module if not n.startswith("_")}),
            "GPUArray": sorted(n for n in inside if not n.startswith("_") or n in PROTOCOLS),
            "driver": sorted({n for n in documented.get("pycuda.driver", ()) if MATTER.match(n)}),
            "compiler": sorted(
                {n for n in documented.get("pycuda.compiler", ()) if MATTER.match(n)}
            ),
        },
    }


def main() -> int:
    """Rewrite the page; --check only compares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--pycuda", type=Path, help="record PyCUDA's names from its sources there")
    options = parser.parse_args()
    if options.pycuda is not None:
        PYCUDA.write_text(json.dumps(pycuda_names(options.pycuda), indent=1) + "\n")
    made = table(recorded(PYBINDGPU), recorded(PYCUDA), own())
    if options.check:
        if not PAGE.exists() or made != PAGE.read_text():
            print(f"{PAGE} is not what the modules list: run this without --check", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
