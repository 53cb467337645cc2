"use strict";
// A graph -> where its points and strokes lie, in picture units; the same for thumbnails, downloads and the viewer.

const Scene = (() => {
  const UNIT = 40; // picture units to an edge of length 1
  const [LARGE, LARGE_MOLECULE] = [400, 1500]; // nodes; beyond that there are no labels, and edges do not glow
  const LARGEST_RING = 8; // a larger one has no inside to speak of
  const GAP = 0.11 * UNIT; // between the two lines of a double bond

  // "n+2" -> "N²⁺", "C" -> "": a carbon is a corner of the lines and needs no letter
  function symbol(label, alone) {
    const parts = /^([A-Za-z*]+?)(?:([+-])(\d*))?$/.exec(label);
    if (!parts) return label;
    const [, atom, sign, count] = parts;
    if (!alone && !sign && (atom === "C" || atom === "c")) return "";
    const charge = sign ? [...(count || "")].map((d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]).join("") + (sign === "+" ? "⁺" : "⁻") : "";
    return atom[0].toUpperCase() + atom.slice(1) + charge;
  }

  function neighbourLists(graph) {
    const lists = Array.from({ length: graph.nodes }, () => []);
    for (let e = 0; e < graph.edges.length; e += 2) {
      const [u, v] = [graph.edges[e], graph.edges[e + 1]];
      if (u !== v) {
        lists[u].push(v);
        lists[v].push(u);
      }
    }
    return lists;
  }

  // the atoms of a smallest ring through the bond, found by walking from u to v the other way; null: no ring
  function ring(u, v, neighbours) {
    const before = new Map([[u, null]]);
    for (let reached = [u], steps = 0; reached.length && steps < LARGEST_RING; steps++) {
      const further = [];
      for (const n of reached) {
        for (const m of neighbours[n]) {
          if (before.has(m) || (n === u && m === v)) continue;
          before.set(m, n);
          if (m === v) {
            const path = [];
            for (let at = v; at !== null; at = before.get(at)) path.push(at);
            return path;
          }
          further.push(m);
        }
      }
      reached = further;
    }
    return null;
  }

  // +1 or -1: the side of the bond on which its ring lies, or else most of its neighbours; 0: neither
  function innerSide(u, v, x, y, neighbours) {
    let left = 0;
    for (const n of ring(u, v, neighbours) || [...neighbours[u], ...neighbours[v]]) {
      if (n === u || n === v) continue;
      const turn = (x[v] - x[u]) * (y[n] - y[u]) - (y[v] - y[u]) * (x[n] - x[u]);
      left += Math.sign(Math.round(turn));
    }
    return Math.sign(left);
  }

  // the lines that draw one edge: [x1, y1, x2, y2, dashed]
  function lines(kind, u, v, x, y, texts, neighbours) {
    const [dx, dy] = [x[v] - x[u], y[v] - y[u]];
    const length = Math.hypot(dx, dy) || 1;
    const [ax, ay] = [dx / length, dy / length]; // along
    const room = (n) => (texts[n] ? Math.min((0.2 + 0.045 * texts[n].length) * UNIT, length / 3) : 0);
    const line = (side, inset, dashed) => {
      const start = Math.max(room(u), inset);
      const end = Math.max(room(v), inset);
      const [ox, oy] = [-ay * side, ax * side];
      return [x[u] + ax * start + ox, y[u] + ay * start + oy, x[v] - ax * end + ox, y[v] - ay * end + oy, dashed];
    };
    const inset = Math.min(0.16 * UNIT, length / 4);
    if (kind === "triple") return [line(0, 0, false), line(GAP, inset, false), line(-GAP, inset, false)];
    if (kind !== "double" && kind !== "aromatic") return [line(0, 0, false)];
    const end = neighbours[u].length === 1 || neighbours[v].length === 1;
    const side = innerSide(u, v, x, y, neighbours) || (kind === "aromatic" ? 1 : 0);
    if (kind === "double" && (end || side === 0)) return [line(GAP / 2, 0, false), line(-GAP / 2, 0, false)];
    return [line(0, 0, false), line(side * GAP * 1.25, inset, kind === "aromatic")];
  }

  function of(graph) {
    if (graph.scene) return graph.scene;
    const N = graph.nodes;
    const [x, y] = [new Float64Array(N), new Float64Array(N)];
    const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
    for (let n = 0; n < N; n++) {
      x[n] = graph.positions[2 * n] * UNIT;
      y[n] = -graph.positions[2 * n + 1] * UNIT; // screens count downwards
      box.left = Math.min(box.left, x[n]);
      box.right = Math.max(box.right, x[n]);
      box.top = Math.min(box.top, y[n]);
      box.bottom = Math.max(box.bottom, y[n]);
    }
    if (!N) Object.assign(box, { left: 0, right: 0, top: 0, bottom: 0 });
    const large = N > (graph.molecule ? LARGE_MOLECULE : LARGE);
    const texts = Array.from({ length: N }, (_, n) => {
      if (large || !graph.nodeLabels) return "";
      // an atom without bonds would not be seen at all
      return graph.molecule ? symbol(graph.nodeLabels[n], N === 1) : graph.nodeLabels[n];
    });
    const neighbours = graph.molecule ? neighbourLists(graph) : null;
    const strokes = [];
    for (let e = 0; e < graph.edges.length / 2; e++) {
      const [u, v] = [graph.edges[2 * e], graph.edges[2 * e + 1]];
      if (u === v) strokes.push([[x[u], y[u], x[u], y[u], false]]);
      else if (!graph.molecule) strokes.push([[x[u], y[u], x[v], y[v], false]]);
      else strokes.push(lines(graph.edgeLabels ? graph.edgeLabels[e] : "", u, v, x, y, texts, neighbours));
    }
    // crowded pictures need smaller circles: no larger than a part of the room that each node has
    const room = Math.sqrt(((box.right - box.left + UNIT) * (box.bottom - box.top + UNIT)) / Math.max(N, 1));
    const radius = Math.min(0.3 * UNIT, 0.34 * room);
    graph.scene = { x, y, box, texts, strokes, large, radius, margin: 0.75 * UNIT, unit: UNIT };
    return graph.scene;
  }

  return { of };
})();

// Which part of a graph is shown as its critical structure: its own, or all nodes from a threshold of importance on.
const Selection = (() => {
  function own(graph) {
    return { own: true, nodes: new Set(graph.criticalNodes), edges: new Set(graph.criticalEdges) };
  }

  // what a node counts: of a value, what lowers it is as critical as what raises it
  const counts = (graph) =>
    graph.explained === null ? graph.input.nodes.map((value) => Math.abs(value)) : graph.input.nodes;

  // the least that a node of the graph's own structure counts
  function lowest(graph) {
    const values = counts(graph);
    return graph.criticalNodes.reduce((found, n) => Math.min(found, values[n]), Infinity);
  }

  // The importances at which the structure changes, largest first. What speaks against is never critical, unless the
  // structure's own selection took it in because nothing less was enough.
  function steps(graph) {
    const least = lowest(graph);
    const all = [...new Set(counts(graph))].sort((a, b) => b - a);
    return all.filter((value) => value > 0 || value >= least);
  }

  function above(graph, threshold) {
    const nodes = new Set();
    counts(graph).forEach((value, n) => value >= threshold && nodes.add(n));
    const edges = new Set();
    for (let e = 0; e < graph.edges.length / 2; e++) {
      if (nodes.has(graph.edges[2 * e]) && nodes.has(graph.edges[2 * e + 1])) edges.add(e);
    }
    return { own: false, threshold, nodes, edges };
  }

  // the last step at which the least important node of the graph's own structure is just in
  function startingStep(graph, thresholds) {
    const least = lowest(graph);
    return Math.max(
      thresholds.findLastIndex((threshold) => threshold >= least),
      0,
    );
  }

  return { own, above, steps, startingStep };
})();
