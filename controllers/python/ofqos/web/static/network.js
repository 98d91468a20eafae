// SPDX-License-Identifier: Apache-2.0
// The network: a picture, and the same in tables.

import {h, say} from './dom.js';
import {count, plural, rate, share} from './format.js';
import {loadBar} from './bar.js';
import {picture, to, unpacked} from './picture.js';
import {controls, rows} from './rows.js';
import {trail} from './app.js';

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

const table = (caption, heads, key) => {
  const list = rows(key, heads.length, () => box);
  const made = h('table', {class: 'cards'}, h('caption', {class: 'off'}, caption),
    h('thead', {}, h('tr', {}, heads.map(([text, name]) => h('th', {scope: 'col', class: name || null}, text)))), list.body);
  const box = h('div', {class: 'scroll', tabindex: -1}, made);
  return [box, list];
};

export function networkPage(main) {
  trail(['Network']);
  const heading = h('h1', {}, 'Network');
  const sum = h('p', {class: 'mute'});
  const box = h('div', {class: 'picture', tabindex: 0, role: 'region', 'aria-label': 'The picture; scroll it sideways'});
  const keys = h('span', {class: 'mute keys'}, [['l1', 'idle'], ['l2', 'below 60 %'], ['l3', 'below 90 %'], ['l4', 'full']].map(([c, t]) => h('span', {}, h('b', {class: c}), t)));
  const from = h('span', {class: 'mute'});
  const drawn = h('section', {class: 'panel', 'aria-label': 'Picture'}, h('header', {}, h('h2', {}, 'Links and their load'), from, keys), box);
  const [links, linkBody] = table('Links', [['Link'], ['Capacity', 'n'], ['One way', 'third'], ['Back', 'third']], 'second');
  const [switches, switchBody] = table('Switches', [['Switch'], ['State'], ['Ports', 'n'], ['Queues', 'n'], ['Receives', 'n'], ['Sends', 'n']], 'first');
  const linkPanel = h('section', {class: 'panel', 'aria-label': 'Links'}, h('header', {}, h('h2', {}, 'Links, the fullest first')), links);
  const find = controls('switches', [['name', 'by name'], ['queues', 'by queues'], ['receives', 'by what they receive'], ['sends', 'by what they send']]);
  main.append(h('div', {class: 'head'}, heading, sum), drawn, find.element, linkPanel,
    h('section', {class: 'panel', 'aria-label': 'Switches'}, h('header', {}, h('h2', {}, 'Switches')), switches));
  let data, shape = '';
  const draw = () => {
    if (!data) return;
    const held = box.contains(document.activeElement) ? document.activeElement.getAttribute('href') : null;
    picture(box, data);
    found();
    if (held) box.querySelector(`a[href="${held}"]`)?.focus();
  };
  // What is searched for stands out, and is scrolled to.
  let sought = '';
  function found() {
    const word = find.word();
    const fits = [...box.querySelectorAll('a')].filter((a, i) => { const s = data.switches[i], fit = word && (s.name.toLowerCase().includes(word) || s.dp.includes(word)); a.classList.toggle('found', Boolean(fit)); return fit; });
    if (word !== sought && fits.length) box.scrollTop += fits[0].getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
    sought = word;
  }
  const sized = new ResizeObserver(draw);
  sized.observe(box);
  return {
    end() { sized.disconnect(); linkBody.end(); switchBody.end(); },
    view(now) {
      const all = now.picture.switches.length, lines = now.picture.links.length;
      say(sum, `${count(all)} switches${now.away ? `, ${now.away} away` : ''} · ${count(lines)} links · ${now.viewers} of ${now.viewers_most} pages open`);
      say(from, {lldp: 'links as LLDP finds them', given: 'links as the configuration gives them',
        none: 'No links are known: give them in the configuration, or the address of ofqos-reserve, which finds them by LLDP.'}[now.links_from]);
      keys.hidden = linkPanel.hidden = !lines;
      find.set(all, now.total);
      // Drawn anew only when something is seen to be different: keyboards and pointers stay where they are.
      const looks = JSON.stringify(now.picture);
      if (looks !== shape) { shape = looks; data = unpacked(now.picture); draw(); } else if (find.word() !== sought) found();
      linkBody.update(now.links, {first: now.links_first, total: now.links_total}, (l) => `${l.a.dp}:${l.a.port}-${l.b.dp}:${l.b.port}`, linkRow, updateLink);
      switchBody.update(now.switches, now, (s) => s.dp, switchRow, updateSwitch);
    },
  };

  function updateLink(row, l) {
    const p = row.parts;
    row.querySelectorAll('.sw').forEach((e, i) => say(e, (i ? l.b : l.a).switch));
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
