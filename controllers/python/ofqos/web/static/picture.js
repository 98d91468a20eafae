// SPDX-License-Identifier: Apache-2.0
// The network's picture: switches in columns from the middle outwards, links with a lane for each direction.

import {svg} from './dom.js';
import {level, plural} from './format.js';

// A switch's box: as two lines of text; where there are many, as one.
const FEW = 30;
const SIZES = [{row: 52, high: 36}, {row: 24, high: 19}];
export const to = (dp) => `#/switch/${dp}`;

/** Column and row of each switch: from the middle of the network outwards, each branch beside the next. */
export function layout(switches, links) {
  const near = new Map(switches.map((s) => [s.dp, new Set()]));
  for (const {a, b} of links) {
    if (a === b) continue;
    near.get(a).add(b);
    near.get(b).add(a);
  }
  const place = new Map();
  let row = 0;
  const left = new Set(near.keys());
  while (left.size) {
    const part = far(near, left.values().next().value).order;
    const middle = part.map((dp) => [far(near, dp).most, -near.get(dp).size, dp])
      .sort((x, y) => x[0] - y[0] || x[1] - y[1] || (x[2] < y[2] ? -1 : 1))[0][2];
    row = branch(near, middle, place, row);
    for (const dp of part) left.delete(dp);
  }
  return {place, rows: row, columns: 1 + Math.max(0, ...[...place.values()].map((p) => p.column))};
}

/** All that can be reached, in steps, and how many these are. */
function far(near, start) {
  const steps = new Map([[start, 0]]);
  const order = [start];
  for (const dp of order) {
    for (const next of near.get(dp)) if (!steps.has(next)) { steps.set(next, steps.get(dp) + 1); order.push(next); }
  }
  return {order, most: steps.get(order.at(-1))};
}

function branch(near, root, place, row) {
  const {order} = far(near, root);
  const below = new Map(order.map((dp) => [dp, []]));
  const seen = new Set([root]);
  for (const dp of order) for (const next of near.get(dp)) if (!seen.has(next)) { seen.add(next); below.get(dp).push(next); }
  const put = (dp, column) => {
    const rows = below.get(dp).map((next) => put(next, column + 1));
    const at = rows.length ? (rows[0] + rows.at(-1)) / 2 : row++;
    place.set(dp, {column, row: at});
    return at;
  };
  put(root, 0);
  return row;
}

/** What the server sends, with names: its switches [dp, name, up, ports, queues], its links [switch, port, switch, port, up, loads in %]. */
export function unpacked({switches, links}) {
  const all = switches.map(([dp, name, up, ports, queues]) => ({dp, name, up, ports, queues}));
  const part = (percent) => percent === null ? null : percent / 100;
  return {switches: all, links: links.map(([a, aPort, b, bPort, up, ab, ba]) => ({a: all[a].dp, b: all[b].dp, aPort, bPort, up, ab: part(ab), ba: part(ba), away: !all[a].up || !all[b].up}))};
}

export function picture(box, {switches, links}) {
  const {place, rows, columns} = layout(switches, links);
  const size = SIZES[Number(rows > FEW)];
  const room = Math.max(280, box.clientWidth - 14);
  const wide = Math.max(78, Math.min(178, room / columns - 52));
  const step = columns > 1 ? Math.max(wide + 44, Math.min((room - wide - 4) / (columns - 1), 330)) : 0;
  const bow = links.some((l) => place.get(l.a).column === columns - 1 && place.get(l.b).column === columns - 1) ? 40 : 0;
  const width = wide + step * (columns - 1) + 4 + bow;
  const height = rows * size.row;
  const at = (dp) => { const p = place.get(dp); return {x: 2 + p.column * step, y: p.row * size.row + size.row / 2}; };
  const several = spread(links);
  const lanes = links.filter((l) => l.a !== l.b).map((l) => drawLink(l, at, wide, several.get(l), step - wide > 96 && ((dp) => links.filter((o) => o.a === dp || o.b === dp).length === 1)));
  box.replaceChildren(svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'Picture of the network'},
    lanes.map((l) => l.lines), lanes.map((l) => l.labels), switches.map((s) => drawSwitch(s, at(s.dp), wide, size))));
}

/** Links between the same two switches lie beside each other: where, in pixels from the middle. */
function spread(links) {
  const pairs = new Map();
  for (const l of links) {
    const key = [l.a, l.b].sort().join();
    pairs.set(key, [...(pairs.get(key) || []), l]);
  }
  const found = new Map();
  for (const beside of pairs.values()) beside.forEach((l, i) => found.set(l, Math.max(-15, Math.min(15, (i - (beside.length - 1) / 2) * 11))));
  return found;
}

const said = (load) => load === null ? 'not known' : `${Math.round(load * 100)}\u00a0%`;

function drawLink(link, at, wide, off, alone) {
  const [p, q] = [at(link.a), at(link.b)];
  const [first, second, there, back, names] = p.x <= q.x ? [p, q, link.ab, link.ba, [link.aPort, link.bPort]] : [q, p, link.ba, link.ab, [link.bPort, link.aPort]];
  const same = first.x === second.x;
  const x1 = first.x + wide, x2 = same ? second.x + wide : second.x, y1 = first.y + off, y2 = second.y + off;
  const path = (shift) => same
    ? `M${x1},${y1 + shift}C${x1 + 34 + shift},${y1} ${x2 + 34 + shift},${y2} ${x2},${y2 - shift}`
    : `M${x1},${y1 + shift}C${(x1 + x2) / 2},${y1 + shift} ${(x1 + x2) / 2},${y2 + shift} ${x2},${y2 + shift}`;
  const name = `${names[0]} – ${names[1]}: ${said(there)} one way, ${said(back)} back`;
  const lines = link.up
    ? [svg('path', {class: `lane l${level(there)}`, d: path(-2.4)}, svg('title', {}, name)),
       svg('path', {class: `lane l${level(back)}`, d: path(2.4)}, svg('title', {}, name))]
    : [svg('path', {class: 'lane down', d: path(0)}, svg('title', {}, `${name}; it is down`))];
  const load = Math.max(there ?? 0, back ?? 0);
  const text = !link.up ? (link.away ? '' : 'down') : load >= 0.01 ? said(load) : '';
  const x = same ? x1 + 28 : x1 + (x2 - x1) * 0.68;
  // Near the end that no other link shares.
  const labels = [text && svg('text', {class: 'load', x, y: same ? (y1 + y2) / 2 : y2 + (y1 - y2) * 0.18 - 6}, text)];
  if (!same && alone) labels.push(svg('text', {class: 'load port', x: x2 - 5, y: y2 - 5}, short(names[1], 7)));
  if (!same && alone && alone(p.x <= q.x ? link.a : link.b)) labels.push(svg('text', {class: 'load port from', x: x1 + 5, y: y1 - 5}, short(names[0], 7)));
  return {lines, labels};
}

const short = (name, most) => name.length > most ? `${name.slice(0, most - 1)}…` : name;

function drawSwitch(s, p, wide, {high}) {
  const sub = s.up ? `${plural(s.ports, 'port')}${s.queues ? ` · ${plural(s.queues, 'queue')}` : ''}` : 'away';
  const name = short(s.name, Math.floor((wide - 14) / 7.6));
  const two = high > 30;
  return svg('a', {href: to(s.dp), class: s.up ? '' : 'away', 'aria-label': `${s.name}, ${sub}`},
    svg('title', {}, `${s.name} (${s.dp}): ${sub}`),
    svg('rect', {class: 'box', x: p.x, y: p.y - high / 2, width: wide, height: high, rx: 6}),
    svg('text', {x: p.x + 9, y: two ? p.y - 2 : p.y + 4}, name),
    two && svg('text', {class: 'sub', x: p.x + 9, y: p.y + 12}, wide < 120 ? sub.split(' · ')[0] : sub));
}
