"""The run file: what was asked, what was answered, what it cost. It alone remembers money spent."""

from pairscale.store.runfile import Progress, RunFile, open_run
from pairscale.store.transfer import export_run, import_run

__all__ = ["Progress", "RunFile", "export_run", "import_run", "open_run"]
