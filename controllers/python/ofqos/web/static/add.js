// SPDX-License-Identifier: Apache-2.0
// A new queue, and a rule that puts packets into a queue: the exact requests are shown before anything is done.

import {dialog, h, toast} from './dom.js';
import {call} from './api.js';
import {drawPlan, undo} from './rate.js';

const THEN = [['', 'as it is now'], ['normal', 'switched as usual']];

/** Fields with a place for what is wrong beside each. */
function fields(specs) {
  const made = {};
  const boxes = specs.map(([name, text, value, help, choices]) => {
    const wrong = h('span', {class: 'wrong', id: `wrong-${name}`});
    const input = choices ? h('select', {name}, choices.map(([v, t]) => h('option', {value: v, selected: v === value}, t)))
      : h('input', {name, value, placeholder: help, autocomplete: 'off', spellcheck: 'false', 'aria-describedby': `wrong-${name}`});
    made[name] = {input, wrong};
    return h('label', {class: name === 'rule' ? 'whole' : null}, text, input, wrong);
  });
  return {element: h('div', {class: 'fields'}, boxes), made,
    values: () => Object.fromEntries(Object.entries(made).map(([k, {input}]) => [k, input.value.trim()])),
    tell(name, text) {
      for (const [k, {input, wrong}] of Object.entries(made)) {
        const mine = k === name;
        wrong.textContent = mine ? text : '';
        if (mine) input.setAttribute('aria-invalid', 'true'); else input.removeAttribute('aria-invalid');
      }
      return Boolean(made[name]);
    }};
}

/** `body(values)` is what is asked of `path`; what it would do is shown while one types. */
export function form(title, specs, path, body, ready, {method = 'POST', draw = drawPlan, word = 'Add', said = 'Added'} = {}) {
  const set = fields(specs);
  const preview = h('div', {class: 'preview', 'aria-live': 'polite'});
  const apply = h('button', {class: 'main', disabled: true}, word);
  let timer, asked = 0;
  const ask = (dry) => call(method, path, {...body(set.values()), dry_run: dry});

  function failed(e) {
    apply.disabled = true;
    preview.replaceChildren(set.tell(e.field, e.message) ? '' : h('p', {class: 'say bad', role: 'alert'}, e.message));
  }
  async function look() {
    const mine = ++asked;
    if (!ready(set.values())) return;
    try {
      const plan = await ask(true);
      if (mine !== asked) return;
      set.tell('', '');
      draw(preview, {steps: [], warnings: [], ...plan});
      apply.disabled = false;
    } catch (e) { if (mine === asked) failed(e); }
  }
  set.element.addEventListener('input', () => { apply.disabled = true; asked++; clearTimeout(timer); timer = setTimeout(look, 250); });
  dialog(title, [set.element, preview], [h('button', {type: 'button', onclick: (e) => e.target.closest('dialog').close()}, 'Cancel'), apply], async (box) => {
    if (apply.disabled) { look(); return; }
    apply.disabled = true;
    try {
      const {change} = await ask(false);
      box.close();
      toast(change ? `${said}: ${change.what}` : `${said}.`, change && 'Undo', () => undo(change.id));
    } catch (e) { failed(e); }
  });
}

const RULE = ['rule', 'Packets that go there', '', 'app=https or udp=5001 or src=10.0.0.0/8'];
const NEXT = ['then', 'Then they are', '', '', THEN];

export function queueDialog(dp, port, tree) {
  const direction = tree?.direction || 'out';
  const parents = [['0', 'the total'], ...(tree?.nodes || []).filter((n) => n.id && n.id < 0xfff0 && n.may_change).map((n) => [String(n.id), n.name || n.label])];
  form('Add a queue', [['queue', 'Number', String(tree?.free || 10)], ['name', 'Name', ''], ['parent', 'Below', '0', '', parents],
    ['rate', 'Guarantee', '', '6mbit or 30%'], ['ceil', 'Ceiling', '', 'as the guarantee'], ...(direction === 'out' ? [RULE, NEXT] : [])],
  `/api/switches/${dp}/queue`, (v) => ({...v, port, direction, queue: Number(v.queue) || 0, parent: Number(v.parent)}), (v) => v.rate);
}

export function ruleDialog(dp, port, node) {
  form(`A rule for ${node.name || node.label}`, [RULE, NEXT], `/api/switches/${dp}/rule`, (v) => ({...v, port, queue: node.id}), (v) => v.rule);
}
