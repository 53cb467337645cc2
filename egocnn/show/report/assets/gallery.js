"use strict";
// The cards: filtered, sorted and in pages; a thumbnail is drawn when it comes near the screen.

const Gallery = (() => {
  const PER_PAGE = 48;
  const { facts, summary } = Data;
  const classes = summary.class_names.length > 0;
  const natural = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  // what to sort by: label, number (null: unknown, always last), whether large comes first at the start
  const SORTS = {
    given: { said: "Order of the data", of: (fact) => fact.index },
    name: { said: "Name", of: null },
    probability: { said: "Probability", of: (fact) => fact.probability, down: true },
    spread: { said: "Spread of the networks", of: (fact) => fact.spread, down: true },
    error: { said: "Error", of: (fact) => fact.error, down: true },
    size: { said: "Size of the graph", of: (fact) => fact.nodes },
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

  function card(fact) {
    const text = element("div", {}, element("strong", { title: fact.name }, fact.name || "(no name)"));
    const isClass = typeof fact.predicted === "string";
    // a doubt of less than a hundredth is not worth a second line
    const brief = isClass && fact.spread < 0.01 ? { ...fact, spread: null } : fact;
    const sure = isClass && fact.probability !== null ? `${fact.predicted} (${Data.sure(brief)})` : Data.sure(fact);
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

  function matching() {
    const text = byId("search").value.trim().toLowerCase();
    const [predicted, truth, outcome] = ["by-predicted", "by-true", "by-outcome"].map((id) => byId(id).value);
    return facts.filter(
      (fact) =>
        (!text || fact.name.toLowerCase().includes(text)) &&
        (!predicted || fact.predicted === summary.class_names[Number(predicted) - 1]) &&
        (!truth || fact.truth === summary.class_names[Number(truth) - 1]) &&
        (!outcome || fact.right === (outcome === "right")),
    );
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
        ? `${Data.count(facts.length)} ${facts.length === 1 ? "graph" : "graphs"}`
        : `${Data.count(order.length)} of ${Data.count(facts.length)} graphs`;
    byId("found").hidden = !facts.length;
    byId("nothing").hidden = order.length > 0;
    byId("nothing").firstElementChild.textContent = facts.length
      ? "No graph fits these filters."
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
    byId("filters").hidden = !facts.length;
    for (const id of ["search", "by-predicted", "by-true", "by-outcome"]) byId(id).addEventListener("input", update);
    byId("sort").addEventListener("input", () => {
      direction(Boolean(SORTS[byId("sort").value].down));
      update();
    });
    byId("order").addEventListener("click", () => {
      direction(!descending);
      update();
    });
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    byId("clear").addEventListener("click", () => {
      byId("filters").reset();
      direction(false);
      update();
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

  return { start, beside, placeOf };
})();
