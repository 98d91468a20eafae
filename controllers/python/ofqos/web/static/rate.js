// SPDX-License-Identifier: Apache-2.0
// A rate changed by hand: what the kernel would do is shown before it does it.

import {dialog, h, toast} from './dom.js';
import {call} from './api.js';
import {rate} from './format.js';

export function rateDialog(dp, port, direction, node) {
  const name = node.name || node.label;
  const field = (key, text) => h('input', {name: key, value: node.asked[key] || '', autocomplete: 'off', spellcheck: 'false', 'aria-describedby': 'rate-help', inputmode: 'text', 'data-what': text});
  const [low, high] = [field('rate'), field('ceil')];
  const preview = h('div', {class: 'preview', 'aria-live': 'polite'});
  const apply = h('button', {class: 'main', disabled: true}, 'Apply');
  const body = [h('div', {class: 'fields'}, h('label', {}, 'Guarantee', low), h('label', {}, 'Ceiling', high)),
    h('p', {class: 'mute', id: 'rate-help'}, 'A rate as 6mbit or 500kbit, or a share of the class above as 30%.'), preview];
  const wanted = (dry) => call('POST', `/api/switches/${dp}/rate`, {port, direction, queue: node.id, rate: low.value, ceil: high.value, seen: node.asked, dry_run: dry});
  let timer, asked = 0;

  async function look() {
    const mine = ++asked;
    try {
      const plan = await wanted(true);
      if (mine !== asked) return;
      drawPlan(preview, plan);
      apply.disabled = !plan.steps.length;
      for (const f of [low, high]) f.removeAttribute('aria-invalid');
    } catch (e) {
      if (mine !== asked) return;
      preview.replaceChildren(h('p', {class: 'say bad'}, e.message));
      apply.disabled = true;
    }
  }
  for (const f of [low, high]) f.addEventListener('input', () => { apply.disabled = true; asked++; clearTimeout(timer); timer = setTimeout(look, 250); });

  dialog(`Change ${name}`, body, [h('button', {type: 'button', onclick: (e) => e.target.closest('dialog').close()}, 'Cancel'), apply], async (box) => {
    if (apply.disabled) return;
    apply.disabled = true;
    try {
      const {change} = await wanted(false);
      box.close();
      toast(`Changed ${change.what}`, 'Undo', () => undo(change.id));
    } catch (e) { preview.replaceChildren(h('p', {class: 'say bad', role: 'alert'}, e.message)); }
  });
  low.select();
  look();
}

export async function undo(id) {
  const {change} = await call('POST', `/api/changes/${id}/undo`, {});
  toast(`Taken back: ${change.what}`);
}

const both = (pair) => pair[0] === pair[1] ? rate(pair[1]) : [rate(pair[0]), h('span', {class: 'arrow'}, '→'), h('b', {}, rate(pair[1]))];

/** What would be done: classes before and after, flows, warnings, and the commands. */
export function drawPlan(box, plan) {
  const flows = plan.flows || [];
  if (!plan.steps.length && !flows.length) { box.replaceChildren(h('p', {class: 'mute'}, 'As it is now: nothing to change.')); return; }
  box.replaceChildren(
    plan.steps.length ? h('h3', {}, plan.steps.length === 1 ? 'One step in the kernel' : `${plan.steps.length} steps in the kernel: shares follow`) : '',
    plan.steps.length ? h('table', {}, h('thead', {}, h('tr', {}, ['Queue', 'Guarantee', 'Ceiling'].map((t) => h('th', {scope: 'col'}, t)))),
      h('tbody', {}, plan.steps.map((s) => h('tr', {}, h('th', {scope: 'row'}, s.name), h('td', {}, both(s.rate)), h('td', {}, both(s.ceil)))))) : '',
    ...(plan.steps.some((s) => s.rate[0] !== null) ? [h('p', {class: 'mute'}, 'In place: packets that wait stay, and counters go on.')] : []),
    ...(flows.length ? [h('h3', {}, `${flows.length} flows`), h('ol', {}, flows.map((f) => h('li', {class: 'code'}, f)))] : []),
    ...plan.warnings.map((w) => h('p', {class: 'say'}, w)),
    h('details', {}, h('summary', {}, 'In the kernel'), h('ol', {}, plan.steps.map((s) => h('li', {class: 'code'}, s.kernel))), h('p', {class: 'code'}, `dpctl SWITCH ${plan.command}`)));
}
