// SPDX-License-Identifier: Apache-2.0
// What was changed by these pages, and taking it back.

import {h} from './dom.js';
import {call, me} from './api.js';
import {clock, micros, perSecond, rate} from './format.js';
import {undo} from './rate.js';

const FIGURES = [['bps', 'rate', rate], ['delay_us', 'wait', micros], ['rtt_us', 'round trip', micros], ['drops_ps', 'drops', perSecond]];

/** What it came to: before and ten seconds later, as measured. */
const came = ({before, after}) => after ? ` (${FIGURES.filter(([k]) => after[k] !== null).map(([k, name, text]) => `${name} ${before ? `${text(before[k])} → ` : ''}${text(after[k])}`).join(', ')})` : '';

export function changesPanel(wanted) {
  const list = h('ul', {class: 'events'});
  const element = h('section', {class: 'panel', 'aria-label': 'Changes made here', hidden: true}, h('header', {}, h('h2', {}, 'Changes made here')), list);
  async function load() {
    const found = (await call('GET', '/api/changes')).changes.filter(wanted).slice(0, 10);
    element.hidden = !found.length;
    list.replaceChildren(...found.map((c) => h('li', {}, h('time', {}, clock(c.time)),
      c.undone ? h('span', {class: 'mute'}, 'taken back') : h('span', {}, me.may_change && h('button', {type: 'button', class: 'small', 'aria-label': `Undo ${c.what}`,
        onclick: async (e) => { e.target.disabled = true; try { await undo(c.id); } finally { load(); } }}, 'Undo')),
      h('span', {class: 'what'}, `${c.what}, by ${c.by}${came(c)}`))));
  }
  if (me.may_change) load();
  return {element, load: () => { if (me.may_change) load(); }};
}
