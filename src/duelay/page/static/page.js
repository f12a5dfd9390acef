// Times in the viewer's zone, tooltips of charts, live updates, and the notice of a lost connection.
// The page works without this file. It sets no style attribute: styles go through the CSSOM.
"use strict";

(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => within.querySelectorAll(selector);

  // Times

  const FORMS = {
    full: { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" },
    seconds: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" },
    short: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" },
    day: { day: "numeric", month: "long", year: "numeric" },
    date: { day: "numeric", month: "short" },
  };
  const formats = {};
  const format = (form) =>
    (formats[form] ??= new Intl.DateTimeFormat("en-GB", { ...FORMS[form], hourCycle: "h23" }));

  const TIMES = "time[datetime], text[data-time]";

  function localise(time) {
    const at = new Date(time.dateTime ?? time.dataset.time);
    if (!Number.isNaN(at.getTime())) time.textContent = format(time.dataset.form || "full").format(at);
  }

  function localiseAll(node) {
    if (node.nodeType !== 1) return;
    if (node.matches(TIMES)) localise(node);
    all(TIMES, node).forEach(localise);
  }

  // Charts: the tooltip shows the row of the chart's table that is nearest to the pointer

  function element(kind, name, ...content) {
    const made = document.createElement(kind);
    made.className = name;
    made.append(...content);
    return made;
  }

  const tip = element("div", "tip");
  const cursor = element("div", "cursor");
  let pointed = null; // the id of a plot, where the pointer is, and where the plot was

  function showTip() {
    const plot = pointed && document.getElementById(pointed.id);
    const rows = plot ? [...all("tr[data-place]", plot.closest(".chart"))] : [];
    tip.hidden = cursor.hidden = rows.length === 0;
    if (tip.hidden) return;
    const frame = plot.querySelector(".frame").getBoundingClientRect();
    const distance = (row) => Math.abs(frame.left + (frame.width * row.dataset.place) / 100 - pointed.x);
    const row = rows.reduce((best, other) => (distance(other) < distance(best) ? other : best));
    const heads = row.closest("table").tHead.rows[0].cells;
    const [when, ...cells] = row.cells;
    tip.replaceChildren(
      element("div", "when", when.textContent),
      ...cells.filter((cell) => cell.textContent !== "–").map((cell) =>
        element("div", "entry", ...heads[cell.cellIndex].cloneNode(true).children, element("span", "value", cell.textContent))),
    );
    const left = frame.left + (frame.width * row.dataset.place) / 100;
    const width = root.clientWidth;
    const isRight = left > width / 2;
    Object.assign(cursor.style, { left: `${left}px`, top: `${frame.top}px`, height: `${frame.height}px` });
    Object.assign(tip.style, {
      left: isRight ? "auto" : `${left + 14}px`,
      right: isRight ? `${width - left + 14}px` : "auto",
      top: `${frame.top + 8}px`,
    });
  }

  function point(event) {
    const plot = event?.target.closest?.(".plot");
    if (!plot && !pointed) return;
    pointed = plot ? { id: plot.id, x: event.clientX, top: plot.getBoundingClientRect().top } : null;
    showTip();
  }

  // The event of a scroll may come after the pointer has moved to where the plot is now.
  function unpoint() {
    const plot = pointed && document.getElementById(pointed.id);
    if (plot?.getBoundingClientRect().top !== pointed?.top) point();
  }

  for (const name of ["pointermove", "pointerdown"]) document.addEventListener(name, point, { passive: true });
  root.addEventListener("pointerleave", () => point());
  document.addEventListener("scroll", unpoint, { passive: true });
  document.addEventListener("htmx:afterSettle", showTip);

  // Liveness: htmx fetches the part again, idiomorph changes what has changed

  if (typeof Idiomorph !== "undefined") {
    Object.assign(Idiomorph.defaults.callbacks, {
      beforeNodeAdded: (node) => localiseAll(node),
      beforeNodeMorphed: (before, after) => {
        if (before.nodeType !== 1 || after.nodeType !== 1) return true;
        if (after.matches(TIMES)) localise(after);
        return !before.isEqualNode(after);
      },
      // Details that the reader has opened stay open.
      beforeAttributeUpdated: (name, node) =>
        !(name === "open" && node.tagName === "DETAILS") && !(name === "class" && node.matches(".scroll")),
    });
  }

  const lost = document.getElementById("lost");
  const live = document.getElementById("live");
  let heard = Date.now();

  function setLost(isLost) {
    if (!lost || lost.hidden === !isLost) return;
    if (isLost) document.getElementById("lost-since").textContent = format("seconds").format(heard);
    lost.hidden = !isLost;
  }

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && event.detail.elt === live) event.preventDefault();
  });
  for (const name of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(name, () => setLost(true));
  }
  document.addEventListener("htmx:afterRequest", (event) => {
    const { status } = event.detail.xhr;
    if (status === 401 || status === 403 || status === 404) location.reload();
    else if (status >= 500) setLost(true);
    else if (status > 0) {
      heard = Date.now();
      setLost(false);
    }
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && live && typeof htmx !== "undefined") htmx.trigger(live, "seen");
  });

  // Copying, and asking before what cannot be undone

  root.classList.toggle("can-copy", Boolean(navigator.clipboard));

  function say(button, said) {
    button.dataset.before ??= button.textContent;
    button.textContent = said;
    setTimeout(() => (button.textContent = button.dataset.before), 1500);
  }

  // A picture of SVG as PNG, which other programs paste.
  async function drawPicture(address) {
    const picture = new Image();
    picture.src = address;
    await picture.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: 2400, height: 1350 });
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("button[data-copy], button[data-picture]");
    if (!button) return;
    try {
      if (button.dataset.copy) {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      } else {
        const picture = drawPicture(button.dataset.picture);
        await navigator.clipboard.write([new ClipboardItem({ "image/png": picture })]);
      }
      say(button, "Copied");
    } catch {
      say(button, "Not allowed");
    }
  });

  // The meaning of a word appears below it; without this it appears at the end of the window.

  let term = null; // the word that was pressed last
  document.addEventListener("click", (event) => {
    term = event.target.closest?.("button[popovertarget]") ?? term;
  });
  document.addEventListener("toggle", (event) => {
    const word = event.target;
    if (event.newState !== "open" || word.id !== term?.getAttribute("popovertarget")) return;
    const { left, bottom, top } = term.getBoundingClientRect();
    const fitsBelow = bottom + word.offsetHeight + 8 < root.clientHeight;
    Object.assign(word.style, {
      inset: "auto",
      left: `${Math.max(8, Math.min(left, root.clientWidth - word.offsetWidth - 8))}px`,
      top: `${fitsBelow ? bottom + 6 : Math.max(8, top - word.offsetHeight - 6)}px`,
    });
  }, true);

  const dialog = document.getElementById("confirm");

  // What else there is to say is fetched when it is asked: it depends on the arm.
  function showMore(form) {
    const more = document.getElementById(form.dataset.more);
    const place = document.getElementById("confirm-more");
    if (!place) return;
    place.textContent = more ? "What it costs is being computed." : "";
    if (!more || typeof htmx === "undefined") return;
    const show = (event) => {
      if (event.detail.elt === more) place.textContent = more.textContent;
    };
    document.addEventListener("htmx:afterSettle", show);
    dialog.addEventListener("close", () => document.removeEventListener("htmx:afterSettle", show), { once: true });
    htmx.trigger(more, "refresh");
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.dataset.confirm || form.dataset.confirmed || !dialog) return;
    event.preventDefault();
    const chosen = form.querySelector("[name=arm]")?.value.trim();
    for (const answer of ["yes", "no"]) {
      dialog.querySelector(`[value=${answer}]`).textContent = form.dataset[answer];
    }
    document.getElementById("confirm-words").textContent =
      (chosen ? `${chosen}: ` : "") + form.dataset.confirm;
    showMore(form);
    dialog.returnValue = "no";
    dialog.addEventListener("close", () => {
      if (dialog.returnValue !== "yes") return;
      form.dataset.confirmed = "yes";
      form.requestSubmit();
    }, { once: true });
    dialog.showModal();
  });

  // Tables that go on to the side

  function fade(box) {
    box.classList.toggle("is-cut", box.scrollWidth - box.clientWidth - Math.abs(box.scrollLeft) > 2);
  }

  const fadeAll = () => all(".scroll").forEach(fade);
  document.addEventListener("scroll", (event) => {
    if (event.target.matches?.(".scroll")) fade(event.target);
  }, { capture: true, passive: true });
  document.addEventListener("toggle", fadeAll, true); // of details that open
  document.addEventListener("htmx:afterSettle", fadeAll);
  addEventListener("resize", fadeAll);

  const again = document.querySelector("[data-again]");
  if (again) setTimeout(() => location.reload(), 1000 * again.dataset.again);

  localiseAll(document.body);
  tip.hidden = cursor.hidden = true;
  document.body.append(cursor, tip);
  fadeAll();
})();
