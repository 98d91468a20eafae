// SPDX-License-Identifier: Apache-2.0
// The network: a picture, and the same in tables.

import {h, keyed, say, svg} from './dom.js';
import {count, level, plural, rate, share} from './format.js';
import {loadBar} from './bar.js';
import {trail} from './app.js';

const ROW = 52, HIGH = 36;
const to = (dp) => `#/switch/${dp}`;

/** Column and row of each switch: from the middle of the network outwards, each branch beside the next. */
export function layout(switches, links) {
  const near = new Map(switches.map((s) => [s.dp, new Set()]));
  for (const {a, b} of links) {
    if (a.dp === b.dp || !near.has(a.dp) || !near.has(b.dp)) continue;
    near.get(a.dp).add(b.dp);
    near.get(b.dp).add(a.dp);
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

function picture(box, data) {
  const {place, rows, columns} = layout(data.switches, data.links);
  const room = Math.max(280, box.clientWidth - 14);
  const wide = Math.max(78, Math.min(178, room / columns - 52));
  const step = columns > 1 ? Math.max(wide + 44, Math.min((room - wide - 4) / (columns - 1), 330)) : 0;
  const bow = data.links.some((l) => place.get(l.a.dp)?.column === columns - 1 && place.get(l.b.dp)?.column === columns - 1) ? 40 : 0;
  const width = wide + step * (columns - 1) + 4 + bow;
  const height = rows * ROW;
  const at = (dp) => { const p = place.get(dp); return {x: 2 + p.column * step, y: p.row * ROW + ROW / 2}; };
  const gone = new Set(data.switches.filter((s) => !s.up).map((s) => s.dp));
  const lanes = data.links.filter((l) => l.a.dp !== l.b.dp && place.has(l.a.dp) && place.has(l.b.dp)).map((l) => drawLink(l, at, wide, gone.has(l.a.dp) || gone.has(l.b.dp)));
  box.replaceChildren(svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'Picture of the network'},
    lanes.map((l) => l.lines), lanes.map((l) => l.label), data.switches.map((s) => drawSwitch(s, at(s.dp), wide))));
}

function drawLink(link, at, wide, away) {
  const [p, q] = [at(link.a.dp), at(link.b.dp)];
  const [first, second, ab, ba] = p.x <= q.x ? [p, q, 'a', 'b'] : [q, p, 'b', 'a'];
  const same = first.x === second.x;
  const x1 = first.x + wide, x2 = same ? second.x + wide : second.x;
  const path = (shift) => same
    ? `M${x1},${first.y + shift}C${x1 + 34 + shift},${first.y} ${x2 + 34 + shift},${second.y} ${x2},${second.y - shift}`
    : `M${x1},${first.y + shift}C${(x1 + x2) / 2},${first.y + shift} ${(x1 + x2) / 2},${second.y + shift} ${x2},${second.y + shift}`;
  const load = Math.max(link.a_load ?? 0, link.b_load ?? 0);
  const name = `${link.a.name} – ${link.b.name}: ${rate(link[`${ab}_bps`])} one way, ${rate(link[`${ba}_bps`])} back, of ${rate(link.capacity)}`;
  const lines = link.up
    ? [svg('path', {class: `lane l${level(link[`${ab}_load`])}`, d: path(-2.4)}, svg('title', {}, name)),
       svg('path', {class: `lane l${level(link[`${ba}_load`])}`, d: path(2.4)}, svg('title', {}, name))]
    : [svg('path', {class: 'lane down', d: path(0)}, svg('title', {}, `${name}; it is down`))];
  const text = !link.up ? (away ? '' : 'down') : load >= 0.01 ? share(load) : '';
  // Near the end that no other link shares.
  const label = text && svg('text', {class: 'load', x: same ? x1 + 28 : x1 + (x2 - x1) * 0.72, y: same ? (first.y + second.y) / 2 : second.y + (first.y - second.y) * 0.12 - 6}, text);
  return {lines, label};
}

function drawSwitch(s, p, wide) {
  const sub = s.up ? `${plural(s.ports, 'port')}${s.queues ? ` · ${plural(s.queues, 'queue')}` : ''}` : 'away';
  const most = Math.floor((wide - 14) / 7.6);
  const name = s.name.length > most ? `${s.name.slice(0, most - 1)}…` : s.name;
  return svg('a', {href: to(s.dp), class: s.up ? '' : 'away', 'aria-label': `${s.name}, ${sub}${s.up ? `, sends ${rate(s.tx_bps)}` : ''}`},
    svg('title', {}, `${s.name} (${s.dp})`),
    svg('rect', {class: 'box', x: p.x, y: p.y - HIGH / 2, width: wide, height: HIGH, rx: 6}),
    svg('text', {x: p.x + 9, y: p.y - 2}, name),
    svg('text', {class: 'sub', x: p.x + 9, y: p.y + 12}, wide < 120 ? sub.split(' · ')[0] : sub));
}

// ------------------------------------------------------------------------------- tables

const cell = (label, name = '', ...inside) => h('td', {'data-label': label, class: name}, ...inside);

function linkRow(l) {
  const [a, b] = [loadBar(`load from ${l.a.name}`), loadBar(`load from ${l.b.name}`)];
  const parts = {a, b, forth: h('span', {}), back: h('span', {}), forthLoad: h('small', {}), backLoad: h('small', {}), of: h('span', {})};
  const end = (e) => h('a', {href: `${to(e.dp)}/port/${e.port}`}, h('span', {class: 'sw'}), ` ${e.name}`);
  const row = h('tr', {}, h('th', {scope: 'row', class: 'two'}, end(l.a), ' – ', end(l.b)),
    cell('Capacity', 'n end', parts.of), cell('One way', 'half', parts.forth, ' ', parts.forthLoad, a), cell('Back', 'half', parts.back, ' ', parts.backLoad, b));
  row.parts = parts;
  return row;
}

function switchRow(s) {
  const parts = Object.fromEntries(['state', 'ports', 'queues', 'rx', 'tx'].map((k) => [k, h('span', {})]));
  const name = h('a', {href: to(s.dp)});
  const row = h('tr', {}, h('th', {scope: 'row', class: 'two'}, name, ' ', h('br', {}), h('small', {class: 'code'}, s.dp)),
    cell('State', 'end', parts.state), cell('Ports', 'n half', parts.ports), cell('Queues', 'n half', parts.queues),
    cell('Receives', 'n half', parts.rx), cell('Sends', 'n half', parts.tx));
  row.parts = {...parts, name};
  return row;
}

const table = (caption, heads) => {
  const body = h('tbody', {});
  const made = h('table', {class: 'cards'}, h('caption', {class: 'off'}, caption),
    h('thead', {}, h('tr', {}, heads.map(([text, name]) => h('th', {scope: 'col', class: name || null}, text)))), body);
  return [made, body];
};

export function networkPage(main) {
  trail(['Network']);
  const heading = h('h1', {}, 'Network');
  const sum = h('p', {class: 'mute'});
  const box = h('div', {class: 'picture', tabindex: 0, role: 'region', 'aria-label': 'The picture; scroll it sideways'});
  const keys = h('span', {class: 'mute keys'}, [['l1', 'idle'], ['l2', 'below 60 %'], ['l3', 'below 90 %'], ['l4', 'full']].map(([c, t]) => h('span', {}, h('b', {class: c}), t)));
  const from = h('span', {class: 'mute'});
  const drawn = h('section', {class: 'panel', 'aria-label': 'Picture'}, h('header', {}, h('h2', {}, 'Links and their load'), from, keys), box);
  const [links, linkBody] = table('Links', [['Link'], ['Capacity', 'n'], ['One way', 'third'], ['Back', 'third']]);
  const [switches, switchBody] = table('Switches', [['Switch'], ['State'], ['Ports', 'n'], ['Queues', 'n'], ['Receives', 'n'], ['Sends', 'n']]);
  const linkPanel = h('section', {class: 'panel', 'aria-label': 'Links'}, h('header', {}, h('h2', {}, 'Links, the fullest first')), h('div', {class: 'scroll'}, links));
  main.append(h('div', {class: 'head'}, heading, sum), drawn, linkPanel,
    h('section', {class: 'panel', 'aria-label': 'Switches'}, h('header', {}, h('h2', {}, 'Switches')), h('div', {class: 'scroll'}, switches)));
  let data, shape = '', names = {};
  const draw = () => {
    if (!data) return;
    const held = box.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null;
    picture(box, data);
    if (held) box.querySelector(`a[href="${held}"]`)?.focus();
  };
  const sized = new ResizeObserver(draw);
  sized.observe(box);
  return {
    end: () => sized.disconnect(),
    view(now) {
      data = now;
      names = Object.fromEntries(now.switches.map((s) => [s.dp, s.name]));
      const away = now.switches.filter((s) => !s.up).length;
      say(sum, `${now.switches.length} switches${away ? `, ${away} away` : ''} · ${now.links.length} links · ${now.viewers} of ${now.viewers_most} pages open`);
      say(from, {lldp: 'links as LLDP finds them', given: 'links as the configuration gives them',
        none: 'No links are known: give them in the configuration, or the address of ofqos-reserve, which finds them by LLDP.'}[now.links_from]);
      keys.hidden = linkPanel.hidden = !now.links.length;
      // Drawn anew only when something is seen to be different: keyboards and pointers stay where they are.
      const looks = JSON.stringify([now.switches.map((s) => [s.dp, s.name, s.up, s.ports, s.queues]),
        now.links.map((l) => [l.a.dp, l.b.dp, l.up, share(l.a_load), share(l.b_load)])]);
      if (looks !== shape) { shape = looks; draw(); }
      const full = (l) => Math.max(l.a_load ?? 0, l.b_load ?? 0);
      keyed(linkBody, [...now.links].sort((x, y) => full(y) - full(x)), (l) => `${l.a.dp}:${l.a.port}-${l.b.dp}:${l.b.port}`, linkRow, updateLink);
      keyed(switchBody, now.switches, (s) => s.dp, switchRow, updateSwitch);
    },
  };

  function updateLink(row, l) {
    const p = row.parts;
    row.querySelectorAll('.sw').forEach((e, i) => say(e, names[(i ? l.b : l.a).dp] || ''));
    for (const [k, text, load, bar] of [['forth', l.a_bps, l.a_load, p.a], ['back', l.b_bps, l.b_load, p.b]]) {
      say(p[k], l.up ? rate(text) : 'down');
      say(p[`${k}Load`], l.up ? share(load) : '');
      bar.set(l.up ? load : 0);
    }
    say(p.of, rate(l.capacity));
  }

  function updateSwitch(row, s) {
    const p = row.parts;
    say(p.name, s.name);
    const [text, kind] = !s.up ? ['away', 'chip bad'] : s.foreign ? ['queues changed by others', 'chip warn'] : s.ports_down ? [`${plural(s.ports_down, 'port')} down`, 'chip warn'] : ['connected', 'chip good'];
    say(p.state, text);
    p.state.className = kind;
    say(p.ports, count(s.ports)); say(p.queues, count(s.queues)); say(p.rx, rate(s.rx_bps)); say(p.tx, rate(s.tx_bps));
  }
}
