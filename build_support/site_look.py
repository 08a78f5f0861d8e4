"""Look at the site in a headless Chromium: light and dark, wide and narrow.

python -m build_support.site_look [--shots FOLDER]

Needs Chromium and its driver (apt install chromium chromium-driver), and what make docs built.
Errors of the console, requests that leave the page, pages wider than the window and a search that
finds nothing fail. Screenshots are for eyes: some pages, each way.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

from build_support.site import SITE

SHOWN = (
    *("index", "start/arrays", "compare", "api/hamr", "api/pygpu", "allocators"),
    *("guides/memory", "faq", "figures"),
)
SIZES = {"desktop": (1360, 900), "phone": (390, 844)}
SCHEMES = {"light": "default", "dark": "slate"}
#: What people search for, and a page that has to be among what is found.
SEARCHES = {"InUse": "api/hamr", "fork": "guides/fork-threads", "mpi4py": "guides/processes"}
LIMIT = 60  # seconds until the search must have answered


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and says nothing of it."""

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def opened(size: tuple[int, int]) -> Any:
    """Return a Chromium with a window of this size, which notes requests and errors."""
    from selenium import webdriver

    browser, program = shutil.which("chromium"), shutil.which("chromedriver")
    if not browser or not program:
        raise SystemExit("no chromium, or no chromedriver: apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.binary_location = browser
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # Named, so that selenium asks nobody for one.
    service = webdriver.ChromeService(executable_path=program)
    driver = webdriver.Chrome(options=options, service=service)
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    return driver


def chosen(driver: Any, scheme: str) -> None:
    """Let pages be light or dark, as the reader's system would say."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def told(driver: Any, address: str) -> list[str]:
    """Return errors of the console and requests to others since the last call."""
    found = [e["message"] for e in driver.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if not url.startswith((address, "data:", "blob:", "chrome")):
                found.append(f"a request to {url}")
    return found


def searched(driver: Any, address: str, words: str, wanted: str) -> list[str]:
    """Search, and return what went wrong."""
    from selenium.webdriver.common.by import By

    driver.get(f"{address}/index.html")
    driver.execute_script("document.querySelector('#__search').click()")
    field = driver.find_element(By.CSS_SELECTOR, "input.md-search__input")
    ends = time.monotonic() + LIMIT
    found: list[str] = []
    driver.execute_script("arguments[0].focus()", field)
    field.send_keys(words)
    while time.monotonic() < ends:
        links = driver.find_elements(By.CSS_SELECTOR, ".md-search-result__link")
        found = [link.get_attribute("href") or "" for link in links]
        if any(f"/{wanted}.html" in link for link in found):
            return []
        time.sleep(0.2)
    return [f"searching {words!r} found {found[:5]}, and not {wanted}"]


def main() -> int:
    """Look at every page, take pictures of some, and tell what is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shots", type=Path, default=SITE.parent / "shots")
    shots = parser.parse_args().shots
    shots.mkdir(parents=True, exist_ok=True)
    handler = functools.partial(Quiet, directory=str(SITE))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    pages = sorted(p.relative_to(SITE).with_suffix("").as_posix() for p in SITE.rglob("*.html"))
    wrong: list[str] = []
    for size, pixels in SIZES.items():
        driver = opened(pixels)
        try:
            for scheme, name in SCHEMES.items():
                chosen(driver, scheme)
                driver.get(f"{address}/index.html")
                driver.execute_script("localStorage.clear()")  # where a choice is remembered
                for page in pages if scheme == "light" else SHOWN:
                    driver.get(f"{address}/{page}.html")
                    is_now = driver.execute_script("return document.body.dataset.mdColorScheme")
                    wide = driver.execute_script(
                        "return document.documentElement.scrollWidth - window.innerWidth"
                    )
                    problems = told(driver, address) if page != "404" else []
                    if is_now != name:
                        problems.append(f"the scheme is {is_now}")
                    if wide > 0:
                        problems.append(f"{wide} pixels wider than the window")
                    wrong += [f"{page}, {size}, {scheme}: {problem}" for problem in problems]
                    if page in SHOWN:
                        file = shots / f"{page.replace('/', '-')}-{size}-{scheme}.png"
                        driver.save_screenshot(str(file))
            if size == "desktop":
                for words, wanted in SEARCHES.items():
                    wrong += searched(driver, address, words, wanted)
                wrong += told(driver, address)
        finally:
            driver.quit()
    server.shutdown()
    print(*wrong, sep="\n")
    print(f"{len(pages)} pages, {len(SEARCHES)} searches, {len(wrong)} wrong; pictures in {shots}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
