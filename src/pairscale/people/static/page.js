// Keys, the time of a decision, and links to copy. Everything works without this file, too.
"use strict";

document.documentElement.classList.add("js");

// Keys: 1, 2, t, u, e, s, c. Not while typing, and not with Ctrl, Alt or Command.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  const typing = event.target.closest("textarea, input:not([type=radio])");
  if (event.key === "Escape") {
    document.querySelectorAll("details.extra[open]").forEach((one) => { one.open = false; });
    if (typing) typing.blur();
    return;
  }
  if (typing) return;
  const key = event.key.toLowerCase();
  const extra = { s: "details.skip", c: "details.comment", e: "details.earlier" }[key];
  const target = extra
    ? document.querySelector(`${extra} summary`)
    : document.querySelector(`button[data-key="${CSS.escape(key)}"]:not(:disabled)`);
  if (!target) return;
  event.preventDefault();
  target.click();
  if (extra && target.parentElement.open) target.parentElement.querySelector("input, textarea, li button").focus();
});

// How long the pair was in sight, without the time that the page lay behind another one.
{
  let seen = 0;
  let since = document.visibilityState === "visible" ? performance.now() : null;
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") {
      since = performance.now();
    } else if (since !== null) {
      seen += performance.now() - since;
      since = null;
    }
  });
  document.addEventListener("submit", (event) => {
    const elapsed = seen + (since === null ? 0 : performance.now() - since);
    const field = event.target.elements.elapsed;
    if (field) field.value = String(Math.round(elapsed));
  });
}

// A second press before the next page has come would be an answer to a pair that was never seen.
let sent = false;
document.addEventListener("submit", (event) => {
  if (sent) event.preventDefault();
  sent = true;
});
window.addEventListener("pageshow", () => { sent = false; });

// On the owner's page: a button that copies each link.
document.querySelectorAll("a[data-copy]").forEach((link) => {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "small";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(link.href);
      button.textContent = "copied";
    } catch {
      window.prompt("The link", link.href);
    }
  });
  link.after(" ", button);
});
