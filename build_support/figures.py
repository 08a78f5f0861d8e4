"""Write the figures of docs/results into README.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
START, END = "<!-- figures:", "<!-- end of figures -->"


def table(result: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    machine = result["machine"]
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, "
        f"NumPy {machine['numpy']}, {machine['date']}, commit {machine['commit']}:",
        "",
        "| operation | ns | x floor |",
        "|---|--:|--:|",
    ]
    for row in result["operations"]:
        lines.append(f"| `{row['operation']}` | {row['ns']:.0f} | {row['ratio']:.2f} |")
    threads, cost = result["threads"], result["import"]
    lines += [
        "",
        f"Creating and freeing on 8 threads costs {threads['ratio']:.2f} times one thread, a pair. "
        f"`import hamr` takes {cost['import_ms']:.1f} ms and {cost['import_MiB']:.1f} MiB, the "
        f"first buffer {cost['first_buffer_ms']:.1f} ms and {cost['first_buffer_MiB']:.1f} MiB.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Replace what stands between the two marks."""
    readme = ROOT / "README.md"
    result = json.loads((ROOT / "docs" / "results" / "host.json").read_text())
    text = readme.read_text()
    pattern = re.compile(f"({re.escape(START)}[^\n]*\n).*?({re.escape(END)})", re.DOTALL)
    text, found = pattern.subn(lambda m: f"{m[1]}{table(result)}\n{m[2]}", text)
    if found != 1:
        raise SystemExit(f"README.md has {found} places for figures, not one")
    readme.write_text(text)


if __name__ == "__main__":
    main()
