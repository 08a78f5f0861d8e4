"""What compilers and build systems find hamr by: hamr config, CMake, pkg-config, make install."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hamr
from build_support import finding_files
from hamr import cli
from hamr._base import compiling
from hamr._base.library import library_path
from tests.support import fortran_programs
from tests.support.c_programs import COMPILER, PACKAGES
from tests.support.paths import ROOT
from tests.support.processes import launch

IN_PLACE = "site-packages" not in hamr.get_include()

needs_compiler = pytest.mark.skipif(not COMPILER, reason="no C compiler")
needs_wheel = pytest.mark.skipif(IN_PLACE, reason="hamr is installed in place")
needs_pkg_config = pytest.mark.skipif(not shutil.which("pkg-config"), reason="no pkg-config")
needs_cmake = pytest.mark.skipif(not shutil.which("cmake"), reason="no cmake")

#: Makes a buffer, and prints which library the process has, and how it came there.
PROGRAM = r"""
#include <hamr.h>

int main(void) {
    hamr_buffer *field;
    int64_t n = 1000;
    char line[4200];
    FILE *maps = fopen("/proc/self/maps", "r");
    if (hamr_create(&field, HAMR_FLOAT64, 1, &n, NULL, NULL) || hamr_release(field)) {
        fprintf(stderr, "%s\n", hamr_last_error());
        return 1;
    }
    fclose(maps);
    maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) {
        char *name = strstr(line, "/libhamr.so");
        if (!name) name = strstr(line, "/_pyhamr.abi3.so");
        if (!name) continue;
#ifdef HAMR_LINKED
        fputs("linked ", stdout);
#else
        fputs("loaded ", stdout);
#endif
        fputs(strchr(line, '/'), stdout);
        break;
    }
    return fclose(maps);
}
"""

#: No Python is found, nor any setting of hamr's.
ALONE = {"PATH": "/nowhere", "HOME": "/nowhere"}


def alone(program):
    """What a program prints where the machine has no Python for it."""
    done = subprocess.run([program], text=True, capture_output=True, check=False, env=ALONE)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def has(program, how, library):
    """Without Python, the program has this library, linked or loaded."""
    found, _, path = alone(program).partition(" ")
    assert (found, os.path.samefile(path, library)) == (how, True), path


def compiled(folder, name, flags):
    source, program = folder / "program.c", folder / name
    source.write_text(PROGRAM)
    done = subprocess.run(
        [*COMPILER, "-std=c99", "-Wall", "-Werror", source, "-o", program, *flags],
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return program


def asked(capsys, *options):
    assert cli.main(["config", *options]) == 0
    return capsys.readouterr().out.split()


def test_paths_and_version(capsys):
    include = hamr.get_include()
    assert asked(capsys, "--include-dir", "--version") == [include, hamr.__version__]
    assert asked(capsys, "--version", "--include-dir") == [hamr.__version__, include]
    module = asked(capsys, "--fortran-module")
    assert module == [f"{include}/hamr.f90", f"{include}/hamr_fortran.c"]
    assert all(map(os.path.isfile, module))


@needs_wheel
def test_what_the_wheel_holds(capsys):
    (prefix,) = asked(capsys, "--prefix")
    assert hamr.get_include() == f"{prefix}/include"
    folders = asked(capsys, "--cmake-dir", "--pkgconfig-dir")
    assert folders == [f"{prefix}/lib/cmake/hamr", f"{prefix}/lib/pkgconfig"]
    found = {path for folder in folders for path in Path(folder).iterdir()}
    assert found == {Path(prefix, name) for name in finding_files.names()}


@needs_wheel
@needs_compiler
def test_what_makefiles_link(tmp_path, capsys):
    """With -lhamr: of headers that do without it, and of those that call what is linked."""
    (prefix,) = asked(capsys, "--prefix")
    flags = [f"-I{prefix}/include", f"-L{prefix}/lib", "-lhamr", *asked(capsys, "--libs")]
    has(compiled(tmp_path, "loads", flags), "loaded", library_path())
    program = compiled(tmp_path, "stub", ["-DHAMR_LINKED", *flags])
    settings = {**ALONE, "HAMR_LIBRARY": library_path()}
    assert launch([str(program)], 60, settings) == (0, f"linked {library_path()}\n")
    assert b"hamr_get_table" in Path(prefix, "lib", "libhamr.a").read_bytes()
    assert str(ROOT).encode() not in Path(prefix, "lib", "libhamr.a").read_bytes()


def test_what_an_installation_in_place_lacks(capsys, monkeypatch):
    monkeypatch.setattr(compiling, "get_include", lambda: str(ROOT / "include"))
    for option in ("--cmake-dir", "--pkgconfig-dir", "--prefix"):
        assert cli.main(["config", option]) == 1
        words = capsys.readouterr().err
        assert words.startswith(f"hamr config: {ROOT}/lib")
        assert "an editable install of hamr has only --cflags" in words
    assert asked(capsys, "--cflags") == [f"-I{ROOT}/include"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "say what to print: --cflags, --libs"),
        (["--linked"], "say what to print"),
        (["--cppflags"], "unrecognized arguments: --cppflags"),
    ],
)
def test_questions_that_are_none(capsys, options, words):
    with pytest.raises(SystemExit) as caught:
        cli.main(["config", *options])
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


@needs_compiler
def test_flags(tmp_path, capsys):
    flags = asked(capsys, "--linked", "--cflags", "--libs")
    has(compiled(tmp_path, "linked", flags), "linked", library_path())
    flags = asked(capsys, "--cflags", "--libs")
    program = compiled(tmp_path, "loads", flags)
    env = {"HAMR_PYTHON": sys.executable, "PYTHONPATH": PACKAGES}
    status, output = launch([str(program)], 60, env)
    assert (status, output.startswith("loaded /")) == (0, True)


def installed(prefix, *options):
    command = [sys.executable, "-m", "build_support.install", str(prefix), *options]
    return launch([*command, "--library", library_path()], 60)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed") / "prefix"
    assert installed(folder) == (0, f"installed in {folder}\n")
    return folder


def test_where_things_are_installed(prefix):
    headers = {path.relative_to(ROOT).as_posix() for path in (ROOT / "include").rglob("*.*")}
    files = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if path.is_file()}
    assert files == {"lib/libhamr.so", *finding_files.names(), *headers}
    assert finding_files.names() == [
        "lib/cmake/hamr/CMakeLists.txt",
        "lib/cmake/hamr/hamr-config-version.cmake",
        "lib/cmake/hamr/hamr-config.cmake",
        "lib/cmake/hamr/hamr_omp_offload.cmake",
        "lib/cmake/hamr/hamr_settings.cmake",
        "lib/pkgconfig/hamr-linked.pc",
        "lib/pkgconfig/hamr.pc",
    ]
    texts = [path.read_text() for name in finding_files.names() for path in [prefix / name]]
    assert not any("@" in text or str(prefix) in text for text in texts)
    assert not (prefix / "lib" / "libhamr.so").stat().st_mode & 0o022


def test_installing_below_another_folder_again_and_in_vain(tmp_path):
    for _ in range(2):
        found = installed("/opt/hamr", "--destdir", str(tmp_path))
        assert found == (0, f"installed in {tmp_path}/opt/hamr\n")
    assert (tmp_path / "opt" / "hamr" / "include" / "hamr.hpp").is_file()
    status, output = installed("here")
    assert (status, "accepted is an absolute path" in output) == (2, True)
    (tmp_path / "file").write_text("")
    status, output = installed(tmp_path / "file")
    assert status == 1
    assert f"hamr: nothing is installed in {tmp_path}/file: " in output
    command = ["make", "-n", "install", "PREFIX=/p q", "DESTDIR=/d"]
    status, output = launch([*command, "-C", str(ROOT)], 60)
    assert (status, "install '/p q' --destdir '/d'" in output) == (0, True)


@needs_compiler
def test_programs_without_python(prefix, tmp_path):
    """Compiled with what is installed alone; the library is found beside the headers."""
    library = prefix / "lib" / "libhamr.so"
    program = compiled(tmp_path, "loads", [f"-I{prefix}/include", "-ldl"])
    has(program, "loaded", library)
    link = ["-DHAMR_LINKED", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", "-lhamr"]
    has(compiled(tmp_path, "linked", [f"-I{prefix}/include", *link]), "linked", library)


def pkg_config(folder, *arguments):
    done = subprocess.run(
        ["pkg-config", *arguments],
        text=True,
        capture_output=True,
        check=True,
        env={"PATH": os.environ["PATH"], "PKG_CONFIG_PATH": str(folder / "lib" / "pkgconfig")},
    )
    return done.stdout.split()


@needs_compiler
@needs_pkg_config
@pytest.mark.parametrize("where", ["moved", pytest.param("wheel", marks=needs_wheel)])
def test_pkg_config(where, prefix, tmp_path):
    folder = Path(hamr.get_include()).parent
    if where == "moved":
        folder = shutil.copytree(prefix, tmp_path / "moved")
    library = library_path() if where == "wheel" else folder / "lib" / "libhamr.so"
    for package, how in {"hamr": "loaded", "hamr-linked": "linked"}.items():
        assert pkg_config(folder, "--modversion", package) == [hamr.__version__]
        program = compiled(tmp_path, package, pkg_config(folder, "--cflags", "--libs", package))
        has(program, how, library)


PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(finding LANGUAGES {languages})
find_package(hamr 0.3 CONFIG REQUIRED)
add_executable(loads program.c)
target_link_libraries(loads PRIVATE hamr::hamr)
add_executable(linked program.c)
target_link_libraries(linked PRIVATE hamr::linked)
"""
FORTRAN = """
add_executable(fortran everything.f90)
target_link_libraries(fortran PRIVATE hamr::fortran)
"""


def cmake(folder, project, *options):
    """Configure a project."""
    folder.mkdir(exist_ok=True)
    (folder / "CMakeLists.txt").write_text(project)
    command = ["cmake", "-S", str(folder), "-B", str(folder / "build"), *options]
    return launch([*command, "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF"], 120)


@needs_compiler
@needs_cmake
@pytest.mark.parametrize("where", ["prefix", pytest.param("wheel", marks=needs_wheel)])
def test_cmake(where, prefix, tmp_path, capsys):
    """With the module for Fortran, too, in the wheel, where there is a compiler."""
    library = library_path() if where == "wheel" else prefix / "lib" / "libhamr.so"
    option = f"-DCMAKE_PREFIX_PATH={prefix}"
    if where == "wheel":
        option = f"-Dhamr_DIR={asked(capsys, '--cmake-dir')[0]}"
    fortran = where == "wheel" and not fortran_programs.absent()
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "program.c").write_text(PROGRAM)
    shutil.copy(fortran_programs.PROGRAMS / "everything.f90", folder)
    project = PROJECT.format(languages="C Fortran" if fortran else "C")
    status, output = cmake(folder, project + fortran * FORTRAN, option)
    assert status == 0, output
    status, output = launch(["cmake", "--build", str(folder / "build")], 120)
    assert status == 0, output
    for name, how in {"loads": "loaded", "linked": "linked"}.items():
        has(folder / "build" / name, how, library)
    if fortran:
        assert alone(folder / "build" / "fortran") == "all of it"


@needs_cmake
def test_what_cmake_refuses(prefix, tmp_path):
    project = (
        "cmake_minimum_required(VERSION 3.16)\nproject(p NONE)\nfind_package(hamr {} CONFIG)\n"
    )
    project += 'message(STATUS "found: ${{hamr_FOUND}}, ${{hamr_CONSIDERED_VERSIONS}}")\n'
    option = f"-DCMAKE_PREFIX_PATH={prefix}"
    assert f"found: 0, {hamr.__version__}" in cmake(tmp_path, project.format("99"), option)[1]
    wanted = f"{hamr.__version__} EXACT"
    assert "found: 1" in cmake(tmp_path / "exact", project.format(wanted), option)[1]
    torn = shutil.copytree(prefix, tmp_path / "torn")
    (torn / "lib" / "libhamr.so").unlink()
    option = f"-DCMAKE_PREFIX_PATH={torn}"
    status, output = cmake(tmp_path / "without", project.format("REQUIRED"), option)
    assert (status != 0, "_pyhamr.abi3.so is missing" in " ".join(output.split())) == (True, True)
