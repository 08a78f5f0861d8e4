"""What make wheels puts into a wheel, and the table of where wheels were installed."""

import base64
import csv
import hashlib
import io
import json
import zipfile

import pytest

from build_support import wheel_contents, wheel_matrix
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
