// SPDX-License-Identifier: Apache-2.0
// A profile applied to ports: values, the difference that it makes, then doing it.

import {dialog, h, toast} from './dom.js';
import {call} from './api.js';
import {undo} from './rate.js';

export async function profileDialog(dp, ports, chosen) {
  const {profiles} = await call('GET', '/api/profiles');
  const select = h('select', {name: 'profile'}, profiles.map((p) => h('option', {value: p.name}, p.name.replace(/\.qos$/, ''))));
  const about = h('p', {class: 'mute'});
  const values = h('div', {class: 'fields'});
  const boxes = ports.filter((p) => p.no < 0xffffff00).map((p) => h('input', {type: 'checkbox', value: p.no, checked: chosen.includes(p.no)}));
  const checks = h('fieldset', {class: 'checks'}, h('legend', {}, 'Ports'), boxes.map((b) => h('label', {}, b, ports.find((p) => p.no === Number(b.value)).name)));
  const preview = h('div', {class: 'preview', 'aria-live': 'polite'});
  const look = h('button', {type: 'button'}, 'Show what it would do');
  const apply = h('button', {class: 'main', disabled: true}, 'Apply');
  const fields = () => [...values.querySelectorAll('input')];
  const ask = (dry) => call('POST', `/api/switches/${dp}/profile`, {profile: select.value, dry_run: dry,
    ports: boxes.filter((b) => b.checked).map((b) => Number(b.value)), values: Object.fromEntries(fields().map((f) => [f.name, f.value]))});
  const fresh = () => { apply.disabled = true; preview.replaceChildren(); };

  function choose() {
    const found = profiles.find((p) => p.name === select.value);
    about.textContent = found?.about || '';
    values.replaceChildren(...(found?.variables || []).map((v) => h('label', {}, v.name, h('input', {name: v.name, value: v.value, autocomplete: 'off', spellcheck: 'false', oninput: fresh}))));
    fresh();
  }
  select.addEventListener('change', choose);
  checks.addEventListener('change', fresh);
  look.addEventListener('click', async () => {
    look.disabled = true;
    preview.replaceChildren(h('p', {class: 'mute'}, 'Asking the switch…'));
    try {
      const {steps} = await ask(true);
      preview.replaceChildren(h('h3', {}, steps.length ? `${steps.length} steps, all or none` : 'Nothing to change: it is so already.'),
        h('ol', {}, steps.map((s) => h('li', {class: 'code'}, s))));
      apply.disabled = !steps.length;
    } catch (e) { preview.replaceChildren(h('p', {class: 'say bad'}, e.message)); }
    look.disabled = false;
  });
  const close = h('button', {type: 'button', onclick: (e) => e.target.closest('dialog').close()}, 'Cancel');
  const body = profiles.length ? [h('label', {}, 'Profile', select), about, values, boxes.length > 1 ? checks : null, look, preview]
    : [h('p', {}, 'The directory of profiles has none (*.qos).')];
  dialog(boxes.length === 1 ? `Apply a profile to ${ports[0].name}` : 'Apply a profile', body, [close, profiles.length ? apply : null], async (box) => {
    if (apply.disabled) { look.click(); return; }
    apply.disabled = true;
    try {
      const {change} = await ask(false);
      box.close();
      if (change) toast(`Applied ${change.what}`, 'Undo', () => undo(change.id));
    } catch (e) { preview.replaceChildren(h('p', {class: 'say bad', role: 'alert'}, e.message)); }
  });
  if (boxes.length === 1) boxes[0].checked = true;
  choose();
}
