"""What tests/gpu/run_all.py reads of its steps' reports, and says of the machine."""

from __future__ import annotations

import collections
import datetime
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = (
    "numpy", "cupy-cuda13x", "cupy-cuda12x", "torch", "numba", "numba-cuda", "jax", "jaxlib",
    "mpi4py", "cuda-bindings", "cuda-core", "pytest",
)  # fmt: skip


def first_line(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def machine() -> dict[str, object]:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    gpus = first_line("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    nvcc = first_line(shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc", "--version")
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": os.environ.get("HAMR_COMMIT")
        or first_line("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"),
        "gpus": (gpus or "").splitlines(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "nvcc": (nvcc or "").rpartition("release ")[2].split(",")[0] or None,
        "versions": versions,
    }


def without_folders(message: str) -> str:
    """A message without the folders of the machine that a test failed on."""
    return message.replace(f"{ROOT}/", "").replace(f"{sys.prefix}/", "")


def counts(junit: Path, log: Path) -> dict[str, object]:
    """How many tests passed, failed and were skipped, and why."""
    try:
        cases = list(ElementTree.parse(junit).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return counts_of_log(log)
    found: collections.Counter[str] = collections.Counter()
    skips: collections.Counter[str] = collections.Counter()
    failures = []
    for case in cases:
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        outcomes = {child.tag: child.get("message") or "" for child in case}
        if "failure" in outcomes or "error" in outcomes:
            found["failed"] += 1
            message = outcomes.get("failure") or outcomes.get("error") or ""
            failures.append({"test": name, "message": without_folders(message)[:600]})
        elif "skipped" in outcomes:
            found["skipped"] += 1
            skips[outcomes["skipped"][:200]] += 1
        else:
            found["passed"] += 1
    names = ("passed", "failed", "skipped")
    return {
        **{name: found[name] for name in names},
        "skip_reasons": dict(skips),
        "failures": failures,
    }


def counts_of_log(log: Path) -> dict[str, object]:
    """The same, of a run that did not come to its end."""
    text = log.read_text(errors="replace") if log.exists() else ""
    lines = re.findall(r"^(tests/\S+::.+?) (PASSED|FAILED|ERROR|SKIPPED)\b", text, re.MULTILINE)
    found = collections.Counter(outcome for _, outcome in lines)
    failed = [name for name, outcome in lines if outcome in ("FAILED", "ERROR")]
    started = re.findall(r"^(tests/\S+::\S+)", text, re.MULTILINE)
    return {
        "passed": found["PASSED"],
        "failed": len(failed),
        "skipped": found["SKIPPED"],
        "failures": [{"test": name} for name in failed],
        "last": started[-1] if started else None,
        "incomplete": True,
    }


def merged(found: list[dict[str, Any]]) -> dict[str, object]:
    """The counts of several processes as one's; the status is the first that is not 0."""
    whole: dict[str, Any] = dict(found[0])
    whole["status"] = next((f["status"] for f in found if f["status"]), 0)
    for other in found[1:]:
        for name in ("passed", "failed", "skipped"):
            whole[name] += other[name]
        whole["failures"] = whole["failures"] + other["failures"]
        reasons = collections.Counter(whole.get("skip_reasons", {}))
        reasons.update(other.get("skip_reasons", {}))
        whole["skip_reasons"] = dict(reasons)
        if "summaries" in whole:
            whole["summaries"] = whole["summaries"] + other["summaries"]
            unknown = None in (whole["errors"], other["errors"])
            whole["errors"] = None if unknown else whole["errors"] + other["errors"]
        if other.get("incomplete"):
            whole |= {"incomplete": True, "last": other["last"]}
    return whole


def findings(report: str) -> dict[str, object]:
    """What compute-sanitizer sums up; ``errors`` are None where it came to no end."""
    summaries = re.findall(r"=+ ((?:ERROR|LEAK) SUMMARY:.*)", report)
    found = [re.match(r"ERROR SUMMARY: (\d+) error", line) for line in summaries]
    errors = [int(match[1]) for match in found if match]
    return {"summaries": summaries, "errors": sum(errors) if errors else None}


def summary(results: dict[str, object]) -> list[str]:
    lines = ["", "=== summary"]
    facts = results["machine"]
    assert isinstance(facts, dict)
    lines.append(f"commit {facts['commit']}, {facts['gpus']}, Python {facts['python']}")
    steps = results["steps"]
    assert isinstance(steps, dict)
    for name, found in steps.items():
        apart = "failures", "skip_reasons", "not_met", "not_checked", "programs"
        shown = {k: v for k, v in found.items() if k not in apart}
        lines.append(f"{name}: " + ", ".join(f"{k} {v}" for k, v in shown.items()))
        for failure in found.get("failures", [])[:25]:
            message = failure.get("message", "").splitlines()
            lines.append(f"  FAILED {failure['test']}  {message[0][:160] if message else ''}")
        for program, of in found.get("programs", {}).items():
            if of["status"] != 0 or of["errors"] != 0:
                lines.append(f"  {program}: status {of['status']}, {of['errors']} errors")
        lines += [f"  NOT MET {row}" for row in found.get("not_met", [])]
        lines += [f"  {n} skipped: {why}" for why, n in found.get("skip_reasons", {}).items()]
    return lines
