// Looks again from time to time, and puts what it finds in the place of what was there.
(() => {
  const place = document.querySelector("#now");
  const look = async () => {
    try {
      const answer = await fetch("/now", { cache: "no-store" });
      if (answer.ok) place.innerHTML = await answer.text(); // our own page, escaped by the server
      document.body.classList.toggle("lost", !answer.ok);
    } catch {
      document.body.classList.add("lost"); // no answer; what was seen last stays
    }
    next();
  };
  const next = () => setTimeout(look, document.hidden ? 15000 : +document.querySelector("#part").dataset.wait);
  next();
})();
