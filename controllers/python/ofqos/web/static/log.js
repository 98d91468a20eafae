// SPDX-License-Identifier: Apache-2.0
// Who changed what, the newest first, and the switches that wait for their approval.

import {h, say} from './dom.js';
import {call, Problem} from './api.js';
import {clock} from './format.js';
import {trail} from './app.js';

const MOST = 200;
const NOTHING = 'Nothing was changed yet. The log says who changed what, from where, and what came of it.';

export function logPage(main) {
  trail(['Network', '#/network'], ['Log']);
  const user = h('input', {type: 'search', placeholder: 'a name', maxlength: 32});
  const list = h('ul', {class: 'events log', 'aria-label': 'Changes, the newest first'});
  const none = h('p', {class: 'note'}, NOTHING);
  const waiting = h('ul', {class: 'events log'});
  const panel = h('section', {class: 'panel', 'aria-label': 'New switches', hidden: true}, h('header', {}, h('h2', {}, 'New switches wait for an approval')), waiting);
  main.append(h('div', {class: 'head'}, h('h1', {}, 'Log'), h('div', {class: 'filter'}, h('label', {}, 'By', user))), panel,
    h('section', {class: 'panel', 'aria-label': 'List'}, none, list));

  const line = (l) => h('li', {class: l.outcome === 'done' ? 'is-good' : 'is-bad'}, h('time', {datetime: new Date(l.at * 1000).toISOString()}, clock(l.at)),
    h('span', {class: 'where'}, `${l.user}${l.address ? `, ${l.address}` : ''}`),
    h('span', {class: 'what'}, `${l.action} `, h('span', {class: 'code'}, l.what === '{}' ? '' : l.what), l.outcome === 'done' ? '' : ` – ${l.outcome}`));
  async function changes() {
    const by = user.value.trim();
    const {log} = await call('GET', `/api/log?most=${MOST}${by ? `&user=${encodeURIComponent(by)}` : ''}`);
    none.hidden = Boolean(log.length);
    say(none, by ? `Nothing by ${by} is among the newest changes.` : NOTHING);
    list.replaceChildren(...log.map(line));
  }

  const approve = (dp) => async (e) => {
    e.target.disabled = true;
    try { joining(await call('POST', `/api/joining/${dp}/approve`, {})); } finally { e.target.disabled = false; soon(); }
  };
  const joining = (found) => {
    const all = Object.entries(found.waiting).sort(([, a], [, b]) => b.at - a.at);
    panel.hidden = !all.length;
    waiting.replaceChildren(...all.map(([dp, k]) => h('li', {}, h('time', {}, clock(k.at)),
      h('button', {type: 'button', class: 'small', 'aria-label': `Approve ${dp}`, onclick: approve(dp)}, 'Approve'),
      h('span', {class: 'what'}, h('span', {class: 'code'}, dp), ` from ${k.peer}, ${k.certificate ? `with a certificate, sha256 ${k.certificate.slice(0, 16)}…` : 'without a certificate'}`))));
  };

  let due = 0;
  const load = async () => {
    due = 0;
    try { await changes(); joining(await call('GET', '/api/joining')); } catch (e) { if (!(e instanceof Problem) || e.status !== 403) throw e; }
  };
  const soon = () => { due ||= setTimeout(load, 500); };
  user.addEventListener('input', soon);
  load();
  return {happened: soon, end: () => clearTimeout(due)};
}
