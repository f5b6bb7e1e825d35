"""How large the package is: nodes of the syntax tree per subpackage, without docstrings and imports.

Nodes do not change with line breaks, blank lines or comments. Run it in the project's root: ``python -m tools.size``.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

SOURCE = Path("src/pairscale")
_FREE = (ast.Load, ast.Store, ast.Del, ast.Import, ast.ImportFrom, ast.alias)
_DESCRIBED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def nodes_of(source: str) -> int:
    """The nodes of one module."""
    count = 0
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, _FREE):
            count += 1
        if isinstance(node, _DESCRIBED) and ast.get_docstring(node, clean=False) is not None:
            count -= 2
    return count


def sizes(root: Path = SOURCE) -> Counter[str]:
    """The nodes of every subpackage, and of the modules beside them."""
    found: Counter[str] = Counter()
    for path in sorted(root.rglob("*.py")):
        found[path.relative_to(root).parts[0]] += nodes_of(path.read_text("utf-8"))
    return found


if __name__ == "__main__":
    counted = sizes()
    for name, count in counted.most_common():
        print(f"{count:9,} {name}")
    print(f"{sum(counted.values()):9,} in all")
