// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them: three figures and a unit.

const NONE = '–';

function three(value) {
  const n = Math.abs(value);
  const text = value.toFixed(n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

function scaled(value, units, step) {
  if (value === null || value === undefined) return NONE;
  let i = 0;
  while (Math.abs(value) >= step * 0.9995 && i < units.length - 1) { value /= step; i++; }
  return `${i || Number.isInteger(value) ? three(value) : three(value)}\u00a0${units[i]}`;
}

export const rate = (bits) => scaled(bits, ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s'], 1000);
export const bytes = (n) => scaled(n, ['B', 'kB', 'MB', 'GB', 'TB'], 1000);
export const micros = (us) => scaled(us, ['µs', 'ms', 's'], 1000);
export const share = (x) => x === null || x === undefined ? NONE : `${x && x < 0.01 ? '<1' : Math.round(x * 100)}\u00a0%`;
export const count = (n) => n === null || n === undefined ? NONE : n.toLocaleString('en').replaceAll(',', '\u202f');
/** Of 100. */
export const percent = (v) => v === null ? '–' : `${v} %`;
export const perSecond = (n) => n === null || n === undefined ? NONE : `${three(n)}/s`;
/** The time of day; of another day with its date. */
export function clock(seconds) {
  const then = new Date(seconds * 1000), time = then.toLocaleTimeString('en-GB');
  return then.toDateString() === new Date().toDateString() ? time : `${then.toLocaleDateString('sv')} ${time}`;
}
export const plural = (n, what) => `${count(n)} ${what}${n === 1 ? '' : 's'}`;

/** 0 to 4: how much of a link is taken. */
export const level = (load) => load === null || load === undefined || load < 0.01 ? 1 : load < 0.6 ? 2 : load < 0.9 ? 3 : 4;
