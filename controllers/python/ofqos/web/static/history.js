// SPDX-License-Identifier: Apache-2.0
// What a queue or a port did in the last hour, day or month: lines, and a heat map of how long packets take.

import {h, say, svg} from './dom.js';
import {call} from './api.js';
import {bytes, count, micros, perSecond, rate} from './format.js';
import {trail} from './app.js';

const WIDE = 720, HIGH = 120;
export const SPANS = [['hour', 'Hour'], ['day', 'Day'], ['month', 'Month']];
const HEATS = [['wait_us', 'waiting in the queue'], ['rtt_us', 'round trips, median'], ['rtt90_us', 'round trips, nine tenths']];
const LIMITS = [1e3, 5e3, 20e3, 100e3];         // microseconds: where a warmer colour begins
export const LINES = [['bps', 'Rate', rate], ['backlog', 'What waits', bytes], ['wait_us', 'Waiting in the queue, median', micros],
  ['rtt_us', 'Round trips, median', micros], ['rtt90_us', 'Round trips, nine tenths', micros], ['drops_ps', 'Dropped', perSecond]];

const moment = (seconds, of) => {
  const then = new Date(seconds * 1000);
  return of === 'month' ? then.toLocaleDateString('sv') : then.toLocaleTimeString('en-GB').slice(0, 5);
};

/** One figure over time; gaps stay gaps. */
export function line(data, [key, title, text]) {
  const values = data[key], known = values.filter((v) => v !== null);
  if (!known.length || key !== 'bps' && !known.some(Boolean)) return null;
  const most = Math.max(...known, 1), mean = known.reduce((a, b) => a + b, 0) / known.length;
  const x = (t) => ((t - data.since) / (data.until - data.since) * WIDE).toFixed(1), y = (v) => (HIGH - v / most * (HIGH - 6)).toFixed(1);
  let path = '', last = null;
  values.forEach((v, i) => {
    if (v === null) { last = null; return; }
    path += `${last !== null && data.time[i] - last <= 2.5 * data.step ? 'L' : 'M'}${x(data.time[i])},${y(v)}`;
    last = data.time[i];
  });
  const sum = `${text(key === 'drops_ps' ? mean : Math.round(mean))} on average, at most ${text(Math.max(...known))}`;
  return h('figure', {class: 'line'}, h('figcaption', {}, h('b', {}, title), h('span', {class: 'mute'}, sum)),
    svg('svg', {viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `${title}: ${sum}`}, svg('path', {d: `M0,${HIGH}H${WIDE}`, class: 'base'}), svg('path', {d: path})),
    h('div', {class: 'scale'}, h('span', {}, moment(data.since, data.of)), h('span', {}, moment(data.until, data.of))));
}

/** How good it was for what people do: Quality of Outcome, the mean and the worst. */
function outcome({outcome: by}) {
  const rows = Object.entries(by).map(([name, all]) => [name, all.filter((v) => v !== null)]).filter(([, known]) => known.length);
  return rows.length && h('figure', {class: 'line'}, h('figcaption', {}, h('b', {}, 'Quality of Outcome'), h('span', {class: 'mute'}, '100 is perfect, 0 is useless')),
    h('table', {}, h('thead', {}, h('tr', {}, ['For', 'On average', 'At worst'].map((t, i) => h('th', {scope: 'col', class: i ? 'n' : null}, t)))),
      h('tbody', {}, rows.map(([name, known]) => h('tr', {}, h('th', {scope: 'row'}, name), h('td', {class: 'n'}, String(Math.round(known.reduce((a, b) => a + b, 0) / known.length))),
        h('td', {class: 'n'}, String(Math.min(...known))))))));
}

/** A row for each queue, a column for each minute (or more); the cells of one colour are one path. */
function heatRow(q, data, to) {
  const levels = [...LIMITS, Infinity].map(() => '');
  q.values.forEach((v, i) => { if (v !== null) levels[[...LIMITS, Infinity].findIndex((limit) => v < limit)] += `M${i},0h1v1h-1z`; });
  const told = `${q.name}: ${micros(q.worst)} at worst`;
  return h('tr', {}, h('th', {scope: 'row'}, h('a', {href: to(q.id)}, q.name)), h('td', {class: 'heat'},
    svg('svg', {viewBox: `0 0 ${q.values.length} 1`, preserveAspectRatio: 'none', role: 'img', 'aria-label': told}, levels.map((d, i) => d && svg('path', {class: `h${i}`, d})))),
    h('td', {class: 'n', 'data-label': 'At worst'}, micros(q.worst)));
}

function heatMap(data, to) {
  const [since, until] = [moment(data.since, data.of), moment(data.until, data.of)];
  return h('table', {class: 'heats'}, h('caption', {class: 'off'}, 'How long packets take, by queue and time'),
    h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, 'Queue'), h('th', {scope: 'col'}, h('span', {class: 'scale'}, h('span', {}, since), h('span', {}, until))), h('th', {scope: 'col', class: 'n'}, 'At worst'))),
    h('tbody', {}, data.queues.map((q) => heatRow(q, data, to))));
}

const legend = () => h('div', {class: 'legend'}, [...LIMITS, null].map((limit, i) => h('span', {}, h('b', {class: `h${i}`}), limit === null ? `${micros(LIMITS.at(-1))} and more` : `below ${micros(limit)}`)));

/** Of a port; with a queue, of that. */
export function historyPage(main, dp, number, direction, queue) {
  const place = `#/switch/${dp}/port/${number}`;
  const heading = h('h1', {});
  const none = h('p', {class: 'note', role: 'status'}, 'Reading…');
  const lines = h('div', {class: 'lines'}), heats = h('div', {class: 'scroll'});
  const of = h('select', {name: 'of'}, SPANS.map(([v, t]) => h('option', {value: v}, t)));
  const what = h('select', {name: 'what'}, HEATS.map(([v, t]) => h('option', {value: v}, t)));
  const way = h('select', {name: 'direction'}, [['out', 'leaves'], ['in', 'enters']].map(([v, t]) => h('option', {value: v}, t)));
  const heatPanel = h('section', {class: 'panel', 'aria-label': 'How long packets take', hidden: true}, h('header', {}, h('h2', {}, 'How long packets take, the slowest queues first'), h('span', {class: 'mute'})), heats, legend());
  main.append(h('div', {class: 'head'}, heading, h('div', {class: 'filter'}, h('label', {}, 'The last', of), !queue && h('label', {}, 'Of what', way), !queue && h('label', {}, 'Show', what))),
    h('section', {class: 'panel', 'aria-label': 'Lines'}, none, lines), heatPanel);
  let asked = 0, due = 0, called = '', now = null;

  async function load() {
    const mine = ++asked, at = `switch=${dp}&port=${number}&direction=${queue ? direction : way.value}&of=${of.value}`;
    clearTimeout(due);
    try {
      const data = await call('GET', `/api/history?${at}${queue ? `&queue=${queue}` : ''}`);
      const heat = queue ? null : await call('GET', `/api/history/heat?${at}&what=${what.value}`);
      if (mine !== asked) return;
      called = data.name;
      title();
      const drawn = LINES.map((each) => line(data, each)).filter(Boolean);
      lines.replaceChildren(...drawn, outcome(data) || '');
      none.hidden = Boolean(drawn.length);
      say(none, 'Nothing was recorded in this time yet. A switch is asked every 10 s; days and months have points of 5 minutes.');
      heatPanel.hidden = !heat?.queues.length;
      if (!heatPanel.hidden) {
        heats.replaceChildren(heatMap(heat, (id) => `${place}/history/${way.value}/${id}`));
        say(heatPanel.querySelector('header .mute'), heat.total > heat.queues.length ? `${heat.queues.length} of ${count(heat.total)}` : '');
      }
    } catch (e) { none.hidden = false; say(none, e.message); }
    due = setTimeout(load, {hour: 10_000, day: 60_000, month: 300_000}[of.value]);
  }
  for (const f of [of, what, way]) f.addEventListener('change', load);
  load();
  function title() {
    if (!now) return;
    const port = now.ports.find((p) => String(p.no) === number)?.name || `port ${number}`;
    const name = queue ? called || `queue ${queue}` : port;
    say(heading, `${name}, lately`);
    trail(['Network', '#/network'], [now.name, `#/switch/${dp}`], [port, place], ...(queue ? [['History', `${place}/history`], [name]] : [['History']]));
  }

  return {
    end() { clearTimeout(due); asked++; },
    view(data) { now = data; title(); },
  };
}
