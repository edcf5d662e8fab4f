// Keeps the page current. The server sends the sections that changed; this
// puts them in place and says when news has stopped coming.
"use strict";
(() => {
  const live = document.getElementById("live");
  const silence = 10000; // milliseconds; something comes every few seconds
  let last = Date.now();

  const say = (state, text) => {
    if (live.textContent === text) return; // a screen reader reads every change
    live.className = state;
    live.textContent = text;
  };
  const lost = (why) => say("lost", why + " What you see is of " + new Date(last).toLocaleTimeString() + ".");

  // What the reader opened or stands on stays so when its section is replaced.
  const replace = (section, html) => {
    const links = () => [...section.querySelectorAll("a, summary")];
    const details = () => [...section.querySelectorAll("details")];
    const row = (d) => d.closest("tr").textContent;
    const at = links().indexOf(document.activeElement);
    const open = new Set(details().filter((d) => d.open).map(row));
    section.innerHTML = html;
    for (const d of details()) d.open = open.has(row(d));
    if (at >= 0) links()[at]?.focus();
  };

  const source = new EventSource("board/events");
  source.addEventListener("section", (e) => {
    last = Date.now();
    const { id, html, title } = JSON.parse(e.data);
    if (title) document.title = title;
    else replace(document.getElementById(id), html);
    say("on", "Live");
  });
  source.addEventListener("error", () => {
    lost(source.readyState === EventSource.CLOSED
      ? "Not live: the exporter refuses another reader. Reload this page for news."
      : "Not live: the exporter does not answer.");
  });
  setInterval(() => {
    if (Date.now() - last > silence && source.readyState === EventSource.OPEN) lost("Not live: the exporter sends nothing.");
  }, 1000);
})();
