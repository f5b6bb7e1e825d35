// Search and sort the table; read two texts side by side with the judgements between them.
(async () => {
  const root = document.documentElement;
  root.classList.add("scripted");

  const body = document.querySelector("#table tbody");
  if (body) {
    const rows = [...body.rows];
    document.querySelector("#search").addEventListener("input", event => {
      const wanted = event.target.value.toLowerCase();
      let shown = 0;
      for (const row of rows) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        shown += !row.hidden;
      }
      document.querySelector("#found").textContent = wanted ? `${shown} found` : "";
    });
    document.querySelectorAll("#table th button").forEach((button, column) => {
      button.addEventListener("click", () => {
        const head = button.parentElement;
        const down = head.getAttribute("aria-sort") === "ascending";
        document.querySelectorAll("#table th").forEach(other => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = row => row.cells[column].dataset.v ?? row.cells[column].textContent;
        const numeric = head.classList.contains("n");
        rows.sort((a, b) => {
          const [x, y] = [key(a), key(b)];
          const order = numeric ? (x === "" ? Infinity : +x) - (y === "" ? Infinity : +y) : x.localeCompare(y);
          return down ? -order : order;
        });
        body.append(...rows);
      });
    });
  }

  const packed = document.querySelector("#texts");
  if (!packed) return;
  const bytes = Uint8Array.from(atob(packed.textContent.trim()), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { ids, texts, answers } = await new Response(stream).json();
  const sides = ["#left", "#right"].map(name => document.querySelector(name));
  const between = document.querySelector("#between");
  const add = (parent, kind, text) => {
    const node = document.createElement(kind);
    node.textContent = text;
    parent.append(node);
    return node;
  };
  for (const side of sides) ids.forEach((id, at) => add(side, "option", id).value = at);
  const show = () => {
    const [i, j] = sides.map(side => +side.value);
    [["#left-text", i], ["#right-text", j]].forEach(([name, at]) => {
      document.querySelector(name).textContent = texts[at] ?? "";
    });
    between.replaceChildren();
    const there = answers.filter(([a, b]) => (a === i && b === j) || (a === j && b === i));
    add(between, "p", there.length ? `${there.length} judgement${there.length > 1 ? "s" : ""} between them:`
      : "They were never compared with each other.");
    for (const [a, b, won, judge, words] of there) {
      const said = won === null ? "no winner" : `${ids[won]} is better`;
      add(between, "p", `${said} (${ids[a]} shown first, ${judge})`);
      if (words) add(between, "blockquote", words);
    }
  };
  const open = (i, j) => {
    [sides[0].value, sides[1].value] = [i, j];
    show();
    document.querySelector("#two").scrollIntoView();
  };
  sides.forEach(side => side.addEventListener("change", show));
  document.querySelectorAll("[data-two]").forEach(link => {
    link.addEventListener("click", event => {
      event.preventDefault();
      open(...link.dataset.two.split(" "));
    });
  });
  sides[0].value = 0;
  sides[1].value = Math.min(1, ids.length - 1);
  show();
})();
