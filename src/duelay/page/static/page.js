// Charts, times in the viewer's zone, and what is said when the connection is lost.
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
  };
  const formats = {};
  const format = (form) =>
    (formats[form] ??= new Intl.DateTimeFormat("en-GB", { ...FORMS[form], hourCycle: "h23" }));

  function localise(time) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) time.textContent = format(time.dataset.form || "full").format(at);
  }

  function localiseAll(node) {
    if (node.nodeType !== 1) return;
    if (node.matches("time[datetime]")) localise(node);
    all("time[datetime]", node).forEach(localise);
  }

  // Numbers, as duelay.page.words writes them

  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const UNITS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

  function about(value) {
    if (value < 10 && value % 1) return String(Number(value.toPrecision(2)));
    for (const [size, name] of [[1e12, "trillion"], [1e9, "billion"], [1e6, "million"]]) {
      if (value >= 1000 * size) return value.toExponential(1);
      if (value >= size) return `${(value / size).toFixed(1).replace(/\.0$/, "")} ${name}`;
    }
    return whole.format(value);
  }

  function share(value) {
    if (value > 0 && value < 0.001) return "less than 0.1 %";
    if (value > 0.999 && value < 1) return "more than 99.9 %";
    const percent = 100 * value;
    const isFine = (percent > 0 && percent < 9.95) || (percent > 99 && percent < 100);
    return `${percent.toFixed(isFine ? 1 : 0).replace(/\.0$/, "")} %`;
  }

  function duration(seconds) {
    if (seconds < 1) return `${Math.round(1000 * seconds)}ms`;
    const parts = [];
    let left = Math.round(seconds);
    for (const [size, name] of UNITS) {
      const n = Math.floor(left / size);
      if (n) parts.push(`${n}${name}`);
      left -= n * size;
    }
    return parts.slice(0, 2).join("") || "0s";
  }

  const SAY = {
    share,
    number: about,
    evidence: (value) => {
      const said = value < 1e15 ? about(value) : `10^${Math.round(Math.log10(value))}`;
      return `${said} ${said === "1" ? "time" : "times"}`;
    },
  };

  // Charts

  const charts = new Map(); // by the id of their place
  const DASHES = [undefined, [8, 4], [3, 3]];
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function look(line) {
    if (line.role === "arm") {
      return { name: `c${line.colour}`, stroke: `--c${line.colour}`, dash: DASHES[Math.floor(line.colour / 4)] };
    }
    if (line.role === "level") return { name: "level", stroke: "--ink", dash: [2, 4], width: 1.5 };
    if (line.role === "others") return { name: "others", stroke: "--rule-strong", dash: [1, 3] };
    if (line.role === "naive") return { name: "naive", stroke: "--soft", dash: [7, 4] };
    if (line.role === "low" || line.role === "high") return { name: "band", stroke: null };
    return { name: line.role, stroke: "--accent" };
  }

  const logs = (value) => (value === null ? null : Math.log10(Math.max(value, 1e-3)));

  // What uPlot draws: x and each line in the units of the scales that the server has made.
  function columns(told) {
    const x = told.isBars
      ? told.x.map((_, i) => i)
      : told.isFar ? told.x.map((value) => Math.log10(Math.max(value, 1e-3))) : told.x;
    let ys = told.lines.map((line) => line.values);
    if (told.yKind === "evidence") ys = ys.map((values) => values.map(logs));
    if (told.isStacked) {
      // Where no line has a value, there is a gap.
      const sums = x.map((_, i) => (told.lines.some((line) => line.values[i] !== null) ? 0 : null));
      ys = ys.map((values) => values.map((value, i) => (sums[i] === null ? null : (sums[i] += value ?? 0))));
    }
    return [x, ...ys];
  }

  function shape(told) {
    return JSON.stringify([
      told.xKind, told.isBars, told.isFar, told.isStepped, told.lines.map((line) => [line.name, line.role, line.colour]),
    ]);
  }

  function axisTime(plot, splits) {
    const step = splits.length > 1 ? splits[1] - splits[0] : 3600;
    const days = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
    const hours = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    const seconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
    let before = "";
    return splits.map((at) => {
      const moment = new Date(1000 * at);
      const day = days.format(moment);
      const hour = (step < 60 ? seconds : hours).format(moment);
      const isDay = step >= 86400 || (before && day !== before && hour.startsWith("00:00"));
      const said = isDay ? day : hour;
      before = day;
      // Beyond the right edge it would be cut off.
      const room = plot.bbox.width / devicePixelRatio + 8 - plot.valToPos(at, "x");
      return 3.5 * said.length > room ? "" : said;
    });
  }

  function options(state, place) {
    const { told } = state;
    const series = [{}];
    const bands = [];
    told.lines.forEach((line, i) => {
      const { stroke, dash, width } = look(line);
      const one = {
        label: line.name,
        stroke: stroke ? () => colour(stroke) : "transparent",
        width: stroke ? width ?? 2 : 0,
        dash,
        points: { show: false },
        spanGaps: false,
      };
      if (told.isStacked) {
        const name = line.role === "others" ? "--rule-strong" : `--c${line.colour}`;
        const fill = () => `${colour(name)}cc`; // as light as in the first picture
        Object.assign(one, { stroke: () => colour("--paper"), width: 1.5, dash: undefined });
        if (i === 0) one.fill = fill;
        else bands.push({ series: [i + 1, i], fill });
      }
      if (line.role === "high") {
        const low = told.lines.findIndex((other) => other.role === "low");
        if (low >= 0) bands.push({ series: [i + 1, low + 1], fill: () => colour("--band") });
      }
      if (told.isStepped) one.paths = uPlot.paths.stepped({ align: 1 });
      if (told.isBars) {
        Object.assign(one, { fill: () => colour("--accent"), width: 0, paths: uPlot.paths.bars({ size: [0.8, 60] }) });
      }
      series.push(one);
    });
    const axis = {
      stroke: () => colour("--soft"),
      font: `12px ${getComputedStyle(document.body).fontFamily}`,
      ticks: { show: false },
    };
    const isTime = told.xKind === "time";
    const x = { ...axis, size: 28, gap: 6, space: 80, grid: { show: false }, values: axisTime };
    if (!isTime) {
      x.splits = () => thinned(state).map(([at]) => at);
      x.values = (plot, splits) => {
        const said = new Map(state.told.xTicks);
        return splits.map((at) => said.get(at) ?? "");
      };
    }
    const y = {
      ...axis,
      size: 64,
      gap: 8,
      grid: { stroke: () => colour("--rule"), width: 1 },
      splits: () => state.told.yTicks.map(([at]) => at),
      values: () => state.told.yTicks.map(([, said]) => said),
    };
    return {
      width: place.clientWidth,
      height: place.clientHeight,
      padding: [12, 8, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: !told.isBars && !told.isStacked, size: 7 } },
      scales: {
        x: { time: isTime, range: () => state.told.xEnds },
        y: { range: () => state.told.yEnds },
      },
      axes: [x, y],
      series,
      bands,
      hooks: {
        setCursor: [(plot) => point(state, plot, place)],
        drawAxes: [(plot) => drawMarks(state, plot), (plot) => nameLevel(state, plot)], // lines are drawn over it
      },
    };
  }

  // Fewer ticks where there is little room.
  function thinned(state) {
    const ticks = state.told.xTicks;
    const most = Math.max(2, Math.floor((state.plot?.width ?? 600) / 80));
    const step = Math.ceil(ticks.length / most);
    return ticks.filter((_, i) => i % step === 0);
  }

  // Upright lines where something happened, and what.
  function drawMarks(state, plot) {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `${12 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.strokeStyle = ctx.fillStyle = colour("--soft");
    ctx.lineWidth = ratio;
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    for (const [at, said, row] of state.told.marks) {
      const x = Math.round(plot.valToPos(at, "x", true));
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const isRight = x > bbox.left + bbox.width / 2;
      ctx.textAlign = isRight ? "right" : "left";
      ctx.fillText(said, x + (isRight ? -4 : 4) * ratio, bbox.top + (12 + 15 * row) * ratio);
    }
    ctx.restore();
  }

  function nameLevel(state, plot) {
    const i = state.told.lines.findIndex((line) => line.role === "level");
    if (i < 0 || state.told.yKind !== "evidence") return;
    const line = state.told.lines[i];
    const at = plot.data[i + 1].at(-1);
    if (at === null || at === undefined) return;
    const named = `${line.name}, ${SAY[state.told.yKind](line.values.at(-1))}`;
    const { ctx } = plot;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `${12 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.textAlign = "left";
    const [x, y] = [plot.bbox.left + 4 * ratio, plot.valToPos(at, "y", true) - 6 * ratio];
    ctx.fillStyle = colour("--paper");
    ctx.fillRect(x - 4 * ratio, y - 12 * ratio, ctx.measureText(named).width + 8 * ratio, 15 * ratio);
    ctx.fillStyle = colour("--ink");
    ctx.fillText(named, x, y);
    ctx.restore();
  }

  const SVG = "http://www.w3.org/2000/svg";

  function swatch(line, isStacked) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("class", "swatch");
    svg.setAttribute("width", "22");
    svg.setAttribute("height", "10");
    const path = document.createElementNS(SVG, isStacked ? "rect" : "path");
    path.setAttribute("class", isStacked ? `area ${line.fill}` : `line ${look(line).name}`);
    if (isStacked) {
      path.setAttribute("width", "10");
      path.setAttribute("height", "10");
    } else path.setAttribute("d", "M1 5H21");
    svg.append(path);
    return svg;
  }

  function element(kind, name, ...content) {
    const made = document.createElement(kind);
    made.className = name;
    made.append(...content);
    return made;
  }

  // The tooltip: what each line is where the pointer is.
  function point(state, plot, place) {
    const { told, tip } = state;
    const i = plot.cursor.idx;
    if (i === null || i === undefined || plot.cursor.left < 0) {
      tip.hidden = true;
      return;
    }
    const say = SAY[told.yKind];
    const x = told.x[i];
    const entries = told.lines
      .map((line) => ({ line, value: line.values[i] }))
      .filter(({ line, value }) => value !== null && value !== undefined && line.role !== "level");
    if (told.xKind === "time") entries.sort((a, b) => b.value - a.value);
    tip.replaceChildren(
      element("div", "when", told.xKind === "time" ? format(told.form).format(new Date(1000 * x)) : duration(x)),
      ...entries.map(({ line, value }) =>
        element("div", "entry", ...(told.isBars ? [] : [swatch(line, told.isStacked)]), element("bdi", "name", line.name), element("span", "value", say(value)))),
    );
    tip.hidden = entries.length === 0;
    const left = plot.over.offsetLeft + plot.cursor.left;
    const isRight = left > place.clientWidth / 2;
    tip.style.left = isRight ? "auto" : `${left + 14}px`;
    tip.style.right = isRight ? `${place.clientWidth - left + 14}px` : "auto";
    tip.style.top = `${plot.over.offsetTop + 8}px`;
  }

  function drawCharts() {
    if (typeof uPlot === "undefined") return;
    for (const place of all(".plot")) {
      const source = document.getElementById(place.id.replace("plot-", "data-"));
      if (!source) continue;
      const text = source.textContent;
      let state = charts.get(place.id);
      if (state && state.place === place && state.text === text) continue;
      const told = JSON.parse(text);
      if (state && state.place === place && shape(state.told) === shape(told)) {
        Object.assign(state, { told, text });
        state.plot.setData(columns(told));
        continue;
      }
      state?.plot.destroy();
      state = { told, text, place, tip: element("div", "tip") };
      state.tip.hidden = true;
      charts.set(place.id, state);
      const made = options(state, place);
      place.replaceChildren();
      state.plot = new uPlot(made, columns(told), place);
      place.append(state.tip);
      sizes.observe(place);
    }
    for (const [id, state] of charts) {
      if (!state.place.isConnected) {
        state.plot.destroy();
        charts.delete(id);
      }
    }
  }

  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const plot = charts.get(target.id)?.plot;
      if (!plot || !target.clientWidth) continue;
      if (plot.width !== target.clientWidth || plot.height !== target.clientHeight) {
        plot.setSize({ width: target.clientWidth, height: target.clientHeight });
      }
    }
  });

  const repaint = () => charts.forEach(({ plot }) => plot.redraw(true, true)); // bars keep their colour with their path
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

  // Liveness: htmx fetches the part again, idiomorph changes what has changed

  if (typeof Idiomorph !== "undefined") {
    Object.assign(Idiomorph.defaults.callbacks, {
      beforeNodeAdded: (node) => localiseAll(node),
      beforeNodeMorphed: (before, after) => {
        if (before.nodeType !== 1 || after.nodeType !== 1) return true;
        if (before.matches(".plot") && before.id === after.id && charts.has(before.id)) {
          before.setAttribute("aria-label", after.getAttribute("aria-label") ?? "");
          return false; // the chart in it is drawn by this script
        }
        if (after.matches("time[datetime]")) localise(after);
        return !before.isEqualNode(after);
      },
      // What somebody has opened stays open.
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
  document.addEventListener("htmx:afterSettle", drawCharts);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && live && typeof htmx !== "undefined") htmx.trigger(live, "seen");
  });

  // Copying, and asking before what cannot be undone

  for (const button of all("button[data-copy]")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
  }

  const dialog = document.getElementById("confirm");
  for (const form of all("form[data-confirm]")) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.confirmed || !dialog) return;
      event.preventDefault();
      const chosen = form.querySelector("[name=arm]")?.value.trim();
      for (const answer of ["yes", "no"]) {
        dialog.querySelector(`[value=${answer}]`).textContent = form.dataset[answer];
      }
      document.getElementById("confirm-words").textContent =
        (chosen ? `${chosen}: ` : "") + form.dataset.confirm;
      dialog.returnValue = "no";
      dialog.addEventListener("close", () => {
        if (dialog.returnValue !== "yes") return;
        form.dataset.confirmed = "yes";
        form.requestSubmit();
      }, { once: true });
      dialog.showModal();
    });
  }

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
  drawCharts();
  fadeAll();
})();
