"use strict";
// SMARTS and the atoms of a molecule -> where the pattern lies. Stereochemistry is not compared, as by RDKit's default.

const Smarts = (() => {
  const ELEMENTS = (
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr Nb " +
    "Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au " +
    "Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og"
  ).split(" ");
  const numberOf = new Map(ELEMENTS.map((symbol, i) => [symbol, i + 1]));
  const [MOST_MATCHES, MOST_STEPS, DEEPEST] = [1000, 200_000, 20];
  const SINGLE = 2; // orders come doubled, so that an aromatic bond is a whole number too
  const AROMATIC = 3;

  // ── molecules ─────────────────────────────────────────────────────────────────────────────────

  function molecule({ atoms, orders, edges }) {
    const near = Array.from(atoms, () => []);
    orders.forEach((_, e) => {
      near[edges[2 * e]].push([edges[2 * e + 1], e]);
      near[edges[2 * e + 1]].push([edges[2 * e], e]);
    });
    const rings = new Map(); // bond -> atoms of the smallest ring through it, 0 for none; found when asked for
    const made = {
      near,
      orders,
      atom: Array.from(atoms, (code, n) => ({
        element: code & 127,
        aromatic: Boolean(code & 128),
        charge: (code >> 11) - 8,
        degree: near[n].length,
        implicit: (code >> 8) & 7,
        hydrogens: ((code >> 8) & 7) + near[n].filter(([m]) => (atoms[m] & 127) === 1).length,
      })),
      ring(e) {
        if (!rings.has(e)) rings.set(e, smallestRing(near, edges[2 * e], edges[2 * e + 1], e));
        return rings.get(e);
      },
      ringsAt: (n) => near[n].map(([, e]) => made.ring(e)).filter(Boolean),
    };
    return made;
  }

  function smallestRing(near, from, to, without) {
    const far = new Map([[from, 1]]);
    const queue = [from];
    for (let i = 0; i < queue.length; i++) {
      for (const [m, e] of near[queue[i]]) {
        if (e === without || far.has(m)) continue;
        far.set(m, far.get(queue[i]) + 1);
        if (m === to) return far.get(m);
        queue.push(m);
      }
    }
    return 0;
  }

  // ── patterns ──────────────────────────────────────────────────────────────────────────────────

  class Unread extends Error {}

  function parse(text, depth = 0) {
    if (depth > DEEPEST) throw new Unread("patterns stand too deep inside each other");
    const [atoms, bonds, open, branches] = [[], [], new Map(), []];
    let [at, last, bond] = [0, null, null];
    const add = (test) => {
      const index = atoms.push({ test, near: [] }) - 1;
      if (last !== null) join(last, index, bond || either);
      [last, bond] = [index, null];
    };
    const join = (a, b, test) => {
      bonds.push([a, b]);
      atoms[a].near.push([b, test]);
      atoms[b].near.push([a, test]);
    };
    while (at < text.length) {
      const rest = text.slice(at);
      const ring = /^(?:(\d)|%(\d\d))/.exec(rest);
      const plain = /^(Cl|Br|[BCNOPSFI]|[bcnops]|[*aA])/.exec(rest);
      if (rest[0] === "[") {
        const end = closing(text, at, "[", "]");
        add(bracket(text.slice(at + 1, end), depth));
        at = end + 1;
      } else if (plain) {
        add(symbol(plain[1]));
        at += plain[0].length;
      } else if (ring && last !== null) {
        const number = ring[1] || ring[2];
        if (open.has(number)) {
          const [other, test] = open.get(number);
          if (other === last) throw new Unread(`ring ${number} closes where it opens`);
          join(other, last, bond || test || either);
          open.delete(number);
        } else open.set(number, [last, bond]);
        bond = null;
        at += ring[0].length;
      } else if (rest[0] === "(" && last !== null) {
        branches.push(last);
        at++;
      } else if (rest[0] === ")" && branches.length) {
        last = branches.pop();
        at++;
      } else if (rest[0] === "." && last !== null && !bond) {
        last = null;
        at++;
      } else {
        const said = /^[-=#:~@!&,;/\\]+/.exec(rest);
        if (!said || last === null || bond) throw new Unread(`“${rest.slice(0, 8)}” is not understood`);
        bond = logic(said[0], oneBond);
        at += said[0].length;
      }
    }
    if (open.size) throw new Unread(`ring ${[...open.keys()][0]} never closes`);
    if (branches.length) throw new Unread("a bracket ( never closes");
    if (bond || !atoms.length) throw new Unread("an atom is missing");
    return { atoms, bonds };
  }

  function closing(text, at, opens, closes) {
    let deep = 0;
    for (let i = at; i < text.length; i++) {
      if (text[i] === opens) deep++;
      if (text[i] === closes && --deep === 0) return i;
    }
    throw new Unread(`a bracket ${opens} never closes`);
  }

  // "!C;R,+" by its signs: ; binds least, then a comma, then & or nothing, then !
  function logic(text, one) {
    let at = 0;
    const not = () => {
      if (text[at] === "!") {
        at++;
        const test = not();
        return (...given) => !test(...given);
      }
      const [test, length] = one(text.slice(at));
      at += length;
      return test;
    };
    const level = (sign, inner, every) => () => {
      const tests = [inner()];
      while (at < text.length && (sign === "&" ? !",;".includes(text[at]) : text[at] === sign)) {
        if (text[at] === sign) at++;
        tests.push(inner());
      }
      return every ? (...given) => tests.every((test) => test(...given)) : (...given) => tests.some((test) => test(...given));
    };
    const test = level(";", level(",", level("&", not, true), false), true)();
    if (at < text.length) throw new Unread(`“${text.slice(at)}” is not understood`);
    return test;
  }

  const either = (mol, e) => mol.orders[e] === SINGLE || mol.orders[e] === AROMATIC;
  const BONDS = {
    "-": (mol, e) => mol.orders[e] === SINGLE,
    "=": (mol, e) => mol.orders[e] === 2 * SINGLE,
    "#": (mol, e) => mol.orders[e] === 3 * SINGLE,
    ":": (mol, e) => mol.orders[e] === AROMATIC,
    "~": () => true,
    "@": (mol, e) => mol.ring(e) > 0,
    "/": either,
    "\\": either,
  };

  function oneBond(text) {
    if (!BONDS[text[0]]) throw new Unread(`the bond “${text}” is not understood`);
    return [BONDS[text[0]], 1];
  }

  function symbol(name) {
    if (name === "*") return () => true;
    if (name === "a") return (mol, n) => mol.atom[n].aromatic;
    if (name === "A") return (mol, n) => !mol.atom[n].aromatic;
    const aromatic = name[0] > "Z";
    const element = numberOf.get(name[0].toUpperCase() + name.slice(1));
    return (mol, n) => mol.atom[n].element === element && mol.atom[n].aromatic === aromatic;
  }

  function bracket(text, depth) {
    const bare = text.replace(/:\d+$/, ""); // the number of an atom in a reaction
    if (/^H([+-]\d*)?$/.test(bare)) {
      const charge = bare === "H" ? null : logic(bare.slice(1), oneOf(depth));
      return (mol, n) => mol.atom[n].element === 1 && (!charge || charge(mol, n));
    }
    return logic(bare, oneOf(depth));
  }

  // the first property of an atom that the text tells, and how many letters that takes
  const oneOf = (depth) => (text) => {
    if (text.startsWith("$(")) {
      const end = closing(text, 1, "(", ")");
      const inner = parse(text.slice(2, end), depth + 1);
      return [(mol, n) => !search(mol, inner, n, () => true).next().done, end + 1];
    }
    let found = /^#(\d+)/.exec(text);
    if (found) {
      const element = Number(found[1]);
      return [(mol, n) => mol.atom[n].element === element, found[0].length];
    }
    found = /^([+-])(\d+|\1*)/.exec(text);
    if (found) {
      const size = /\d/.test(found[2]) ? Number(found[2]) : found[0].length;
      const charge = found[1] === "+" ? size : -size;
      return [(mol, n) => mol.atom[n].charge === charge, found[0].length];
    }
    found = /^@{1,2}/.exec(text);
    if (found) return [() => true, found[0].length];
    found = /^([A-Z][a-z])/.exec(text);
    if (found && numberOf.has(found[1])) return [symbol(found[1]), 2];
    found = /^([DHXRrx])(\d*)/.exec(text);
    if (found) return [counted(found[1], found[2] === "" ? null : Number(found[2])), found[0].length];
    found = /^(se|as|te|[bcnops]|[*aA]|[A-Z])/.exec(text);
    if (found && ("*aA".includes(found[1]) || numberOf.has(found[1][0].toUpperCase() + found[1].slice(1))))
      return [symbol(found[1]), found[1].length];
    throw new Unread(`“${text.slice(0, 8)}” is not understood by this page`);
  };

  function counted(what, number) {
    const count = number === null ? 1 : number;
    if (what === "D") return (mol, n) => mol.atom[n].degree === count;
    if (what === "H") return (mol, n) => mol.atom[n].hydrogens === count;
    if (what === "X") return (mol, n) => mol.atom[n].degree + mol.atom[n].implicit === count;
    if (what === "x" && number !== null) return (mol, n) => mol.ringsAt(n).length === number;
    if (what === "r" && number > 0) return (mol, n) => Math.min(...mol.ringsAt(n)) === number;
    if (what === "R" && number > 0) throw new Unread(`“R${number}”, in so many rings, is not understood by this page`);
    const inside = number !== 0;
    return (mol, n) => mol.ringsAt(n).length > 0 === inside;
  }

  // ── matching ──────────────────────────────────────────────────────────────────────────────────

  // Every way to lay the pattern onto the molecule, its first atom at ``start`` where that is given: arrays of atoms.
  function* search(mol, { atoms }, start, goOn) {
    const placed = new Array(atoms.length).fill(-1);
    const used = new Set();
    const fits = (p, n) =>
      !used.has(n) &&
      atoms[p].test(mol, n) &&
      atoms[p].near.every(([q, test]) => {
        if (placed[q] < 0) return true;
        const joined = mol.near[n].find(([m]) => m === placed[q]);
        return joined !== undefined && test(mol, joined[1]);
      });
    const candidates = (p) => {
      if (p === 0 && start !== null) return [start];
      const before = atoms[p].near.find(([q]) => placed[q] >= 0);
      return before ? mol.near[placed[before[0]]].map(([m]) => m) : mol.near.keys();
    };
    function* from(p) {
      if (p === atoms.length) {
        yield placed.slice();
        return;
      }
      for (const n of candidates(p)) {
        if (!goOn()) return;
        if (!fits(p, n)) continue;
        placed[p] = n;
        used.add(n);
        yield* from(p + 1);
        used.delete(n);
        placed[p] = -1;
      }
    }
    yield* from(0);
  }

  // where the pattern lies, each set of atoms once
  function matches(mol, pattern) {
    let steps = 0;
    const found = new Map();
    for (const atoms of search(mol, pattern, null, () => ++steps < MOST_STEPS)) {
      const key = atoms.toSorted((a, b) => a - b).join();
      if (!found.has(key)) found.set(key, atoms);
      if (found.size >= MOST_MATCHES) break;
    }
    return [...found.values()];
  }

  return { parse, molecule, matches };
})();
