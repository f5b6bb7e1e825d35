// Search and sort the table; read two texts, or the two answers of a case, with what was said of them.
(async () => {
  document.documentElement.classList.add("scripted");
  const find = name => document.querySelector(name);
  const add = (parent, kind, text) => {
    const node = document.createElement(kind);
    node.textContent = text;
    parent.append(node);
    return node;
  };

  // On paper, what is folded is unfolded.
  addEventListener("beforeprint", () => document.querySelectorAll("details:not([open])").forEach(one => {
    one.open = true;
    one.dataset.shut = "";
  }));
  addEventListener("afterprint", () => document.querySelectorAll("details[data-shut]").forEach(one => {
    one.open = false;
    delete one.dataset.shut;
  }));

  const body = find("#table tbody");
  if (body) {
    const rows = [...body.rows];
    find("#search").addEventListener("input", event => {
      const wanted = event.target.value.toLowerCase();
      let shown = 0;
      for (const row of rows) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        shown += !row.hidden;
      }
      find("#found").textContent = wanted ? `${shown} found` : "";
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
          if (numeric && (x === "" || y === "")) return (x === "") - (y === "");  // what is not known stays last
          const order = numeric ? +x - +y || 0 : x.localeCompare(y);
          return down ? -order : order;
        });
        body.append(...rows);
      });
    });
  }

  const packed = find("#texts");
  if (!packed) return;
  const bytes = Uint8Array.from(atob(packed.textContent.trim()), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const content = await new Response(stream).json();
  const between = find("#between");
  const say = (sentence, words) => {
    add(between, "p", sentence);
    if (words) add(between, "blockquote", words).dir = "auto";
  };

  // Any two of the texts, and the judgements between them.
  const showPair = ([i, j]) => {
    const { ids, texts, answers } = content;
    find("#left-text").textContent = texts[i] ?? "";
    find("#right-text").textContent = texts[j] ?? "";
    const there = answers.filter(([a, b]) => (a === i && b === j) || (a === j && b === i));
    add(between, "p", there.length ? `${there.length} judgement${there.length > 1 ? "s" : ""} between them:`
      : "They were never compared with each other.");
    for (const [a, b, won, judge, words] of there) {
      say(`${won === null ? "no winner" : `${ids[won]} is better`} (${ids[a]} shown first, ${judge})`, words);
    }
  };

  // One case: the task, both answers, and what every comparator said.
  const showCase = ([at]) => {
    const [, input, a, b, said] = content.cases[at];
    find("#input-text").textContent = input;
    find("#input-text").hidden = !input;
    find("#left-text").textContent = a;
    find("#right-text").textContent = b;
    for (const [sentence, words] of said) say(sentence, words);
  };

  const selects = (content.cases ? ["#case"] : ["#left", "#right"]).map(find);
  const names = content.cases ? content.cases.map(([name]) => name) : content.ids;
  for (const select of selects) names.forEach((name, at) => add(select, "option", name).value = at);
  const show = () => {
    between.replaceChildren();
    (content.cases ? showCase : showPair)(selects.map(select => +select.value));
  };
  selects.forEach((select, place) => {
    select.value = Math.min(place, names.length - 1);
    select.addEventListener("change", show);
  });
  document.querySelectorAll("[data-two]").forEach(link => {
    link.addEventListener("click", event => {
      event.preventDefault();
      link.dataset.two.split(" ").forEach((value, place) => selects[place].value = value);
      show();
      find("#two").scrollIntoView();
    });
  });
  show();
})();
