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
`;
