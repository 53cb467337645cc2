"use strict";
// The cards: filtered, sorted and in pages; a thumbnail is drawn when it comes near the screen.

const Gallery = (() => {
  const PER_PAGE = 48;
  const { facts, summary } = Data;
  const classes = summary.class_names.length > 0;
  const natural = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  const PARTS = { train: "Trained on", validation: "Chosen by (validation)", test: "Test, not trained on" };

  // a value, or the place of a class among the classes
  const place = (value) =>
    typeof value === "string" ? Math.max(summary.class_names.indexOf(value), 0) : value;

  // what to sort by: label, number (null: unknown, always last), whether large comes first at the start
  const SORTS = {
    given: { said: "Order of the data", of: (fact) => fact.index },
    name: { said: "Name", of: null },
    predicted: { said: "Predicted", of: (fact) => place(fact.predicted), down: true },
    true: { said: "True", of: (fact) => place(fact.truth), down: true },
    probability: { said: "Probability", of: (fact) => fact.probability, down: true },
    spread: { said: "Spread of the networks", of: (fact) => fact.spread, down: true },
    error: { said: "Error", of: (fact) => fact.error, down: true },
    size: { said: say("Size of the graph"), of: (fact) => fact.nodes },
    share: { said: "Size of the structure", of: (fact) => fact.share },
    kept: { said: "Evidence kept by the structure", of: (fact) => fact.evidenceKept, down: true },
    lost: { said: "Evidence gone without it", of: (fact) => fact.evidenceLost, down: true },
  };

  let order = facts;
  let page = 0;
  let descending = false;

  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        observer.unobserve(entry.target);
        thumbnail(entry.target);
      }
    },
    { rootMargin: "300px" },
  );

  function thumbnail(canvas) {
    if (!canvas.isConnected) return;
    if (!Data.isThere(Number(canvas.dataset.index))) {
      addEventListener("DOMContentLoaded", () => thumbnail(canvas), { once: true }); // the file is still being read
      return;
    }
    const graph = Data.graph(Number(canvas.dataset.index));
    const box = canvas.getBoundingClientRect();
    const size = [box.width || 220, box.height || 165];
    Picture.draw(canvas, ...size, { graph, row: graph.input, selection: Selection.own(graph) });
    canvas.dataset.drawn = "yes";
  }

  function verdict(fact) {
    if (fact.truth === null) return "True: unknown";
    if (!classes) return `True: ${Data.said(fact.truth)}`;
    const mark = element("span", { class: fact.right ? "right" : "wrong" }, fact.right ? "✓ right" : "✗ wrong");
    return element("span", {}, `True: ${Data.said(fact.truth)} `, mark);
  }

  const brief = (part) => ({ train: "trained on", validation: "validation", test: "test" })[part] || "";

  function card(fact) {
    const text = element("div", {}, element("strong", { title: fact.name }, fact.name || "(no name)"));
    if (PARTS[fact.part]) text.append(element("span", { class: "part", "data-part": fact.part }, brief(fact.part)));
    const isClass = typeof fact.predicted === "string";
    // a doubt of less than a hundredth is not worth a second line
    const told = isClass && fact.spread < 0.01 ? { ...fact, spread: null } : fact;
    const sure = isClass && fact.probability !== null ? `${fact.predicted} (${Data.sure(told)})` : Data.sure(fact);
    text.append(element("span", {}, `Predicted: ${sure}`), element("br"), verdict(fact));
    if (!fact.critical) text.append(element("br"), element("em", {}, "Nothing stands out"));
    if (fact.probability !== null) {
      const bar = element("i");
      bar.style.width = `${100 * fact.probability}%`;
      text.append(element("span", { class: "meter", "aria-hidden": "true" }, bar));
    }
    const canvas = element("canvas", { "data-index": fact.index, "aria-hidden": "true" });
    observer.observe(canvas);
    return element("li", {}, element("a", { class: "card", href: `#graph=${fact.index + 1}` }, canvas, text));
  }

  // a name by a part of it; SMILES as the data have them or as RDKit writes them, whole or in part
  function isNamed(fact, text) {
    return (
      fact.name.toLowerCase().includes(text.toLowerCase()) ||
      [fact.smiles, fact.canonical].some((smiles) => smiles && smiles.includes(text))
    );
  }

  function matching() {
    const text = byId("search").value.trim();
    const [predicted, truth, outcome, part] = ["by-predicted", "by-true", "by-outcome", "by-part"].map(
      (id) => byId(id).value,
    );
    const group = Data.groups[byId("by-group").value];
    return facts.filter(
      (fact) =>
        (!text || isNamed(fact, text)) &&
        (!predicted || fact.predicted === summary.class_names[Number(predicted) - 1]) &&
        (!truth || fact.truth === summary.class_names[Number(truth) - 1]) &&
        (!outcome || fact.right === (outcome === "right")) &&
        (!part || fact.part === part) &&
        (!group || group.in.has(fact.index)) &&
        (!pattern || pattern.in.has(fact.index)),
    );
  }

  // ── SMARTS ────────────────────────────────────────────────────────────────────────────────────

  let pattern = null; // what was searched for last: a group like those that came with the page, and where it lies
  let [asked, searched] = [0, ""];
  const chemistry = [];

  function moleculeOf(index) {
    if (!(index in chemistry)) {
      const found = Data.chemistry(index);
      chemistry[index] = found && Smarts.molecule(found);
    }
    return chemistry[index];
  }

  const pause = () => new Promise((resume) => setTimeout(resume, 0));

  // Goes through all molecules in slices, so that the page answers meanwhile; a newer search ends an older one.
  async function searchSmarts() {
    const text = byId("smarts").value.trim();
    if (text === searched) return; // a browser may tell of one change twice
    searched = text;
    const mine = ++asked;
    const say = (words) => (byId("smarts-said").textContent = words);
    say("");
    byId("smarts").removeAttribute("aria-invalid");
    pattern = null;
    let query = null;
    try {
      query = text && Smarts.parse(text);
    } catch (error) {
      byId("smarts").setAttribute("aria-invalid", "true");
      say(`SMARTS: ${error.message}.`);
    }
    if (!query) {
      update();
      return;
    }
    const found = { name: text, in: new Set(), means: [], atoms: new Map() };
    const [at, sums] = [[], []];
    let slice = performance.now();
    for (let index = 0; index < facts.length; index++) {
      if (performance.now() - slice > 40) {
        say(`Searching: ${Data.count(index)} of ${Data.count(facts.length)} molecules`);
        await pause();
        if (mine !== asked) return;
        slice = performance.now();
      }
      const molecule = moleculeOf(index);
      const places = molecule ? Smarts.matches(molecule, query) : [];
      if (!places.length) continue;
      found.in.add(index);
      found.atoms.set(index, places);
      const values = Data.importances(index);
      for (const atoms of places) {
        at.push(index);
        sums.push(atoms.reduce((all, n) => all + values[n], 0));
      }
    }
    found.means = Data.means(at, sums);
    pattern = found;
    say("");
    update();
  }

  // ── what a group counts for over the whole set ────────────────────────────────────────────────

  function meanOf(group) {
    const often = (times) => (times === 1 ? "once" : `${Data.count(times)} times`);
    const told = group.means.map(({ explained, molecules, times, mean }) => {
      if (explained === null)
        return `${often(times)}, with a mean contribution of ${Data.signed(mean)} (${mean < 0 ? "lowers" : "raises"} ${Data.target.brief || "the value"})`;
      const where = `where ${Data.named(explained)} is explained (${Data.count(molecules.size)} molecules, ${often(times)})`;
      return `${where}, a mean contribution of ${Data.signed(mean)} (${mean < 0 ? "against" : "for"} ${Data.named(explained)})`;
    });
    return `${group.name}: in ${Data.count(group.in.size)} of ${Data.count(facts.length)} molecules; ${told.join("; ")}.`;
  }

  function tellGroups() {
    const chosen = [Data.groups[byId("by-group").value], pattern].filter(Boolean);
    byId("group-said").replaceChildren(
      ...chosen.map((group) => element("p", {}, group.in.size ? meanOf(group) : `${group.name}: in no molecule.`)),
    );
  }

  // ── the table, as a file ──────────────────────────────────────────────────────────────────────

  // a spreadsheet runs nothing of it, and a comma stays where it was
  function cell(value) {
    if (value === null || value === undefined) return "";
    const text = String(value);
    const harmless = typeof value === "string" && /^[=+\-@\t\r]/.test(text) && isNaN(Number(text)) ? `'${text}` : text;
    return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
  }

  function table() {
    const columns = {
      name: (fact) => fact.name,
      smiles: (fact) => fact.smiles || fact.canonical,
      predicted: (fact) => fact.predicted,
      probability: (fact) => fact.probability,
      spread: (fact) => fact.spread,
      true: (fact) => fact.truth,
      error: (fact) => fact.error === null ? null : Number(fact.error.toPrecision(4)),
      part: (fact) => fact.part,
      [summary.molecules ? "atoms" : "nodes"]: (fact) => fact.nodes,
      critical: (fact) => fact.critical,
      evidence_kept: (fact) => fact.evidenceKept,
      evidence_lost: (fact) => fact.evidenceLost,
    };
    const used = Object.entries(columns).filter(([, of]) => facts.some((fact) => of(fact) !== null));
    const rows = order.map((fact) => used.map(([, of]) => cell(of(fact))).join(","));
    return [used.map(([name]) => name).join(","), ...rows, ""].join("\n");
  }

  function sorted(found) {
    const value = SORTS[byId("sort").value].of;
    const sign = descending ? -1 : 1;
    return found.sort((a, b) => {
      if (!value) return sign * natural.compare(a.name, b.name) || a.index - b.index;
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null) || a.index - b.index;
      return sign * (x - y) || a.index - b.index;
    });
  }

  function show() {
    observer.disconnect();
    const pages = Math.max(Math.ceil(order.length / PER_PAGE), 1);
    page = Math.min(Math.max(page, 0), pages - 1);
    const shown = order.slice(page * PER_PAGE, (page + 1) * PER_PAGE);
    byId("cards").replaceChildren(...shown.map(card));
    byId("found").textContent =
      order.length === facts.length
        ? `${Data.count(facts.length)} ${say(facts.length === 1 ? "graph" : "graphs")}`
        : `${Data.count(order.length)} of ${Data.count(facts.length)} ${say("graphs")}`;
    byId("found").hidden = !facts.length;
    byId("nothing").hidden = order.length > 0;
    byId("nothing").firstElementChild.textContent = facts.length
      ? say("No graph fits these filters.")
      : "There are no graphs in this report.";
    byId("clear").hidden = !facts.length;
    byId("pager").hidden = pages === 1;
    byId("page-number").textContent = `Page ${page + 1} of ${pages}`;
    byId("page-back").disabled = page === 0;
    byId("page-on").disabled = page === pages - 1;
  }

  function update() {
    order = sorted(matching());
    page = 0;
    tellGroups();
    show();
  }

  function turn(by) {
    page += by;
    show();
    byId("gallery").scrollIntoView();
    byId("gallery").focus({ preventScroll: true });
  }

  function direction(down) {
    descending = down;
    byId("order").textContent = down ? "Descending" : "Ascending";
    byId("order").setAttribute("aria-pressed", String(down));
  }

  function choices(id, names) {
    byId(id).replaceChildren(element("option", { value: "" }, "All"));
    names.forEach((name, i) => byId(id).append(element("option", { value: i + 1 }, name)));
    byId(id).parentElement.hidden = !names.length;
  }

  function start() {
    const truths = facts.some((fact) => fact.truth !== null);
    choices("by-predicted", summary.class_names);
    choices("by-true", truths ? summary.class_names : []);
    byId("by-outcome").parentElement.hidden = !classes || !truths;
    for (const [name, { said, of }] of Object.entries(SORTS)) {
      // an order by something that no graph has would only puzzle
      if (!of || facts.some((fact) => of(fact) !== null)) byId("sort").append(element("option", { value: name }, said));
    }
    for (const [part, said] of Object.entries(PARTS)) {
      if (facts.some((fact) => fact.part === part)) byId("by-part").append(element("option", { value: part }, said));
    }
    byId("by-part").parentElement.hidden = byId("by-part").options.length < 2;
    Data.groups.forEach(({ name, in: own }, i) =>
      byId("by-group").append(element("option", { value: i }, `${name} (${Data.count(own.size)})`)),
    );
    byId("by-group").parentElement.hidden = !Data.groups.length;
    byId("smarts").parentElement.hidden = !summary.molecules;
    if (!summary.molecules) byId("search").parentElement.firstChild.data = "Name ";
    byId("filters").hidden = !facts.length;
    byId("save-csv").hidden = !facts.length;
    const filters = ["search", "by-predicted", "by-true", "by-outcome", "by-part", "by-group"];
    for (const id of filters) byId(id).addEventListener("input", update);
    byId("smarts").addEventListener("change", searchSmarts);
    byId("smarts").addEventListener("search", searchSmarts); // the cross in the field empties it
    byId("save-csv").addEventListener("click", () => save(new Blob([table()], { type: "text/csv" }), summary.molecules ? "molecules" : "graphs", "csv"));
    byId("sort").addEventListener("input", () => {
      direction(Boolean(SORTS[byId("sort").value].down));
      update();
    });
    byId("order").addEventListener("click", () => {
      direction(!descending);
      update();
    });
    byId("filters").addEventListener("submit", (event) => event.preventDefault()); // Enter is told as a change
    byId("clear").addEventListener("click", () => {
      byId("filters").reset();
      direction(false);
      update();
      searchSmarts();
      byId("search").focus();
    });
    byId("page-back").addEventListener("click", () => turn(-1));
    byId("page-on").addEventListener("click", () => turn(1));
    Picture.dark.addEventListener("change", show);
    update();
  }

  // the graph before or after this one, in the order that is on the screen
  function beside(index, by) {
    const at = order.findIndex((fact) => fact.index === index);
    const list = at < 0 ? facts : order;
    const found = list[(at < 0 ? index : at) + by];
    return found ? found.index : null;
  }

  function placeOf(index) {
    const at = order.findIndex((fact) => fact.index === index);
    return at < 0 ? [index + 1, facts.length] : [at + 1, order.length];
  }

  // where the pattern that was searched for lies in this molecule, as groups
  const foundIn = (index) => (pattern ? pattern.atoms.get(index) || [] : []).map((atoms) => ({ ...pattern, atoms }));

  return { start, beside, placeOf, foundIn, meanOf, PARTS };
})();
