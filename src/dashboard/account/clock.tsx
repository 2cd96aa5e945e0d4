import { Refusal } from '../../domain/errors';
import { advanceClock } from '../../service/merchants/clock';
import { field, redirect } from '../frame/form';
import type { Answer, Call, PageDeps, Route } from '../frame/route';

const DAY_MS = 86_400_000;

/** @see docs/api.md#sandbox-clock */
export const CLOCK_ROUTE: Route = {
  method: 'post',
  path: '/clock',
  act: 'clock.advance',
  title: 'Move the clock',
  confirmation: {
    question: (form) =>
      `Move the time of this account's test data forward by ${field(form, 'days')} days? What waits in it ` +
      'happens: payments expire, refund windows close, webhooks are retried. The clock never goes back.',
    button: 'Move the clock',
  },
  handle: advance,
};

async function advance(call: Call, deps: PageDeps): Promise<Answer> {
  const { account_id, livemode } = call.scope;
  const days = Number(field(call.form, 'days'));
  const back = '/overview';
  if (livemode) return 'not_found';
  if (!Number.isInteger(days) || days < 1) {
    return redirect(call, back, 'bad', 'Enter a whole number of days, from 1.');
  }
  try {
    const { target } = await advanceClock(deps, account_id, { by_ms: days * DAY_MS });
    return redirect(call, back, 'good', `The clock advances to ${target ?? 'its target'}.`);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return redirect(call, back, 'bad', error.message);
  }
}
