"""pairscale: which of two texts is better, asked of language models and of people, turned into a scale.

The line that data follows: ``samples -> pairs -> judge -> comparisons -> model -> ranking``.

    >>> import pairscale as ps
    >>> samples = ps.read_samples(ps.example_writing_samples)
    >>> pairs = ps.randomize_pair_order(ps.make_pairs(samples), seed=1)
    >>> answers = ps.submit_pairs(pairs, "lexical", progress=False)
    >>> fit = ps.fit_bt_model(ps.build_bt_data(answers.results))
    >>> fit.theta.columns[:4]
    ['ID', 'theta', 'se', 'rank']

The names to begin with are those listed in ``__init__.pyi``; each is loaded when it is first used, so that importing
the package costs nothing. Those of R's manual are in :mod:`pairscale.r`, those of AG2 in :mod:`pairscale.ag2`, and the
classes of results in :mod:`pairscale.results`; all of them are also reached from here, as ``ps.fit_bt_model``.
"""

from importlib import import_module as _import_module

import lazy_loader as _lazy

from pairscale._version import __version__ as __version__
from pairscale.r import names_from as _names_from

_listed, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)

_further, _, _further_names = _names_from("""
checks.calibration: check_calibration
checks.card: read_judge_card
checks.injection: check_injection
checks.published: published_default_template published_template_study
collect.batch.manager: BatchManager
collect.live: submit_pairs_async
core.errors: StoreMismatchError
evaluate.formats.reading: read_outputs
evaluate.labels: read_labels
evaluate.store: RunTraceSource read_suite
evaluate.variants: ModelVariant
judges.lexical: LexicalJudge
judges.replay: ReplayJudge
models.model_checks: check_model
""")


def __getattr__(name: str) -> object:
    """A public name: one of those to begin with, else of R's manual, of the results or of AG2."""
    if name in __all__:
        return _listed(name)
    if name in _further_names:
        return _further(name)
    if name in ("r", "ag2", "results"):
        return _import_module(f"{__name__}.{name}")
    if not name.startswith("_"):
        for module in ("r", "results", "ag2"):
            home = _import_module(f"{__name__}.{module}")
            if name in home.__all__:
                return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
