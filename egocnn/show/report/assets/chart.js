"use strict";
// The summary's charts: stated probability against the share that was right, or predicted against true values.

const Chart = (() => {
  const SIZE = 220;
  const [LEFT, BOTTOM, EDGE] = [22, 42, 14];
  const MOST_DOTS = 2000; // more hide each other, and slow the page down

  // round numbers from low to high, three of them or more
  function ticks(low, high) {
    const rough = (high - low) / 3.5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [5, 2, 1].find((times) => times * power <= rough * (1 + 1e-9));
    const first = Math.ceil(low / step - 1e-9);
    const found = [];
    for (let i = first; i * step <= high + 1e-9 * step; i++) found.push(Number((i * step).toPrecision(12)));
    return found;
  }

  function axes(title, across, upwards, low, high, show) {
    const root = Picture.svgElement("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", class: "chart" });
    root.append(Picture.svgElement("title", {}, title));
    const span = high - low || 1;
    const values = ticks(low, low + span);
    // the title stands left of the longest number
    const left = LEFT + 6 * Math.max(...values.map((value) => show(value).length));
    const x = (value) => left + ((value - low) / span) * (SIZE - left - EDGE);
    const y = (value) => SIZE - BOTTOM - ((value - low) / span) * (SIZE - BOTTOM - EDGE);
    const line = (x1, y1, x2, y2, name) => root.append(Picture.svgElement("line", { x1, y1, x2, y2, class: name }));
    const text = (at, above, content, name, turn) =>
      root.append(Picture.svgElement("text", { x: at, y: above, class: name, transform: turn }, content));
    const room = (SIZE - left - EDGE) / (left - LEFT + 8); // numbers that fit side by side
    const every = Math.ceil(values.length / room);
    for (const [i, value] of values.entries()) {
      line(x(low), y(value), x(high), y(value), "grid");
      line(x(value), y(low), x(value), y(high), "grid");
      if (i % every === 0) text(x(value), SIZE - BOTTOM + 18, show(value), "tick");
      text(left - 6, y(value) + 3.5, show(value), "tick end");
    }
    line(x(low), y(low), x(high), y(high), "ideal");
    text((x(low) + x(high)) / 2, SIZE - 5, shortened(across), "title");
    text(0, 0, shortened(upwards), "title", `translate(10 ${(y(low) + y(high)) / 2}) rotate(-90)`);
    return { root, x, y };
  }

  const shortened = (text) => (text.length > 34 ? `${text.slice(0, 33)}…` : text);

  function reliability(bins) {
    const told = bins.map(
      ([stated, right, n]) => `stated ${Data.percent(stated)}, right ${Data.percent(right)}, ${Data.count(n)} ${say("graphs")}`,
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
    const all = facts.filter((fact) => fact.error !== null);
    const known = all.filter((_, i) => i % Math.ceil(all.length / MOST_DOTS) === 0);
    const values = known.flatMap((fact) => [fact.predicted, fact.truth]);
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
    if (low === high) [low, high] = [low - 1, high + 1];
    const { root, x, y } = axes(
      "Predicted against true values",
      `true ${Data.target.name || "value"}`,
      `predicted ${Data.target.name || "value"}`,
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
