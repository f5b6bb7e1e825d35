// Have altair's charts drawn, each in the place of the picture that it replaces on the screen.
(async () => {
  const options = { mode: "vega-lite", renderer: "svg", ast: true, actions: false, defaultStyle: false,
    tooltip: { disableDefaultStyle: true } };
  for (const chart of document.querySelectorAll(".chart")) {
    const still = chart.querySelector(".picture"), live = chart.querySelector(".live");
    await vegaEmbed(live, JSON.parse(chart.querySelector("script").textContent), options);
    chart.classList.add("drawn");

    // One picture with the words of the other, rather than a document of its own.
    for (const name of ["role", "aria-roledescription", "aria-label"]) live.removeAttribute(name);
    const drawn = live.querySelector("svg");
    drawn.setAttribute("role", "img");
    for (const name of ["aria-label", "aria-description"]) drawn.setAttribute(name, still.getAttribute(name));
  }
})();
