// SPDX-License-Identifier: Apache-2.0
// A port: its trees of queues, live.

import {h, keyed, say} from './dom.js';
import {controls, rows} from './rows.js';
import {me} from './api.js';
import {bytes, count, micros, perSecond, rate, share} from './format.js';
import {queueBar, spark} from './bar.js';
import {queueDialog, ruleDialog} from './add.js';
import {hostsPanel} from './hosts.js';
import {rateDialog} from './rate.js';
import {profileDialog} from './profile.js';
import {changesPanel} from './changes.js';
import {trail} from './app.js';

const cell = (label, name, ...inside) => h('td', {'data-label': label, class: name}, ...inside);
const called = (n) => n.name || n.label;
const WAYS = {out: 'What leaves by', in: 'What enters by'};

function makeTree(tree) {
  const section = h('section', {class: 'panel queues'});
  const title = h('h2', {}), about = h('span', {class: 'mute'}), state = h('span', {class: 'chip warn', hidden: true});
  const heads = [['Queue'], ['Now', 'n'], ['From its guarantee to its ceiling', 'c-bar'], ['Lately', 'c-spark'], ['Borrowed', 'n'], ['Waits', 'n'], ['Delay', 'n'], ['Round trip', 'n'], ['Dropped', 'n'], ...(me.may_change ? [['Change', 'n']] : [])];
  const box = h('div', {class: 'scroll', tabindex: -1});
  const list = rows(tree.direction === 'in' ? 'second' : 'first', heads.length, () => box);
  box.append(h('table', {class: 'cards'}, h('caption', {class: 'off'}, `Queues, ${tree.direction}`),
      h('thead', {}, h('tr', {}, heads.map(([t, c]) => h('th', {scope: 'col', class: c || null}, t)))), list.body));
  section.append(h('header', {}, title, about, state), box,
    h('div', {class: 'legend', 'aria-hidden': 'true'}, h('span', {}, h('b', {class: 'own'}), 'within its guarantee'), h('span', {}, h('b', {class: 'more'}), 'borrowed'),
      h('span', {}, h('b', {class: 'tick'}), 'guarantee; the bar ends at the ceiling'), h('span', {}, '≈ what waits, at the present rate')));
  section.parts = {list, title, about, state};
  return section;
}

function makeRow(n, change, rule) {
  const names = ['name', 'sub', 'now', 'pps', 'rate', 'ceil', 'borrowed', 'waits', 'packets', 'delay', 'rtt', 'path', 'drops', 'dropsPs', 'chips'];
  const p = Object.fromEntries(names.map((k) => [k, h(['sub', 'pps', 'packets', 'path', 'dropsPs'].includes(k) ? 'small' : 'span', {})]));
  p.name.className = 'name';
  p.pps.className = 'pps';
  p.now.className = 'now';
  p.bar = queueBar(called(n));
  p.spark = spark();
  const who = h('span', {class: 'who'}, p.name, ' ', p.chips, p.sub);
  who.style.setProperty('--depth', n.depth);
  const button = n.may_change && h('button', {type: 'button', class: 'small', 'aria-label': `Change ${called(n)}`, onclick: () => change(row.node)}, 'Change…');
  const more = rule && n.id && !n.inner && n.id < 0xfff0 && h('button', {type: 'button', class: 'small', 'aria-label': `Add a rule for ${called(n)}`, onclick: () => rule(row.node)}, 'Rule…');
  const row = h('tr', {class: n.inner ? 'inner' : null}, h('th', {scope: 'row', class: 'three'}, who),
    cell('Now', 'n end now-cell', p.now, ' ', p.pps), cell(null, 'c-bar wide', p.bar, h('div', {class: 'scale'}, p.rate, p.ceil)), cell(null, 'c-spark wide', p.spark),
    cell('Borrowed', 'n', p.borrowed), cell('Waits', 'n', p.waits, ' ', p.packets),
    cell('Delay', 'n', p.delay), cell('Round trip', 'n', p.rtt, ' ', p.path), cell('Dropped', 'n', p.drops, ' ', p.dropsPs), me.may_change && cell(null, 'n c-change', button || '', ' ', more || ''));
  row.parts = p;
  return row;
}

function updateRow(row, n) {
  const p = row.parts;
  row.node = n;
  say(p.name, called(n));
  say(p.sub, [n.name ? n.label : '', n.is_default && n.id < 0xfffe ? 'and everything else' : '', n.leaf, n.prio ? `prio\u00a0${n.prio}` : ''].filter(Boolean).join(' · '));
  say(p.now, rate(n.bps));
  say(p.pps, n.pps === null ? '' : `${count(n.pps)}\u00a0p/s`);
  const asked = (key) => n[key] === null ? '' : `${rate(n[key])}${n.asked[key]?.endsWith('%') && n.asked[key] !== '100%' ? ` (${n.asked[key].replace('%', '\u00a0%')})` : ''}`;
  say(p.rate, n.rate === null ? 'no guarantee' : n.rate === n.ceil ? '' : asked('rate'));
  say(p.ceil, n.ceil === null ? '' : `${n.rate === n.ceil ? 'guaranteed: ' : ''}${asked('ceil')}`);
  say(p.borrowed, n.inner && n.depth === 0 ? '–' : share(n.borrowed));
  say(p.waits, bytes(n.backlog));
  say(p.packets, n.waiting ? `${count(n.waiting)}\u00a0p` : '');
  p.waits.className = n.backlog ? '' : 'zero';
  say(p.delay, n.delay_us === null ? '–' : `${n.delay_by === 'estimated' ? '≈\u00a0' : ''}${micros(n.delay_us)}`);
  say(p.rtt, n.rtt_us === null ? '–' : micros(n.rtt_us));
  say(p.path, n.rtt_us === null || n.path_us === null || n.rtt_us - n.path_us < 1000 ? '' : `${micros(n.rtt_us - n.path_us)}\u00a0of it in queues`);
  say(p.drops, count(n.drops));
  say(p.dropsPs, n.drops_ps ? perSecond(n.drops_ps) : '');
  p.drops.className = n.drops_ps ? 'bad' : n.drops ? '' : 'zero';
  p.bar.set(n.bps, n.rate, n.ceil, n.rate || 0);
  p.spark.set(n.bps, n.rate, n.ceil);
  const chips = [n.broken && 'below its promise', n.dropping && 'keeps dropping', n.slow && 'slower than promised'].filter(Boolean).join(', ');
  say(p.chips, chips);
  p.chips.className = chips ? 'chip bad' : '';
  row.classList.toggle('alarm', Boolean(chips));
}

export function portPage(main, dp, number) {
  const heading = h('h1', {}, `port ${number}`);
  const about = h('p', {class: 'mute'});
  const note = h('p', {class: 'note', hidden: true});
  const list = h('div', {});
  const find = controls('queues', [['tree', 'as the tree has them'], ['name', 'by name'], ['rate', 'by rate'], ['waits', 'by what waits'], ['delay', 'by delay'], ['dropped', 'by drops']]);
  const profile = h('button', {type: 'button', onclick: () => profileDialog(dp, [data.port], [data.port.no])}, 'Apply a profile…');
  profile.hidden = !me.may_change || !me.profiles;
  const add = h('button', {type: 'button', onclick: () => queueDialog(dp, Number(number), data?.trees.find((t) => t.direction === 'out'))}, 'Add a queue…');
  add.hidden = !me.may_change;
  const hosts = hostsPanel(dp, number);
  const trace = h('a', {class: 'button', href: `#/switch/${dp}/trace`}, 'Trace a packet');
  const past = h('a', {class: 'button', href: `#/switch/${dp}/port/${number}/history`}, 'History');
  past.hidden = !me.history;
  const changes = changesPanel((c) => c.dp === dp && String(c.port) === number);
  main.append(h('div', {class: 'head'}, heading, about, h('div', {class: 'actions'}, add, profile, past, trace)),
    h('section', {class: 'panel', 'aria-label': 'State', hidden: true}, note), find.element, list, hosts.element, changes.element);
  if (!me.may_change) main.append(h('p', {class: 'mute'}, me.why_not));
  let data;
  return {
    end() { hosts.end(); for (const section of list.children) section.parts.list.end(); },
    happened: (event) => { if (event.kind === 'change') changes.load(); },
    view(now) {
      data = now;
      if (now.port && now.own) hosts.begin();
      const {port} = now;
      trail(['Network', '#/network'], [now.name, `#/switch/${dp}`], [port?.name || `port ${number}`]);
      say(heading, port ? port.name : `port ${number}`);
      say(about, !port ? now.name : `port ${port.no} of ${now.name} · ${port.up ? (port.speed ? rate(port.speed) : 'up') : 'down'} · receives ${rate(port.rx_bps)}, sends ${rate(port.tx_bps)}`);
      const text = !now.up ? 'This switch is away. It is shown again as soon as it is back.' : !now.looked ? 'Asking the switch…'
        : !now.own ? 'This switch is of another make: it does not tell of queues.' : now.trouble ? `The switch does not tell all: ${now.trouble}` : now.trees.length ? '' : 'No queues are set up here: packets leave as the interface takes them.';
      note.parentElement.hidden = note.hidden = !text;
      say(note, text);
      const sum = (key) => now.trees.reduce((n, t) => n + t[key], 0);
      find.set(sum('queues'), sum('total'));
      keyed(list, now.trees, (t) => t.direction, makeTree, (section, t) => {
        const p = section.parts;
        section.setAttribute('aria-label', `${WAYS[t.direction]} ${port.name}`);
        say(p.title, `${WAYS[t.direction]} ${port.name}`);
        say(p.about, [t.scheduler, t.ceil && `${rate(t.ceil)} in all`, `${count(t.queues)} queues`].filter(Boolean).join(' · '));
        p.state.hidden = !t.foreign && !t.away;
        say(p.state, t.away ? 'the interface is gone' : 'changed by somebody else');
        p.list.update(t.nodes, t, (n) => `${n.parent}-${n.id}-${n.depth}-${n.inner}-${n.may_change}`,
          (n) => makeRow(n, (node) => rateDialog(dp, port.no, t.direction, node), t.direction === 'out' && ((node) => ruleDialog(dp, port.no, node))), updateRow);
      });
    },
  };
}
