// SPDX-License-Identifier: Apache-2.0
// Elements, without text ever being taken for markup.

export const $ = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  for (const child of children.flat(9)) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

/** h('p', {class: 'mute'}, 'text', another) */
export const h = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
export const svg = (name, attributes, ...children) =>
  fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);

/** Sets text only where it changed: what somebody has marked stays marked. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Keeps one child for each item, by key, in their order; update(child, item). */
export function keyed(parent, items, key, make, update) {
  const old = parent.keyed || new Map();
  const now = new Map();
  let at = parent.firstElementChild;
  for (const item of items) {
    const k = key(item);
    const child = old.get(k) || make(item);
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
    now.set(k, child);
    update(child, item);
  }
  for (const [k, child] of old) if (!now.has(k)) child.remove();
  parent.keyed = now;
}

/** A modal dialog; its promise ends when it is closed. */
export function dialog(title, body, buttons, submit) {
  const heading = h('h2', {id: 'dialog-title'}, title);
  const box = h('dialog', {'aria-labelledby': 'dialog-title'},
    h('form', {method: 'dialog', onsubmit: (e) => { e.preventDefault(); submit(box); }},
      h('header', {}, heading), h('div', {class: 'body'}, body), h('footer', {}, buttons)));
  document.body.append(box);
  box.addEventListener('close', () => box.remove());
  box.showModal();
  return box;
}

export function toast(text, action, run) {
  const box = h('div', {class: 'toast'}, h('span', {}, text),
    action && h('button', {type: 'button', class: 'small', onclick: () => { box.remove(); run(); }}, action));
  $('toasts').append(box);
  while ($('toasts').children.length > 3) $('toasts').firstElementChild.remove();
  setTimeout(() => box.remove(), action ? 20000 : 8000);
}
