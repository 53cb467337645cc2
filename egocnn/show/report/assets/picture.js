"use strict";
// A scene, importances and a selection -> colours and sizes, and from these a canvas or an SVG file.

const Picture = (() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const HALO = 16; // radius of the halo of the most important atom
  const [INSIDE, OUTLINE] = [18, 19.5]; // radii of the contour around critical atoms: what it holds, and with its line
  let palette = null;
  dark.addEventListener("change", () => (palette = null));

  // the style sheet owns the colours, in light and in dark
  function colours() {
    if (!palette) {
      const style = getComputedStyle(document.documentElement);
      palette = Object.fromEntries(
        ["for", "against", "ink", "soft", "faint", "line", "surface", "known", "accent"].map((name) => [
          name,
          style.getPropertyValue(`--${name}`).trim(),
        ]),
      );
    }
    return palette;
  }

  function largest(values) {
    let found = 0;
    for (const value of values) found = Math.max(found, Math.abs(value));
    return found || 1;
  }

  // an opaque mixture: colours that shine through each other read as smudges
  function blend(back, front, share) {
    const parts = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    const [b, f] = [parts(back), parts(front)];
    return `rgb(${b.map((value, i) => Math.round(value + (f[i] - value) * share)).join(",")})`;
  }

  // an importance too faint to see is left out: it would only blur the picture
  const FAINTEST = 0.04;
  const glow = (strength) => (strength < FAINTEST ? 0 : 0.15 + 0.75 * strength);

  // where nothing stands out, colours at full strength would say that something does
  const QUIET = 0.25;

  // How every node and edge looks: fill is null where there is no importance to show. One scale for both signs.
  function look(graph, row, selection) {
    const { large, radius, unit: UNIT } = Scene.of(graph);
    const palette = colours();
    const quiet = selection.own && !selection.nodes.size ? QUIET : 1;
    const [most, mostOfEdges] = [largest(row.nodes) / quiet, largest(row.edges) / quiet];
    const fill = (value, strength, most) =>
      glow(strength) ? blend(palette.surface, value < 0 ? palette.against : palette.for, most * glow(strength)) : null;
    // as in the pictures beside the page: letters on a tint stay readable, and what counts more is larger
    const tint = (value, strength) =>
      strength > 0.02
        ? blend(palette.surface, value < 0 ? palette.against : palette.for, 0.12 + 0.63 * strength)
        : null;
    const thin = Math.min(Math.max(radius / 11, 0.6), 1); // small circles need fine lines
    const nodes = Array.from(row.nodes, (value, n) => {
      const strength = Math.abs(value) / most;
      const critical = selection.nodes.has(n);
      const size = graph.molecule ? UNIT * (0.14 + 0.26 * strength) : radius * (0.42 + 0.58 * Math.sqrt(strength)) * (large ? 1.5 : 1);
      const ink = critical || graph.molecule ? palette.ink : palette.line;
      const border = critical ? 2 * thin : 0.9;
      const own = graph.molecule ? tint(value, strength) : fill(value, strength, 1);
      return { strength, fill: own, critical, size, border, ink };
    });
    const edges = Array.from(row.edges, (value, e) => {
      const strength = Math.abs(value) / mostOfEdges;
      const critical = selection.edges.has(e);
      const ink = critical || graph.molecule ? palette.ink : large ? palette.line : palette.faint;
      const glowWidth = graph.molecule ? UNIT * (0.14 + 0.4 * strength) : 2 + 5 * strength;
      const width = graph.molecule ? 1.6 : critical ? 2.2 * thin : 0.9;
      const own = graph.molecule ? tint(value, strength) : fill(value, strength, 0.6);
      return { strength, fill: large ? null : own, critical, ink, glowWidth, width };
    });
    return { nodes, edges };
  }

  // Lines, discs and texts from back to front. In a picture much smaller than its graph the critical part is drawn
  // larger than to scale, or it would vanish.
  function shapes({ graph, row, selection, marks, numbers }, boost = 1) {
    const scene = Scene.of(graph);
    const { nodes, edges } = look(graph, row, selection);
    const palette = colours();
    const [back, outline, inside, inner, plain, middle, front] = [[], [], [], [], [], [], []];
    edges.forEach((edge, e) => {
      const [u, v] = [graph.edges[2 * e], graph.edges[2 * e + 1]];
      const [x1, y1, x2, y2] = [scene.x[u], scene.y[u], scene.x[v], scene.y[v]];
      const contoured = graph.molecule && edge.critical;
      const line = { kind: "line", x1, y1, x2, y2 };
      if (u !== v && edge.fill) (contoured ? inner : back).push({ ...line, width: edge.glowWidth, colour: edge.fill });
      if (u !== v && contoured) {
        outline.push({ ...line, width: 2 * (INSIDE + (OUTLINE - INSIDE) * boost), colour: palette.ink });
        inside.push({ ...line, width: 2 * INSIDE, colour: palette.surface });
      }
      const width = edge.width * (edge.critical ? boost : 1);
      const layer = edge.critical ? middle : plain;
      if (u === v) {
        const r = 0.8 * scene.radius;
        layer.push({ kind: "disc", x: x1, y: y1 - r, r, fill: null, stroke: edge.ink, width });
        return;
      }
      for (const stroke of scene.strokes[e]) {
        const [a, b, c, d, dashed, share = 1] = stroke;
        if (stroke.polygon) layer.push({ kind: "polygon", points: stroke.polygon, fill: edge.ink });
        else if (!stroke.fan) layer.push({ kind: "line", x1: a, y1: b, x2: c, y2: d, width: share * width, colour: edge.ink, dashed });
      }
    });
    // the important ones last: in a crowd they must not be hidden by the others
    const order = nodes.map((_, n) => n).sort((a, b) => nodes[a].strength - nodes[b].strength);
    for (const n of order) {
      const [node, x, y, text] = [nodes[n], scene.x[n], scene.y[n], scene.texts[n]];
      if (graph.molecule) {
        if (node.fill) (node.critical ? inner : back).push({ kind: "disc", x, y, r: node.size, fill: node.fill });
        if (node.critical) {
          outline.push({ kind: "disc", x, y, r: INSIDE + (OUTLINE - INSIDE) * boost, fill: palette.ink });
          inside.push({ kind: "disc", x, y, r: INSIDE, fill: palette.surface });
        }
        if (text) front.push({ kind: "text", x, y, text, colour: node.ink, size: 15 });
        continue;
      }
      const r = node.size * (node.critical || node.fill ? boost : 1);
      const width = node.border * (node.critical ? Math.sqrt(boost) : 1);
      const layer = scene.large && !node.critical && !node.fill ? plain : front;
      layer.push({ kind: "disc", x, y, r, fill: node.fill || palette.surface, stroke: node.ink, width });
      if (text && r > 6) front.push({ kind: "text", x, y, text, colour: palette.ink, size: r });
    }
    for (const letter of scene.letters) front.push({ kind: "text", ...letter, colour: palette.ink });
    for (let n = 0; numbers && n < graph.nodes; n++) front.push({ ...number(scene, n), colour: palette.accent });
    for (const n of marks && graph.known ? graph.known : []) {
      const r = graph.molecule ? HALO + 3 : nodes[n].size + 4;
      const ring = { kind: "disc", x: scene.x[n], y: scene.y[n], r, fill: null, dashed: true };
      front.push({ ...ring, stroke: palette.known, width: 1.6 });
    }
    return [...back, ...outline, ...inside, ...inner, ...plain, ...middle, ...front];
  }

  // the number of a node, beside it: where its edges leave most room, and clear of its letters, HO say
  function number(scene, n) {
    if (!scene.away) scene.away = awayFrom(scene);
    const [text, size, own] = [String(n), 9, scene.letters.filter((letter) => letter.n === n)];
    const [width, height] = [0.3 * size * text.length, 0.4 * size];
    const at = (far) => scene.away[n].map((step, i) => [scene.x[n], scene.y[n]][i] + far * scene.unit * step);
    const hides = ([x, y]) =>
      own.some((one) => Math.abs(one.x - x) < width + 0.36 * one.size && Math.abs(one.y - y) < height + 0.4 * one.size);
    let far = 0.36;
    while (far < 1 && hides(at(far))) far += 0.04;
    const [x, y] = at(far);
    return { kind: "text", x, y, text, size };
  }

  function awayFrom(scene) {
    const [x, y] = [scene.x, scene.y];
    const near = Array.from(x, () => []);
    scene.ends.forEach(([u, v]) => {
      if (u === v) return;
      near[u].push(Math.atan2(y[v] - y[u], x[v] - x[u]));
      near[v].push(Math.atan2(y[u] - y[v], x[u] - x[v]));
    });
    return near.map((angles) => {
      if (!angles.length) return [0.75, -0.75];
      angles.sort((a, b) => a - b);
      let [widest, at] = [-1, 0];
      angles.forEach((angle, i) => {
        const gap = (i + 1 < angles.length ? angles[i + 1] : angles[0] + 2 * Math.PI) - angle;
        if (gap > widest + 1e-6) [widest, at] = [gap, angle + gap / 2];
      });
      return [Math.cos(at), Math.sin(at)];
    });
  }

  const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

  function paint(context, shape) {
    if (shape.kind === "text") {
      context.font = `${shape.size}px ${FONT}`;
      context.fillStyle = shape.colour;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(shape.text, shape.x, shape.y + 0.06 * shape.size);
      return;
    }
    if (shape.kind === "polygon") {
      context.beginPath();
      for (let i = 0; i < shape.points.length; i += 2) context.lineTo(shape.points[i], shape.points[i + 1]);
      context.fillStyle = shape.fill;
      context.fill();
      return;
    }
    context.setLineDash(shape.dashed ? [4, 3] : []);
    context.lineWidth = shape.width || 1;
    context.beginPath();
    if (shape.kind === "line") {
      context.lineCap = shape.dashed ? "butt" : "round";
      context.moveTo(shape.x1, shape.y1);
      context.lineTo(shape.x2, shape.y2);
      context.strokeStyle = shape.colour;
      context.stroke();
      return;
    }
    context.arc(shape.x, shape.y, shape.r, 0, 2 * Math.PI);
    if (shape.fill) {
      context.fillStyle = shape.fill;
      context.fill();
    }
    if (shape.stroke) {
      context.strokeStyle = shape.stroke;
      context.stroke();
    }
  }

  function frame(graph) {
    const { box, margin } = Scene.of(graph);
    const [width, height] = [box.right - box.left + 2 * margin, box.bottom - box.top + 2 * margin];
    return { left: box.left - margin, top: box.top - margin, width, height };
  }

  // Fit the whole picture into a canvas of this size; small graphs do not blow up beyond 1.4 times.
  function draw(canvas, width, height, picture, most = 1.4) {
    const scale = devicePixelRatio || 1;
    [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
    const context = canvas.getContext("2d");
    const { left, top, width: w, height: h } = frame(picture.graph);
    const zoom = Math.min(width / w, height / h, most);
    context.setTransform(
      zoom * scale,
      0,
      0,
      zoom * scale,
      (scale * (width - zoom * w)) / 2 - left * zoom * scale,
      (scale * (height - zoom * h)) / 2 - top * zoom * scale,
    );
    if (picture.background) {
      context.fillStyle = colours().surface;
      context.fillRect(left - width / zoom, top - height / zoom, (3 * width) / zoom + w, (3 * height) / zoom + h);
    }
    for (const shape of shapes(picture, Math.min(Math.max(0.4 / zoom, 1), 4))) paint(context, shape);
  }

  const NAMESPACE = "http://www.w3.org/2000/svg";

  function svgElement(tag, attributes, text) {
    const made = document.createElementNS(NAMESPACE, tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined) {
        made.setAttribute(name, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
      }
    }
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function svg(picture) {
    const { left, top, width, height } = frame(picture.graph);
    const root = svgElement("svg", {
      viewBox: `${left} ${top} ${width} ${height}`,
      width: 2 * width,
      height: 2 * height,
    });
    root.append(svgElement("title", {}, picture.graph.name));
    root.append(svgElement("rect", { x: left, y: top, width, height, fill: colours().surface }));
    for (const s of shapes(picture)) {
      const dashes = s.dashed ? "4 3" : null;
      if (s.kind === "line") {
        const { x1, y1, x2, y2 } = s;
        const stroke = { stroke: s.colour, "stroke-width": s.width };
        const cap = s.dashed ? null : "round";
        root.append(
          svgElement("line", { x1, y1, x2, y2, ...stroke, "stroke-dasharray": dashes, "stroke-linecap": cap }),
        );
      } else if (s.kind === "polygon") {
        root.append(svgElement("polygon", { points: s.points.join(" "), fill: s.fill }));
      } else if (s.kind === "disc") {
        const stroke = s.stroke ? { stroke: s.stroke, "stroke-width": s.width, "stroke-dasharray": dashes } : {};
        root.append(svgElement("circle", { cx: s.x, cy: s.y, r: s.r, fill: s.fill || "none", ...stroke }));
      } else {
        const font = { "font-size": s.size, "font-family": FONT };
        const middle = { "text-anchor": "middle", "dominant-baseline": "central" };
        root.append(svgElement("text", { x: s.x, y: s.y, fill: s.colour, ...font, ...middle }, s.text));
      }
    }
    return new XMLSerializer().serializeToString(root);
  }

  return { HALO, INSIDE, OUTLINE, colours, look, number, draw, svg, svgElement, frame, dark };
})();
