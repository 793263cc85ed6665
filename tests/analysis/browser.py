"""A page opened in headless Chromium, where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run", "--disable-dev-shm-usage", "--enable-logging=stderr", "--v=0"),
)


def opened(page: Path, profile: Path) -> tuple[str, list[str]]:
    """The document as scripts left it, and what they complained about."""
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return ended.stdout, [line for line in ended.stderr.splitlines() if ":CONSOLE" in line]


def foreign(html: str) -> list[str]:
    """Whatever a page would fetch from elsewhere."""
    return re.findall(r"""(?:src=|href=|url\(|@import )["']?(?!data:|#|["'])[^"' )]*""", html)
