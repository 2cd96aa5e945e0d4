/** Script of the payment page, which works without it. */
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
    if (elapsed > LATER_MS) waiting.querySelector('[data-later]').hidden = false;
    setTimeout(ask, elapsed > SLOW_AFTER_MS ? 4000 : 1000);
  }
  if (waiting) setTimeout(ask, 500);

  for (const form of document.forms) {
    form.addEventListener('submit', (event) => {
      if (form.dataset.sent) return event.preventDefault();
      form.dataset.sent = 'yes';
      const button = event.submitter;
      if (button && button.dataset.busy) button.textContent = button.dataset.busy;
      if (button) button.setAttribute('aria-busy', 'true');
    });
  }
  // A page from the browser's cache may hold a form that was sent.
  addEventListener('pageshow', (event) => {
    if (event.persisted) location.reload();
  });
})();
`;
