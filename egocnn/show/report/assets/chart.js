"use strict";
// The summary's charts: stated probability against the share that was right, or predicted against true values.

const Chart = (() => {
  const SIZE = 220;
  const [LEFT, BOTTOM, EDGE] = [40, 36, 16];

  function axes(title, across, upwards, low, high, show) {
    const root = Picture.svgElement("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", class: "chart" });
    root.append(Picture.svgElement("title", {}, title));
    const span = high - low || 1;
    const x = (value) => LEFT + ((value - low) / span) * (SIZE - LEFT - EDGE);
    const y = (value) => SIZE - BOTTOM - ((value - low) / span) * (SIZE - BOTTOM - EDGE);
    const line = (x1, y1, x2, y2, name) => root.append(Picture.svgElement("line", { x1, y1, x2, y2, class: name }));
    const text = (at, above, content, anchor, turn) =>
      root.append(Picture.svgElement("text", { x: at, y: above, "text-anchor": anchor, transform: turn }, content));
    for (const value of [low, low + span / 2, high]) {
      line(x(low), y(value), x(high), y(value), "grid");
      line(x(value), y(low), x(value), y(high), "grid");
      text(x(value), SIZE - BOTTOM + 14, show(value), "middle");
      text(LEFT - 5, y(value) + 3.5, show(value), "end");
    }
    line(x(low), y(low), x(high), y(high), "ideal");
    text((x(low) + x(high)) / 2, SIZE - 4, across, "middle");
    text(0, 0, upwards, "middle", `translate(10 ${(y(low) + y(high)) / 2}) rotate(-90)`);
    return { root, x, y };
  }

  function reliability(bins) {
    const told = bins.map(
      ([stated, right, n]) => `stated ${Data.percent(stated)}, right ${Data.percent(right)}, ${Data.count(n)} graphs`,
    );
    const title = `Calibration. ${told.join("; ")}`;
    const { root, x, y } = axes(title, "stated probability", "share that was right", 0, 1, Data.percent);
    const most = Math.max(...bins.map(([, , n]) => n));
    const points = bins.map(([stated, right]) => `${x(stated)},${y(right)}`).join(" ");
    root.append(Picture.svgElement("polyline", { points, class: "curve" }));
    bins.forEach(([stated, right, n], i) => {
      const r = 2.5 + 5.5 * Math.sqrt(n / most);
      const dot = Picture.svgElement("circle", { cx: x(stated), cy: y(right), r, class: "dot" });
      dot.append(Picture.svgElement("title", {}, told[i]));
      root.append(dot);
    });
    return root;
  }

  function scatter(facts) {
    const known = facts.filter((fact) => fact.error !== null);
    const values = known.flatMap((fact) => [fact.predicted, fact.truth]);
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
    if (low === high) [low, high] = [low - 1, high + 1];
    const { root, x, y } = axes(
      "Predicted against true values",
      "true value",
      "predicted value",
      low,
      high,
      Data.number,
    );
    for (const fact of known) {
      root.append(
        Picture.svgElement("circle", { cx: x(fact.truth), cy: y(fact.predicted), r: 2.5, class: "dot many" }),
      );
    }
    return root;
  }

  return { reliability, scatter };
})();
