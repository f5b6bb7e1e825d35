"""Takes the pictures of the reports in docs/images: ``python docs/_report_pictures.py``. It needs a Chromium."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from _sample_reports import grades, sample_reports
from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).with_name("images")
SCREEN = {"width": 1280, "height": 1000}


def main() -> None:
    """Write all pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        pages = {f"report-{kind}": page for kind, page in sample_reports(Path(folder)).items()}
        for name, page in (pages | {"grades": grades(Path(folder))}).items():
            shown = browser.new_page(viewport=SCREEN)  # type: ignore[arg-type]
            shown.goto(page.as_uri())
            shown.screenshot(path=IMAGES / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
