const COPY_JS = `
  function select(element) {
    const range = document.createRange();
    range.selectNodeContents(element);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  }
  async function copy(element) {
    try {
      await navigator.clipboard.writeText(element.dataset.value || element.textContent);
    } catch {
      // Pages over plain http have no clipboard API.
      select(element);
      document.execCommand('copy');
    }
  }
  for (const button of document.querySelectorAll('[data-copy]')) {
    const label = button.textContent;
    button.hidden = false;
    button.addEventListener('click', async () => {
      await copy(document.getElementById(button.dataset.copy));
      button.textContent = button.dataset.copied;
      document.querySelector('[data-said]').textContent = button.dataset.saidThen;
      setTimeout(() => { button.textContent = label; }, 2000);
    });
  }
`;

export const PAY_JS = `'use strict';
(() => {
  const LATER_MS = 10000;
  const SLOW_AFTER_MS = 60000;
  const waiting = document.querySelector('[data-poll]');
  const started = Date.now();

  async function ask() {
    try {
      const response = await fetch(waiting.dataset.poll, { headers: { Accept: 'application/json' } });
      const json = (response.headers.get('Content-Type') || '').includes('json');
      // A page that is expired or bound to another browser says so itself.
      if (response.status < 500 && (!response.ok || !json)) return location.reload();
      const { next } = await response.json();
      if (typeof next === 'string') return location.replace(next);
    } catch {
      // The next request covers a moment offline or a restart.
    }
    const elapsed = Date.now() - started;
    const later = waiting.querySelector('[data-later]');
    if (later && elapsed > LATER_MS) later.hidden = false;
    setTimeout(ask, Number(waiting.dataset.pause) || (elapsed > SLOW_AFTER_MS ? 4000 : 1000));
  }
  if (waiting) setTimeout(ask, 500);

  // The server does not know the payer's time zone.
  for (const time of document.querySelectorAll('[data-time]')) {
    const fields = { day: 'numeric', month: 'long', hour: 'numeric', minute: '2-digit' };
    const format = new Intl.DateTimeFormat(time.dataset.time, fields);
    time.textContent = format.format(new Date(time.dateTime));
  }

  for (const form of document.forms) {
    form.addEventListener('submit', (event) => {
      if (form.dataset.sent) return event.preventDefault();
      form.dataset.sent = 'yes';
      const button = event.submitter;
      if (button && button.dataset.busy) button.textContent = button.dataset.busy;
      if (button) button.setAttribute('aria-busy', 'true');
    });
  }
${COPY_JS}  // A page from the browser's cache may hold a form that was sent.
  addEventListener('pageshow', (event) => {
    if (event.persisted) location.reload();
  });
})();
`;

export const CRYPTO_JS = `'use strict';
(() => {
  const live = document.querySelector('[data-poll]');

  async function ask() {
    try {
      const response = await fetch(live.dataset.poll, { headers: { Accept: 'application/json' } });
      const json = (response.headers.get('Content-Type') || '').includes('json');
      if (response.status < 500 && (!response.ok || !json)) return location.reload();
      if (response.ok) {
        const { state, seconds_left: left } = await response.json();
        if (state !== live.dataset.state) return location.reload();
        correct(left);
      }
    } catch {
      // The next request covers a moment offline or a restart.
    }
    setTimeout(ask, document.hidden ? 5000 : 1000);
  }
  if (live) setTimeout(ask, 500);

  const clock = document.querySelector('[data-left]');
  // The server measures the time, since the payer's clock may be wrong.
  let end = clock && performance.now() + Number(clock.dataset.left) * 1000;
  // The clock of a sandbox account may have moved; an answer takes its time.
  function correct(left) {
    const stated = performance.now() + left * 1000;
    if (clock && Math.abs(stated - end) > 5000) end = stated;
  }
  function tick() {
    const left = Math.max(0, Math.ceil((end - performance.now()) / 1000));
    clock.textContent = Math.floor(left / 60) + ':' + String(left % 60).padStart(2, '0');
    if (left > 0) setTimeout(tick, 250);
  }
  if (clock) tick();
${COPY_JS}  addEventListener('pageshow', (event) => {
    if (event.persisted) location.reload();
  });
})();
`;
