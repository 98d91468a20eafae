// SPDX-License-Identifier: Apache-2.0
// Long lists: only rows that are seen are in the page. The server searches, sorts, and sends a part.

import {h, keyed, say} from './dom.js';
import {count} from './format.js';
import {move} from './app.js';

const ROWS = 60, AHEAD = 15;
const asked = {first: 0, second: 0, find: '', sort: ''};

/** Of a new page: nothing was asked yet. */
export function fresh() { Object.assign(asked, {first: 0, second: 0, find: '', sort: ''}); }

function ask(more) {
  Object.assign(asked, more);
  move({...asked, rows: ROWS});
}

/** A table's rows; `key` is the list's name in the window: first or second. `held()`: what has the focus when its row is gone. */
export function rows(key, columns, held) {
  const gap = () => h('tbody', {class: 'gap', 'aria-hidden': 'true'}, h('tr', {}, h('td', {colspan: columns})));
  const [above, body, below] = [gap(), h('tbody', {}), gap()];
  const list = {first: 0, shown: 0, total: 0, high: 0};
  let due = 0;

  function set(element, high, put) {
    if (high < 1) { element.remove(); return; }
    if (!element.isConnected) put(element);
    element.querySelector('td').style.height = `${high}px`;
  }
  // Scrolled to where rows are missing: they are asked for.
  function look() {
    due = 0;
    if (!list.high || list.total <= list.shown || !body.isConnected) return;
    const top = body.getBoundingClientRect().top;
    const from = list.first - top / list.high, to = from + innerHeight / list.high;
    const last = list.first + list.shown;
    if ((from >= list.first || !list.first) && (to <= last || last >= list.total)) return;
    const first = Math.max(0, Math.min(list.total - ROWS, Math.floor(from) - AHEAD));
    if (first !== asked[key]) ask({[key]: first});
  }
  const soon = () => { due ||= requestAnimationFrame(look); };
  addEventListener('scroll', soon, {passive: true});

  return {
    body,
    end() { removeEventListener('scroll', soon); },
    update(items, {first, total}, id, make, update) {
      const focused = body.contains(document.activeElement);
      Object.assign(list, {first, total, shown: items.length});
      keyed(body, items, id, make, update);
      body.closest('table').setAttribute('aria-rowcount', total + 1);
      [...body.children].forEach((row, i) => row.setAttribute('aria-rowindex', first + i + 2));
      if (!list.high && items.length) list.high = body.getBoundingClientRect().height / items.length;
      set(above, first * list.high, (gap) => body.before(gap));
      set(below, (total - first - items.length) * list.high, (gap) => body.after(gap));
      if (focused && !body.contains(document.activeElement)) held()?.focus({preventScroll: true});
      soon();
    },
  };
}

/** Search and order for a page's lists; `sorts`: [[word, text], ...], the first is the list's own order. */
export function controls(what, sorts) {
  const find = h('input', {type: 'search', name: 'find', placeholder: 'a part of the name', maxlength: 64, autocomplete: 'off', spellcheck: 'false'});
  const sort = h('select', {name: 'sort'}, sorts.map(([v, t]) => h('option', {value: v}, t)));
  const sum = h('span', {class: 'mute', role: 'status'});
  let timer;
  const go = () => { scrollTo({top: Math.min(scrollY, Math.max(0, element.offsetTop - 60))}); ask({first: 0, second: 0, find: find.value.trim(), sort: sort.value}); };
  find.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(go, 150); });
  sort.addEventListener('change', go);
  const element = h('div', {class: 'controls', role: 'search', 'aria-label': what, hidden: true}, h('label', {}, `Find ${what}`, find), h('label', {}, 'Order', sort), sum);
  return {
    element,
    /** What is searched for. */
    word: () => find.value.trim().toLowerCase(),
    /** There are `total`, of which `fit` fit. */
    set(total, fit) {
      if (total > 12 || find.value) element.hidden = false;
      say(sum, find.value ? `${count(fit)} of ${count(total)} ${what} fit` : `${count(total)} ${what}`);
    },
  };
}
