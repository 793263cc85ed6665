"use strict";
addEventListener("error", (event) => { document.documentElement.dataset.error = event.message; });
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const KINDS = {
    encoder: ["Encoder", "Self-attention of the encoder. A row is a token of the source; its cells say how much of each source token it takes in."],
    decoder: ["Decoder", "Self-attention of the decoder. A row is the step that writes the token; columns are what the model has read of its own translation by then, from the begin mark on. What is not yet written is masked."],
    cross: ["Cross", "Attention from the translation to the source. A row is the step that writes the token; columns are the tokens of the source."],
  };
  const MEAN = "mean";
  const state = { ...data.start, held: null };
  if (state.head === null) state.head = MEAN;

  const at = (id) => document.getElementById(id);
  function make(tag, properties = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in node) node[name] = value; else node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }
  const shade = (weight) => Math.sqrt(Math.max(0, weight)).toFixed(3); // small weights stay visible
  const clamp = (value, end) => Math.max(0, Math.min(value, end - 1));
  const grid = () => data.grids[state.units];
  const layers = (kind = state.kind, units = state.units) => data.grids[units].weights[kind];
  const hidden = (row, column) => state.kind === "decoder" && column >= grid().visible[row];

  function mean(heads) {
    return heads[0].map((row, i) => row.map((_, j) => heads.reduce((sum, head) => sum + head[i][j], 0) / heads.length));
  }
  function matrix(layer = state.layer, head = state.head) {
    const heads = layers()[layer];
    return head === MEAN ? mean(heads) : heads[head];
  }
  function name() {
    return `${KINDS[state.kind][0]}, layer ${state.layer + 1}, ${state.head === MEAN ? "mean of all heads" : `head ${state.head + 1}`}`;
  }

  function choose(changes) {
    Object.assign(state, changes);
    state.layer = clamp(state.layer, layers().length);
    if (state.head !== MEAN) state.head = clamp(state.head, layers()[state.layer].length);
    if (state.held === null || "units" in changes || "kind" in changes) state.held = grid().rows[state.kind].length >> 1;
    draw();
  }

  function buttons(place, names, key) {
    at(place).replaceChildren(...Object.entries(names).map(([value, label]) => {
      const button = make("button", { type: "button", onclick: () => choose({ [key]: value }) }, label);
      button.setAttribute("aria-pressed", String(state[key] === value));
      return button;
    }));
  }

  function thumbnail(weights) {
    const size = clamp(Math.floor(160 / Math.max(weights.length, weights[0].length)), 9) || 1; // so that paper shows cells
    const canvas = make("canvas", { width: size * weights[0].length, height: size * weights.length });
    const pen = canvas.getContext("2d");
    pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--high");
    weights.forEach((row, i) => row.forEach((weight, j) => {
      pen.globalAlpha = Number(shade(weight));
      pen.fillRect(size * j, size * i, size, size);
    }));
    return canvas;
  }
  function drawHeads() {
    const columns = Math.max(...layers().map((heads) => heads.length));
    const box = at("heads");
    box.style.gridTemplateColumns = `max-content repeat(${columns + 1}, max-content)`;
    const names = [...Array(columns).keys()].map((head) => `head ${head + 1}`);
    const cells = ["", ...names, MEAN].map((text) => make("span", { className: "name" }, text));
    layers().forEach((heads, layer) => {
      cells.push(make("span", { className: "name" }, `layer ${layer + 1}`));
      for (const head of [...Array(columns).keys(), MEAN]) {
        if (head !== MEAN && head >= heads.length) { cells.push(make("span")); continue; }
        const button = make("button", { type: "button", onclick: () => choose({ layer, head }) }, thumbnail(matrix(layer, head)));
        button.setAttribute("aria-label", `layer ${layer + 1}, ${head === MEAN ? "mean of heads" : `head ${head + 1}`}`);
        button.setAttribute("aria-pressed", String(layer === state.layer && head === state.head));
        cells.push(button);
      }
    });
    box.replaceChildren(...cells);
  }

  function drawMap() {
    const weights = matrix(), rows = grid().rows[state.kind], columns = grid().columns[state.kind];
    const table = make("table", { ariaLabel: name() });
    table.style.setProperty("--columns", columns.length);
    const head = make("tr", {}, make("td", { className: "corner", style: "background:none" }));
    head.append(...columns.map((text) => make("th", { scope: "col", title: text }, make("span", { dir: "auto" }, text))));
    const body = make("tbody");
    rows.forEach((text, i) => {
      const row = make("tr", { tabIndex: 0 }, make("th", { scope: "row", dir: "auto", title: text }, text));
      columns.forEach((key, j) => {
        const cell = make("td", hidden(i, j) ? { className: "masked", title: `${key}: masked, not yet written` } : { title: `${text} ← ${key} ${weights[i][j].toFixed(4)}` });
        if (!hidden(i, j)) {
          const ink = make("i");
          ink.style.opacity = shade(weights[i][j]);
          cell.append(ink);
        }
        row.append(cell);
      });
      row.addEventListener("mouseenter", () => show(i));
      row.addEventListener("focus", () => show(i));
      row.addEventListener("click", () => { state.held = i; show(i); });
      row.addEventListener("keydown", (event) => {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        state.held = clamp(i + step, rows.length);
        body.children[state.held].focus({ preventScroll: false });
      });
      body.append(row);
    });
    table.addEventListener("mouseleave", () => show(state.held));
    table.append(make("thead", {}, head), body);
    at("map").replaceChildren(table);
    show(state.held);
  }

  function show(i) {
    const weights = matrix()[i], columns = grid().columns[state.kind];
    const row = grid().rows[state.kind][i];
    const step = make("p", { className: "step" });
    if (state.kind === "encoder") step.append(make("b", { dir: "auto" }, row), " takes from");
    else step.append("having read ", make("span", { dir: "auto" }, grid().columns.decoder[i]), ", writes ", make("b", { dir: "auto" }, row), " and looks at");
    const strip = make("div", { className: "strip", dir: "auto" }, ...columns.flatMap((text, j) => {
      const token = make("span", { className: hidden(i, j) ? "masked" : "", title: hidden(i, j) ? "masked" : weights[j].toFixed(4) }, text);
      if (!hidden(i, j)) {
        const ink = make("i");
        ink.style.height = `${(100 * weights[j]).toFixed(1)}%`;
        token.append(ink);
      }
      return [token, " "];
    }));
    const order = columns.map((_, j) => j).filter((j) => !hidden(i, j)).sort((a, b) => weights[b] - weights[a]).slice(0, 5);
    const most = make("ol", { className: "most" }, ...order.map((j) => make("li", {}, make("bdi", {}, columns[j]), " ", make("b", {}, weights[j].toFixed(3)))));
    at("detail").replaceChildren(step, strip, most);
    for (const [index, line] of [...at("map").querySelectorAll("tbody tr")].entries()) {
      line.setAttribute("aria-selected", String(index === i));
    }
  }

  function drawKey() {
    const marks = [0, 0.05, 0.2, 0.5, 1].map((weight) => {
      const mark = make("i");
      mark.style.setProperty("--shade", shade(weight));
      return make("span", {}, mark, String(weight));
    });
    if (state.kind === "decoder") marks.push(make("span", {}, make("span", { className: "masked" }), "masked"));
    at("key").replaceChildren("weight", ...marks);
  }

  function draw() {
    buttons("kinds", { encoder: "Encoder", cross: "Cross", decoder: "Decoder" }, "kind");
    buttons("units", { subwords: "Subwords", words: "Words" }, "units");
    at("about").textContent = KINDS[state.kind][1];
    at("title").textContent = name();
    drawHeads();
    drawMap();
    drawKey();
  }

  /* Every row of every head sums to 1, as far as four digits tell, and gives nothing to what is masked. */
  function faults() {
    const found = [];
    for (const [units, one] of Object.entries(data.grids)) {
      for (const [kind, all] of Object.entries(one.weights)) {
        all.forEach((heads, layer) => heads.forEach((head, h) => head.forEach((row, i) => {
          const place = `${units} ${kind} ${layer} ${h} ${i}`;
          if (row.length !== one.columns[kind].length || head.length !== one.rows[kind].length) found.push(`${place}: size`);
          if (Math.abs(row.reduce((a, b) => a + b, 0) - 1) > 1e-4 * (row.length + 1)) found.push(`${place}: sum`);
          if (kind === "decoder" && row.slice(one.visible[i]).some((weight) => weight > 0)) found.push(`${place}: masked`);
        })));
      }
    }
    return found;
  }

  document.title = `Attention: ${data.source}`;
  at("source").textContent = data.source;
  at("target").textContent = data.target;
  at("target-is").textContent = data.given ? "given target" : "translation";
  at("facts").append(...data.facts.flatMap(([key, value]) => [make("dt", {}, key), make("dd", {}, value)]));
  choose({});
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawHeads);
  const wrong = faults();
  document.documentElement.dataset.check = wrong.length ? wrong[0] : "ok";
})();
