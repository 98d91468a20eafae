// SPDX-License-Identifier: Apache-2.0
// An ISP's customers: sites as a tree, the worst ten, and all circuits; of everything, or of a site.

import {h, keyed, say} from './dom.js';
import {controls, rows} from './rows.js';
import {clock, count, micros, percent, perSecond, plural, rate} from './format.js';
import {loadBar, queueBar} from './bar.js';
import {trail} from './app.js';

export const siteAt = (name) => `#/subscribers/site/${encodeURIComponent(name)}`;
export const circuitAt = (id) => `#/subscribers/circuit/${encodeURIComponent(id)}`;
const WAYS = ['down', 'up'];

const cell = (label, name, ...inside) => h('td', {'data-label': label, class: name}, ...inside);
/** Of both ways: what is not known in either is one dash. */
export const both = (pair, text) => pair.every((v) => v === null) ? '–' : pair.map(text).join(' / ');

/** What is not measured, but what waits at the present rate, is marked. */
export const wait = (us, guess) => us === null ? '–' : `${guess ? '≈\u00a0' : ''}${micros(us)}`;

const WORST = [['rtt_us', 'Longest round trips', micros], ['delay_us', 'Longest waiting', wait], ['drops_ps', 'Most drops', perSecond], ['outcome', 'Lowest outcome', (v) => `${100 - v} of 100`]];

const table = (caption, heads, key) => {
  const list = rows(key, heads.length, () => box);
  const box = h('div', {class: 'scroll', tabindex: -1}, h('table', {class: 'cards'}, h('caption', {class: 'off'}, caption),
    h('thead', {}, h('tr', {}, heads.map(([text, name]) => h('th', {scope: 'col', class: name || null}, text)))), list.body));
  return [box, list];
};
const HEADS = [['Down', 'fourth'], ['Up', 'fourth'], ['Round trip, down / up', 'n'], ['Waits, down / up', 'n'], ['Dropped, down / up', 'n'], ['Lost TCP, down / up', 'n'], ['QoO, down / up', 'n']];

function figures(p) {
  return [cell('Round trip', 'n', p.rtt), cell('Waits', 'n', p.delay), cell('Dropped', 'n', p.drops), cell('Lost TCP', 'n', p.lost), cell('QoO', 'n', p.outcome)];
}

function say3(p, row) {
  say(p.rtt, both(row.rtt_us, micros));
  say(p.delay, row.delay_us.every((v) => v === null) ? '–' : row.delay_us.map((v, i) => wait(v, row.guess[i])).join(' / '));
  say(p.drops, both(row.drops_ps, perSecond));
  p.drops.className = row.drops_ps.some(Boolean) ? 'bad' : 'zero';
  say(p.lost, both(row.lost, percent));
  p.lost.className = row.lost.some((v) => v >= 1) ? 'bad' : '';
  say(p.outcome, both(row.outcome, (v) => v === null ? '–' : String(v)));
  p.outcome.className = row.outcome.some((v) => v !== null && v < 50) ? 'bad' : '';
}

function makeSite(s) {
  const p = Object.fromEntries(['sub', 'down', 'up', 'rtt', 'delay', 'drops', 'lost', 'outcome'].map((k) => [k, h(k === 'sub' ? 'small' : 'span', {})]));
  p.bars = WAYS.map((way) => loadBar(`${s.name}, ${way}`));
  const who = h('span', {class: 'who'}, h('a', {href: siteAt(s.name), class: 'name'}, s.name), p.sub);
  who.style.setProperty('--depth', s.depth);
  const row = h('tr', {}, h('th', {scope: 'row', class: 'wide'}, who), WAYS.map((way, i) => cell(i ? 'Up' : 'Down', 'half', p[way], p.bars[i])), figures(p));
  row.parts = p;
  return row;
}

function updateSite(row, s) {
  const p = row.parts;
  say(p.sub, `${s.kind} · ${plural(s.circuits, 'circuit')}`);
  WAYS.forEach((way, i) => {
    say(p[way], `${rate(s.bps[i])} of ${rate(s.ceil[i])}`);
    p.bars[i].set(s.bps[i] === null ? null : s.bps[i] / s.ceil[i]);
  });
  say3(p, s);
}

function makeCircuit(c) {
  const p = Object.fromEntries(['name', 'sub', 'chip', 'down', 'up', 'downTo', 'upTo', 'rtt', 'delay', 'drops', 'lost', 'outcome'].map((k) => [k, h(k === 'sub' || k.endsWith('To') ? 'small' : 'span', {})]));
  p.bars = WAYS.map((way) => queueBar(`${c.id}, ${way}`));
  const row = h('tr', {}, h('th', {scope: 'row', class: 'wide'}, h('span', {class: 'who'}, h('a', {href: circuitAt(c.id), class: 'name'}, p.name), ' ', p.chip, p.sub)),
    WAYS.map((way, i) => cell(i ? 'Up' : 'Down', 'half', p[way], ' ', p[`${way}To`], p.bars[i])), figures(p));
  row.parts = p;
  return row;
}

function updateCircuit(row, c) {
  const p = row.parts;
  say(p.name, c.name || c.id);
  say(p.sub, [c.name ? c.id : '', c.at].filter(Boolean).join(' · '));
  say(p.chip, c.here ? 'changed here' : '');
  p.chip.className = c.here ? 'chip warn' : '';
  WAYS.forEach((way, i) => {
    say(p[way], rate(c.bps[i]));
    say(p[`${way}To`], c.rate[i] === c.ceil[i] ? `guaranteed ${rate(c.ceil[i])}` : `${rate(c.rate[i])} to ${rate(c.ceil[i])}`);
    p.bars[i].set(c.bps[i], c.rate[i], c.ceil[i], c.ceil[i]);
  });
  say3(p, c);
}

/** Lists of up to ten, side by side. */
function worstPanel() {
  const parts = WORST.map(([key, title, text]) => {
    const list = h('ol', {}), none = h('p', {class: 'note'}, 'None.');
    return {key, text, list, none, element: h('section', {class: 'panel', 'aria-label': title}, h('header', {}, h('h2', {}, title)), none, list)};
  });
  const make = () => { const p = {link: h('a', {}), value: h('span', {class: 'mute'})}; const row = h('li', {}, p.link, ' ', p.value); row.parts = p; return row; };
  return {
    element: h('div', {class: 'worst'}, parts.map((p) => p.element)),
    set(worst) {
      for (const part of parts) {
        const items = worst?.[part.key] || [];
        part.none.hidden = Boolean(items.length);
        keyed(part.list, items, ([id]) => id, make, ({parts: p}, [id, name, way, value, guess]) => {
          p.link.setAttribute('href', circuitAt(id));
          say(p.link, name || id);
          say(p.value, `${part.text(value, guess)} ${WAYS[way]}`);
        });
      }
    },
  };
}

/** What is wrong: of the switch, of the lists. */
export function noticePanel() {
  const list = h('ul', {class: 'plain-list'}), text = h('p', {});
  const element = h('section', {class: 'panel', 'aria-label': 'State', hidden: true}, h('div', {class: 'note'}, text, list));
  return {
    element,
    set(now) {
      const said = !now.up ? 'The switch is away. What is shown is what was in force; the lists are applied as soon as it is back.'
        : now.trouble.length ? 'The lists are not in force as they are; all is as it was before:' : now.warnings.length ? 'In force, but:' : '';
      element.hidden = !said;
      text.className = !now.up || now.trouble.length ? 'bad' : '';
      say(text, said);
      const lines = now.trouble.length ? now.trouble : said ? now.warnings : [];
      if (list.textContent !== lines.join('')) list.replaceChildren(...lines.map((line) => h('li', {}, line)));
    },
  };
}

export const steps = (way) => [['Network', '#/network'], ['Subscribers', '#/subscribers'], ...way.map((name) => [name, siteAt(name)])];

export function subscribersPage(main, name) {
  const heading = h('h1', {}, name || 'Subscribers'), sum = h('p', {class: 'mute'}), use = h('p', {class: 'mute'});
  const notice = noticePanel(), worst = worstPanel();
  const [siteBox, sites] = table('Sites', [['Site'], ...HEADS], 'first');
  const [circuitBox, circuits] = table('Circuits', [['Circuit'], ...HEADS], 'second');
  const sitePanel = h('section', {class: 'panel queues', 'aria-label': 'Sites'}, h('header', {}, h('h2', {}, name ? 'Sites below it' : 'Sites'),
    h('span', {class: 'mute'}, 'round trips: half of the circuits have shorter ones; waiting: the longest (≈ what waits, at the present rate); drops, lost TCP segments: of all; QoO: half of the circuits have better, 100 is perfect')), siteBox);
  const circuitPanel = h('section', {class: 'panel queues', 'aria-label': 'Circuits'}, h('header', {}, h('h2', {}, 'Circuits')), circuitBox);
  const find = controls('circuits', [['tree', 'as the tree has them'], ['name', 'by name'], ['down', 'by download'], ['up', 'by upload'], ['rtt', 'by round trip'], ['delay', 'by waiting'],
    ['dropped', 'by drops'], ['lost', 'by lost TCP'], ['outcome', 'by QoO'], ['changed', 'changed here first']]);
  find.element.querySelector('input').placeholder = 'a name, a circuit, an address';
  const jump = h('button', {type: 'button', onclick: () => { circuitPanel.scrollIntoView(); circuitBox.focus({preventScroll: true}); }}, 'To the circuits');
  const list = h('a', {class: 'button', href: '/api/subscribers.csv', download: 'subscribers.csv'}, 'As CSV');
  main.append(h('div', {class: 'head'}, heading, sum, use, h('div', {class: 'actions'}, jump, list)), notice.element, find.element, name ? '' : worst.element, sitePanel, circuitPanel);
  return {
    end() { sites.end(); circuits.end(); },
    view(now) {
      trail(...(name ? [...steps(now.of.way), [name]] : [['Network', '#/network'], ['Subscribers']]));
      const {of} = now;
      say(sum, of ? `${of.kind} · ${plural(of.circuits, 'circuit')}` : [`${count(now.all)} circuits at ${now.name}`, now.here ? `${count(now.here)} changed here` : '',
        now.applied ? `in force since ${clock(now.applied)}` : ''].filter(Boolean).join(' · '));
      say(use, of ? WAYS.map((way, i) => `${way} ${rate(of.bps[i])} of ${rate(of.ceil[i])}`).join(', ') : '');
      notice.set(now);
      worst.set(now.worst);
      sitePanel.hidden = !now.total;
      jump.hidden = !now.total;
      find.set(of ? of.circuits : now.all, now.circuits_total);
      sites.update(now.sites, now, (s) => `${s.depth}-${s.name}`, makeSite, updateSite);
      circuits.update(now.circuits, {first: now.circuits_first, total: now.circuits_total}, (c) => c.id, makeCircuit, updateCircuit);
    },
  };
}
