"""pairscale: which of two texts is better, asked of language models and of people, turned into a scale.

The line that data follows: ``samples -> pairs -> judge -> comparisons -> model -> ranking``.

    >>> import pairscale as ps
    >>> samples = ps.read_samples(ps.example_writing_samples)
    >>> pairs = ps.randomize_pair_order(ps.make_pairs(samples), seed=1)
    >>> answers = ps.submit_pairs(pairs, "lexical", progress=False)
    >>> fit = ps.fit_bt_model(ps.build_bt_data(answers.results))
    >>> fit.theta.columns[:4]
    ['ID', 'theta', 'se', 'rank']

The public names are those listed in ``__init__.pyi``; each is loaded when it is first used, so that importing the
package costs nothing. Those of R's manual are also in :mod:`pairscale.r`, those of AG2 in :mod:`pairscale.ag2`, and the
classes of results in :mod:`pairscale.results`.
"""

from importlib import import_module as _import_module

import lazy_loader as _lazy

from pairscale._version import __version__ as __version__

_listed, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """A public name; else one of R's manual, of AG2 or of the results, which stand in modules of their own."""
    if name in __all__:
        return _listed(name)
    if name in ("r", "ag2", "results"):
        return _import_module(f"{__name__}.{name}")
    if not name.startswith("_"):
        for module in ("r", "results", "ag2"):
            home = _import_module(f"{__name__}.{module}")
            if name in home.__all__:
                return getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
