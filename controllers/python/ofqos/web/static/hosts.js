// SPDX-License-Identifier: Apache-2.0
// Hosts that have queues of their own (dpctl qos-hosts), and what they use.

import {h, say} from './dom.js';
import {call} from './api.js';
import {bytes, count, rate} from './format.js';

const MOST = 60, EVERY = 5000;

/** Of a port; there is nothing to see where no host has a queue. */
export function hostsPanel(dp, port) {
  const find = h('input', {type: 'search', placeholder: 'a part of the address', autocomplete: 'off'});
  const body = h('tbody', {});
  const sum = h('span', {class: 'mute'});
  const heads = [['Host'], ['Queue', 'n'], ['Now', 'n'], ['Guarantee', 'n'], ['Ceiling', 'n'], ['In all', 'n'], ['Dropped', 'n']];
  const element = h('section', {class: 'panel', 'aria-label': 'Hosts', hidden: true}, h('header', {}, h('h2', {}, 'Hosts, by what they used'), sum, h('label', {class: 'beside'}, 'Find hosts', find)),
    h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Hosts and what they use'}, h('table', {class: 'cards'}, h('caption', {class: 'off'}, 'Hosts'),
      h('thead', {}, h('tr', {}, heads.map(([t, c]) => h('th', {scope: 'col', class: c || null}, t)))), body)));
  let hosts = [], before = new Map(), at = 0, timer, begun = false, over = false;

  function draw() {
    const fits = hosts.filter((x) => x.host.includes(find.value.trim()));
    say(sum, `${count(fits.length)} of ${count(hosts.length)}${fits.length > MOST ? `, the first ${MOST} are shown` : ''}`);
    const cell = (label, text) => h('td', {class: 'n', 'data-label': label}, text);
    body.replaceChildren(...fits.slice(0, MOST).map((x) => h('tr', {}, h('th', {scope: 'row', class: 'two'}, x.host, ' ', h('small', {}, x.by === 'src' ? 'sends' : 'receives')),
      cell('Queue', String(x.queue)), cell('Now', rate(x.bps ?? null)), cell('Guarantee', rate(x.rate)), cell('Ceiling', rate(x.ceil)), cell('In all', bytes(x.bytes)), cell('Dropped', count(x.drops)))));
  }
  async function load() {
    try {
      const now = performance.now();
      ({hosts} = await call('GET', `/api/switches/${dp}/hosts?port=${port}`));
      if (over) return;
      for (const x of hosts) x.bps = before.has(x.host + x.by) && x.bytes >= before.get(x.host + x.by) ? (x.bytes - before.get(x.host + x.by)) * 8000 / (now - at) : null;
      before = new Map(hosts.map((x) => [x.host + x.by, x.bytes]));
      at = now;
      element.hidden = !hosts.length;
      draw();
      if (hosts.length) timer = setTimeout(load, EVERY);
    } catch { /* a switch of another make, or no dpctl: there is nothing to show */ }
  }
  find.addEventListener('input', draw);
  return {element, begin() { if (!begun) load(); begun = true; }, end() { over = true; clearTimeout(timer); }};
}
