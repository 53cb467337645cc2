"use strict";
// What is typed or dropped -> cards with prediction, probability and critical structure. Names come from anywhere, so
// they only ever become text, and pictures only ever become images, in which no script runs.

const EXAMPLES = {
  aspirin: "CC(=O)Oc1ccccc1C(=O)O",
  caffeine: "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
  ethanol: "CCO",
  nitrobenzene: "[O-][N+](=O)c1ccccc1",
};
const PAUSE = 350; // milliseconds without a key before what is typed is explained
const MOST_NAMED = 12;

const byId = id => document.getElementById(id);
// never all or nothing unless it is
const percent = p => (p > 0.9995 && p < 1 ? "> 99.9%" : p > 0 && p < 0.0005 ? "< 0.1%" : `${(100 * p).toFixed(1)}%`);
const digits = (x, count) => String(Number(x.toPrecision(count)));
const number = x => minus(digits(x, 4));

let about = null;
let latest = 0; // number of the newest question: answers to older ones are dropped
let pictures = []; // addresses of the pictures on the page, to be given back

function lines() {
  return byId("smiles").value.split("\n").map(line => line.trim()).filter(Boolean);
}

async function ask(explained = null) {
  const mine = ++latest;
  const file = byId("file").files[0];
  const typed = lines();
  if (!file && !typed.length) { show([]); tell(""); return; }
  tell("Explaining…");
  byId("answers").classList.add("stale");
  try {
    const answers = file ? await send(file, explained) : await sendTyped(typed, explained);
    if (mine === latest) { tell(""); show(answers.filter(own => !own.error)); complain(skipped(answers)); }
  } catch (error) {
    if (mine === latest) { show([]); tell(""); complain(error.message); }
  }
}

function sendTyped(smiles, explained) {
  const target = byId("target").value || null;
  return post("/explain", JSON.stringify({ smiles, explained, target }), { "content-type": "application/json" });
}

function send(file, explained) {
  if (file.size > about.limits.bytes) throw new Error(`${file.name}: larger than ${about.limits.bytes / 1e6} MB`);
  const form = new FormData();
  form.append("file", file);
  form.append("target", byId("target").value);
  if (explained !== null) form.append("explained", explained);
  return post("/explain/file", form, {});
}

async function post(address, body, headers) {
  let response;
  try {
    response = await fetch(address, { method: "POST", body, headers });
  } catch {
    throw new Error("The server does not answer. Is it still running?");
  }
  const told = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }));
  if (!response.ok) throw new Error(told.error);
  return told.answers;
}

function tell(text) {
  byId("state").textContent = text;
  byId("problem").hidden = true;
}

function complain(text) {
  byId("problem").textContent = text;
  byId("problem").hidden = !text;
}

// the first lines or rows that have no answer, and why
function skipped(answers) {
  const errors = answers.map(own => own.error).filter(Boolean);
  const more = errors.length - MOST_NAMED;
  const told = errors.slice(0, MOST_NAMED).concat(more > 0 ? [`and ${more} more`] : []);
  const [{ graphs: most }, many] = [about.limits, about.reads_smiles ? "molecules" : "graphs"];
  const isFull = byId("file").files.length && answers.length - errors.length === most;
  return told.concat(isFull ? [`Of a file the first ${most} ${many} are explained; egocnn explain takes more.`] : []).join("\n");
}

function show(answers) {
  pictures.forEach(address => URL.revokeObjectURL(address));
  pictures = [];
  const place = byId("answers");
  place.replaceChildren(...answers.map(card));
  place.classList.remove("stale");
  place.classList.toggle("single", answers.length === 1);
  byId("legend").hidden = answers.length === 0;
  byId("report").disabled = answers.length === 0;
  const isValue = answers.length > 0 && answers[0].explained === null;
  byId("word-for").textContent = isValue ? `raises ${answers[0].target || about.target || "the value"}` : "speaks for the class";
  byId("word-against").textContent = isValue ? "lowers it" : "speaks against it";
}

function card(answer) {
  const made = byId("card").content.cloneNode(true).firstElementChild;
  const find = selector => made.querySelector(selector);
  const [predicted, likely] = said(answer);
  find("h2").textContent = answer.name;
  find(".said strong").textContent = predicted;
  find(".probability").textContent = likely;
  if (answer.true !== null) {
    find(".true").textContent = `In the file: ${answer.true}`;
    find(".true").hidden = false;
  }
  picture(made, answer);
  find(".classes").append(...answer.probabilities.map(row => bar(row, answer)));
  find(".targets").append(...answer.targets.map(own => line(own, answer)));
  find(".targets").hidden = !answer.targets.length;
  find(".critical-nodes").textContent = sentence(answer.nothing ?? `critical: ${critical(answer)}`);
  find(".balance").textContent = sentence(minus(answer.balance));
  find(".evidence").textContent = sentence(minus(answer.evidence));
  if (answer.unseen_labels.length) {
    find(".unseen").textContent = `No training ${about.reads_smiles ? "molecule" : "graph"} has ${answer.unseen_labels.join(", ")}: do not rely on this answer.`;
    find(".unseen").hidden = false;
  }
  return made;
}

function picture(made, answer) {
  const image = made.querySelector("img");
  if (answer.svg === null) {
    image.hidden = true;
    made.querySelector(".large").hidden = false;
    return;
  }
  image.src = URL.createObjectURL(new Blob([answer.svg], { type: "image/svg+xml" }));
  image.alt = `${answer.name} with its critical structure outlined`;
  pictures.push(image.src);
}

// a prediction in two parts, the class or the value and how sure it is
function said(answer) {
  const isClass = typeof answer.predicted === "string";
  const doubt = answer.spread === null ? "" : ` ± ${isClass ? percent(answer.spread) : digits(answer.spread, 2)}`;
  return [isClass ? inWords(answer.predicted) : number(answer.predicted), (isClass ? percent(answer.probability) : "") + doubt];
}

// a class as a sentence names it: 1 alone would be read as a number
function inWords(name) {
  return /^\p{L}/u.test(name) && !["True", "False"].includes(name) ? name : `class ${name}`;
}

function bar(row, answer) {
  const parts = [["name", row.name], ["bar", ""], ["number", percent(row.probability)]];
  const item = choice(parts, `Show what speaks for ${inWords(row.name)}`, row.name === answer.explained, () => ask(row.name));
  const filled = document.createElement("i");
  filled.style.width = `${100 * row.probability}%`;
  item.querySelector(".bar").append(filled);
  return item;
}

// one of several targets
function line(own, answer) {
  const parts = [["name", own.name], ["number", said(own).join(" ")]];
  const explain = () => { byId("target").value = own.name; ask(); };
  return choice(parts, `Explain ${own.name}`, own.name === answer.target, explain);
}

function choice(parts, title, isPressed, act) {
  const item = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  button.title = title;
  button.setAttribute("aria-pressed", String(isPressed));
  for (const [kind, text] of parts) {
    const part = document.createElement("span");
    part.className = kind;
    part.textContent = text;
    button.append(part);
  }
  button.addEventListener("click", act);
  item.append(button);
  return item;
}

// what counts most comes first; of a value, what raises it and what lowers it apart
function critical(answer) {
  const importance = answer.node_importance;
  if (answer.explained !== null) return named(answer, answer.critical_nodes);
  const sides = [["raised by", node => importance[node] > 0], ["lowered by", node => importance[node] <= 0]];
  const said = sides.map(([word, is]) => [word, answer.critical_nodes.filter(is)]).filter(([, nodes]) => nodes.length);
  return said.map(([word, nodes]) => `${word} ${named(answer, nodes)}`).join("; ");
}

function named(answer, chosen) {
  const size = node => (answer.explained === null ? Math.abs : Number)(answer.node_importance[node]);
  const nodes = [...chosen].sort((u, v) => size(v) - size(u));
  const names = nodes.slice(0, MOST_NAMED).map(node => `${answer.node_labels[node] ?? ""}${node}`).join(", ");
  const more = nodes.length - MOST_NAMED;
  return names + (more > 0 ? ` and ${more} more` : "");
}

function minus(text) {
  return text.replaceAll(/(?<!\w)-(?=[\d.])/g, "−");
}

function sentence(text) {
  return text && `${text[0].toUpperCase()}${text.slice(1)}.`;
}

// ── input ───────────────────────────────────────────────────────────────────────────────────────

let pause = 0;

function typed() {
  byId("file").value = ""; // one source at a time: the report takes what the form holds
  clearTimeout(pause);
  pause = setTimeout(ask, PAUSE);
}

function chosen() {
  clearTimeout(pause);
  byId("smiles").value = "";
  ask();
}

function example([name, smiles]) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = name;
  button.addEventListener("click", () => { byId("smiles").value = `${smiles} ${name}`; byId("file").value = ""; ask(); });
  return button;
}

function listen() {
  byId("smiles").addEventListener("input", typed);
  byId("file").addEventListener("change", chosen);
  byId("target").addEventListener("change", () => ask());
  byId("explain").addEventListener("click", () => { clearTimeout(pause); ask(); });
  byId("smiles").addEventListener("keydown", event => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { clearTimeout(pause); ask(); }
  });
  const over = on => event => { event.preventDefault(); document.body.classList.toggle("over", on); };
  document.addEventListener("dragover", over(true));
  document.addEventListener("dragleave", over(false));
  document.addEventListener("drop", event => {
    over(false)(event);
    if (!event.dataTransfer.files.length) return;
    byId("file").files = event.dataTransfer.files;
    chosen();
  });
}

async function start() {
  about = await (await fetch("/model")).json();
  document.title = about.name;
  byId("model").textContent = about.name;
  const known = about.task === "classification" ? about.classes.map(inWords).join(" or ") : about.target || "a value";
  const what = about.target && about.classes.length ? `${about.target} (${known})` : known;
  const says = about.targets.map(({ name }) => name).join(", ") || what;
  const origin = about.data ? `Trained on ${about.data}. ` : "";
  const [one, many] = about.reads_smiles ? ["molecule", "molecules"] : ["graph", "graphs"];
  byId("about").textContent = `${origin}Predicts ${says} and shows which part of the ${one} made it say so.`;
  byId("drop").querySelector("label").textContent = `A file of ${many}`;
  const kinds = about.limits.files.filter(ending => about.reads_smiles || !/[ct]sv|tab|smi|sdf/.test(ending));
  byId("file").accept = kinds.join(",");
  byId("formats").textContent = `Choose one or drop it anywhere on the page: ${kinds.join(" ")}; up to ${about.limits.graphs} ${many}.`;
  byId("typed").hidden = !about.reads_smiles;
  byId("target").append(...about.targets.map(({ name }) => new Option(name, name)));
  byId("target").disabled = byId("which").hidden = !about.targets.length;
  byId("examples").append(...Object.entries(EXAMPLES).map(example));
  listen();
  document.documentElement.dataset.ready = "";
}

start().catch(() => complain("The server does not answer. Is it still running?"));
