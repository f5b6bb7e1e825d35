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
package costs nothing.
"""

import lazy_loader as _lazy

from pairscale._version import __version__ as __version__

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
