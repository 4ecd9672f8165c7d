/* The live page's own script: figures, parts of a page that change in place, and what happens now. */
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const plots = [];
  const curves = new Map();
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function load(url) {
    if (!curves.has(url)) curves.set(url, fetch(url).then((answer) => answer.json()));
    return curves.get(url);
  }

  /* Digits that tell a number from its neighbours on an axis, which are so far apart. */
  const digits = (step) => Math.min(100, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)));
  const short = (value) => (value === null || value === undefined ? "–" : Math.abs(value) >= 0.0005 || !value ? value.toFixed(3) : value.toExponential(1));
  const ticks = (splits) => {
    const step = Math.abs(splits[1] - splits[0]) || 1;
    return splits.map((each) => (digits(step) > 4 && each ? each.toExponential(1) : each.toFixed(Math.min(4, digits(step)))));
  };

  function seriesOf(name, columns, title) {
    const line = (label, key, more) => ({ label, key, value: (u, value) => short(value), stroke: () => colour("--accent"), width: 1.5, ...more });
    if (name !== "success") return [line(title, name)];
    const bound = { stroke: () => "transparent", width: 0, points: { show: false } };
    return [
      line("training", "train"), line("upper bound", "train_high", bound), line("lower bound", "train_low", bound),
      line("held out", "held", { stroke: () => colour("--bad"), spanGaps: true, points: { show: true, size: 6 } }),
    ].filter((each) => columns[each.key]);
  }

  /* The legend has the values of the revision that the page shows, until a pointer asks for others. */
  function tell(plot, figure) {
    const idx = plot.data[0].findLastIndex((each) => each <= Number(figure.dataset.at));
    if (idx >= 0) plot.setLegend({ idx });
  }

  async function draw(figure) {
    const { columns } = await load(figure.dataset.url);
    const name = figure.dataset.plot;
    if (name !== "success" && !columns[name]) return;
    figure.hidden = false;
    const place = figure.querySelector("[role=img]");
    const series = seriesOf(name, columns, figure.dataset.title);
    const held = (u) => {
      if (name !== "success" || !columns.held_low) return;
      u.ctx.save();
      u.ctx.strokeStyle = colour("--bad");
      columns.revision.forEach((revision, at) => {
        if (columns.held_low[at] === null) return;
        const x = u.valToPos(revision, "x", true);
        u.ctx.beginPath();
        u.ctx.moveTo(x, u.valToPos(columns.held_low[at], "y", true));
        u.ctx.lineTo(x, u.valToPos(columns.held_high[at], "y", true));
        u.ctx.stroke();
      });
      u.ctx.restore();
    };
    const axis = { stroke: () => colour("--soft"), grid: { stroke: () => colour("--rule"), width: 1 }, ticks: { stroke: () => colour("--rule") } };
    const label = place.getAttribute("aria-label");
    const told = (u, splits) => {
      const said = ticks(splits);
      place.setAttribute("aria-label", `${label}; the axis goes by ${said.join(", ")}`);
      return said;
    };
    const mark = (u) => {
      const at = Math.round(u.valToPos(Number(figure.dataset.at), "x", true));
      u.ctx.save();
      u.ctx.strokeStyle = colour("--soft");
      u.ctx.beginPath();
      u.ctx.moveTo(at, u.bbox.top);
      u.ctx.lineTo(at, u.bbox.top + u.bbox.height);
      u.ctx.stroke();
      u.ctx.restore();
    };
    const options = {
      width: place.clientWidth, height: figure.classList.contains("small") ? 160 : 280, pxAlign: 0,
      scales: { x: { time: false }, y: name === "success" ? { range: [0, 1] } : {} },
      axes: [{ ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000] }, { ...axis, size: 62, values: told }],
      legend: { live: true },
      series: [{ label: "revision", value: (u, value) => value ?? "–" }, ...series],
      bands: series.length > 2 ? [{ series: [2, 3], fill: () => colour("--band") }] : [],
      hooks: { draw: [mark, held] },
    };
    const plot = new uPlot(options, [columns.revision, ...series.map((each) => columns[each.key])], place);
    plots.push({ plot, place, figure });
    tell(plot, figure);
    figure.dataset.ready = "1";
  }

  function redraw() {
    for (const { plot, place } of plots) plot.setSize({ width: place.clientWidth, height: plot.height });
  }

  /* A document that is parsed this way runs nothing, and needs no string of markup. */
  function fetched(url) {
    return new Promise((done, fail) => {
      const request = new XMLHttpRequest();
      request.open("GET", url);
      request.responseType = "document";
      request.onload = () => (request.responseXML ? done(request.responseXML) : fail(new Error(url)));
      request.onerror = fail;
      request.send();
    });
  }

  /* What leads on from a page, or is chosen on it, follows the revision, but for what somebody types in. */
  function renew(selector, page) {
    const [now, next] = [document.querySelector(selector), page.querySelector(selector)];
    if (now && next && !now.contains(document.activeElement)) now.replaceWith(document.adoptNode(next));
  }

  let latest = 0;
  async function change(url, id) {
    const turn = ++latest;
    const page = await fetched(url).catch(() => null);
    if (turn !== latest) return;
    const [now, next] = [$(id), page && page.getElementById(id)];
    if (!now || !next) return void (location.href = url);
    const focused = document.activeElement && document.activeElement.id;
    now.replaceWith(document.adoptNode(next));
    for (const selector of ["header nav", "form[data-part]:not(.slider)"]) renew(selector, page);
    document.title = page.title;
    document.querySelector("h1").textContent = page.querySelector("h1").textContent;
    history.replaceState(null, "", url);
    const at = new URL(url, location.href).searchParams.get("rev");
    if (at !== null) {
      for (const each of document.querySelectorAll("input[type=hidden][name=rev]")) each.value = at;
      for (const { plot, figure } of plots) { figure.dataset.at = at; plot.redraw(false); tell(plot, figure); }
    }
    if (focused && $(focused) && document.activeElement !== $(focused)) $(focused).focus();
    document.body.dataset.part = String(turn);
  }

  let waiting = 0;
  function soon(form) {
    clearTimeout(waiting);
    const values = new URLSearchParams(new FormData(form));
    if (form.classList.contains("slider")) {
      for (const [name, value] of new URLSearchParams(location.search)) if (name !== "page" && !values.has(name)) values.set(name, value);
    }
    for (const [name, value] of [...values]) if (!value) values.delete(name);
    waiting = setTimeout(() => change(`${location.pathname}?${values}`, form.dataset.part), 60);
  }

  document.addEventListener("input", (event) => {
    const form = event.target.form;
    if (event.target.id === "rev") $("rev-shown").textContent = event.target.value;
    if (form && form.dataset.part) soon(form);
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.dataset.part) return;
    event.preventDefault();
    soon(event.target);
  });

  /* One page of a browser listens for all, since each open stream takes one of its six connections. */
  function show(said) {
    $("status").textContent = said.status;
    $("live").hidden = !said.current && !said.phases.length && !said.engines.length;
    $("current").textContent = said.current;
    const items = (texts) => texts.map((text) => {
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    });
    $("phases").replaceChildren(...items(said.phases.map((phase) => `${phase.text} ${phase.seconds} s`)));
    $("engines").replaceChildren(...items(said.engines));
    if (document.body.dataset.waits && said.revision >= 0) return void location.reload();
    const slider = $("rev");
    if (slider && said.revision > Number(slider.max)) {
      $("fresh").hidden = false;
      $("fresh").textContent = `Revision ${said.revision} is there: reload to see it.`;
      slider.max = said.revision;
    }
  }

  function listen() {
    const { run, live } = document.body.dataset;
    if (!live || !$("status")) return;
    const channel = new BroadcastChannel(`coevo ${new URL(live, location.href).pathname}`);
    channel.onmessage = (event) => show(event.data);
    navigator.locks.request(channel.name, () => new Promise(() => {
      document.body.dataset.leads = run;
      new EventSource(live).onmessage = (event) => {
        const said = JSON.parse(event.data);
        show(said);
        channel.postMessage(said);
      };
    }));
  }

  if (!document.body.dataset.run && location.hash) {
    const named = [...document.querySelectorAll("main a")].find((each) => `#${each.textContent}` === location.hash);
    if (named) location.replace(named.href);
  }
  addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach(({ plot }) => plot.redraw(false)));
  document.querySelectorAll("figure.plot").forEach(draw);
  listen();
})();
