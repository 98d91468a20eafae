// SPDX-License-Identifier: Apache-2.0
// One customer: his plan, what passes now, what did lately, and a change of the plan.

import {h, say, toast} from './dom.js';
import {call, me} from './api.js';
import {bytes, clock, count, micros, percent, perSecond, plural, rate} from './format.js';
import {queueBar, spark} from './bar.js';
import {form} from './add.js';
import {changesPanel} from './changes.js';
import {LINES, line, SPANS} from './history.js';
import {undo} from './rate.js';
import {noticePanel, steps, wait} from './subscribers.js';
import {trail} from './app.js';

const WAYS = [['down', 'Download'], ['up', 'Upload']];
const cell = (label, name, ...inside) => h('td', {'data-label': label, class: name}, ...inside);
const word = (bits) => bits % 1e6 ? `${bits / 1e3}kbit` : `${bits / 1e6}mbit`;

function makeWay([, title]) {
  const p = Object.fromEntries(['now', 'rate', 'ceil', 'delay', 'rtt', 'drops', 'lost', 'outcome', 'bytes'].map((k) => [k, h('span', {})]));
  p.now.className = 'now';
  p.bar = queueBar(title);
  p.spark = spark();
  const row = h('tr', {}, h('th', {scope: 'row', class: 'wide'}, title), cell('Now', 'n', p.now), cell(null, 'c-bar wide', p.bar, h('div', {class: 'scale'}, p.rate, p.ceil)),
    cell(null, 'c-spark wide', p.spark), cell('Waits', 'n', p.delay), cell('Round trip', 'n', p.rtt), cell('Dropped', 'n', p.drops), cell('Lost TCP', 'n', p.lost), cell('QoO', 'n', p.outcome), cell('Carried', 'n', p.bytes));
  row.parts = p;
  return row;
}

function updateWay({parts: p}, now, i) {
  const c = now.circuit;
  say(p.now, rate(c.bps[i]));
  say(p.rate, c.rate[i] === c.ceil[i] ? '' : rate(c.rate[i]));
  say(p.ceil, `${c.rate[i] === c.ceil[i] ? 'guaranteed: ' : ''}${rate(c.ceil[i])}`);
  p.bar.set(c.bps[i], c.rate[i], c.ceil[i], c.ceil[i]);
  p.spark.set(c.bps[i], c.rate[i], c.ceil[i]);
  say(p.delay, wait(c.delay_us[i], c.guess[i]));
  say(p.rtt, c.rtt_us[i] === null ? '–' : micros(c.rtt_us[i]));
  say(p.drops, c.drops[i] === null ? '–' : `${count(c.drops[i])}${c.drops_ps[i] ? ` (${perSecond(c.drops_ps[i])})` : ''}`);
  p.drops.className = c.drops_ps[i] ? 'bad' : c.drops[i] ? '' : 'zero';
  say(p.lost, percent(c.lost[i]));
  p.lost.className = c.lost[i] >= 1 ? 'bad' : '';
  say(p.outcome, c.outcome[i] === null ? '–' : String(c.outcome[i]));
  say(p.bytes, now.bytes[i] === null ? '–' : bytes(now.bytes[i]));
}

/** What he sees, and whose fault it is. */
function judgePanel() {
  const what = h('p', {}), list = h('ul', {class: 'plain-list'});
  return {
    element: h('section', {class: 'panel', 'aria-label': 'What he sees'}, h('header', {}, h('h2', {}, 'What he sees, and whose fault it is')), h('div', {class: 'note'}, what, list)),
    set({sees, faults}) {
      say(what, !sees ? 'No round trips of both sides of this box were measured yet.'
        : `Round trips of ${micros(sees.rtt_us)}, nine of ten below ${micros(sees.rtt90_us)}.${sees.lost.every((v) => v === null) ? '' : ` TCP segments lost: ${WAYS.map(([way], i) => `${way} ${percent(sees.lost[i])}`).join(', ')}.`} Quality of Outcome, of 100: ${Object.entries(sees.outcome).map(([k, v]) => `${k} ${v}`).join(', ')}.`);
      const lines = !faults ? [] : faults.length ? faults.map((f) => `${f.whose[0].toUpperCase()}${f.whose.slice(1)}: ${f.why}.`) : ['No fault is seen here: neither waiting nor drops nor lost segments, and round trips as short as they get.'];
      if (list.textContent !== lines.join('')) list.replaceChildren(...lines.map((line) => h('li', {}, line)));
    },
  };
}

/** What a dry run comes to. */
function drawChanges(box, plan) {
  if (!plan.total) { box.replaceChildren(h('p', {class: 'mute'}, 'As it is now: nothing to change.')); return; }
  box.replaceChildren(h('h3', {}, `${plural(plan.messages, 'message')} to the switch, all or none`),
    h('ul', {}, plan.changes.map((c) => h('li', {}, `${c.of || 'the port'}: ${c.what === 'gone' ? 'gone' : c.text || c.what}`))),
    plan.total > plan.changes.length ? h('p', {class: 'mute'}, `and ${count(plan.total - plan.changes.length)} more`) : '', ...plan.warnings.map((w) => h('p', {class: 'say'}, w)));
}

function planDialog(at, now) {
  const c = now.circuit;
  const pair = (v, key) => ({down: v[key], up: v[`${key}-up`]});
  form(`Change the plan of ${c.name || c.id}`, [['guarantee', 'Guarantee, download', word(c.rate[0]), '5mbit'], ['guarantee-up', 'Guarantee, upload', word(c.rate[1]), '2mbit'],
    ['ceiling', 'Ceiling, download', word(c.ceil[0]), '50mbit'], ['ceiling-up', 'Ceiling, upload', word(c.ceil[1]), '10mbit'],
    ['addresses', 'Addresses', now.addresses.join(', '), '100.64.0.20, 2001:db8:14::/48'], ['parent', 'Site', c.at, 'directly below the total']], at,
  (v) => ({guarantee: pair(v, 'guarantee'), ceiling: pair(v, 'ceiling'), addresses: v.addresses.split(',').map((s) => s.trim()).filter(Boolean), parent: v.parent}),
  (v) => v.guarantee && v.ceiling, {method: 'PUT', draw: drawChanges, word: 'Change', said: 'Changed'});
}

const differs = ({listed, changed}) => !changed ? '' : !listed ? `Made over the API by ${changed.by}; it is not in the list.`
  : `Changed by ${changed.by} on ${clock(changed.at)}, which wins over the list; there it has ${rate(listed.guarantee[0])} to ${rate(listed.ceiling[0])} down, ${rate(listed.guarantee[1])} to ${rate(listed.ceiling[1])} up${
    changed.addresses ? `, ${listed.addresses.join(', ') || 'no address'}` : ''}${changed.parent === undefined ? '' : `, below ${listed.parent || 'the total'}`} (line ${listed.line}).`;

export function subscriberPage(main, id) {
  const at = `/api/subscribers/${encodeURIComponent(id)}`;
  const heading = h('h1', {}, id), about = h('p', {class: 'mute'}), own = h('p', {}), notice = noticePanel();
  const change = h('button', {type: 'button', hidden: !me.may_change, onclick: () => planDialog(at, now)}, 'Change the plan…');
  const listed = h('button', {type: 'button', class: 'small', onclick: async () => {
    const made = await call('PUT', at, {as_listed: true});
    toast(made.what, made.change && 'Undo', () => undo(made.change.id));
  }}, 'As in the list');
  const ownPanel = h('section', {class: 'panel', 'aria-label': 'Changed here', hidden: true}, h('div', {class: 'note'}, own, listed));
  const ways = WAYS.map(makeWay);
  const heads = [['Way'], ['Now', 'n'], ['From its guarantee to its ceiling', 'c-bar'], ['Lately', 'c-spark'], ['Waits', 'n'], ['Round trip', 'n'], ['Dropped', 'n'], ['Lost TCP', 'n'], ['QoO', 'n'], ['Carried', 'n']];
  const live = h('section', {class: 'panel queues', 'aria-label': 'Now'}, h('div', {class: 'scroll', tabindex: -1}, h('table', {class: 'cards'}, h('caption', {class: 'off'}, 'Both ways, now'),
    h('thead', {}, h('tr', {}, heads.map(([t, c]) => h('th', {scope: 'col', class: c || null}, t)))), h('tbody', {}, ways))));
  const judge = judgePanel(), past = me.history ? pastPanel() : null;
  const changes = changesPanel((c) => c.what === `circuit ${id}` || c.what.startsWith(`circuit ${id}: `));
  main.append(h('div', {class: 'head'}, heading, about, h('div', {class: 'actions'}, change)), notice.element, ownPanel, live, judge.element, past?.element || '', changes.element);
  let now = null;
  return {
    end() { past?.end(); },
    happened: (event) => { if (event.kind === 'change') changes.load(); },
    view(data) {
      now = data;
      const c = now.circuit;
      trail(...steps(now.way), [c.name || id]);
      say(heading, c.name || id);
      say(about, [c.name ? `circuit ${id}` : '', now.addresses.join(', ') || 'no address', `queue ${now.queue}`].filter(Boolean).join(' · '));
      notice.set(now);
      ownPanel.hidden = !now.changed;
      listed.hidden = !me.may_change || !now.listed;
      say(own, differs(now));
      ways.forEach((row, i) => updateWay(row, now, i));
      judge.set(now);
      past?.begin(now);
    },
  };
}

/** Both queues over an hour, a day or a month, from the page's history. */
function pastPanel() {
  const of = h('select', {name: 'of'}, SPANS.map(([v, t]) => h('option', {value: v}, t)));
  const none = h('p', {class: 'note', role: 'status'}, 'Reading…');
  const boxes = WAYS.map(([, title]) => ({title, lines: h('div', {class: 'lines'})}));
  const element = h('section', {class: 'panel', 'aria-label': 'Lately'}, h('header', {}, h('h2', {}, 'Lately'), h('div', {class: 'filter'}, h('label', {}, 'The last', of))), none, boxes.map((b) => b.lines));
  let place = '', due = 0, asked = 0, now = null;
  async function load() {
    const mine = ++asked;
    clearTimeout(due);
    try {
      const all = await Promise.all(now.ports.map((port) => call('GET', `/api/history?switch=${now.dp}&port=${port}&direction=out&queue=${now.queue}&of=${of.value}`)));
      if (mine !== asked) return;
      let some = false;
      all.forEach((data, i) => {
        const drawn = LINES.map(([key, title, text]) => line(data, [key, `${boxes[i].title}: ${title.toLowerCase()}`, text])).filter(Boolean);
        some ||= drawn.length > 0;
        boxes[i].lines.replaceChildren(...drawn);
      });
      none.hidden = some;
      say(none, 'Nothing was recorded in this time yet. A switch is asked every 10 s; days and months have points of 5 minutes.');
    } catch (e) { none.hidden = false; say(none, e.message); }
    due = setTimeout(load, {hour: 10_000, day: 60_000, month: 300_000}[of.value]);
  }
  of.addEventListener('change', load);
  return {
    element,
    end() { clearTimeout(due); asked++; },
    begin(data) {
      now = data;
      const where = `${data.ports} ${data.queue}`;
      if (data.ports && where !== place) { place = where; load(); }
    },
  };
}
