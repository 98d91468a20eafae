// SPDX-License-Identifier: Apache-2.0
// What happened, the newest first.

import {h, say} from './dom.js';
import {clock} from './format.js';
import {trail} from './app.js';

const MOST = 500;
const KINDS = {'': 'everything', queues: 'queues', promise: 'promises', change: 'changes made here', port: 'ports', switch: 'switches', flow: 'flows', role: 'controllers'};

export function eventsPage(main) {
  trail(['Network', '#/network'], ['Events']);
  const kind = h('select', {}, Object.entries(KINDS).map(([v, t]) => h('option', {value: v}, t)));
  const text = h('input', {type: 'search', placeholder: 'a word'});
  const list = h('ul', {class: 'events', 'aria-label': 'Events, the newest first'});
  const none = h('p', {class: 'note'}, 'Nothing yet. Queues, promises, ports, flows and controllers are told of here as soon as something happens.');
  const lost = h('p', {class: 'mute', hidden: true});
  main.append(h('div', {class: 'head'}, h('h1', {}, 'Events'), lost, h('div', {class: 'filter'}, h('label', {}, 'Of', kind), h('label', {}, 'With', text))),
    h('section', {class: 'panel', 'aria-label': 'List'}, none, list));
  let events = [], missed = 0;

  const fits = (e) => (!kind.value || e.kind === kind.value) && (!text.value || `${e.text} ${e.switch || ''}`.toLowerCase().includes(text.value.toLowerCase()));
  const place = (e) => !e.dp ? '' : h('a', {href: e.port && e.port < 0xffffff00 ? `#/switch/${e.dp}/port/${e.port}` : `#/switch/${e.dp}`}, e.switch || e.dp);
  const draw = () => {
    const shown = events.filter(fits);
    none.hidden = Boolean(shown.length);
    list.replaceChildren(...shown.map((e) => h('li', {class: `is-${e.level}`}, h('time', {datetime: new Date(e.time * 1000).toISOString()}, clock(e.time)),
      h('span', {class: 'where'}, place(e)), h('span', {class: 'what'}, e.level === 'bad' && h('span', {class: 'off'}, 'problem: '), e.text))));
  };
  for (const f of [kind, text]) f.addEventListener('input', draw);
  let due = 0;
  const soon = () => { due ||= requestAnimationFrame(() => { due = 0; draw(); }); };
  const add = (more) => {
    const known = new Set(events.map((e) => e.id));
    events = [...more.filter((e) => !known.has(e.id)), ...events].sort((a, b) => b.id - a.id).slice(0, MOST);
    soon();
  };
  return {
    view: (now) => add(now.events),
    happened: (event) => add([event]),
    lost(n) { missed += n; lost.hidden = false; say(lost, `${missed} came faster than this page took them, and are not shown`); },
  };
}
