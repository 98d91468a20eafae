// SPDX-License-Identifier: Apache-2.0
// A switch: its ports.

import {h, say} from './dom.js';
import {controls, rows} from './rows.js';
import {me} from './api.js';
import {count, perSecond, rate} from './format.js';
import {loadBar} from './bar.js';
import {profileDialog} from './profile.js';
import {changesPanel} from './changes.js';
import {trail} from './app.js';

const cell = (label, name, ...inside) => h('td', {'data-label': label, class: name}, ...inside);

export function switchPage(main, dp) {
  const heading = h('h1', {}, dp);
  const about = h('p', {class: 'mute'});
  const list = rows('first', 7, () => box);
  const find = controls('ports', [['port', 'by number'], ['name', 'by name'], ['queues', 'by queues'], ['receives', 'by what they receive'], ['sends', 'by what they send'], ['dropped', 'by drops']]);
  const profile = h('button', {type: 'button', onclick: () => profileDialog(dp, data.ports, [])}, 'Apply a profile…');
  profile.hidden = !me.may_change || !me.profiles;
  const gone = h('p', {class: 'note bad', hidden: true}, 'This switch is away. It is shown again as soon as it is back.');
  const table = h('table', {class: 'cards'}, h('caption', {class: 'off'}, 'Ports'),
    h('thead', {}, h('tr', {}, [['Port'], ['Link'], ['Receives'], ['Sends'], ['Queues'], ['Dropped', 'n'], ['Errors', 'n']]
      .map(([t, c]) => h('th', {scope: 'col', class: c || null}, t)))), list.body);
  const box = h('div', {class: 'scroll', tabindex: -1}, table);
  const changes = changesPanel((c) => c.dp === dp);
  main.append(h('div', {class: 'head'}, heading, about, h('div', {class: 'actions'}, profile, h('a', {class: 'button', href: `#/switch/${dp}/trace`}, 'Trace a packet'))),
    find.element, h('section', {class: 'panel', 'aria-label': 'Ports'}, gone, box), changes.element);
  let data = {ports: []}, most = 0;

  function make(p) {
    const parts = Object.fromEntries(['name', 'link', 'rx', 'tx', 'queues', 'drops', 'errors'].map((k) => [k, h('span', {})]));
    parts.rxBar = loadBar(`${p.name} receives`);
    parts.txBar = loadBar(`${p.name} sends`);
    const row = h('tr', {}, h('th', {scope: 'row', class: 'two'}, h('a', {href: `#/switch/${dp}/port/${p.no}`}, parts.name), ' ', h('small', {}, `port ${p.no === 0xfffffffe ? 'local' : p.no}`)),
      cell('Link', 'end', parts.link), cell('Receives', 'half', parts.rx, parts.rxBar), cell('Sends', 'half', parts.tx, parts.txBar),
      cell('Queues', '', parts.queues), cell('Dropped', 'n', parts.drops), cell('Errors', 'n', parts.errors));
    row.parts = parts;
    return row;
  }

  function update(row, p) {
    const parts = row.parts;
    say(parts.name, p.name);
    say(parts.link, p.away ? 'no interface' : p.up ? (p.speed ? rate(p.speed) : 'up') : 'down');
    parts.link.className = p.up && !p.away ? 'chip' : 'chip bad';
    for (const way of ['rx', 'tx']) {
      say(parts[way], rate(p[`${way}_bps`]));
      parts[`${way}Bar`].set(p[`${way}_most`] && p[`${way}_bps`] !== null ? p[`${way}_bps`] / p[`${way}_most`] : null);
    }
    const kinds = [p.out && p.out !== 'none' ? p.out : '', p.in && p.in !== 'none' ? `${p.in} in` : ''].filter(Boolean);
    say(parts.queues, p.queues || kinds.length ? `${p.queues} · ${kinds.join(', ') || 'other'}${p.foreign ? ' · changed by others' : ''}` : 'none');
    parts.queues.className = p.foreign ? 'warn' : p.queues ? '' : 'mute';
    say(parts.drops, count(p.drops) + (p.drops_ps ? ` (${perSecond(p.drops_ps)})` : ''));
    parts.drops.className = p.drops_ps ? 'bad' : p.drops ? '' : 'zero';
    say(parts.errors, count(p.errors));
    parts.errors.className = p.errors_ps ? 'bad' : p.errors ? '' : 'zero';
  }

  return {
    end: list.end,
    happened: (event) => { if (event.kind === 'change') changes.load(); },
    view(now) {
      data = now;
      trail(['Network', '#/network'], [now.name]);
      say(heading, now.name);
      say(about, now.up ? `${dp} · ${now.peer}${now.own ? '' : ' · another make: no queues to show'}` : dp);
      gone.hidden = now.up && !now.trouble;
      say(gone, now.up ? `The switch does not tell all: ${now.trouble}` : 'This switch is away. It is shown again as soon as it is back.');
      table.hidden = !now.up;
      most = Math.max(most, now.total);
      find.set(most, now.total);
      list.update(now.ports, now, (p) => p.no, make, update);
    },
  };
}
