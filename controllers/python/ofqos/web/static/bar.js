// SPDX-License-Identifier: Apache-2.0
// The two small instruments: a bar from 0 to a ceiling, and the last minute as a line.

import {h, svg} from './dom.js';
import {level, rate, share} from './format.js';

const percent = (x) => `${Math.max(0, Math.min(1, x)) * 100}%`;

/** What is sent, between guarantee and ceiling. */
export function queueBar(name) {
  const [own, more, tick] = ['own', 'more', 'tick'].map((c) => h('i', {class: c}));
  const box = h('div', {class: 'bar', role: 'meter', 'aria-label': name, 'aria-valuemin': 0}, own, more, tick);
  box.set = (now, guarantee, ceiling, most) => {
    const all = ceiling || Math.max(most, now || 0, 1);
    const held = guarantee ?? all;
    own.style.width = percent(Math.min(now || 0, held) / all);
    more.style.left = percent(held / all);
    more.style.width = percent(Math.max(0, Math.min(now || 0, all) - held) / all);
    tick.style.left = `calc(${percent(held / all)} - 1px)`;
    tick.hidden = !guarantee || held >= all * 0.995;
    box.setAttribute('aria-valuemax', all);
    box.setAttribute('aria-valuenow', Math.min(now || 0, all));
    box.setAttribute('aria-valuetext', now === null ? 'not known yet' : `${rate(now)}, guaranteed ${rate(guarantee)}, at most ${rate(ceiling)}`);
  };
  return box;
}

/** How full a link is. */
export function loadBar(name) {
  const inner = h('i', {});
  const box = h('div', {class: 'bar load', role: 'meter', 'aria-label': name, 'aria-valuemin': 0, 'aria-valuemax': 100}, inner);
  box.set = (load) => {
    inner.className = `l${level(load)}`;
    inner.style.width = load ? `max(2px, ${percent(load)})` : '0';
    box.setAttribute('aria-valuenow', Math.round(Math.min(1, load || 0) * 100));
    box.setAttribute('aria-valuetext', share(load));
  };
  return box;
}

const WIDE = 90, HIGH = 28;

/** The last samples, to the same scale as the bar. */
export function spark() {
  const [area, line, held] = [svg('path', {class: 'fill'}), svg('path', {}), svg('line', {x1: 0, x2: WIDE})];
  const box = svg('svg', {class: 'spark', viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: 'none', 'aria-hidden': 'true'}, area, held, line);
  const past = [];
  box.set = (now, guarantee, ceiling) => {
    if (now !== null) past.push(now);
    if (past.length > WIDE) past.shift();
    const most = Math.max(ceiling || 0, ...past, 1);
    const y = (v) => (HIGH - 1 - v / most * (HIGH - 2)).toFixed(1);
    const from = WIDE - past.length;
    const points = past.map((v, i) => `${from + i + 1},${y(v)}`);
    line.setAttribute('d', points.length > 1 ? `M${points.join('L')}` : '');
    area.setAttribute('d', points.length > 1 ? `M${from + 1},${HIGH}L${points.join('L')}L${WIDE},${HIGH}Z` : '');
    held.setAttribute('visibility', guarantee ? 'visible' : 'hidden');
    for (const end of ['y1', 'y2']) held.setAttribute(end, y(guarantee || 0));
  };
  return box;
}
