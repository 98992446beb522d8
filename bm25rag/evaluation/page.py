"""The page of a report: one self-contained HTML file."""

from __future__ import annotations

__all__ = ["PAGE"]

PAGE = r"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Retrievers on __TITLE__</title>
<style>
:root { --page: #fcfcfb; --ink: #16181d; --soft: #5b616e; --line: #d9dce3; --card: #ffffff;
  --mark: #2a62c9; --front: #b4490f;
  --c0: #2a62c9; --c1: #b4490f; --c2: #1b7a4b; --c3: #8a3fa8; --c4: #8a6a00; --c5: #0f7684;
  color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --page: #14161a; --ink: #eceef2; --soft: #a2a9b7;
  --line: #353a45; --card: #1c1f25; --mark: #7ea8ff; --front: #ff9d66;
  --c0: #7ea8ff; --c1: #ff9d66; --c2: #5fcf98; --c3: #d195ee; --c4: #e0bd4d; --c5: #5fc9d8; } }
body { background: var(--page); color: var(--ink); margin: 0 auto; max-width: 86rem;
  padding: 1.5rem; font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.05rem; margin: 0 0 .5rem; }
p { margin: .3rem 0; color: var(--soft); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  margin: 1rem 0; padding: 1rem; overflow-x: auto; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr));
  gap: 1rem; }
.plots section { margin: 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums;
  font-size: 12px; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .28rem; text-align: right;
  white-space: nowrap; }
th { color: var(--soft); font-weight: 600; white-space: normal; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0;
  background: var(--card); }
td.why { text-align: left; color: var(--soft); white-space: normal; }
label { display: inline-block; margin-right: 2rem; } input { vertical-align: middle; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--soft); font-size: 11px; }
svg text.name { fill: var(--ink); } .axis { stroke: var(--line); }
.frontier { stroke: var(--front); fill: none; stroke-width: 2; }
.key { display: inline-block; margin-right: 1.2rem; } .key i { display: inline-block; width: .8rem;
  height: .8rem; border-radius: 2px; margin-right: .35rem; vertical-align: -.05rem; }
</style>
</head>
<body>
<h1>Retrievers on __TITLE__</h1>
<div id="about"></div>
<section><h2>Weights</h2>
<div id="sliders"></div>
<p>A Dynascore is accuracy, latency and cost in points of accuracy, weighted. One point costs
<span id="rates"></span></p></section>
<section><h2>Systems</h2><table id="systems"></table></section>
<section><h2>Accuracy against latency</h2><div id="by-latency"></div></section>
<section><h2>Accuracy against cost</h2><div id="by-cost"></div></section>
<div class="plots">
<section><h2>Latency of single queries</h2><div id="distribution"></div></section>
<section><h2>The winner by weights</h2><div id="winners"></div><div id="winners-key"></div></section>
</div>
<script id="report" type="application/json">__REPORT__</script>
<script>
"use strict";
const report = JSON.parse(document.getElementById("report").textContent);
const accuracyName = report.setting.measures[0];
const rows = report.rows.filter((row) => !row.error);
const all = rows.filter((row) => row.measures[accuracyName] !== null && row.latency.mean !== null).map((row) => ({ system: row.system, cost: row.cost,
  accuracy: 100 * row.measures[accuracyName], latency: row.latency.mean }));
// What has no cost has no score; where nothing has one, cost does not count.
const priced = all.filter((row) => row.cost !== null), table = priced.length ? priced : all;
const quantities = ["accuracy", "latency"].concat(priced.length ? ["cost"] : []);
const weights = { accuracy: 0.5, latency: 0.25, cost: 0.25 };

function escaped(text) {
  const holder = document.createElement("span");
  holder.textContent = text;
  return holder.innerHTML.replace(/"/g, "&quot;");
}

// The same as bm25rag.evaluation.dynascore; a test compares the two.
function ratesOf() {
  const ordered = [...table].sort((a, b) => a.accuracy - b.accuracy);
  const least = 1e-4 * Math.max(...ordered.map((row) => Math.abs(row.accuracy)));
  const rates = {};
  for (const name of quantities) {
    const steps = [];
    for (let i = 1; i < ordered.length; i++) {
      const gain = ordered[i].accuracy - ordered[i - 1].accuracy;
      if (gain > least) steps.push(Math.abs(ordered[i][name] - ordered[i - 1][name]) / gain);
    }
    rates[name] = steps.length ? steps.reduce((a, b) => a + b, 0) / steps.length : null;
  }
  return rates;
}
const rates = table.length ? ratesOf() : {};
const scorable = table.length > 1 && rates.accuracy !== null;

function scoresFor(given) {
  const total = quantities.reduce((sum, name) => sum + given[name], 0) || 1;
  return table.map((row) => quantities.reduce((sum, name) => sum + (rates[name] ?
    (name === "accuracy" ? 1 : -1) * given[name] / total * row[name] / rates[name] : 0), 0));
}
function shown(value, digits = 3) {
  if (value === null || value === undefined) return "";
  return value !== 0 && Math.abs(value) < 1e-3 ? value.toExponential(1)
    : Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 6 });
}
const mebibytes = (value) => value ? shown(value / 1048576) : "";

function drawTable() {
  const known = new Map(scorable ? scoresFor(weights).map((score, i) => [table[i].system, score]) : []);
  const scores = rows.map((row) => known.get(row.system) ?? null);
  const order = rows.map((_, i) => i).sort((a, b) => (scores[b] ?? -Infinity) - (scores[a] ?? -Infinity));
  const heads = ["system", "Dynascore", ...report.setting.measures, "mean ms", "trials", "median",
    "p95", "p99", "queries/s", "peak MiB", "resident MiB", "disk MiB", "build s", "cold start s",
    "$ a million", "in batches"];
  let html = "<thead><tr>" + heads.map((head) => `<th>${escaped(head)}</th>`).join("") + "</tr></thead><tbody>";
  for (const i of order) {
    const row = rows[i], time = row.latency;
    const cells = [scores[i] === null ? "" : scores[i].toFixed(3),
      ...report.setting.measures.map((name) => row.measures[name]?.toFixed(4) ?? ""), shown(time.mean),
      shown(time.least_trial, 2) + "–" + shown(time.largest_trial, 2), shown(time.median),
      shown(time.p95), shown(time.p99), shown(Math.max(...Object.values(row.throughput))),
      mebibytes(row.peak), mebibytes(row.resident), mebibytes(row.disk),
      shown(row.build_seconds), shown(row.cold_start), shown(row.cost), shown(row.cost_in_batches)];
    html += `<tr data-system="${escaped(row.system)}" data-score="${scores[i]}"><td>${escaped(row.system)}</td>`
      + cells.map((cell) => `<td>${cell}</td>`).join("") + "</tr>";
  }
  for (const row of report.rows.filter((row) => row.error))
    html += `<tr><td>${escaped(row.system)}</td><td class="why" colspan="${heads.length - 1}">${escaped(row.error)}</td></tr>`;
  document.getElementById("systems").innerHTML = html + "</tbody>";
}

const W = 520, H = 340, L = 52, R = 20, T = 26, B = 40;
const WIDE = 1060, LETTER = 6.3;
function ticks(low, high, log) {
  if (!log) {
    const step = 10 ** Math.floor(Math.log10((high - low) || 1));
    const all = [];
    for (let t = Math.ceil(low / step) * step; t <= high + 1e-9; t += step) all.push(t);
    return all.length > 1 && all.length < 9 ? all : [low, (low + high) / 2, high];
  }
  const all = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high) + 1; power++)
    for (const digit of [1, 3]) {
      const t = digit * 10 ** power;
      if (t >= low && t <= high) all.push(t);
    }
  return all;
}
function axes(x, y, xTitle, yTitle, W) {
  let svg = "";
  for (const t of x.ticks) svg += `<line class="axis" x1="${x.at(t)}" x2="${x.at(t)}" y1="${T}" y2="${H - B}"/>`
    + `<text x="${x.at(t)}" y="${H - B + 15}" text-anchor="middle">${shown(t)}</text>`;
  for (const t of y.ticks) svg += `<line class="axis" x1="${L}" x2="${W - R}" y1="${y.at(t)}" y2="${y.at(t)}"/>`
    + `<text x="${L - 6}" y="${y.at(t) + 4}" text-anchor="end">${shown(t)}</text>`;
  return svg + `<text x="${(L + W - R) / 2}" y="${H - 6}" text-anchor="middle">${escaped(xTitle)}</text>`
    + `<text x="12" y="12">${escaped(yTitle)}</text>`;
}
function scale(values, from, to, log) {
  let low = Math.min(...values), high = Math.max(...values);
  if (log) { low /= 1.4; high *= 1.4; }
  else { const room = ((high - low) || 1) * 0.08; low -= room; high += room; }
  const f = log ? Math.log : (v) => v;
  return { at: (v) => from + (to - from) * (f(v) - f(low)) / (f(high) - f(low)),
    ticks: ticks(low, high, log) };
}
function drawScatter(place, name, title) {
  const points = all.filter((row) => row[name] > 0);
  const holder = document.getElementById(place);
  if (!points.length) { holder.innerHTML = "<p>Not measured.</p>"; return; }
  const x = scale(points.map((p) => p[name]), L, WIDE - R, true);
  const y = scale(points.map((p) => p.accuracy), H - B, T, false);
  const front = [...points].sort((a, b) => a[name] - b[name] || b.accuracy - a.accuracy);
  let best = -Infinity;
  const frontier = front.filter((p) => p.accuracy > best && ((best = p.accuracy), true));
  let svg = axes(x, y, title, accuracyName + " times 100", WIDE);
  svg += `<polyline class="frontier" points="${frontier.map((p) => x.at(p[name]) + "," + y.at(p.accuracy)).join(" ")}"/>`;
  // A name stands where it covers neither a point nor another name; a line leads to it.
  const taken = points.map((p) => [x.at(p[name]) - 7, y.at(p.accuracy) - 7, x.at(p[name]) + 7, y.at(p.accuracy) + 7]);
  const free = (box) => box[0] >= L && box[2] <= WIDE - R + 10 && box[1] >= 14 && box[3] <= H - B
    && !taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]);
  for (const p of [...frontier, ...points.filter((p) => !frontier.includes(p))]) {
    const px = x.at(p[name]), py = y.at(p.accuracy), width = LETTER * p.system.length;
    const places = [];
    for (let away = 0; away < 20; away++) for (const up of away ? [1, -1] : [1]) for (const right of [true, false]) {
      const at = py + 13 * away * up, start = right ? px + 9 : px - 9 - width;
      places.push([start, at - 7, start + width, at + 6]);
    }
    const box = places.find(free) || places[0];
    taken.push(box);
    const right = box[0] > px, at = (box[1] + box[3]) / 2;
    if (Math.abs(at - py) > 2) svg += `<line stroke="var(--soft)" stroke-width="0.7" x1="${px}" y1="${py}" x2="${right ? box[0] - 2 : box[2] + 2}" y2="${at}"/>`;
    svg += `<text class="name" x="${right ? box[0] : box[2]}" y="${at + 4}" text-anchor="${right ? "start" : "end"}">${escaped(p.system)}</text>`;
  }
  for (const p of points) svg += `<circle cx="${x.at(p[name])}" cy="${y.at(p.accuracy)}" r="${frontier.includes(p) ? 5 : 4}" fill="var(--${frontier.includes(p) ? "front" : "mark"})">`
    + `<title>${escaped(p.system)}: ${shown(p.accuracy)}, ${shown(p[name])}</title></circle>`;
  holder.innerHTML = `<svg viewBox="0 0 ${WIDE} ${H}" role="img">${svg}</svg>`
    + `<p>${frontier.length > 1 ? "The line is the Pareto frontier" : "The larger point is the whole Pareto frontier"}: nothing is both better and ${name === "cost" ? "cheaper" : "faster"}.</p>`;
}
function drawDistribution() {
  const holder = document.getElementById("distribution");
  if (!rows.length) { holder.innerHTML = "<p>Not measured.</p>"; return; }
  const times = rows.flatMap((row) => row.latency.percentiles).filter((v) => v > 0);
  const left = 14 + LETTER * Math.max(...rows.map((row) => row.system.length));
  const x = scale(times, left, W - R, true), H = T + B + 16 * Math.max(rows.length, 6);
  const height = (H - T - B) / rows.length;
  let svg = "";
  for (const t of x.ticks) svg += `<line class="axis" x1="${x.at(t)}" x2="${x.at(t)}" y1="${T}" y2="${H - B}"/>`
    + `<text x="${x.at(t)}" y="${H - B + 15}" text-anchor="middle">${shown(t)}</text>`;
  rows.forEach((row, i) => {
    const y = T + height * (i + 0.5), q = row.latency.percentiles;
    const at = (share) => x.at(q[share / 2] || Math.min(...times));
    svg += `<line x1="${at(0)}" x2="${at(100)}" y1="${y}" y2="${y}" stroke="var(--soft)"/>`
      + `<line x1="${at(26)}" x2="${at(76)}" y1="${y}" y2="${y}" stroke="var(--mark)" stroke-width="${Math.min(9, height * 0.5)}"/>`
      + `<line x1="${at(50)}" x2="${at(50)}" y1="${y - 6}" y2="${y + 6}" stroke="var(--front)" stroke-width="2"/>`
      + `<text class="name" x="${left - 8}" y="${y + 4}" text-anchor="end">${escaped(row.system)}</text>`;
  });
  holder.innerHTML = `<svg viewBox="0 0 ${W} ${H}" role="img">${svg}<text x="${(left + W - R) / 2}" y="${H - 6}" text-anchor="middle">milliseconds (log)</text></svg>`
    + "<p>From the fastest to the slowest query; thick: the middle half; mark: the median.</p>";
}
function drawWinners() {
  const holder = document.getElementById("winners");
  if (!scorable) { holder.innerHTML = "<p>Needs two systems of different accuracy.</p>"; return; }
  const N = 40, cell = (H - T - B) / N, wins = new Map();
  const cells = [];
  for (let i = 0; i < N; i++) for (let j = 0; j < N - i; j++) {
    const latency = (i + 0.5) / N, cost = quantities.includes("cost") ? (j + 0.5) / N : 0;
    const scores = scoresFor({ accuracy: Math.max(0, 1 - latency - cost), latency, cost });
    const best = scores.indexOf(Math.max(...scores));
    wins.set(best, (wins.get(best) || 0) + 1);
    cells.push([i, j, best]);
  }
  const ranked = [...wins.keys()].sort((a, b) => wins.get(b) - wins.get(a));
  const colour = (best) => ranked.indexOf(best) < 6 ? `var(--c${ranked.indexOf(best)})` : "var(--soft)";
  let svg = cells.map(([i, j, best]) => `<rect x="${L + i * cell}" y="${H - B - (j + 1) * cell}" width="${cell + 0.5}" height="${cell + 0.5}" shape-rendering="crispEdges" fill="${colour(best)}"><title>${escaped(table[best].system)}</title></rect>`).join("");
  for (const t of [0, 0.25, 0.5, 0.75, 1]) svg += `<text x="${L + t * N * cell}" y="${H - B + 15}" text-anchor="middle">${t}</text>`
    + `<text x="${L - 6}" y="${H - B - t * N * cell + 4}" text-anchor="end">${t}</text>`;
  svg += `<text x="${L + N * cell / 2}" y="${H - 6}" text-anchor="middle">weight of latency</text><text x="12" y="12">weight of cost; the rest is accuracy's</text>`;
  holder.innerHTML = `<svg viewBox="0 0 ${W} ${H}" role="img">${svg}</svg>`;
  document.getElementById("winners-key").innerHTML = ranked.map((best) =>
    `<span class="key"><i style="background:${colour(best)}"></i>${escaped(table[best].system)}</span>`).join("");
}
function drawSliders() {
  const holder = document.getElementById("sliders");
  for (const name of quantities) {
    const label = document.createElement("label");
    label.innerHTML = `${name} <input type="range" min="0" max="100" value="${100 * weights[name]}" id="weight-${name}"> <output></output>`;
    label.querySelector("input").addEventListener("input", (event) => {
      weights[name] = Number(event.target.value) / 100;
      update();
    });
    holder.append(label);
  }
}
function update() {
  const total = quantities.reduce((sum, name) => sum + weights[name], 0) || 1;
  for (const name of quantities)
    document.querySelector(`#weight-${name} + output`).textContent = (weights[name] / total).toFixed(2);
  drawTable();
}
document.getElementById("about").innerHTML = report.about.map((line) => `<p>${escaped(line)}</p>`).join("");
document.getElementById("rates").textContent = scorable ? quantities.slice(1).map((name) =>
  shown(rates[name]) + (name === "latency" ? " ms" : " dollars a million queries")).join(" or ") + "." : "nothing that could be measured.";
drawSliders();
update();
drawScatter("by-latency", "latency", "mean latency in milliseconds (log)");
drawScatter("by-cost", "cost", "dollars for a million queries (log)");
drawDistribution();
drawWinners();
</script>
</body>
</html>
"""
