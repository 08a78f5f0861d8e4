"""Build the documentation site into build/site, and check it; run the notebooks.

python -m build_support.site
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from build_support import notebooks

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site"
#: What a page would load from elsewhere by itself; links that readers follow are not of these.
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(https?:)?//[^>]*>"
    r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preconnect|icon|preload|dns-prefetch))"
    r"[^>]*\bhref=[\"']?(https?:)?//[^>]*>"
    r"|@import\s+(?:url\()?[\"']?(https?:)?//[^;]*;|url\([\"']?(https?:)?//[^)]*\)"
)


def loaded_from_elsewhere(folder: Path) -> list[str]:
    """Return what the pages and styles of a site would load from other hosts."""
    return [
        f"{path.relative_to(folder)}: {found[0][:120]}"
        for path in sorted([*folder.rglob("*.html"), *folder.rglob("*.css")])
        for found in LOADED.finditer(path.read_text(encoding="utf-8"))
    ]


def main() -> int:
    """Check the spelling, build, and look for what would leave the page."""
    texts = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs", "examples"]
    spelled = subprocess.run([sys.executable, "-m", "codespell_lib", *texts], cwd=ROOT, check=False)
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"],
        cwd=ROOT,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},  # see docs/rationale/packaging.md
    )
    if spelled.returncode or built.returncode:
        return 1
    for name in notebooks.NAMES:
        missing = notebooks.absent(name)
        print(f"{name}.ipynb: {f'left out: {missing}' if missing else 'runs'}")
        if not missing:
            notebooks.execute(name)
    found = loaded_from_elsewhere(SITE)
    print(*found, sep="\n", file=sys.stderr) if found else print(f"{SITE.relative_to(ROOT)}: built")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
