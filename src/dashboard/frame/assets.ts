import { COLORS_CSS } from '../../pages/styles';

export const DASHBOARD_CSS = `${COLORS_CSS}
:root { --hover: #f8fafd; }
@media (prefers-color-scheme: dark) { :root { --hover: #192132; } }
*, *::before, *::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; min-height: 100vh; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif;
}
h1, h2, h3, p, dl, dd, fieldset, legend, pre { margin: 0; padding: 0; }
h1 { font-size: 24px; line-height: 1.25; letter-spacing: -0.015em; font-weight: 650; }
h2 { font-size: 17px; line-height: 1.3; font-weight: 620; }
h3 { font-size: 15px; font-weight: 620; }
p, dd, td, li { overflow-wrap: anywhere; }
a { color: var(--accent); text-underline-offset: 3px; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
form { margin: 0; }
[hidden] { display: none; }
.muted { color: var(--muted); }
.small { font-size: 13px; }
.stack { display: flex; flex-direction: column; gap: 12px; }
.skip { position: absolute; left: -9999px; }
.skip:focus { left: 8px; top: 8px; background: var(--card); padding: 8px 12px; z-index: 1; }

.environment {
  display: flex; align-items: center; gap: 8px 16px; flex-wrap: wrap; padding: 8px 20px;
  font-weight: 550;
}
.clock { display: inline-flex; gap: 8px; align-items: center; flex-wrap: wrap; margin-left: auto; }
.clock input[type=number] { width: 5.5em; padding: 3px 8px; }
.sandbox .environment { background: var(--note); color: var(--note-ink); }
.live .environment { background: var(--good); color: var(--card); }
.switch { display: inline-flex; border: 1px solid currentColor; border-radius: 9px; overflow: hidden; }
.switch a { color: inherit; text-decoration: none; padding: 4px 14px; }
.switch a[aria-current] { background: var(--ink); color: var(--card); font-weight: 650; }
.switch a:not([aria-current]):hover { text-decoration: underline; }
.bar {
  display: flex; align-items: center; gap: 8px 20px; flex-wrap: wrap; padding: 10px 20px;
  background: var(--card); border-bottom: 1px solid var(--line);
}
.merchant { margin-right: auto; overflow-wrap: anywhere; min-width: 0; }
.who { color: inherit; overflow-wrap: anywhere; min-width: 0; }
@media (max-width: 719px) {
  .bar { padding: 10px 16px; }
  .who { order: 1; flex: 1 0 100%; font-size: 14px; }
  .environment { padding: 8px 16px; }
}

.columns { display: flex; flex-direction: column; }
.navigation {
  display: flex; gap: 4px; overflow-x: auto; padding: 8px 12px; background: var(--card);
  border-bottom: 1px solid var(--line);
}
.navigation a {
  flex: none; color: var(--ink); text-decoration: none; padding: 9px 12px; border-radius: 9px;
}
.navigation a:hover { background: var(--tint); }
.navigation a[aria-current] { background: var(--tint); color: var(--accent); font-weight: 620; }
main { display: flex; flex-direction: column; gap: 20px; min-width: 0; }
.app main { padding: 20px 16px 48px; }

.head { display: flex; align-items: center; gap: 12px; flex-wrap: wrap; min-height: 42px; }
.head h1 { overflow-wrap: anywhere; min-width: 0; }
.actions { display: flex; gap: 8px; flex-wrap: wrap; margin-left: auto; }
.panel {
  background: var(--card); border: 1px solid var(--line); border-radius: 14px; padding: 18px;
  display: flex; flex-direction: column; gap: 14px; min-width: 0;
}
.narrow { max-width: 560px; }
.empty { color: var(--muted); padding: 20px 0; text-align: center; }

dl { display: flex; flex-direction: column; }
dl > div {
  display: flex; gap: 4px 24px; flex-wrap: wrap; padding: 9px 0; border-top: 1px solid var(--line);
}
dl > div:first-child { border-top: 0; }
dt { color: var(--muted); flex: 0 0 180px; }
dd { flex: 1 1 200px; min-width: 0; }

table { width: 100%; border-collapse: collapse; }
th { text-align: left; color: var(--muted); font-weight: 550; font-size: 13px; }
th, td { padding: 10px 12px 10px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
@media (min-width: 720px) {
  td { min-width: 84px; }
  tbody tr:hover { background: var(--hover); }
  .type { white-space: nowrap; }
  .email { display: block; min-width: 180px; }
  td code.muted { display: block; }
  td .inline { flex-wrap: nowrap; }
  .words { overflow-wrap: break-word; }
}
time, .number { font-variant-numeric: tabular-nums; }
.number { white-space: nowrap; }
@media (max-width: 719px) {
  thead { position: absolute; left: -9999px; }
  table, tbody, tr, td { display: block; }
  tr { padding: 10px 0; border-bottom: 1px solid var(--line); }
  tr:last-child { border-bottom: 0; }
  td {
    display: flex; gap: 12px; border: 0; padding: 3px 0; justify-content: space-between;
    text-align: right;
  }
  td::before { content: attr(data-label); color: var(--muted); flex: none; font-size: 13px; }
  td > * { min-width: 0; }
  td .states { justify-content: flex-end; }
}

.pager { display: flex; gap: 8px; justify-content: flex-end; }
.badge {
  display: inline-block; padding: 1px 9px; border-radius: 99px; font-size: 13px; font-weight: 550;
  border: 1px solid var(--line); white-space: nowrap;
}
.badge.good { color: var(--good); border-color: currentColor; }
.badge.bad { color: var(--bad); border-color: currentColor; }
.badge.note { background: var(--note); color: var(--note-ink); border-color: transparent; }
.states { display: inline-flex; gap: 4px; flex-wrap: wrap; }
.message { padding: 12px 16px; border-radius: 12px; border: 1px solid var(--line); background: var(--card); }
.message.good { border-left: 5px solid var(--good); }
.message.bad { border-left: 5px solid var(--bad); }
.message.note { background: var(--note); color: var(--note-ink); }

.form { display: flex; flex-direction: column; gap: 14px; align-items: flex-start; }
.inline { display: inline-flex; gap: 8px; align-items: end; flex-wrap: wrap; }
.inline select { width: auto; }
.filters { display: grid; gap: 12px; grid-template-columns: 1fr 1fr; align-items: end; }
.filters .field { max-width: none; min-width: 0; }
.filters .search, .filters button { grid-column: 1 / -1; }
@media (min-width: 720px) {
  .filters { display: flex; flex-wrap: wrap; }
  .filters .field { width: auto; flex: 1 1 132px; max-width: 280px; }
  .filters .search { flex: 2 1 250px; max-width: none; }
}
.field { display: flex; flex-direction: column; gap: 5px; width: 100%; max-width: 440px;
  border: 0; }
label, legend { font-weight: 550; }
.hint { color: var(--muted); font-size: 13px; }
.fault { color: var(--bad); font-size: 14px; }
.field.wide { max-width: none; }
.field.long { max-width: 720px; }
.checks { display: grid; grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: 6px 16px; }
.check { font-weight: 400; display: flex; gap: 8px; align-items: center; min-height: 28px; }
input:not([type='checkbox']), select, textarea {
  width: 100%; min-height: 42px; padding: 8px 12px; font: inherit; color: var(--ink);
  background: var(--card); border: 1px solid var(--edge); border-radius: 9px;
}
input[aria-invalid], textarea[aria-invalid] { border-color: var(--bad); }
button, .button {
  display: inline-block; min-height: 42px; padding: 9px 18px; border-radius: 9px; cursor: pointer;
  border: 1px solid transparent; background: var(--accent); color: var(--on-accent);
  font: inherit; font-weight: 600; text-decoration: none; text-align: center; white-space: nowrap;
}
button:hover, .button:hover { background: var(--accent-strong); }
button.plain, .button.plain { background: transparent; color: var(--ink); border-color: var(--edge); }
button.plain:hover, .button.plain:hover { background: var(--tint); }
button.danger { background: transparent; color: var(--bad); border-color: currentColor; }
button.danger:hover { background: var(--tint); }
button.small, .button.small { min-height: 34px; padding: 4px 12px; }
button[aria-busy='true'] { opacity: 0.75; cursor: progress; }
code, pre { font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code { overflow-wrap: anywhere; }
pre {
  background: var(--page); border: 1px solid var(--line); border-radius: 9px; padding: 12px;
  overflow-x: auto; white-space: pre;
}
pre.wrap { white-space: pre-wrap; overflow-wrap: anywhere; }
::placeholder { color: var(--muted); opacity: 1; }
.copyable {
  display: flex; gap: 12px; align-items: center; padding: 10px 12px; border-radius: 9px;
  background: var(--page); border: 1px solid var(--line);
}
.qr { border-radius: 9px; max-width: 100%; height: auto; }
.previews { display: flex; flex-wrap: wrap; gap: 16px; }
.previews > div { max-width: 100%; display: flex; flex-direction: column; gap: 6px; }
.previews svg { max-width: 100%; height: auto; }
.steps { margin: 0; padding: 0; list-style: none; display: flex; flex-direction: column; gap: 12px; }
.facts { margin: 0; padding: 0; list-style: none; }
.copyable code { flex: 1; min-width: 0; }

.card { width: 100%; max-width: 420px; margin: 0 auto; padding: 32px 20px; }
.card main {
  background: var(--card); border: 1px solid var(--line); border-radius: 18px; padding: 28px 24px;
}
.card .form, .card .form button { width: 100%; align-items: stretch; }
.brand { font-weight: 650; margin-bottom: 16px; text-align: center; }
@media (min-width: 960px) {
  .columns { flex-direction: row; align-items: flex-start; max-width: 1280px; margin: 0 auto; }
  .navigation {
    flex: 0 0 208px; flex-direction: column; background: none; border: 0; padding: 24px 12px;
    position: sticky; top: 0;
  }
  .app main { flex: 1; padding: 28px 24px 64px; }
  .card { padding-top: 96px; }
}
.timeline { list-style: none; margin: 0; padding: 0; display: flex; flex-direction: column; }
.timeline li {
  padding: 10px 0 10px 16px; border-left: 3px solid var(--line); display: flex;
  flex-direction: column; gap: 3px; min-width: 0;
}
.timeline li.good { border-color: var(--good); }
.timeline li.bad { border-color: var(--bad); }
.timeline-head { display: flex; gap: 4px 10px; flex-wrap: wrap; align-items: baseline; }
.timeline-head > :last-child { margin-left: auto; font-size: 13px; }
.metrics { display: grid; grid-template-columns: repeat(auto-fit, minmax(260px, 1fr)); gap: 20px; }
.metric { font-size: 26px; font-weight: 650; letter-spacing: -0.02em; font-variant-numeric: tabular-nums; }
.plainlist { margin: 0; padding-left: 20px; display: flex; flex-direction: column; gap: 6px; }
.plot { display: flex; flex-direction: column; gap: 6px; }
.chart { width: 100%; height: 180px; display: block; overflow: visible; }
.chart rect { fill: var(--accent); }
.chart rect:hover { fill: var(--accent-strong); }
.chart line { stroke: var(--line); vector-effect: non-scaling-stroke; }
.scale { display: flex; justify-content: space-between; color: var(--muted); font-size: 13px; }
.tabs { display: flex; gap: 4px; flex-wrap: wrap; border-bottom: 1px solid var(--line); }
.tabs a { color: var(--ink); text-decoration: none; padding: 8px 12px; border-bottom: 3px solid transparent; }
.tabs a:hover { border-color: var(--line); }
.tabs a[aria-current] { color: var(--accent); border-color: var(--accent); font-weight: 620; }
summary { cursor: pointer; font-weight: 550; }
details > * + * { margin-top: 10px; }
.buttons { display: flex; gap: 10px 20px; flex-wrap: wrap; align-items: end; }
.buttons .form { flex-direction: row; align-items: end; flex-wrap: wrap; }
.buttons .field { width: auto; min-width: 160px; }
td form button { min-height: 34px; padding: 4px 12px; }
@media print {
  header, .navigation, .actions, .filters, .skip { display: none; }
  .app main { padding: 0; }
  .panel { border: 0; padding: 0 0 18px; }
  thead { display: table-header-group; }
  tr { break-inside: avoid; }
}
`;

/** Text, because the compiler copies no other files. Every page works without it. */
export const DASHBOARD_JS = `'use strict';
(() => {
  for (const form of document.querySelectorAll('form[method="post"]')) {
    form.addEventListener('submit', (event) => {
      if (form.dataset.sent) return event.preventDefault();
      form.dataset.sent = 'yes';
      const button = event.submitter;
      if (button) button.setAttribute('aria-busy', 'true');
      if (button && button.dataset.busy) button.textContent = button.dataset.busy;
    });
  }
  for (const button of document.querySelectorAll('[data-copy]')) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = 'Copied';
    });
  }
  const strip = document.querySelector('.navigation');
  const current = strip && strip.querySelector('[aria-current]');
  if (current) strip.scrollLeft = current.offsetLeft - strip.offsetLeft - 16;
  // A page from the browser's cache may hold a form that was sent.
  addEventListener('pageshow', (event) => {
    if (event.persisted) location.reload();
  });
})();
'use strict';
(() => {
  if (!window.PublicKeyCredential) return;
  const FIELDS = [
    'clientDataJSON', 'authenticatorData', 'signature', 'userHandle', 'attestationObject',
  ];
  const FAULTS = {
    NotAllowedError: 'No passkey was used: it was cancelled, or took too long.',
    InvalidStateError: 'This device has one of your passkeys already.',
    SecurityError: 'Passkeys work only at the address that this service is set up for.',
  };
  const toBytes = (text) =>
    Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (c) => c.charCodeAt(0));
  const toText = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer)))
      .replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  const get = async () => {
    const response = await fetch('/dashboard/sign-in/passkey/challenge', { method: 'POST' });
    if (!response.ok) throw new Error(await response.text());
    const options = await response.json();
    const publicKey = { ...options, challenge: toBytes(options.challenge) };
    return await navigator.credentials.get({ publicKey });
  };
  const create = async (options) => {
    const publicKey = {
      ...options,
      challenge: toBytes(options.challenge),
      user: { ...options.user, id: toBytes(options.user.id) },
      excludeCredentials: options.excludeCredentials.map((each) => ({ ...each, id: toBytes(each.id) })),
    };
    return await navigator.credentials.create({ publicKey });
  };
  for (const button of document.querySelectorAll('[data-passkey]')) {
    const { form } = button;
    const fault = form.querySelector('[data-passkey-fault]');
    button.hidden = false;
    button.addEventListener('click', async () => {
      if (!form.reportValidity()) return;
      fault.hidden = true;
      button.disabled = true;
      try {
        const how = button.dataset.passkey;
        const { id, response } = how === 'get' ? await get() : await create(JSON.parse(how));
        const message = { id };
        for (const name of FIELDS) if (response[name]) message[name] = toText(response[name]);
        form.elements.passkey.value = JSON.stringify(message);
        form.requestSubmit();
      } catch (error) {
        fault.textContent = FAULTS[error.name] || error.message;
        fault.hidden = false;
      }
      button.disabled = false;
    });
  }
})();
`;
