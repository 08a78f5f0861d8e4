"""What a published wheel says of what is linked into it: licences, and a list of components.

They go into its .dist-info folder, as PEP 639 and PEP 770 have it. The list is CycloneDX.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import uuid
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from build_support import toolchain

FORMAT = "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}"
#: Beginnings of licence texts that name the licence, in the order in which they are tried.
MARKS = {
    "Apache License": "Apache-2.0",
    "Permission is hereby granted, free of charge": "MIT",
    "Neither the name of": "BSD-3-Clause",
    "Redistribution and use in source and binary forms": "BSD-2-Clause",
}
NAMES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "COPYING")


@dataclass(frozen=True)
class Component:
    """A Go module, or Go's own library, that is linked into the wheel's extension."""

    name: str
    version: str
    text: str

    @property
    def licence(self) -> str:
        """Its SPDX identifier."""
        found = [name for mark, name in MARKS.items() if mark in self.text]
        if not found:
            toolchain.fail(f"the licence of {self.name} is none that MARKS names")
        return found[0]


def components(go: str, architecture: str) -> list[Component]:
    """Return what the extension is linked from on a Go architecture, by name."""
    env = {**os.environ, "GOARCH": architecture, "CGO_ENABLED": "1", "GOWORK": "off"}
    listed = toolchain.run([go, "list", "-deps", "-f", FORMAT, "./pyhamr"], env=env)
    found = []
    for line in sorted({line for line in listed.splitlines() if line}):
        name, version, folder = line.split("\t")
        found.append(Component(name, version, _licence_text(Path(folder))))
    root = Path(toolchain.run([go, "env", "GOROOT"]).strip())
    version = toolchain.run([go, "env", "GOVERSION"]).strip().removeprefix("go")
    return [*found, Component("std", version, _licence_text(root))]


def _licence_text(folder: Path) -> str:
    found = [folder / name for name in NAMES if (folder / name).is_file()]
    if not found:
        toolchain.fail(f"{folder} holds no licence: none of {', '.join(NAMES)}")
    return found[0].read_text(encoding="utf-8")


def bill(version: str, parts: list[Component], epoch: int) -> str:
    """Return the list of components of a version of hamr, as CycloneDX 1.6."""
    listed = [
        {
            "type": "library",
            "bom-ref": f"pkg:golang/{part.name}@{part.version}",
            "name": part.name,
            "version": part.version,
            "purl": f"pkg:golang/{part.name}@{part.version}",
            "licenses": [{"license": {"id": part.licence}}],
        }
        for part in parts
    ]
    own = {
        "type": "library",
        "bom-ref": f"pkg:pypi/hamr@{version}",
        "name": "hamr",
        "version": version,
        "purl": f"pkg:pypi/hamr@{version}",
        "licenses": [{"license": {"id": "BSD-3-Clause"}}],
    }
    whole = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # The same parts have the same number, so that the same source gives the same wheel.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([own, listed]))}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": own,
        },
        "components": listed,
        "dependencies": [{"ref": own["bom-ref"], "dependsOn": [one["bom-ref"] for one in listed]}],
    }
    return json.dumps(whole, indent=1) + "\n"


def complete(wheel: Path, go: str, architecture: str, epoch: int) -> None:
    """Put licences and the list of components into a wheel."""
    parts = components(go, architecture)
    with zipfile.ZipFile(wheel) as archive:
        (record,) = (name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
    folder = record.removesuffix("/RECORD")
    version = wheel.name.split("-")[1]
    added = {f"{folder}/sboms/hamr.cdx.json": bill(version, parts, epoch)}
    for part in parts:
        added[f"{folder}/licenses/linked/{part.name.replace('/', '_')}.txt"] = part.text
    add(wheel, record, {name: text.encode() for name, text in added.items()})


def add(wheel: Path, record: str, added: dict[str, bytes]) -> None:
    """Write a wheel anew with more files in it, and with them in its record."""
    new = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive:
        like = old.getinfo(record)
        for info in old.infolist():
            if info.filename != record:
                archive.writestr(info, old.read(info), zipfile.ZIP_DEFLATED)
        rows = list(csv.reader(io.StringIO(old.read(record).decode())))
        last = rows.pop()
        for name, content in sorted(added.items()):
            archive.writestr(_entry(name, like), content, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
            rows.append([name, f"sha256={digest.rstrip(b'=').decode()}", str(len(content))])
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*rows, last])
        archive.writestr(_entry(record, like), text.getvalue(), zipfile.ZIP_DEFLATED)
    new.replace(wheel)


def _entry(name: str, like: zipfile.ZipInfo) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, like.date_time)
    entry.external_attr = like.external_attr
    return entry
