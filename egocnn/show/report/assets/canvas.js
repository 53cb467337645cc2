"use strict";
// A picture -> a cytoscape canvas, and the changes to one that is there: colours, sizes, what is pointed at.

const Canvas = (() => {
  // Everything lies in one order from back to front: the halos of edges and nodes, the contour around what is critical
  // in a molecule with the halos inside it, the strokes, the nodes, the rings.
  const DEPTH = {
    ...{ glow: 1, halo: 2, crowd: 2, outline: 2.2, inside: 2.3, innerGlow: 2.4, innerHalo: 2.5 },
    ...{ stroke: 3, critical: 3.5, node: 4, letter: 4.8, ring: 5 },
  };
  const ATOM = { letters: 15, size: 24, opacity: 0, border: 0, depth: DEPTH.node };

  const CLOSEST = 2.6;

  const STYLE = [
    {
      selector: "node, edge",
      style: { "z-index-compare": "manual", "z-index": "data(depth)", "overlay-opacity": 0 },
    },
    {
      selector: "node",
      style: {
        width: "data(size)",
        height: "data(size)",
        "background-color": "data(fill)",
        "background-opacity": "data(opacity)",
        "border-width": 0,
      },
    },
    {
      selector: "node.body",
      style: { "border-width": "data(border)", "border-color": "data(ink)" },
    },
    {
      selector: "node[text]",
      style: {
        label: "data(text)",
        color: "data(colour)",
        "font-family": "system-ui, sans-serif",
        "font-size": "data(letters)",
        "text-valign": "center",
        "text-halign": "center",
        "text-events": "yes",
        "min-zoomed-font-size": 5,
      },
    },
    {
      selector: "edge",
      style: {
        "curve-style": "straight",
        width: "data(width)",
        "line-color": "data(fill)",
        "line-opacity": "data(opacity)",
      },
    },
    { selector: "edge.loop", style: { "curve-style": "bezier", "loop-direction": "0deg" } },
    { selector: "edge.glow", style: { "line-cap": "round" } },
    {
      selector: "edge.bond",
      style: { "source-endpoint": "data(from)", "target-endpoint": "data(to)", "line-cap": "round" },
    },
    { selector: "edge.dashed", style: { "line-style": "dashed", "line-dash-pattern": [4, 3], "line-cap": "butt" } },
    { selector: "node.held", style: { "outline-width": 1.5, "outline-offset": 1, "outline-color": "data(ring)" } },
    // a ring and not a tint: another hue over the halo would change what it says
    { selector: "node.pointed", style: { "outline-width": 2.5, "outline-offset": 5, "outline-color": "data(ring)" } },
    {
      selector: "edge.pointed",
      style: { "overlay-opacity": 0.2, "overlay-padding": 5, "overlay-color": "data(ring)" },
    },
    { selector: ".decoration", style: { events: "no" } },
    { selector: "node.number", style: { display: "data(shown)" } },
    {
      selector: "node.ring",
      style: { display: "data(shown)", "border-width": 1.6, "border-color": "data(ink)", "border-style": "dashed" },
    },
  ];

  // the changing part of every element: id -> data
  function looks({ graph, row, selection, marks, numbers }) {
    const { large, strokes, letters } = Scene.of(graph);
    const palette = Picture.colours();
    const { nodes, edges } = Picture.look(graph, row, selection);
    const found = new Map();
    nodes.forEach((look, n) => {
      if (graph.molecule) {
        found.set(`n${n}`, { ...ATOM, colour: look.ink, fill: palette.surface, ink: look.ink });
        const depth = look.critical ? DEPTH.innerHalo : DEPTH.halo;
        const halo = { fill: look.fill || palette.surface, opacity: look.fill ? 1 : 0, size: 2 * look.size };
        found.set(`h${n}`, { ...halo, depth });
        found.set(`o${n}`, { fill: palette.ink, opacity: look.critical ? 1 : 0 });
        found.set(`i${n}`, { fill: palette.surface, opacity: look.critical ? 1 : 0 });
        return;
      }
      // in a crowd what counts lies on top, and the critical edges are not cut up by nodes that do not
      const depth = large && !look.critical && !look.fill ? DEPTH.crowd : DEPTH.node + look.strength / 2;
      const text = { colour: palette.ink, letters: look.size };
      const disc = { size: 2 * look.size, fill: look.fill || palette.surface, opacity: 1, ink: look.ink };
      found.set(`n${n}`, { ...text, ...disc, border: look.border, depth });
    });
    edges.forEach((look, e) => {
      const depth = look.critical ? DEPTH.critical : large ? DEPTH.glow : DEPTH.stroke;
      const stroke = { fill: look.ink, width: look.width, opacity: 1, depth };
      strokes[e].forEach(({ 5: share = 1 }, part) =>
        found.set(`e${e}.${part}`, { ...stroke, width: share * look.width }),
      );
      if (large) return;
      const contoured = graph.molecule && look.critical;
      const glow = { fill: look.fill || palette.surface, opacity: look.fill ? 1 : 0, width: look.glowWidth };
      found.set(`g${e}`, { ...glow, depth: contoured ? DEPTH.innerGlow : DEPTH.glow });
      found.set(`p${e}`, { fill: palette.ink, opacity: contoured ? 1 : 0 });
      found.set(`q${e}`, { fill: palette.surface, opacity: contoured ? 1 : 0 });
    });
    letters.forEach((_, i) => found.set(`t${i}`, { colour: palette.ink }));
    for (let n = 0; n < (large ? 0 : graph.nodes); n++)
      found.set(`m${n}`, { colour: palette.accent, shown: numbers ? "element" : "none" });
    for (const n of graph.known || []) found.set(`k${n}`, { ink: palette.known, shown: marks ? "element" : "none" });
    return found;
  }

  function elements(picture) {
    const { graph } = picture;
    const scene = Scene.of(graph);
    const found = looks(picture);
    const made = [];
    const add = (id, data, classes, position) =>
      made.push({ data: { id, ...data, ...found.get(id) }, classes, position, group: position ? "nodes" : "edges" });
    for (let n = 0; n < graph.nodes; n++) {
      const at = { x: scene.x[n], y: scene.y[n] };
      add(`n${n}`, scene.texts[n] ? { text: scene.texts[n] } : {}, "body", at);
      if (!graph.molecule) continue;
      add(`h${n}`, { depth: DEPTH.halo }, "decoration", { ...at });
      add(`o${n}`, { size: 2 * Picture.OUTLINE, depth: DEPTH.outline }, "decoration", { ...at });
      add(`i${n}`, { size: 2 * Picture.INSIDE, depth: DEPTH.inside }, "decoration", { ...at });
    }
    const letter = { size: 1, fill: "#000000", opacity: 0, depth: DEPTH.letter };
    scene.letters.forEach(({ text, x, y, size }, i) =>
      add(`t${i}`, { ...letter, text, letters: size }, "decoration", { x, y }),
    );
    for (let n = 0; n < (scene.large ? 0 : graph.nodes); n++) {
      const { x, y, text, size } = Picture.number(scene, n);
      add(`m${n}`, { ...letter, text, letters: size }, "decoration number", { x, y });
    }
    for (const n of graph.known || []) {
      const size = 2 * (graph.molecule ? Picture.HALO + 3 : scene.radius + 4);
      add(`k${n}`, { size, fill: "#000000", opacity: 0, depth: DEPTH.ring }, "decoration ring", {
        x: scene.x[n],
        y: scene.y[n],
      });
    }
    for (let e = 0; e < graph.edges.length / 2; e++) {
      const [u, v] = [graph.edges[2 * e], graph.edges[2 * e + 1]];
      const ends = { source: `n${u}`, target: `n${v}` };
      scene.strokes[e].forEach((stroke, part) => {
        if (stroke.polygon) return;
        const [x1, y1, x2, y2, dashed] = stroke;
        const from = `${x1 - scene.x[u]}px ${y1 - scene.y[u]}px`;
        const to = `${x2 - scene.x[v]}px ${y2 - scene.y[v]}px`;
        const kind = u === v ? "loop" : graph.molecule ? (dashed ? "bond dashed" : "bond") : "";
        add(`e${e}.${part}`, { ...ends, from, to, depth: DEPTH.stroke }, kind);
      });
      if (scene.large || u === v) continue;
      const whole = { ...ends, from: "0px 0px", to: "0px 0px" };
      add(`g${e}`, { ...whole, depth: DEPTH.glow }, "decoration glow bond");
      if (!graph.molecule) continue;
      add(`p${e}`, { ...whole, width: 2 * Picture.OUTLINE, depth: DEPTH.outline }, "decoration glow bond");
      add(`q${e}`, { ...whole, width: 2 * Picture.INSIDE, depth: DEPTH.inside }, "decoration glow bond");
    }
    return made;
  }

  // "e5.1" is the second line of edge 5: to the reader it is the edge
  const plain = (id) => id.split(".")[0];

  function build(container, picture, told) {
    const { large } = Scene.of(picture.graph);
    const cy = cytoscape({
      container,
      elements: elements(picture),
      style: STYLE,
      layout: { name: "preset", fit: false },
      minZoom: 0.02,
      maxZoom: 8,
      autoungrabify: true,
      autounselectify: true,
      boxSelectionEnabled: false,
      textureOnViewport: large,
      hideEdgesOnViewport: large,
      hideLabelsOnViewport: large,
      pixelRatio: large ? 1 : "auto",
    });
    cy.on("mouseover", "node, edge", (event) => told.point(plain(event.target.id())));
    cy.on("mouseout", "node, edge", () => told.point(null));
    cy.on("tap", (event) => told.tap(event.target === cy ? null : plain(event.target.id())));
    fit(cy);
    return cy;
  }

  function restyle(cy, picture) {
    const found = looks(picture);
    cy.batch(() => {
      for (const [id, data] of found) {
        const target = cy.getElementById(id);
        const old = target.data();
        // only what changes costs time, and of a large graph little does
        if (old && Object.keys(data).some((name) => old[name] !== data[name])) target.data(data);
      }
    });
  }

  function highlight(cy, id, centre, atoms = []) {
    cy.elements(".pointed, .held").removeClass("pointed held");
    for (const n of atoms) cy.getElementById(`n${n}`).data("ring", Picture.colours().accent).addClass("held");
    if (!id) return false;
    const found = id[0] === "n" ? cy.getElementById(id) : cy.getElementById(`${id}.0`);
    if (!found.length) return false;
    found.data("ring", Picture.colours().ink).addClass("pointed");
    if (centre && !inView(cy, found)) cy.center(found);
    return true;
  }

  function inView(cy, found) {
    const [seen, box] = [cy.extent(), found.boundingBox()];
    return box.x1 >= seen.x1 && box.x2 <= seen.x2 && box.y1 >= seen.y1 && box.y2 <= seen.y2;
  }

  function fit(cy) {
    cy.fit(undefined, 40);
    // a molecule of three atoms should not fill the screen
    if (cy.zoom() > CLOSEST) {
      cy.zoom(CLOSEST);
      cy.center();
    }
  }

  function zoom(cy, factor) {
    cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
  }

  return { build, restyle, highlight, fit, zoom };
})();
