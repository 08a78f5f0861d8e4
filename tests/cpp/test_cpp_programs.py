"""hamr.hpp, and the headers of upstream's names: what programs in C++ do with them."""

import functools
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import hamr
from hamr._base.library import library_path
from tests.package.test_headers import LANGUAGES, compiler
from tests.support.c_programs import compile_program, run
from tests.support.paths import ROOT
from tests.support.processes import SCALE, scaled

PROGRAMS = ROOT / "tests" / "cpp" / "programs"
GCC = LANGUAGES["c++"][1]
CLANG = compiler("HAMR_TEST_CLANG", "clang++", *(f"clang++-{n}" for n in range(25, 13, -1)))

pytestmark = pytest.mark.skipif(not GCC, reason="no C++ compiler")


def build(name, folder, *flags, standard="c++17"):
    source = PROGRAMS / f"{name}.cpp"
    flags = ("-O0", f"-I{PROGRAMS}", *flags)
    return compile_program(source, folder / name, *flags, language="c++", standard=standard)


def sanitizer(kinds="address,undefined"):
    """Flags that find mistakes with memory and undefined behaviour, where the compiler has them."""
    return sanitizer_of(tuple(LANGUAGES["c++"][1]), kinds)


@functools.cache
def sanitizer_of(command, kinds):
    flags = [f"-fsanitize={kinds}", "-fno-sanitize-recover"]
    with tempfile.TemporaryDirectory() as folder:
        words = [*command, *flags, "-x", "c++", "-", "-o", f"{folder}/empty"]
        done = subprocess.run(words, input=b"int main() {}\n", capture_output=True, check=False)
    return flags if done.returncode == 0 else []


#: Requests of too much memory are hamr's to refuse; what the core keeps for reuse is no leak, and
#: the program counts what lives.
#: No device: the program adds with loops of its own what get_device_accessible gives it.
HOST = {f"HAMR_{api}_LIBRARY": "/nowhere/lib.so" for api in ("CUDA", "HIP", "OPENMP")}
SANITIZED = {"ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=0"}


def test_the_whole_surface(tmp_path):
    """Each constructor, method and function, under a sanitizer where there is one."""
    program = build("surface", tmp_path, *sanitizer())
    assert run(program, env=SANITIZED).splitlines()[-1] == "all of C++"


def test_threads_that_read_one_buffer(tmp_path):
    program = build("readers", tmp_path, *sanitizer("thread"), "-pthread")
    assert run(program, env=HOST).splitlines()[-1] == "all have read"


def test_a_program_with_upstreams_header_names(tmp_path):
    assert run(build("upstream", tmp_path), env=HOST).splitlines()[-1] == "the sums are right"


@pytest.mark.parametrize("standard", ["c++20", "c++17"][: 2 if SCALE >= 1 else 1])
def test_what_authors_have(standard, tmp_path):
    """Beside HAMR's functions, under sanitizers where there are some."""
    found = sanitizer()
    flags = [*found, "-fsanitize=undefined"] if found else []
    program = build("authors", tmp_path, "-Wconversion", *flags, standard=standard)
    assert run(program, env=HOST | SANITIZED).splitlines()[-1] == "all for authors"


#: Warnings that authors' programs ask for. GCC finds some of these only as it optimizes.
STRICT = ("-Wconversion", "-Wnull-dereference", "-Wredundant-decls", "-Wundef")


#: The first program names the most of what there is; at full scale each program is optimized.
@pytest.mark.parametrize(
    "name", ["authors", "surface", "corners", "objects"][: 4 if SCALE >= 1 else 1]
)
def test_headers_give_programs_no_warnings(name, tmp_path):
    build(name, tmp_path, "-c", "-O2", *STRICT)


@pytest.mark.skipif(not CLANG, reason="no clang++")
@pytest.mark.parametrize("name", ["authors", "surface", "upstream"][: 3 if SCALE >= 1 else 2])
def test_clang(name, tmp_path, monkeypatch):
    monkeypatch.setitem(LANGUAGES, "c++", ("c++17", CLANG))
    run(build(name, tmp_path), env=HOST)


#: What each program prints last.
CODES = {
    "objects": "all elements",
    "names": "all names",
    "corners": "all corners",
    # As clients' codes are.
    "bodies": "1200 bodies of mass 2400, sum 1801.560000, 1",
    "adaptor": "all arrays",
    "variants": "all variants",
}


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize(
    ("command", "standard"),
    [
        pytest.param(
            command,
            standard,
            marks=pytest.mark.skipif(not command, reason=f"no {name}"),
            id=f"{name}-{standard}",
        )
        for name, command, standards in (
            ("g++", GCC, ("c++17", "c++20")),
            ("clang++", CLANG, ("c++20", "c++17")),
        )
        for standard in standards[: 2 if SCALE >= 1 else 1]
    ],
)
def test_codes(name, command, standard, tmp_path, monkeypatch):
    """Without a warning by each compiler, under sanitizers.

    In short runs by one standard each, and under one compiler's sanitizers, which double the time.
    """
    monkeypatch.setitem(LANGUAGES, "c++", ("c++17", command))
    watched = [(GCC, "c++17"), (CLANG, "c++20")][: 2 if SCALE >= 1 else 1]
    sanitized = sanitizer() if (command, standard) in watched else []
    program = build(name, tmp_path, "-Wconversion", *sanitized, standard=standard)
    assert run(program, env={**HOST, **SANITIZED}).splitlines()[-1] == CODES[name]


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(GCC, id="g++"),
        pytest.param(CLANG, id="clang++", marks=pytest.mark.skipif(not CLANG, reason="no clang++")),
    ],
)
def test_explicit_instantiations(command, standard, tmp_path, monkeypatch):
    """Of buffers of each kind of elements. They run once."""
    monkeypatch.setitem(LANGUAGES, "c++", ("c++17", command))
    if command != GCC or standard != "c++17":
        only = ("-fsyntax-only", *(["-Qunused-arguments"] if command == CLANG else []))
        build("instantiated", tmp_path, "-Wconversion", *only, standard=standard)
        return
    program = build("instantiated", tmp_path, "-Wconversion", standard=standard)
    assert run(program, env=HOST).splitlines()[-1] == "all instantiated"


@pytest.mark.parametrize("name", ["model", "objects_model"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_random_walk(name, seed, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    program = folder / name
    if not program.exists():
        build(name, folder, *(sanitizer() if name == "objects_model" else []))
    steps = str(scaled(600, 20))
    assert run(program, str(seed), steps, env=SANITIZED) == "the model holds\n"


TAKES = "    return table->take(buffer, made);\n}\n"


def newer_headers(folder):
    """Those of a version whose table has one function more."""
    shutil.copytree(hamr.get_include(), folder)
    for name, last, more in [
        (
            "interface.h",
            "} hamr_table;",
            "    hamr_status (*juggle)(int32_t balls);\n} hamr_table;",
        ),
        (
            "calls.h",
            TAKES,
            TAKES + "static inline hamr_status hamr_juggle(int32_t balls) {\n"
            "    const hamr_table *table = HAMR_TABLE_WITH(juggle);\n"
            "    return table ? table->juggle(balls) : (hamr_status)HAMR_ERROR_LIBRARY;\n}\n",
        ),
    ]:
        path = folder / "hamr" / name
        text = path.read_text()
        assert text.count(last) == 1
        path.write_text(text.replace(last, more))
    return str(folder)


JUGGLES = """
#include <hamr.hpp>
__attribute__((visibility("default"))) void juggles() {
    hamr::detail::check(hamr_juggle(3), "juggle");
}
"""

#: One part of a program calls what the library has not, and another one has the words.
TELLS = """
#include <hamr.hpp>
#include <thread>
void juggles();
static bool told() {
    hamr::buffer<int> b(hamr::buffer_allocator::malloc, 3, 1);
    try {
        juggles();
    } catch (const hamr::error &problem) {
        const std::string words = problem.what();
        const bool named = words.find("has no hamr_juggle") != words.npos;
        return named && problem.status() == HAMR_ERROR_LIBRARY;
    }
    return false;
}
int main() {
    bool there = false;
    std::thread([&] { there = told(); }).join();
    return *hamr_last_error() || !there || !told();
}
"""


def test_what_a_library_lacks_is_told_by_whoever_called(tmp_path):
    """In another file of a program, and in a plug-in, whose exceptions others catch."""
    newer = newer_headers(tmp_path / "newer")
    for name, text in (("juggles", JUGGLES), ("tells", TELLS)):
        (tmp_path / f"{name}.cpp").write_text(text)
    known = {"HAMR_LIBRARY": library_path()}
    cpp = {"language": "c++", "standard": "c++17", "include": newer}
    both = compile_program(tmp_path / "juggles.cpp", tmp_path / "juggles.o", "-c", "-O0", **cpp)
    flags = ("-O0", str(both))
    program = compile_program(tmp_path / "tells.cpp", tmp_path / "tells", *flags, **cpp)
    run(program, env=known)

    plugin = tmp_path / "libjuggles.so"
    for hidden in ("-fvisibility=hidden", "-fvisibility=default"):
        flags = ("-O0", "-shared", "-fPIC", hidden)
        compile_program(tmp_path / "juggles.cpp", plugin, *flags, **cpp)
        if shutil.which("nm"):
            listing = ["nm", "-DC", "--defined-only", plugin]
            done = subprocess.run(listing, capture_output=True, text=True, check=True)
            assert re.search(r"typeinfo for hamr::\w+::error\n", done.stdout)
    flags = ("-O0", "-rdynamic", f"-Wl,-rpath,{tmp_path}", str(plugin))
    program = compile_program(
        tmp_path / "tells.cpp", tmp_path / "loads", *flags, language="c++", standard="c++17"
    )
    run(program, env=known)


def headers_of_the_next_version(folder):
    """Where the class that every buffer has is larger."""
    shutil.copytree(hamr.get_include(), folder)
    version = folder / "hamr" / "version.h"
    text = version.read_text()
    patch = re.search(r"#define HAMR_VERSION_PATCH (\d+)", text)
    version.write_text(text.replace(patch[0], f"#define HAMR_VERSION_PATCH {int(patch[1]) + 1}"))
    storage = folder / "hamr" / "cpp" / "storage.hpp"
    text, first = storage.read_text(), "    mutable hamr_buffer *m_buffer = nullptr;\n"
    assert text.count(first) == 1
    more = "    std::int64_t m_more[5] = {1, 2, 3, 4, 5};\n"
    storage.write_text(text.replace(first, more + first))
    return str(folder)


#: One part of a program of two versions; what is thrown here is caught there.
PART = """
#include <hamr.hpp>
#include <vector>
double sum_PART(std::size_t n) {
    std::vector<hamr::buffer<double>> many;
    for (std::size_t i = 0; i < n; i++) {
        many.emplace_back(hamr::buffer_allocator::malloc, n, 1.0);
        if (many.back().append(many.front())) return -1;
        many.back().pointer();
        MORE
    }
    hamr::buffer<double> last = std::move(many.back());
    many.back() = last;
    many.back().swap(last);
    last = hamr::buffer<double>();
    double sum = 0;
    for (const auto &each : many)
        for (double value : each.read()) sum += value;
    return sum;
}
void throw_PART(bool memory) {
    if (memory) hamr::buffer<double>(hamr::buffer_allocator::malloc, std::size_t(1) << 50);
    hamr::buffer<double>(static_cast<hamr::buffer_allocator>(99), 1);
}
bool catch_PART(void (*throws)(bool)) {
    try {
        throws(true);
    } catch (const hamr::memory_error &problem) {
        if (problem.size() != std::int64_t(1) << 53 || problem.device() != -1) return false;
    }
    try {
        throws(false);
    } catch (const hamr::failure &problem) {
        return problem.status() == HAMR_ERROR_VALUE;
    }
    return false;
}
"""

#: Functions that one part alone has, of objects that both parts' functions make.
ONLY_HERE = "if (many.back().reserve(9 * n) || many.back().set(many.front())) return -1;"

BOTH = """
#include <cstddef>
double sum_one(std::size_t);
double sum_two(std::size_t);
void throw_one(bool);
void throw_two(bool);
bool catch_one(void (*)(bool));
bool catch_two(void (*)(bool));
int main() {
    const std::size_t sizes[] = {3, 40};
    for (std::size_t n : sizes)
        if (sum_one(n) != sum_two(n) || sum_one(n) <= 0) return 1;
    return !(catch_one(throw_two) && catch_two(throw_one) && catch_one(throw_one));
}
"""


@pytest.mark.parametrize("plugins", [False, True], ids=["one program", "plug-ins"])
def test_headers_of_two_versions_in_one_process(plugins, tmp_path):
    """Without optimization, where each class has its functions once in a program."""
    shared = ("-shared", "-fPIC", "-fvisibility=default") if plugins else ("-c",)
    parts = []
    for name in ("one", "two"):
        source = tmp_path / f"{name}.cpp"
        more = ONLY_HERE if name == "two" else ""
        source.write_text(PART.replace("PART", name).replace("MORE", more))
        include = headers_of_the_next_version(tmp_path / "next") if name == "two" else ""
        output = tmp_path / (f"lib{name}.so" if plugins else f"{name}.o")
        cpp = {"language": "c++", "standard": "c++17", "include": include}
        parts.append(str(compile_program(source, output, *shared, "-O0", **cpp)))
    (tmp_path / "both.cpp").write_text(BOTH)
    flags = (*parts, f"-Wl,-rpath,{tmp_path}", "-rdynamic")
    cpp = {"language": "c++", "standard": "c++17"}
    program = compile_program(tmp_path / "both.cpp", tmp_path / "both", *flags, **cpp)
    run(program, env={"HAMR_LIBRARY": library_path()})


def test_every_header_is_in_the_namespace_of_its_version():
    folder = Path(hamr.get_include()) / "hamr"
    for path in [*folder.glob("cpp/*.hpp"), folder / "pybind11.h", folder / "nanobind.h"]:
        text = path.read_text()
        if "namespace hamr {" in text:
            assert "namespace hamr {\ninline namespace HAMR_CPP_NAMESPACE {\n" in text or (
                path.name == "error.hpp"
            ), path


def test_views_as_spans(tmp_path):
    program = build("views", tmp_path, "-Wconversion", standard="c++20")
    assert run(program) == "all views\n"


@pytest.mark.parametrize("api", ["__CUDACC__", "__HIPCC__"])
def test_how_kernels_are_partitioned(api, tmp_path):
    program = build("launch", tmp_path, f"-D{api}", f"-I{PROGRAMS / 'stand_in'}")
    assert run(program) == "all partitioned\n"


def refusals(source, standard="c++17", *flags):
    """What the compiler says of each line of a program."""
    command = [*GCC, f"-std={standard}", *flags, "-fsyntax-only", f"-I{hamr.get_include()}", source]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    return done.stderr


def test_wrong_elements_are_refused():
    """In words, each of them."""
    said = refusals(PROGRAMS / "refused.cpp")
    for words, times in (
        ("neither const nor volatile", 1),
        (r"sizeof\(T\) is not the size of the type", 1),
        ("elements of the one type are not converted", 2),
        ("which hamr.h can have", 1),
        ("the type of the elements was not complete", 1),
    ):
        assert len(re.findall(rf"error: .*: hamr: .*{words}", said)) == times, words


def test_older_standards_and_hosts_are_refused(tmp_path):
    source = tmp_path / "old.cpp"
    source.write_text("#include <hamr.hpp>\n")
    assert "hamr.hpp needs C++17" in refusals(source, "c++14")
    assert "without them, as with -fno-exceptions" in refusals(source, "c++17", "-fno-exceptions")
