// SPDX-License-Identifier: Apache-2.0
// What the server is asked, and what it tells.

export const me = {signed_in: false, csrf: null, may_change: false};

export class Problem extends Error {
  constructor(status, text, after, field) { super(text); this.status = status; this.after = after; this.field = field; }
}

async function problem(answer) {
  let said = {};
  try { said = await answer.json(); } catch { /* no JSON */ }
  return new Problem(answer.status, said.error || `the server answers ${answer.status}`, Number(answer.headers.get('Retry-After')) || 0, said.field);
}

export async function call(method, path, body) {
  const headers = body === undefined ? {} : {'Content-Type': 'application/json'};
  if (me.csrf && method !== 'GET') headers['X-CSRF-Token'] = me.csrf;
  let answer;
  try {
    answer = await fetch(path, {method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: 'same-origin'});
  } catch { throw new Problem(0, 'The server does not answer.'); }
  if (!answer.ok) throw await problem(answer);
  return answer.json();
}

export async function refresh() { Object.assign(me, {csrf: null, may_change: false}, await call('GET', '/api/session')); return me; }

/** Server-sent events, read by fetch: other than EventSource it says why there are none. A view comes whole, and then
 * as what differs from it. move(): other rows of its lists. */
export function stream(view, on) {
  const control = new AbortController();
  const at = {window: '', id: null};
  run(view, at, on, control.signal);
  return {
    end: () => control.abort(),
    move(window) {
      at.window = Object.entries(window).map(([k, v]) => `&${k}=${encodeURIComponent(v)}`).join('');
      if (at.id) call('POST', `/api/stream/${at.id}`, window).catch((e) => { if (e.status === 400) on.failed(e); });
    },
  };
}

/** What `step` makes of `old`: an object goes deeper, a list of one takes the whole place, else it is the value. */
function patched(old, step) {
  if (Array.isArray(step)) return step[0];
  if (step === null || typeof step !== 'object') return step;
  const made = Array.isArray(old) ? [...old] : {...old};
  for (const [k, v] of Object.entries(step)) made[k] = patched(made[k], v);
  return made;
}

async function run(view, at, on, signal) {
  let wait = 1, data = null;
  const heard = {...on,
    viewer: (id) => { at.id = id; },
    view: (whole) => { data = whole; on.view(data); },
    difference: (step) => { data = patched(data, step); on.view(data); }};
  while (!signal.aborted) {
    let why;
    try {
      const answer = await fetch(`/api/stream?view=${view}${at.window}`, {signal, credentials: 'same-origin'});
      if (!answer.ok) throw await problem(answer);
      on.state('on', 'live');
      wait = 1;
      await read(answer.body.getReader(), heard);
      why = new Problem(0, 'The server closed the connection.');
    } catch (e) { why = e; }
    at.id = null;
    if (signal.aborted) return;
    if (why.status === 401 || why.status === 404 || why.status === 400) { on.failed(why); return; }
    if (!(why instanceof Problem)) why = new Problem(0, 'The server does not answer.');
    on.state('off-line', 'not connected', why.message);
    await new Promise((done) => setTimeout(done, 1000 * Math.max(wait, why.after || 0)));
    wait = Math.min(2 * wait, 15);
  }
}

async function read(reader, on) {
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    rest += decoder.decode(value, {stream: true});
    const blocks = rest.split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const name = /^event: (.*)$/m.exec(block)?.[1];
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (name === 'signed-out') throw new Problem(401, 'You are signed out.');
      if (name && data !== undefined && on[name]) on[name](JSON.parse(data));
    }
  }
}
