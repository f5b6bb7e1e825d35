// Have altair's charts drawn, each in the place of the picture that it replaces on the screen.
(async () => {
  const options = { mode: "vega-lite", renderer: "svg", ast: true, actions: false, defaultStyle: false,
    tooltip: { disableDefaultStyle: true } };
  for (const chart of document.querySelectorAll(".chart")) {
    const still = chart.querySelector(".picture"), live = chart.querySelector(".live");
    const spec = JSON.parse(chart.querySelector("script").textContent);
    const { view } = await vegaEmbed(live, spec, options);
    chart.classList.add("drawn");
    live.addEventListener("submit", event => event.preventDefault());  // Enter where names are searched

    // One picture with the words of the other, rather than a document of its own.
    for (const name of ["role", "aria-roledescription", "aria-label"]) live.removeAttribute(name);
    const drawn = live.querySelector("svg");
    drawn.setAttribute("role", "img");
    drawn.setAttribute("aria-label", still.getAttribute("aria-label"));
    drawn.setAttribute("aria-description", still.getAttribute("aria-description") ?? "");

    // Buttons do what the pointer does, for keys and fingers.
    const [first, last] = spec.usermeta?.places ?? [];
    const move = ({ zoom = 1, by = 0 }) => {
      const [from, to] = view.signal("zoom_place") ?? [first, last];
      const width = Math.min(last - first, Math.max(5, (to - from) * zoom));
      const middle = (from + to) / 2 + by * (to - from);
      const start = Math.max(first, Math.min(last - width, middle - width / 2));
      view.signal("zoom_place", [start, start + width]).runAsync();
    };
    for (const button of chart.querySelectorAll(".tools button")) {
      button.addEventListener("click", () => move(button.dataset));
    }
  }
})();
