import type { Thing } from './thing';

/** Page on which a customer pays, or reads why nothing can be paid. */
export function renderPage({ id, status, amount_total, currency, ...session }: Thing): string {
  const amount = `${(amount_total / 100).toFixed(2)} ${String(currency).toUpperCase()}`;
  const [title, content] =
    status === 'open'
      ? [
          `Pay ${amount}`,
          `<form method="post"><button>Pay by ${session['payment_method_types'][0]}</button></form>
           <p><a href="${session['cancel_url']}">Back to the shop</a></p>`,
        ]
      : status === 'complete'
        ? ['You have paid already', `<p><a href="${session['success_url']}">Back</a></p>`]
        : ['This page has expired', `<p><a href="${session['cancel_url']}">Back</a></p>`];
  return `<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Fake of Stripe Checkout</title>
<style>
  body { font: 1rem/1.5 sans-serif; margin: 3rem auto; max-width: 26rem; padding: 0 1rem }
  button { background: #1a56db; border: 0; border-radius: 6px; color: #fff; font: inherit;
    padding: .75rem; width: 100% }
</style>
<main><h1>${title}</h1>${content}<p>A fake of Stripe Checkout: nobody is charged. ${id}</p></main></html>`;
}
