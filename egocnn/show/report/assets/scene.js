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

  // Widths of letters over their size, as RDKit counts with: each is set about its middle, in any font.
  const WIDTHS = { l: 0.22, i: 0.22, I: 0.28, r: 0.33, "-": 0.33 };
  const widthOf = (letter) => WIDTHS[letter] || (/[a-z0-9+]/.test(letter) ? 0.56 : 0.62);

  // What RDKit drew, in tenths of picture units: strokes of bonds, filled wedges and letters.
  function drawn(graph) {
    const strokes = Array.from({ length: graph.edges.length / 2 }, () => []);
    const { strokes: flat, letters, lettersAt } = graph.drawing;
    for (let at = 0; at < flat.length; ) {
      const [edge, kind] = [flat[at] >> 3, flat[at] & 7];
      const points = Array.from(flat.subarray(at + 1, at + 1 + 2 * Math.max(kind, 2)), (tenths) => tenths / 10);
      at += 1 + points.length;
      if (kind < 3) strokes[edge].push([...points, kind === 2, kind === 1 ? 0.5 : 1]);
      else strokes[edge].push(...wedge(points));
    }
    const texts = Array.from(letters, (text, i) => {
      const [n, x, y, size] = lettersAt.subarray(4 * i, 4 * i + 4);
      return { n, text, x: (x + (size * widthOf(text)) / 2) / 10, y: (y - 0.52 * size) / 10, base: y, size: size / 10 };
    });
    // numbers and charges, in small type, stand a third of a letter below or above the one that they belong to
    const largest = texts.reduce((most, { size }) => Math.max(most, size), 0);
    texts.forEach((one, i) => {
      const near = [texts[i - 1], texts[i - 2], texts[i + 1], texts[i + 2]];
      const other = one.size < 0.8 * largest && near.find((each) => each && each.n === one.n && each.size > one.size);
      if (other) one.y = other.y + (one.base > other.base ? 1 : -1) * 0.34 * other.size;
    });
    return { strokes, letters: texts };
  }

  // A polygon whose first corner is its tip; and before it, for a canvas that knows lines alone, a fan of these from the
  // tip to its two farthest corners.
  function wedge(points) {
    const corners = [];
    for (let i = 2; i < points.length; i += 2) corners.push([points[i], points[i + 1]]);
    const far = ([x, y]) => Math.hypot(x - points[0], y - points[1]);
    const [[ax, ay], [bx, by]] = corners.sort((one, two) => far(two) - far(one));
    const count = Math.max(Math.ceil(Math.hypot(ax - bx, ay - by)), 2);
    const fan = Array.from({ length: count + 1 }, (_, i) => {
      const share = i / count;
      const line = [points[0], points[1], ax + share * (bx - ax), ay + share * (by - ay), false, 0.7];
      return Object.assign(line, { fan: true });
    });
    return [...fan, Object.assign([], { polygon: points })];
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
    const byRdkit = graph.drawing && !large ? drawn(graph) : null;
    const texts = Array.from({ length: N }, (_, n) => {
      if (large || byRdkit || !graph.nodeLabels) return "";
      // an atom without bonds would not be seen at all
      return graph.molecule ? symbol(graph.nodeLabels[n], N === 1) : graph.nodeLabels[n];
    });
    const neighbours = graph.molecule ? neighbourLists(graph) : null;
    const strokes = byRdkit ? byRdkit.strokes : [];
    for (let e = strokes.length; e < graph.edges.length / 2; e++) {
      const [u, v] = [graph.edges[2 * e], graph.edges[2 * e + 1]];
      if (u === v) strokes.push([[x[u], y[u], x[u], y[u], false]]);
      else if (!graph.molecule) strokes.push([[x[u], y[u], x[v], y[v], false]]);
      else strokes.push(lines(graph.edgeLabels ? graph.edgeLabels[e] : "", u, v, x, y, texts, neighbours));
    }
    // crowded pictures need smaller circles: no larger than a part of the room that each node has
    const room = Math.sqrt(((box.right - box.left + UNIT) * (box.bottom - box.top + UNIT)) / Math.max(N, 1));
    const radius = Math.min(0.3 * UNIT, 0.34 * room);
    const letters = byRdkit ? byRdkit.letters : [];
    for (const { x: middle, size } of letters) {
      box.left = Math.min(box.left, middle - size / 2);
      box.right = Math.max(box.right, middle + size / 2);
    }
    const ends = Array.from(strokes, (_, e) => [graph.edges[2 * e], graph.edges[2 * e + 1]]);
    graph.scene = { x, y, box, texts, letters, strokes, ends, large, radius, margin: 0.75 * UNIT, unit: UNIT };
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

  // The nodes from the most important on, as far as the structure may grow. What speaks against is never critical, unless
  // the structure's own selection took it in because nothing less was enough.
  function steps(graph) {
    const [least, values] = [lowest(graph), counts(graph)];
    const order = Array.from(values.keys()).sort((a, b) => values[b] - values[a] || a - b);
    return order.filter((n) => values[n] > 0 || values[n] >= least);
  }

  // the first nodes of these, one at least
  function first(graph, order, count) {
    const nodes = new Set(order.slice(0, count));
    const edges = new Set();
    for (let e = 0; e < graph.edges.length / 2; e++) {
      if (nodes.has(graph.edges[2 * e]) && nodes.has(graph.edges[2 * e + 1])) edges.add(e);
    }
    return { own: false, threshold: counts(graph)[order[count - 1]], nodes, edges };
  }

  // how many nodes it takes until the least important one of the graph's own structure is in
  function startingCount(graph, order) {
    const [least, values] = [lowest(graph), counts(graph)];
    return order.findLastIndex((n) => values[n] >= least) + 1;
  }

  return { own, first, steps, startingCount };
})();
