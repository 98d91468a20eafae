// SPDX-License-Identifier: Apache-2.0
// What the switch would do with a packet.

import {h, say} from './dom.js';
import {call} from './api.js';
import {trail} from './app.js';

const KINDS = {
  'TCP': [['eth_type', '0x800'], ['ip_proto', '6']], 'UDP': [['eth_type', '0x800'], ['ip_proto', '17']], 'ICMP': [['eth_type', '0x800'], ['ip_proto', '1']],
  'ARP': [['eth_type', '0x806']], 'TCP over IPv6': [['eth_type', '0x86dd'], ['ip_proto', '6']], 'UDP over IPv6': [['eth_type', '0x86dd'], ['ip_proto', '17']]};
const DSCP = {'': 'none', 46: 'EF, calls', 44: 'VA', 34: 'AF41', 26: 'AF31', 18: 'AF21', 10: 'AF11', 8: 'CS1', 1: 'LE, bulk'};

export function tracePage(main, dp) {
  const heading = h('h1', {}, 'Trace a packet');
  const port = h('select', {}), kind = h('select', {}, Object.keys(KINDS).map((k) => h('option', {}, k)));
  const text = (what) => h('input', {placeholder: what, autocomplete: 'off', spellcheck: 'false'});
  const [src, dst, sport, dport] = [text('192.0.2.1'), text('192.0.2.2'), text('any'), text('any')];
  const dscp = h('select', {}, Object.entries(DSCP).sort((a, b) => Number(b[0]) - Number(a[0])).sort((a, b) => (b[0] === '') - (a[0] === '')).map(([v, t]) => h('option', {value: v}, t)));
  const raw = h('input', {class: 'code', autocomplete: 'off', spellcheck: 'false', required: true, 'aria-describedby': 'trace-help'});
  const go = h('button', {class: 'main'}, 'Trace');
  const result = h('div', {'aria-live': 'polite'});
  const label = (name, field) => h('label', {}, name, field);
  const form = h('form', {class: 'panel', 'aria-label': 'The packet'}, h('div', {class: 'body'},
    h('div', {class: 'fields'}, label('Comes in by', port), label('Kind', kind), label('From', src), label('To', dst), label('From port', sport), label('To port', dport), label('DSCP', dscp)),
    h('p', {}), label('The packet', raw),
    h('p', {class: 'mute', id: 'trace-help'}, 'Fields of OpenFlow; what is not named gets a usual value. Behind them may stand len=, ttl= and queue=. Nothing is sent, counted or learnt.'), go));
  main.append(h('div', {class: 'head'}, heading), form, result);

  const write = () => {
    const words = [`in_port=${port.value}`, ...KINDS[kind.value].map((pair) => pair.join('='))];
    const six = kind.value.endsWith('IPv6'), arp = kind.value === 'ARP', proto = kind.value.slice(0, 3).toLowerCase();
    const add = (field, value) => { if (value.trim()) words.push(`${field}=${value.trim()}`); };
    if (!arp) add('ip_dscp', dscp.value);
    add(arp ? 'arp_spa' : six ? 'ipv6_src' : 'ipv4_src', src.value);
    add(arp ? 'arp_tpa' : six ? 'ipv6_dst' : 'ipv4_dst', dst.value);
    if (proto === 'tcp' || proto === 'udp') { add(`${proto}_src`, sport.value); add(`${proto}_dst`, dport.value); }
    raw.value = words.join(',');
    for (const f of [sport, dport]) f.disabled = proto !== 'tcp' && proto !== 'udp';
  };
  for (const f of [port, kind, src, dst, sport, dport, dscp]) f.addEventListener('input', write);
  form.addEventListener('submit', async (e) => {
    e.preventDefault();
    go.disabled = true;
    try { draw(await call('POST', `/api/switches/${dp}/trace`, {packet: raw.value})); }
    catch (problem) { result.replaceChildren(h('p', {class: 'panel verdict bad'}, problem.message)); }
    go.disabled = false;
  });

  function draw({summary, lines}) {
    const steps = lines.filter((l) => !summary.includes(l.text));
    const lost = summary.some((s) => /^(Dropped|Not)/i.test(s));
    result.replaceChildren(h('section', {class: 'panel', 'aria-label': 'What becomes of it'},
      summary.map((s) => h('p', {class: lost ? 'verdict bad' : 'verdict'}, s)),
      h('ol', {class: 'steps'}, steps.map((l) => {
        const item = h('li', {class: `${l.depth ? '' : 'top0'}${/^dropped/.test(l.text) ? ' bad' : ''}`}, l.text);
        item.style.setProperty('--depth', l.depth);
        return item;
      }))));
  }

  return {
    view(now) {
      trail(['Network', '#/network'], [now.name, `#/switch/${dp}`], ['Trace']);
      say(heading, `Trace a packet through ${now.name}`);
      const names = now.ports.map((p) => `${p.no} ${p.name}`).join();
      if (port.dataset.names === names) return;
      port.dataset.names = names;
      const held = port.value;
      port.replaceChildren(...now.ports.filter((p) => p.no < 0xffffff00).map((p) => h('option', {value: p.no}, p.name)));
      if (held) port.value = held;
      if (!raw.value) write();
    },
  };
}
