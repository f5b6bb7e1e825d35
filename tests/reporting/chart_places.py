"""Where a browser puts the marks and names of charts."""

from __future__ import annotations

PLACES = """() => {
  const seen = node => node.getClientRects().length > 0 && getComputedStyle(node).visibility === "visible";
  const box = node => (({ left, right, top, bottom }) => ({ left, right, top, bottom }))(node.getBoundingClientRect());
  const hides = node => {  // whether a part of the page that holds it cuts it off, or scrolls
    const { left, right } = node.getBoundingClientRect();
    for (let over = node.parentElement; over && over !== document.body; over = over.parentElement) {
      const around = over.getBoundingClientRect();
      const inside = left >= around.left - 1 && right <= around.right + 1;
      if (getComputedStyle(over).overflowX !== "visible" && !inside) return true;
    }
    return false;
  };
  const pictures = [...document.querySelectorAll(".picture")].filter(seen);
  const all = "circle, rect, line, polyline, text, p, .name";
  return pictures.map(picture => ({
    label: picture.getAttribute("aria-label"),
    marks: [...picture.querySelectorAll(all)].filter(seen)
      .map(node => ({ kind: node.tagName, text: node.textContent, hidden: hides(node), ...box(node) })),
    ticks: [...picture.querySelectorAll("svg")]
      .map(svg => [...svg.querySelectorAll(":scope > text")].filter(seen).map(box)),
    astray: [...picture.querySelectorAll(".scale .tick")].filter(seen).filter(tick => {
      const { left, right } = tick.getBoundingClientRect();
      const lines = [...picture.querySelectorAll(".grid")].filter(seen).map(line => line.getBoundingClientRect().left);
      return !lines.some(at => Math.abs(at - (left + right) / 2) < 1.5);
    }).length,
    dots: [...picture.querySelectorAll("circle")].filter(seen).length,
    rows: [...picture.querySelectorAll(".item")].filter(one => one.querySelector("circle")).map(one => ({
      row: box(one), name: box(one.querySelector(".name")), dot: box(one.querySelector("circle")),
      shown: one.querySelector(".name").textContent,
      cut: (name => name.scrollWidth > name.clientWidth + 1)(one.querySelector(".name")),
    })),
  }));
}"""


def charts_within(page, width: int) -> list[dict]:
    """The charts of a page, all of whose marks and names must be in sight.

    Args:
        page: of the browser.
        width: how many pixels of it are in sight.
    """
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
    charts = page.evaluate(PLACES)
    for chart in charts:
        out = [mark for mark in chart["marks"] if mark["left"] < 0 or mark["right"] > width or mark["hidden"]]
        assert not out, (chart["label"], out[:3])
        for ticks in chart["ticks"]:
            assert not [(a, b) for at, a in enumerate(ticks) for b in ticks[:at] if _overlap(a, b)], chart["label"]
        assert chart["astray"] == 0, "a number stands beside its line"
        tops = [one["row"]["top"] for one in chart["rows"]]
        assert tops == sorted(tops)
        for one in chart["rows"]:
            assert not one["cut"], one["shown"]
            for part in (one["name"], one["dot"]):
                assert one["row"]["top"] - 1 <= part["top"] < part["bottom"] <= one["row"]["bottom"] + 1
            assert not _overlap(one["name"], one["dot"]), one["shown"]
            assert one["row"]["bottom"] - one["row"]["top"] >= 20, "a row keeps its height"
    return charts


def _overlap(a: dict, b: dict) -> bool:
    across = min(a["right"], b["right"]) - max(a["left"], b["left"])
    down = min(a["bottom"], b["bottom"]) - max(a["top"], b["top"])
    return across > 0.5 and down > 0.5
