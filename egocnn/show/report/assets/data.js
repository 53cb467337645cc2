"use strict";
// The embedded JSON -> graphs with typed arrays, unpacked one by one when a picture first asks for them.

const Data = (() => {
  const embedded = JSON.parse(document.getElementById("data").textContent);

  function bytes(text) {
    const binary = atob(text);
    const array = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) array[i] = binary.charCodeAt(i);
    return array.buffer;
  }

  function reals(packed) {
    const values = Float64Array.from(new Int16Array(bytes(packed.data)), (steps) => steps * packed.step);
    if (!packed.at) return values;
    const all = new Float64Array(packed.length); // mostly 0: only the others are listed
    integers(packed.at).forEach((at, i) => (all[at] = values[i]));
    return all;
  }

  function integers(packed) {
    return new (packed[0] === "s" ? Uint16Array : Uint32Array)(bytes(packed.slice(1)));
  }

  function names(packed) {
    return packed === null ? null : Array.from(integers(packed), (label) => embedded.labels[label]);
  }

  // numbers of whole structures, cheap enough to know for all of them at once: the gallery sorts by them
  const facts = embedded.structures.map((raw, index) => {
    const critical = integers(raw.criticalNodes).length;
    const known = raw.true !== null && raw.predicted !== null;
    return {
      index,
      name: raw.name,
      predicted: raw.predicted,
      probability: raw.probability,
      spread: raw.spread,
      truth: raw.true,
      right: !known ? null : raw.predicted === raw.true,
      error: known && typeof raw.true === "number" ? Math.abs(raw.predicted - raw.true) : null,
      nodes: raw.nodes,
      critical,
      share: raw.nodes ? critical / raw.nodes : 0,
      // an empty structure holds no evidence, and none goes with it
      evidenceKept: raw.fidelity && critical ? raw.fidelity.evidence_kept : null,
      evidenceLost: raw.fidelity && critical ? raw.fidelity.evidence_lost : null,
    };
  });

  function unpack(index) {
    const raw = embedded.structures[index];
    const input = { nodes: reals(raw.nodeImportance), edges: reals(raw.edgeImportance) };
    const trace = raw.trace && raw.trace.map((row) => ({ nodes: reals(row.nodes), edges: reals(row.edges) }));
    return {
      ...facts[index],
      explained: raw.explained,
      technique: raw.technique,
      fidelity: raw.fidelity,
      sums: raw.sums,
      addsUp: raw.addsUp,
      balance: raw.balance.replaceAll(/-(?=[\d.])/g, "−"),
      evidence: raw.evidence,
      drawn: raw.drawn,
      smiles: raw.smiles,
      molecule: raw.molecule,
      edges: integers(raw.edges),
      positions: reals(raw.positions),
      nodeLabels: names(raw.nodeLabels),
      nodeNames: names(raw.nodeNames),
      edgeLabels: names(raw.edgeLabels),
      input,
      rows: [...(trace || []), input],
      criticalNodes: integers(raw.criticalNodes),
      criticalEdges: integers(raw.criticalEdges),
      known: raw.truth === null ? null : integers(raw.truth),
    };
  }

  // a few are kept, for walking to and fro; all of them would fill the memory
  const recent = new Map();
  function graph(index) {
    const found = recent.get(index) || unpack(index);
    recent.delete(index);
    recent.set(index, found);
    if (recent.size > 100) recent.delete(recent.keys().next().value);
    return found;
  }

  const rounded = (digits) => new Intl.NumberFormat("en-GB", { maximumSignificantDigits: digits });
  const [one, two, three, whole] = [rounded(1), rounded(2), rounded(3), new Intl.NumberFormat("en-GB")];

  return {
    summary: embedded.summary,
    facts,
    graph,
    number(value) {
      if (value === null) return "unknown";
      const tiny = value !== 0 && Math.abs(value) < 1e-4;
      return (tiny ? value.toExponential(1) : three.format(value)).replaceAll("-", "−");
    },
    signed: (value) => (value > 0 ? "+" : "") + Data.number(value),
    count: (value) => whole.format(value),
    // never all or nothing unless it is
    percent(value) {
      if (value === null) return "unknown";
      if (value > 0.99 && value < 1) return ">99%";
      if (value > 0 && value < 0.01) return "<1%";
      return `${Math.round(value * 100)}%`;
    },
    // the probability, or the value, with the doubt of a model of several networks
    sure({ predicted, probability, spread }) {
      const isClass = typeof predicted === "string";
      const doubt = spread === null ? "" : ` ± ${isClass ? `${one.format(100 * spread)}%` : two.format(spread)}`;
      return (isClass ? Data.percent(probability) : Data.number(predicted)) + doubt;
    },
    said: (value) => (typeof value === "number" ? Data.number(value) : value === null ? "unknown" : value),
  };
})();

// Elements are made with text nodes only: names come from outside and must never be read as markup.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

function byId(id) {
  return document.getElementById(id);
}
