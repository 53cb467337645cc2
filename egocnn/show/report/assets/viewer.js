"use strict";
// One graph in full: pan and zoom, importances under the pointer, the threshold, the layers, and downloads.

const Viewer = (() => {
  const LISTED = 12;
  const dialog = byId("viewer");
  let shown = null; // { index, graph, steps, selection, layer, chosen, cy }
  let playing = null;
  let moves = null;

  const row = () => shown.graph.rows[shown.layer];
  const picture = () => ({
    ...{ graph: shown.graph, row: row(), selection: shown.selection },
    ...{ marks: byId("known").checked, numbers: byId("numbers").checked },
  });

  // ── what is said ──────────────────────────────────────────────────────────────────────────────

  // what adds up to the output is called a contribution; on the way down the layers it does not yet
  const word = () => (shown.graph.addsUp && row() === shown.graph.input ? "contribution" : "importance");

  function side(value) {
    if (value === 0) return `no ${word()}`;
    const { explained } = shown.graph;
    const [raised, lowered] = explained === null ? ["raises", "lowers"] : ["for", "against"];
    const what = explained === null ? Data.target.brief || "the value" : Data.named(explained);
    return `${word()} ${Data.signed(value)} (${value > 0 ? raised : lowered} ${what})`;
  }

  // what the data call a node, or its number
  const called = (n) => (shown.graph.nodeNames ? shown.graph.nodeNames[n] : String(n));

  function describeNode(n) {
    const label = shown.graph.nodeLabels ? ` · ${shown.graph.nodeLabels[n]}` : "";
    return `${say("Node")} ${called(n)}${label} · ${side(row().nodes[n])}`;
  }

  function describeEdge(e) {
    const { edges, edgeLabels } = shown.graph;
    const label = edgeLabels ? ` · ${edgeLabels[e]}` : "";
    return `${say("Edge")} ${called(edges[2 * e])}–${called(edges[2 * e + 1])}${label} · ${side(row().edges[e])}`;
  }

  // n7: the node 7, e5: the edge 5
  function describe(id) {
    const number = Number(id.slice(1));
    return id[0] === "n" ? describeNode(number) : describeEdge(number);
  }

  function tell(text) {
    byId("readout").textContent = text || say("Point at or tap a node or an edge.");
  }

  function countStructure() {
    const { graph, selection } = shown;
    const E = graph.edges.length / 2;
    const why = selection.own
      ? "the model’s own selection"
      : `${graph.addsUp ? "contribution" : "importance"} of at least ${Data.number(selection.threshold)}`;
    byId("count").textContent =
      `${Data.count(selection.nodes.size)} of ${Data.count(graph.nodes)} ${say("nodes")}, ` +
      `${Data.count(selection.edges.size)} of ${Data.count(E)} ${say("edges")}: ${why}`;
    byId("threshold").setAttribute("aria-valuetext", `${selection.nodes.size} ${say("nodes")}, ${why}`);
    byId("own").disabled = selection.own;
  }

  function facts() {
    const { graph } = shown;
    const isClass = typeof graph.predicted === "string";
    const list = Data.target.name ? [["Target", Data.target.name]] : [];
    list.push(["Predicted", isClass ? graph.predicted : Data.sure(graph)]);
    if (graph.probability !== null) list.push(["Probability", Data.sure(graph)]);
    const mark = graph.right === null || typeof graph.truth === "number" ? "" : graph.right ? " ✓" : " ✗";
    list.push(["True", Data.said(graph.truth) + mark]);
    if (graph.error !== null && !isClass) list.push(["Error", Data.said(graph.error)]);
    if (graph.part in Gallery.PARTS) list.push(["Part", Gallery.PARTS[graph.part]]);
    if (graph.explained !== null) list.push(["Explained", graph.explained]);
    if (graph.drawn) list.push(["Drawn", graph.drawn.replace("drawn: ", "")]);
    else list.push(["Size", say(`${Data.count(graph.nodes)} nodes, ${Data.count(graph.edges.length / 2)} edges`)]);
    if (graph.smiles || graph.canonical) list.push(["SMILES", graph.smiles || graph.canonical, "code"]);
    byId("facts").replaceChildren(
      ...list.flatMap(([name, value, kind]) => [element("dt", {}, name), element("dd", { class: kind }, value)]),
    );
    byId("balance").textContent = sentence(graph.balance);
    byId("evidence").textContent = sentence(graph.evidence);
    byId("evidence").classList.toggle("quiet", graph.critical > 0);
  }

  const sentence = (text) => text && `${text[0].toUpperCase()}${text.slice(1)}.`;

  function table() {
    const values = row().nodes;
    byId("column").textContent = sentence(word()).slice(0, -1);
    const order = Array.from(values.keys())
      .filter((n) => values[n] !== 0)
      .sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]));
    const most = Math.abs(values[order[0]]);
    byId("ranking").replaceChildren(
      ...order.slice(0, LISTED).map((n) => {
        const pick = element("button", { type: "button", "aria-label": `${say("Show node")} ${called(n)}` }, called(n));
        pick.addEventListener("click", () => choose(`n${n}`, true));
        pick.addEventListener("focus", () => choose(`n${n}`, false));
        const bar = element("span", { class: values[n] < 0 ? "bar-against" : "bar-for", "aria-hidden": "true" });
        bar.style.width = `${(3 * Math.abs(values[n])) / most}rem`;
        const label = shown.graph.nodeLabels ? shown.graph.nodeLabels[n] : "–";
        return element(
          "tr",
          { "data-node": n },
          element("td", {}, pick),
          element("td", {}, label),
          element("td", {}, Data.signed(values[n]), bar),
        );
      }),
    );
    if (!order.length)
      byId("ranking").append(element("tr", {}, element("td", { colspan: 3 }, say(`No node has any ${word()} here.`))));
  }

  // ── what is drawn ─────────────────────────────────────────────────────────────────────────────

  function redraw() {
    Canvas.restyle(shown.cy, picture());
    byId("canvas").setAttribute(
      "aria-label",
      `${shown.graph.name}: ${byId("count").textContent}. ${byId("layer-said").textContent}`,
    );
  }

  function choose(id, centre) {
    shown.chosen = id;
    const found = Canvas.highlight(shown.cy, id, centre, shown.group ? shown.group.atoms : []);
    for (const line of byId("ranking").children) line.classList.toggle("chosen", `n${line.dataset.node}` === id);
    tell(found ? describe(id) : "");
  }

  // ── groups ────────────────────────────────────────────────────────────────────────────────────

  const sumOf = (atoms) => atoms.reduce((all, n) => all + shown.graph.input.nodes[n], 0);

  // the groups of the molecule, those that were searched for first; a click marks one and tells its mean over the set
  function listGroups() {
    shown.groups = [...Gallery.foundIn(shown.index), ...shown.graph.groups];
    byId("groups-section").hidden = !shown.groups.length;
    byId("groups").replaceChildren(
      ...shown.groups.map((group) => {
        const pick = element("button", { type: "button", "aria-pressed": "false" });
        pick.append(element("span", {}, group.name), element("span", {}, Data.signed(sumOf(group.atoms))));
        pick.addEventListener("click", () => chooseGroup(group === shown.group ? null : group));
        return element("li", {}, pick);
      }),
    );
    chooseGroup(null);
  }

  function chooseGroup(group) {
    shown.group = group;
    [...byId("groups").children].forEach((line, i) =>
      line.firstChild.setAttribute("aria-pressed", String(shown.groups[i] === group)),
    );
    byId("group-mean").textContent = group
      ? `Here ${Data.signed(sumOf(group.atoms))}. ${Gallery.meanOf(group)}`
      : "Choose a group, or tap one of its atoms, to see what it counts for in the whole set.";
    if (shown.cy) choose(shown.chosen, false);
  }

  // the first group that holds the atom; tapped again, the next one
  function tap(id) {
    const holding = id && id[0] === "n" ? shown.groups.filter(({ atoms }) => atoms.includes(Number(id.slice(1)))) : [];
    const next = id === shown.chosen ? holding.indexOf(shown.group) + 1 : 0;
    shown.chosen = id;
    chooseGroup(holding[next % holding.length] || null);
  }

  function setLayer(layer) {
    shown.layer = layer;
    const last = shown.graph.rows.length - 1;
    byId("layers").querySelectorAll("input")[layer].checked = true;
    byId("layer-said").textContent =
      layer === last
        ? "At the input: what the critical structure is chosen by."
        : layer === 0
          ? "At the top layer: where the prediction was read from."
          : `${layer} of ${last} steps down from the top layer to the input.`;
    table();
    redraw();
    choose(shown.chosen, false);
  }

  function layers() {
    const last = shown.graph.rows.length - 1;
    byId("layers-section").hidden = last === 0;
    byId("layers").replaceChildren(
      ...shown.graph.rows.map((_, layer) => {
        const input = element("input", { type: "radio", name: "layer", value: layer });
        input.addEventListener("change", () => {
          stop();
          setLayer(layer);
        });
        const text = layer === 0 && last > 0 ? "Top" : layer === last ? "Input" : String(layer);
        return element("label", {}, input, element("span", {}, text));
      }),
    );
  }

  function stop() {
    clearInterval(playing);
    playing = null;
    byId("play").textContent = "Play from the top down";
  }

  function play() {
    if (playing) return stop();
    setLayer(0);
    byId("play").textContent = "Stop";
    playing = setInterval(() => {
      if (shown.layer < shown.graph.rows.length - 1) setLayer(shown.layer + 1);
      else stop();
    }, 1100);
  }

  function setThreshold() {
    shown.selection = Selection.first(shown.graph, shown.steps, Number(byId("threshold").value));
    countStructure();
    redraw();
  }

  function ownSelection() {
    shown.selection = Selection.own(shown.graph);
    byId("threshold").value = Selection.startingCount(shown.graph, shown.steps);
    countStructure();
  }

  // ── downloads ─────────────────────────────────────────────────────────────────────────────────

  function savePng() {
    const { width, height } = Picture.frame(shown.graph);
    const zoom = Math.min(Math.max(1200 / Math.max(width, height), 0.5), 6, 6000 / Math.max(width, height));
    const canvas = document.createElement("canvas");
    Picture.draw(canvas, width * zoom, height * zoom, { ...picture(), background: true }, zoom);
    canvas.toBlob((blob) => save(blob, shown.graph.name, "png"), "image/png");
  }

  // the same fields as a line of structures.jsonl, and the threshold where the reader chose one
  function saveJson() {
    const { graph, selection } = shown;
    const ends = (e) => [graph.edges[2 * e], graph.edges[2 * e + 1]];
    const short = (value) => Number(value.toPrecision(4));
    const ascending = (set) => [...set].sort((a, b) => a - b);
    const plain = {
      name: graph.name,
      predicted: graph.predicted,
      probability: graph.probability,
      true: graph.truth,
      class: graph.explained,
      technique: graph.technique,
      base: graph.sums[0],
      for: graph.sums[1],
      against: graph.sums[2],
      output: graph.sums[3],
      spread: graph.spread,
      node_importance: Array.from(graph.input.nodes, short),
      edge_importance: Array.from(graph.input.edges, (value, e) => [...ends(e), short(value)]),
      critical_nodes: ascending(selection.nodes),
      critical_edges: ascending(selection.edges).map(ends),
      fidelity: graph.fidelity,
      ...(graph.nodeNames ? { node_names: graph.nodeNames } : {}),
      ...(selection.own ? {} : { threshold: short(selection.threshold) }),
    };
    save(new Blob([JSON.stringify(plain)], { type: "application/json" }), graph.name, "json");
  }

  // ── opening and closing ───────────────────────────────────────────────────────────────────────

  function show(index) {
    discard();
    const graph = Data.graph(index);
    shown = { index, graph, steps: Selection.steps(graph), layer: graph.rows.length - 1 };
    Object.assign(shown, { chosen: null, group: null, groups: [], cy: null });
    if (!dialog.open) dialog.showModal();
    byId("name").textContent = graph.name || "(no name)";
    const [place, all] = Gallery.placeOf(index);
    byId("place").textContent = `${Data.count(place)} of ${Data.count(all)}`;
    byId("previous").disabled = Gallery.beside(index, -1) === null;
    byId("next").disabled = Gallery.beside(index, 1) === null;
    byId("threshold").max = Math.max(shown.steps.length, 1);
    byId("threshold").disabled = shown.steps.length === 0;
    byId("known-choice").hidden = !graph.known;
    for (const mark of dialog.querySelectorAll(".legend .known")) mark.parentElement.hidden = !graph.known;
    byId("lookup").value = "";
    facts();
    layers();
    ownSelection();
    shown.cy = Canvas.build(byId("canvas"), picture(), {
      point: (id) => (id ? tell(describe(id)) : choose(shown.chosen, false)),
      tap,
    });
    listGroups();
    setLayer(shown.layer);
    byId("name").focus();
  }

  function discard() {
    stop();
    if (shown && shown.cy) shown.cy.destroy();
    shown = null;
  }

  function hide() {
    discard();
    if (dialog.open) dialog.close();
  }

  function beside(by) {
    const index = Gallery.beside(shown.index, by);
    if (index !== null) moves.go(index);
  }

  function keys(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, select")) return;
    if (event.key === "ArrowLeft") beside(-1);
    if (event.key === "ArrowRight") beside(1);
  }

  function start(given) {
    moves = given;
    const on = (id, kind, act) => byId(id).addEventListener(kind, act);
    on("close", "click", moves.leave);
    on("previous", "click", () => beside(-1));
    on("next", "click", () => beside(1));
    on("zoom-in", "click", () => Canvas.zoom(shown.cy, 1.4));
    on("zoom-out", "click", () => Canvas.zoom(shown.cy, 1 / 1.4));
    on("fit", "click", () => Canvas.fit(shown.cy));
    on("threshold", "input", setThreshold);
    on("own", "click", () => {
      ownSelection();
      redraw();
    });
    on("play", "click", play);
    on("known", "change", redraw);
    on("numbers", "change", redraw);
    on("lookup", "input", () => {
      const wanted = byId("lookup").value.trim();
      const { nodeNames, nodes } = shown.graph;
      const n = nodeNames ? nodeNames.indexOf(wanted) : /^\d+$/.test(wanted) ? Number(wanted) : -1;
      if (n >= 0 && n < nodes) choose(`n${n}`, true);
    });
    on("save-svg", "click", () => save(new Blob([Picture.svg(picture())], { type: "image/svg+xml" }), shown.graph.name, "svg"));
    on("save-png", "click", savePng);
    on("save-json", "click", saveJson);
    dialog.addEventListener("keydown", keys);
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      moves.leave();
    });
    dialog.addEventListener("close", () => shown && moves.leave()); // a browser may insist on closing
    Picture.dark.addEventListener("change", () => shown && setLayer(shown.layer));
  }

  return { start, show, hide, isOpen: () => dialog.open };
})();
