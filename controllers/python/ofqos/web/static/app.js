// SPDX-License-Identifier: Apache-2.0
// Which page, who is signed in, and the stream that a page lives on.

import {$, h, toast} from './dom.js';
import {call, me, Problem, refresh, stream} from './api.js';
import {eventsPage} from './events.js';
import {historyPage} from './history.js';
import {logPage} from './log.js';
import {networkPage} from './network.js';
import {portPage} from './port.js';
import {fresh} from './rows.js';
import {subscriberPage} from './subscriber.js';
import {subscribersPage} from './subscribers.js';
import {switchPage} from './switch.js';
import {tracePage} from './trace.js';

// Address behind the #, the stream's view, the page.
const PAGES = [
  [/^\/(?:network)?$/, () => 'network', networkPage],
  [/^\/events$/, () => 'events', eventsPage],
  [/^\/subscribers$/, () => 'subscribers', subscribersPage],
  [/^\/subscribers\/site\/(.+)$/, (name) => `site/${encodeURIComponent(name)}`, subscribersPage],
  [/^\/subscribers\/circuit\/(.+)$/, (id) => `subscriber/${encodeURIComponent(id)}`, subscriberPage],
  [/^\/log$/, () => 'events', logPage],
  [/^\/switch\/([0-9a-f]{16})$/, (dp) => `switch/${dp}`, switchPage],
  [/^\/switch\/([0-9a-f]{16})\/port\/(\d{1,10})$/, (dp, port) => `port/${dp}/${port}`, portPage],
  [/^\/switch\/([0-9a-f]{16})\/port\/(\d{1,10})\/history(?:\/(out|in)\/(\d{1,5}))?$/, (dp, port) => `switch/${dp}`, historyPage],
  [/^\/switch\/([0-9a-f]{16})\/trace$/, (dp) => `switch/${dp}`, tracePage],
];

let stop = () => {}, current = null;

/** Other rows of this page's lists: {first, second, rows, find, sort}. */
export const move = (window) => current?.move(window);

/** The way to here: [text, address], ... the last is this page. */
export function trail(...steps) {
  const made = steps.map(([text, to], i) => i === steps.length - 1
    ? h('span', {'aria-current': 'page'}, text) : h('a', {href: to}, text));
  const before = $('trail').textContent;
  if (before !== steps.map(([text]) => text).join('')) $('trail').replaceChildren(...made);
  document.title = steps.map(([text]) => text).reverse().join(' · ') + ' · ofqos';
}

function live(kind, text, why) {
  $('live').className = `live ${kind}`;
  if ($('live').textContent !== text) $('live').textContent = text;
  banner(why);
}

function banner(text) {
  $('banner').hidden = !text;
  if (text) $('banner').textContent = text;
}

function show() {
  stop();
  for (const box of document.querySelectorAll('dialog[open]')) box.close();     // of the page that was
  const at = decodeURIComponent(location.hash.slice(1)) || '/network';
  const found = PAGES.find(([pattern]) => pattern.test(at));
  $('right').hidden = !me.signed_in;
  $('to-log').hidden = !me.log;
  $('to-subscribers').hidden = !me.subscribers;
  $('who').textContent = me.name || '';
  banner('');
  if (!me.signed_in) { signIn(); return; }
  if (!found) { missing('There is no such page.'); return; }
  const words = found[0].exec(at).slice(1);
  $('main').replaceChildren();
  fresh();
  const page = found[2]($('main'), ...words);
  live('', 'connecting');
  current = stream(found[1](...words), {
    state: live,
    view: (data) => data ? page.view?.(data) : missing('It was here, and is gone.'),
    happened: (event) => page.happened?.(event),
    lost: (n) => page.lost?.(n),
    failed: (why) => why.status === 401 ? signedOut(why.message) : missing(why.message),
  });
  stop = () => { current.end(); page.end?.(); stop = () => {}; };
}

function missing(text) {
  stop();
  trail(['Network', '#/network'], ['Not there']);
  $('main').replaceChildren(h('h1', {}, 'Not there'), h('p', {}, text), h('p', {}, h('a', {href: '#/network'}, 'To the network')));
}

function signedOut(text) {
  me.signed_in = false;
  show();
  if (text) toast(text);
}

function signIn() {
  trail(['Sign in']);
  const field = h('input', {type: 'password', name: 'token', autocomplete: 'current-password', required: true, spellcheck: 'false'});
  const wrong = h('p', {class: 'bad', role: 'alert'});
  const form = h('form', {class: 'panel sign-in'}, h('header', {}, h('h1', {}, 'Sign in')),
    h('div', {class: 'body'}, h('label', {}, 'Token', field), wrong,
      h('button', {class: 'main'}, 'Sign in'),
      h('p', {class: 'mute'}, 'Whoever runs the service has it: ', h('code', {}, 'ofqos users add'), ' prints one, or it is a line of the file of ', h('code', {}, '--token'), '.')));
  form.addEventListener('submit', async (e) => {
    e.preventDefault();
    wrong.textContent = '';
    try {
      Object.assign(me, await call('POST', '/api/session', {token: field.value}));
      show();
      $('main').focus();
    } catch (problem) { wrong.textContent = problem.message; field.select(); }
  });
  $('main').replaceChildren(form);
  field.focus();
}

$('sign-out').addEventListener('click', async () => {
  try { await call('DELETE', '/api/session'); } catch { /* it is over anyway */ }
  signedOut();
});
addEventListener('hashchange', () => { show(); scrollTo(0, 0); if (me.signed_in) $('main').focus({preventScroll: true}); });
document.querySelector('.skip').addEventListener('click', (e) => { e.preventDefault(); $('main').focus(); });
addEventListener('unhandledrejection', (e) => { if (e.reason instanceof Problem) toast(e.reason.message); });

try { await refresh(); } catch (problem) { banner(problem.message); }
show();
