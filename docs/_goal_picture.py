"""Draws docs/images/goal.svg, what a goal changes: ``python docs/_goal_picture.py`` from the root of the project."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from validation.goals import ARMS, driven, n_found

SEEDS, SD, LAST = 10, 2.5, 600
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 330, 52, 46, 16
LINES = {"determinant-top": ("#6b7280", "whole order"), "top": ("#1d4ed8", "goal top:10")}


def curve(name: str) -> tuple[list[int], list[float]]:
    """Comparisons, and the mean number of texts of the true ten best among those named."""
    arm = next(arm for arm in ARMS if arm.name == name)
    runs = []
    for seed in range(SEEDS):
        run = []
        for asked, mean, truth in driven(arm, SD, seed):
            if asked > LAST:
                break
            if asked % 20 == 0:
                run.append((asked, n_found(mean, truth)))
        runs.append(run)
    return [asked for asked, _ in runs[0]], np.mean([[found for _, found in run] for run in runs], axis=0).tolist()


def main() -> None:
    across, up = WIDTH - LEFT - 130, HEIGHT - BOTTOM - TOP

    def place(asked: float, found: float) -> str:
        return f"{LEFT + across * asked / LAST:.1f},{TOP + up * (1 - found / 10):.1f}"

    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="sans-serif" '
        'font-size="13"><title>Texts of the true ten best that were found, by comparisons</title>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    )
    parts = [opening]
    for found in range(0, 11, 2):
        x, y = place(0, found).split(",")
        parts.append(f'<line x1="{x}" x2="{LEFT + across}" y1="{y}" y2="{y}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{float(y) + 4:.1f}" text-anchor="end" fill="#374151">{found}</text>')
    for asked in range(0, LAST + 1, 100):
        x = place(asked, 0).split(",")[0]
        parts.append(f'<text x="{x}" y="{HEIGHT - 24}" text-anchor="middle" fill="#374151">{asked}</text>')
    middle = LEFT + across / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle" fill="#374151">comparisons</text>')
    parts.append(
        f'<text transform="translate(14 {TOP + up / 2}) rotate(-90)" text-anchor="middle" fill="#374151">'
        "of the ten best, found</text>"
    )
    for name, (colour, label) in LINES.items():
        asked, found = curve(name)
        points = " ".join(place(*point) for point in zip(asked, found, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        x, y = place(asked[-1], found[-1]).split(",")
        parts.append(f'<text x="{float(x) + 8:.1f}" y="{float(y) + 4:.1f}" fill="{colour}">{label}</text>')
    Path("docs/images/goal.svg").write_text("\n".join([*parts, "</svg>"]) + "\n")


if __name__ == "__main__":
    main()
