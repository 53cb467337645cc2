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

  // what the gallery lists, searches and sorts by, of all structures at once; the rest is unpacked when it is drawn
  const columns = embedded.facts || {};
  const facts = (columns.name || []).map((name, index) => {
    const own = (column) => columns[column][index];
    const [predicted, probability, truth] = [own("predicted"), own("probability"), own("true")];
    const known = truth !== null && predicted !== null;
    const right = known ? predicted === truth : null;
    let error = null;
    if (known && typeof truth === "number") error = Math.abs(predicted - truth);
    else if (known && probability !== null) error = right ? 1 - probability : probability;
    return {
      index,
      name,
      predicted,
      probability,
      truth,
      right,
      error,
      spread: own("spread"),
      explained: own("explained"),
      part: own("part"),
      smiles: own("smiles"),
      canonical: own("canonical"),
      nodes: own("nodes"),
      critical: own("critical"),
      share: own("nodes") ? own("critical") / own("nodes") : 0,
      evidenceKept: own("kept"),
      evidenceLost: own("lost"),
    };
  });

  // "logS (mol/L)": what is predicted, and its unit
  const target = ((name) => {
    const parts = /^(.*\S)\s*[([]([^()[\]]+)[)\]]$/.exec(name || "");
    return { name: name || "", brief: parts ? parts[1] : name || "", unit: parts ? parts[2] : "" };
  })(embedded.summary && embedded.summary.target);

  // Where a group occurs, and the sum of what its atoms contribute there -> by what is explained, in how many molecules it
  // occurs, how often, and the mean of the sums.
  function means(places, sums) {
    const by = new Map();
    places.forEach((index, i) => {
      const { explained } = facts[index];
      if (!by.has(explained)) by.set(explained, { explained, molecules: new Set(), times: 0, mean: 0 });
      const own = by.get(explained);
      own.molecules.add(index);
      own.times += 1;
      own.mean += (sums[i] - own.mean) / own.times;
    });
    return [...by.values()];
  }

  const groups = (embedded.groups || []).map((raw) => {
    const places = integers(raw.in);
    return { name: raw.name, in: new Set(places), means: means(places, reals(raw.sums)) };
  });
  const groupOf = new Map(groups.map((group) => [group.name, group]));

  // Portions of structures stand after the scripts: a browser may still be reading them. One is whole once the next
  // has begun, or all is read.
  const PORTION = 48;
  let portion = { number: -1, structures: [] };
  const isThere = (index) =>
    document.readyState !== "loading" || byId(`portion-${Math.floor(index / PORTION) + 1}`) !== null || index < PORTION;

  function raw(index) {
    const number = Math.floor(index / PORTION);
    if (portion.number !== number)
      portion = { number, structures: JSON.parse(byId(`portion-${number}`).textContent) };
    return portion.structures[index % PORTION];
  }

  // the atoms and bonds of a molecule as SMARTS ask for them; null where it is none
  function chemistry(index) {
    const { atoms, orders, edges } = raw(index);
    if (!atoms) return null;
    return { atoms: integers(atoms), orders: integers(orders), edges: integers(edges) };
  }

  function unpack(index) {
    const own = raw(index);
    const input = { nodes: reals(own.nodeImportance), edges: reals(own.edgeImportance) };
    const trace = own.trace && own.trace.map((row) => ({ nodes: reals(row.nodes), edges: reals(row.edges) }));
    return {
      ...facts[index],
      technique: own.technique,
      fidelity: own.fidelity,
      sums: own.sums,
      addsUp: own.addsUp,
      balance: own.balance.replaceAll(/-(?=[\d.])/g, "−"),
      evidence: own.evidence.replaceAll(/-(?=[\d.])/g, "−"),
      drawn: own.drawn,
      molecule: own.molecule,
      edges: integers(own.edges),
      positions: reals(own.positions),
      nodeLabels: names(own.nodeLabels),
      nodeNames: names(own.nodeNames),
      edgeLabels: names(own.edgeLabels),
      drawing: own.strokes
        ? { strokes: integers(own.strokes), letters: own.letters, lettersAt: integers(own.lettersAt) }
        : null,
      groups: (own.groups || []).map(([name, atoms]) => ({ ...groupOf.get(name), atoms })),
      input,
      rows: [...(trace || []), input],
      criticalNodes: integers(own.criticalNodes),
      criticalEdges: integers(own.criticalEdges),
      known: own.truth === null ? null : integers(own.truth),
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

  const unit = () => (target.unit ? ` ${target.unit}` : "");
  const rounded = (digits) => new Intl.NumberFormat("en-GB", { maximumSignificantDigits: digits });
  const [two, three, whole] = [rounded(2), rounded(3), new Intl.NumberFormat("en-GB")];

  return {
    summary: embedded.summary,
    facts,
    groups,
    means,
    target,
    graph,
    isThere,
    chemistry,
    importances: (index) => reals(raw(index).nodeImportance),
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
      const doubt = spread === null ? "" : ` ± ${isClass ? Data.percent(spread) : two.format(spread)}`;
      return isClass ? Data.percent(probability) + doubt : Data.number(predicted) + doubt + unit();
    },
    // a class as a sentence names it: 1 alone would be read as a number
    named: (name) => (/^\p{L}/u.test(name) && !["True", "False"].includes(name) ? name : `class ${name}`),
    said: (value) => (typeof value === "number" ? Data.number(value) + unit() : value === null ? "unknown" : value),
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

// Of molecules the page speaks as chemists do. Only for texts of the page itself, never for names from the data.
function say(text) {
  if (!Data.summary.molecules) return text;
  const words = { graph: "molecule", node: "atom", edge: "bond" };
  return text
    .replaceAll(/\b(a|an) (node|edge)\b/gi, (_, article, word) => `${article[0]}${word === "node" ? "n" : ""} ${word}`)
    .replaceAll(/\b([Gg]raph|[Nn]ode|[Ee]dge)(s?)\b/g, (_, word, many) => {
      const other = words[word.toLowerCase()];
      return (word[0] < "a" ? other[0].toUpperCase() + other.slice(1) : other) + many;
    });
}

function save(blob, name, ending) {
  const address = URL.createObjectURL(blob);
  const safe = name.replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 80) || "graph";
  element("a", { href: address, download: `${safe}.${ending}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

function byId(id) {
  return document.getElementById(id);
}
