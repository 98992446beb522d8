// What a page can do beside links and forms, which work without this file: results that follow the
// sliders, judgements without a new page, keys, and buttons that copy. The server escapes all that
// a document holds; nothing here makes HTML.
"use strict";

const view = document.body.dataset.view;
const form = document.getElementById("ask");
const numbers = ["range", "number"];
let asked = 0;
let waiting = 0;

// --- results in place -------------------------------------------------------------

// An answer that a later one has overtaken is not shown; no request is given up, since it may be a
// judgement.
async function replaceResults(address, options) {
  const own = ++asked;
  document.getElementById("results").classList.add("busy");
  let answer;
  try {
    answer = await fetch(address, options);
    const text = await answer.text();
    if (own === asked) show(new DOMParser().parseFromString(text, "text/html"));
  } catch (error) {
    if (own === asked) document.getElementById("results").textContent = `The inspector does not answer: ${error.message}`;
  }
  if (own === asked) document.getElementById("results").classList.remove("busy");
  return own === asked && answer !== undefined;
}

function show(page) {
  const isThere = document.getElementById("results").contains(document.activeElement);
  for (const selector of ["#results", "#facets", "#python", "footer p"]) {
    const [here, there] = [document.querySelector(selector), page.querySelector(selector)];
    if (!here || !there) continue;
    if (here.open !== undefined) there.open = here.open;
    here.replaceWith(document.adoptNode(there));
  }
  document.querySelectorAll(".actions a[href], header nav a").forEach((link, number) => {
    const other = page.querySelectorAll(".actions a[href], header nav a")[number];
    if (other) link.href = other.getAttribute("href");
  });
  select(current, isThere);
}

function formAddress() {
  const given = new URLSearchParams();
  for (const field of form.elements) {
    if (!field.name || field.disabled || (field.type === "checkbox" && !field.checked)) continue;
    const isSaved = field.dataset.saved !== undefined && same(field);
    if (field.value !== "" && !isSaved) given.set(field.name, field.value);
  }
  const query = given.toString();
  return form.getAttribute("action") + (query ? "?" + query : "");
}

function same(field) {
  const saved = field.dataset.saved;
  return numbers.includes(field.type) ? Number(field.value) === Number(saved) : field.value === saved;
}

function follow(field) {
  if (field.type === "range") {
    const step = Number(field.max) > 5 ? 10 : 100;
    const value = Math.round(Number(field.value) * step) / step;
    // Near what is saved, it is what is saved: so one can go back to it.
    const saved = field.dataset.saved === "" ? NaN : Number(field.dataset.saved);
    const isNear = Math.abs(value - saved) < Number(field.max) / 100;
    field.value = isNear ? field.dataset.saved : value;
    const shown = field.parentElement.querySelector("output");
    if (shown) shown.textContent = String(Number(field.value));
  }
  clearTimeout(waiting);
  const needsPage = field.tagName === "SELECT";
  waiting = setTimeout(async () => {
    const address = formAddress();
    if (needsPage) location.assign(address);
    else if (await replaceResults(address)) history.replaceState(null, "", address);
  }, needsPage ? 0 : 120);
}

document.addEventListener("input", (event) => {
  if (event.target.dataset.live !== undefined) {
    if (event.target.tagName === "SELECT" && event.target.name.endsWith("variant")) {
      const delta = form.elements[event.target.name.replace("variant", "delta")];
      if (delta) delta.disabled = true; // the default of the new variant
    }
    follow(event.target);
  }
});

if (form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.assign(formAddress());
  });
}

// --- judging ------------------------------------------------------------------------

document.addEventListener("submit", async (event) => {
  const judged = event.target;
  if (!judged.classList.contains("judge")) return;
  event.preventDefault();
  select(hits().indexOf(judged.closest(".hit")), false);
  const body = new URLSearchParams({ grade: event.submitter.value });
  await replaceResults(judged.action, { method: "POST", body });
});

// --- keys ---------------------------------------------------------------------------

let current = -1;
let prefix = "";

function hits() {
  return [...document.querySelectorAll(".hit")];
}

function select(number, scroll = true) {
  const all = hits();
  if (!all.length || number < 0) return;
  all.forEach((hit) => hit.classList.remove("at"));
  current = Math.min(number, all.length - 1);
  all[current].classList.add("at");
  if (scroll) {
    all[current].focus({ preventScroll: true });
    all[current].scrollIntoView({ block: "nearest" });
  }
}

function press(grade) {
  const place = view === "document" ? document : hits()[current];
  const button = place && place.querySelector(`.judge button[value="${grade}"]`);
  if (button) button.click();
}

function go(selector) {
  const link = document.querySelector(selector);
  if (link) link.click();
}

const views = {
  s: "search", c: "compare", a: "analysis", t: "terms", j: "judged", o: "cost", h: "health",
};
const keys = {
  "/": () => {
    const field = document.querySelector("input[type=search]");
    if (field) { field.focus(); field.select(); }
  },
  j: () => select(current + 1),
  ArrowDown: () => select(current + 1),
  k: () => select(Math.max(current - 1, 0)),
  ArrowUp: () => select(Math.max(current - 1, 0)),
  ArrowLeft: () => go("a[rel=prev]"),
  ArrowRight: () => go("a[rel=next]"),
  Enter: () => { const hit = hits()[current]; if (hit) hit.querySelector("a.id").click(); },
  0: () => press("0"), 1: () => press("1"), 2: () => press("2"), 3: () => press("3"),
  x: () => press("none"),
  y: () => copy("#python"),
  "?": () => document.getElementById("help").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const field = event.target;
  if (field.matches("input, textarea, select")) {
    if (event.key === "Escape") field.blur();
    return;
  }
  // For a moment, the focus stays in a dialog that was closed.
  const isControl = field.matches("a, button, summary") && !field.closest("dialog:not([open])");
  if (document.querySelector("dialog[open]") || (event.key === "Enter" && isControl)) return;
  const name = views[event.key];
  if (prefix === "g") {
    prefix = "";
    if (name) { event.preventDefault(); go(`header nav a[href^="/${name}"]`); }
    return;
  }
  if (event.key === "g") {
    prefix = "g";
    setTimeout(() => { prefix = ""; }, 1500);
    return;
  }
  if (!Object.hasOwn(keys, event.key)) return;
  event.preventDefault();
  keys[event.key]();
});

// --- copying, and what only this file makes useful ---------------------------------

async function copy(selector, button) {
  const source = document.querySelector(selector);
  if (!source) return;
  await navigator.clipboard.writeText(source.value ?? source.textContent);
  const shown = button || document.querySelector(`[data-copy="${selector}"]`);
  if (!shown) return;
  shown.textContent = "Copied";
  setTimeout(() => { shown.textContent = "Copy"; }, 1500);
}

document.querySelectorAll("[data-copy]").forEach((button) => {
  button.hidden = false;
  button.addEventListener("click", () => copy(button.dataset.copy, button));
});
const help = document.getElementById("keys");
help.hidden = false;
help.addEventListener("click", keys["?"]);
if (matchMedia("(max-width: 52rem)").matches) {
  document.querySelectorAll("details[data-wide]").forEach((panel) => { panel.open = false; });
}
