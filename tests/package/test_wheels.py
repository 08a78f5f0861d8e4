"""What make wheels puts into a wheel, and the table of where wheels were installed."""

import base64
import csv
import hashlib
import io
import json
import os
import sys
import zipfile

import pytest

from build_support import wheel_contents, wheel_matrix, wheel_systems
from build_support.wheel_contents import Component

RECORD = "hamr-1.0.dist-info/RECORD"
LICENCE = "Redistribution and use in source and binary forms ... Neither the name of anybody"


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "hamr-1.0-cp311-abi3-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("hamr/__init__.py", (1990, 1, 1, 0, 0, 0)), "x = 1\n")
        record = zipfile.ZipInfo(RECORD, (1990, 1, 1, 0, 0, 0))
        record.external_attr = 0o644 << 16
        archive.writestr(record, f"hamr/__init__.py,sha256=abc,6\n{RECORD},,\n")
    return path


def test_files_that_are_added_are_in_the_record(wheel):
    added = {"hamr-1.0.dist-info/b.txt": b"second", "hamr-1.0.dist-info/a, b.txt": b"first"}
    wheel_contents.add(wheel, RECORD, added)
    first = wheel.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        rows = list(csv.reader(io.StringIO(archive.read(RECORD).decode())))
        assert archive.namelist() == ["hamr/__init__.py", *sorted(added), RECORD]
        assert {info.date_time for info in archive.infolist()} == {(1990, 1, 1, 0, 0, 0)}
        assert all(archive.read(name) == content for name, content in added.items())
    assert rows[0] == ["hamr/__init__.py", "sha256=abc", "6"]
    assert rows[-1] == [RECORD, "", ""]
    for name, digest, size in rows[1:-1]:
        raw = base64.urlsafe_b64decode(digest.removeprefix("sha256=") + "=")
        assert (raw, int(size)) == (hashlib.sha256(added[name]).digest(), len(added[name]))
    assert len(rows) == 4
    assert not wheel.with_suffix(".new").exists()
    assert first == wheel.read_bytes()


def test_the_bill_names_each_component():
    parts = [Component("example.org/a", "v1.2.3", LICENCE), Component("std", "1.26", LICENCE)]
    made = wheel_contents.bill("1.0", parts, 0)
    whole = json.loads(made)
    assert [one["purl"] for one in whole["components"]] == [
        "pkg:golang/example.org/a@v1.2.3",
        "pkg:golang/std@1.26",
    ]
    assert whole["components"][0]["licenses"] == [{"license": {"id": "BSD-3-Clause"}}]
    assert whole["metadata"]["timestamp"] == "1970-01-01T00:00:00Z"
    assert whole["dependencies"][0]["dependsOn"] == [one["bom-ref"] for one in whole["components"]]
    assert made == wheel_contents.bill("1.0", parts, 0)
    assert made != wheel_contents.bill("1.0", parts[:1], 0)


@pytest.mark.parametrize(
    ("text", "identifier"),
    [
        ("Apache License\nVersion 2.0", "Apache-2.0"),
        ("Permission is hereby granted, free of charge, to any person", "MIT"),
        (LICENCE, "BSD-3-Clause"),
        (LICENCE.partition(" ...")[0], "BSD-2-Clause"),
    ],
)
def test_licences_are_known_by_their_words(text, identifier):
    assert Component("a", "1", text).licence == identifier


def test_a_licence_that_is_not_known_ends_the_build():
    with pytest.raises(SystemExit, match=r"the licence of example\.org/a is none"):
        wheel_contents.bill("1.0", [Component("example.org/a", "1", "All rights")], 0)


def test_a_folder_without_a_licence_ends_the_build(tmp_path):
    with pytest.raises(SystemExit, match="holds no licence"):
        wheel_contents._licence_text(tmp_path)


def test_the_page_is_what_the_record_says(monkeypatch):
    monkeypatch.setattr("sys.argv", ["wheel_matrix", "--check"])
    assert wheel_matrix.main() == 0


def test_a_c_library_loads_older_wheels():
    assert wheel_matrix.platforms("glibc 2.19", "x86_64") == [
        "manylinux_2_19_x86_64",
        "manylinux_2_18_x86_64",
        "manylinux_2_17_x86_64",
        "manylinux2014_x86_64",
    ]
    with pytest.raises(SystemExit, match="musl"):
        wheel_matrix.platforms("musl 1.2", "x86_64")


def row(python, libc="glibc 2.36", machine="x86_64", **facts):
    """A place's row, with all that the table shows."""
    told = {"wheel": f"hamr-1.0-cp311-abi3-x_{machine}.whl", "alone": "passed", "left_out": []}
    told |= {"passed": 3, "skipped": 1, "commit": "abc", "date": "2030-01-31"}
    return {"python": python, "libc": libc, "architecture": machine} | told | facts


def test_a_place_that_ran_again_replaces_its_row():
    old = {"version": "1.0", "rows": [row("3.9.1"), row("3.12.1", passed=2)]}
    new = [row("3.12.4", passed=7), row("3.12.1", machine="aarch64"), row("3.12.1", "glibc 2.31")]
    record = wheel_matrix.merged(old, "1.0", new)
    assert [(one["python"], one["libc"][-2:], one["architecture"]) for one in record["rows"]] == [
        ("3.12.1", "31", "x86_64"),
        ("3.9.1", "36", "x86_64"),
        ("3.12.4", "36", "x86_64"),
        ("3.12.1", "36", "aarch64"),
    ]
    assert record["rows"][2]["passed"] == 7
    assert wheel_matrix.merged(old, "1.1", new[:1])["rows"] == new[:1]
    shown = wheel_matrix.table(record).splitlines()
    assert len(shown) == 8
    assert shown[4].startswith("| cp311-abi3-x_x86_64 | 3.12.1 | glibc 2.31 | x86_64 | passed |")


def test_the_first_example_is_readmes(tmp_path):
    page = tmp_path / "README.md"
    page.write_text("```sh\nls\n```\n```python\nprint(1)  # prints 1\n```\n```python\nx\n```\n")
    example = wheel_matrix.first_example(page)
    assert (example, wheel_matrix.prints(example)) == ("print(1)  # prints 1\n", ["1"])
    page.write_text("Nothing.\n")
    with pytest.raises(SystemExit, match="has no block of Python"):
        wheel_matrix.first_example(page)


@pytest.fixture
def tags(monkeypatch, tmp_path):
    """What brings wheels, by a pip that says what the test wants."""

    def answer(**said):
        words = [f"if '--python-version {key[1:]} ' in ' '.join(sys.argv): sys.exit({value!r})"
                 for key, value in said.items()]  # fmt: skip
        script = tmp_path / "pip.py"
        script.write_text("\n".join(["import sys", *(w.replace("_", ".") for w in words)]))
        monkeypatch.setattr(wheel_matrix.test_matrix, "PIP", [sys.executable, str(script)])
        return wheel_matrix.Tags("3.99.0", "glibc 2.36", "x86_64")

    return answer


HERE = f"_{sys.version_info.major}_{sys.version_info.minor}"


def test_what_has_no_wheel_is_told_from_a_registry_that_is_away(tags, tmp_path):
    none = wheel_matrix.NO_WHEEL + "x"
    assert tags().has_wheel(tmp_path, "x")
    assert not tags(_3_99=none).has_wheel(tmp_path, "x")
    with pytest.raises(wheel_matrix.Failure, match="No matching distribution"):
        tags(_3_99=none, **{HERE: none}).has_wheel(tmp_path, "x")
    with pytest.raises(wheel_matrix.Failure, match="no route"):
        tags(_3_99="no route").has_wheel(tmp_path, "x")


def test_pip_has_a_limit_of_time(monkeypatch, tmp_path):
    script = tmp_path / "pip.py"
    script.write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr(wheel_matrix.test_matrix, "PIP", [sys.executable, str(script)])
    monkeypatch.setattr(wheel_matrix, "PIP_LIMIT", 0.1)
    with pytest.raises(wheel_matrix.Failure, match=r"pip: no end after 0\.1 s"):
        wheel_matrix.Tags("3.12.0", "glibc 2.36", "x86_64").download(tmp_path, ("x",))


@pytest.mark.parametrize("missing", ["debootstrap", "qemu"])
def test_systems_say_what_they_lack(monkeypatch, tmp_path, missing):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(wheel_systems, "BINFMT", tmp_path)
    (tmp_path / "register").touch()
    found = {"debootstrap": "x"} if missing == "qemu" else {}
    monkeypatch.setattr(wheel_systems.shutil, "which", found.get)
    foreign = "arm64" if os.uname().machine == "x86_64" else "amd64"
    with pytest.raises(SystemExit, match=f"apt install {missing}"):
        wheel_systems.check_tools(foreign)


def test_systems_need_root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SystemExit, match="only root"):
        wheel_systems.check_tools("amd64")
