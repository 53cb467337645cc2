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

// Fill the top of the page, and follow the address: #graph=3 opens the third graph, anything else the gallery.

(() => {
  const { summary } = Data;
  const classes = summary.class_names.length > 0;

  function figure(name, value) {
    if (value !== null) byId("figures").append(element("div", {}, element("dt", {}, name), element("dd", {}, value)));
  }

  function share(value) {
    return value === null ? null : Data.percent(value);
  }

  // the page's own texts, before any from the data stand in it
  function speak() {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, (node) =>
      node.parentElement.closest("script, style") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT,
    );
    while (texts.nextNode()) texts.currentNode.data = say(texts.currentNode.data);
    for (const name of ["aria-label", "title", "placeholder"]) {
      for (const one of document.querySelectorAll(`[${name}]`)) one.setAttribute(name, say(one.getAttribute(name)));
    }
  }

  // what the scores are of: a model is judged by what it was not trained on
  function scored() {
    const all = `${Data.count(summary.graphs)} ${say("graphs")}`;
    if (summary.tested === summary.graphs)
      return `All ${all} are of the test part, which the model was not trained on.`;
    if (summary.tested)
      return (
        `Scores and calibration are of the ${Data.count(summary.tested)} ${say("graphs")} of the test part, which the ` +
        `model was not trained on; what is said of the structures is of all ${all}.`
      );
    if (summary.trained)
      return `The model was trained on ${Data.count(summary.trained)} of these ${all}: its scores on them flatter it.`;
    if (!summary.model || !Object.keys(summary.scores).length) return "";
    return say("No graph is marked as trained on: the data are not those that the model's run names.");
  }

  // of each class the share of its graphs that are predicted right; nothing where the page lists only some graphs
  function recall() {
    const counted = Data.facts.filter((fact) => !summary.tested || fact.part === "test");
    const told = summary.class_names.flatMap((name) => {
      const own = counted.filter((fact) => fact.truth === name);
      return own.length ? `${Data.named(name)} ${share(own.filter((fact) => fact.right).length / own.length)}` : [];
    });
    return told.length && told.length <= 10 && Data.facts.length === summary.graphs ? `Recall: ${told.join(", ")}.` : "";
  }

  function fill() {
    byId("title").textContent = summary.title;
    const counted = `${Data.count(summary.graphs)} ${say(summary.graphs === 1 ? "graph" : "graphs")}`;
    const origin = [summary.model && `Model ${summary.model}`, summary.data && `Data ${summary.data}`, counted];
    if (summary.target) origin.unshift(`Target ${summary.target}`);
    byId("recall").textContent = recall();
    byId("scored").textContent = scored();
    byId("origin").textContent = origin.filter(Boolean).join(" · ");
    byId("footer").textContent =
      `Made ${summary.created} by egocnn ${summary.version}. This page works without a network.`;
    for (const [name, value] of Object.entries(summary.scores)) {
      if (name === "accuracy") figure("predicted right", `${(100 * value).toFixed(1)}%`);
      else figure(name, ["RMSE", "MAE"].includes(name) ? Data.said(value) : value.toFixed(3).replace("-", "−"));
    }
    figure("of the evidence is kept by the structure alone", share(summary.evidence_kept));
    figure("of the evidence goes with the structure", share(summary.evidence_lost));
    figure(say("of the nodes are in the structure"), share(summary.size));
    figure(say("of the graphs: nothing stands out"), share(summary.nothing));
    byId("sentences").append(...summary.sentences.map((text) => element("p", {}, text)));
    if (summary.evidence_kept !== null || summary.nothing) {
      const reading =
        "Evidence is the output less the base, which is the output with no node present. Both shares of it should be " +
        "high: what is kept says that the structure is enough for the prediction, what goes that the prediction " +
        "needs it; more than 100% where the rest speaks the other way. Nothing stands out where " +
        (classes ? "a class stands for the lack of something, or rests" : "a value is near the base, or rests") +
        " on the whole graph.";
      const how = summary.technique ? ` Technique: ${summary.technique}.` : "";
      const opened = element("p", {}, say(reading) + how);
      byId("sentences").append(element("details", { class: "quiet" }, element("summary", {}, "How to read this"), opened));
    } else if (summary.technique)
      byId("sentences").append(element("p", { class: "quiet" }, `Technique: ${summary.technique}.`));
    if (!byId("sentences").childElementCount) byId("verdict").firstElementChild.hidden = true;
    if (!summary.graphs) byId("summary").hidden = true;
    chart();
  }

  function chart() {
    const caption = byId("chart").firstElementChild;
    const shownFacts = Data.facts.filter((fact) => !summary.tested || fact.part === "test");
    if (summary.calibration.length) {
      byId("chart").prepend(Chart.reliability(summary.calibration));
      const points = Math.round(1000 * (summary.calibration_error || 0)) / 10;
      caption.textContent =
        `Stated probabilities are off by ${points} percentage points on average. ` +
        "Dots on the dashed line would be perfect.";
    } else if (!classes && shownFacts.some((fact) => fact.error !== null)) {
      byId("chart").prepend(Chart.scatter(shownFacts));
      caption.textContent = "Dots on the dashed line are predicted exactly.";
    } else {
      return;
    }
    byId("chart").hidden = false;
  }

  function legends() {
    const [raised, lowered] = classes
      ? ["speaks for the explained class", "speaks against it"]
      : [`raises ${Data.target.brief || "the value"}`, "lowers it"];
    const entry = (name, text) => element("span", {}, element("i", { class: name }), text);
    for (const place of document.querySelectorAll("[data-legend]")) {
      if (!summary.graphs) continue;
      place.append(entry("for", raised), entry("against", lowered), entry("critical", "outlined: the critical structure"));
      if (place.dataset.legend) place.append(entry("known", "known to be true"));
    }
  }

  // opened from within the page, the browser's own history leads back to the gallery
  let cameFromGallery = false;

  function asked() {
    const found = /^#graph=(\d+)$/.exec(location.hash);
    const index = found ? Number(found[1]) - 1 : -1;
    return index in Data.facts ? index : null;
  }

  function follow(event) {
    const index = asked();
    if (index === null) {
      Viewer.hide();
      cameFromGallery = false;
    } else {
      if (event && !Viewer.isOpen()) cameFromGallery = true;
      if (Data.isThere(index)) Viewer.show(index);
      else addEventListener("DOMContentLoaded", () => follow(event), { once: true }); // the file is still being read
    }
  }

  function leave() {
    if (asked() === null) return;
    if (cameFromGallery) history.back();
    else location.replace("#gallery");
  }

  speak();
  fill();
  legends();
  Gallery.start();
  Viewer.start({ leave, go: (index) => location.replace(`#graph=${index + 1}`) });
  addEventListener("hashchange", follow);
  follow(null);
  document.documentElement.dataset.ready = "yes";
})();
