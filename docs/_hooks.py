"""What mkdocs does besides: the sample reports are made when the site is built."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add ``samples/ranking.html``, ``samples/bias.html`` and ``samples/ab.html``."""
    sys.path.insert(0, str(Path(__file__).parent))
    from _sample_reports import sample_reports  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        for kind, page in sample_reports(Path(folder)).items():
            files.append(File.generated(config, f"samples/{kind}.html", content=page.read_text("utf-8")))
    return files
