import { BankFailure, type CloseAnswer, type SessionAnswer, type SessionInstruction } from '../kit';
import { callStripe, findInList, type Params, readStripe, type StripeTools } from './api';
import type { Sent } from './book';
import { findMethod, findRefusal, isMethod, listBlockedBrands } from './methods';
import { EXPAND, PaymentIntent, Session, SessionHead } from './objects';
import { sendOnce } from './sending';

const MINUTE_S = 60;

/** Stripe takes sessions that end after half an hour, and within a day. */
const SHORTEST_S = 31 * MINUTE_S;
const LONGEST_S = 24 * 3_600 - 5 * MINUTE_S;

/** Time in which an attempt without an answer may still arrive. */
const ARRIVAL_MS = 60_000;

/** Refusals of an amount by narrower limits than those of the table of methods. */
const DECLINES: Readonly<Record<string, string>> = {
  amount_too_small: 'Stripe takes no payment of this small an amount.',
  amount_too_large: 'Stripe takes no payment of this large an amount.',
};

/** Opens a page of Stripe Checkout, on which the customer pays by the method of the payment. */
export async function openSession(
  input: SessionInstruction,
  tools: StripeTools,
): Promise<SessionAnswer> {
  const refusal = findRefusal(input, tools.settings.STRIPE_CURRENCIES);
  if (refusal !== undefined) return { outcome: 'declined', ...refusal };
  const { object: session, problem } = await sendOnce(tools, {
    id: input.payment_id,
    path: 'checkout/sessions',
    buildParams: (record) => buildSession(input, record),
    schema: SessionHead,
    find: (record) => findSession(tools, record),
  });
  if (problem !== undefined) {
    const { code = '' } = problem;
    const message = DECLINES[code];
    if (message !== undefined) return { outcome: 'declined', code, message };
    throw new BankFailure(`Stripe opens no session: ${code || problem.type}.`);
  }
  if (!session.url) throw new BankFailure('The session has no page any more.');
  return { outcome: 'opened', bank_reference: session.id, session_url: session.url };
}

/** Depends on the instruction and its first attempt alone: a repeat must not differ. */
function buildSession(
  { payment_id, amount, currency, method, return_url, expires_at }: SessionInstruction,
  { begun_at }: Sent,
): Params {
  if (!isMethod(method)) throw new RangeError(`The method ${method} is not served.`);
  const own = findMethod(method);
  const begun = Math.floor(begun_at.getTime() / 1_000);
  const end = Math.max(begun, Math.floor(Date.parse(expires_at) / 1_000));
  const metadata = { payment_id, method };
  const brands_blocked = listBlockedBrands(own);
  const product_data = { name: 'Payment' };
  const price_data = { currency: currency.toLowerCase(), unit_amount: amount, product_data };
  return {
    ...{ mode: 'payment', client_reference_id: payment_id, metadata },
    payment_method_types: [own.type],
    line_items: [{ quantity: 1, price_data }],
    ...{ success_url: return_url, cancel_url: return_url },
    // Also an attempt right before the end of the payment has a valid time.
    expires_at: Math.min(end + SHORTEST_S, begun + LONGEST_S),
    payment_intent_data: { capture_method: 'automatic', metadata },
    ...(brands_blocked.length === 0
      ? {}
      : { payment_method_options: { card: { restrictions: { brands_blocked } } } }),
  };
}

/** Finds the session of an instruction by time, since Stripe's search is late. */
function findSession(tools: StripeTools, { _id, begun_at, tried_at }: Sent) {
  const toSeconds = (time: Date) => Math.floor(time.getTime() / 1_000);
  const gte = toSeconds(begun_at) - 10 * MINUTE_S;
  // An account may have very many sessions since.
  const created = { gte, lte: toSeconds(tried_at) + 10 * MINUTE_S };
  return findInList(
    tools,
    'checkout/sessions',
    { created },
    { schema: SessionHead, fits: ({ client_reference_id }) => client_reference_id === _id },
  );
}

interface Closing {
  payment_id: string;
  bank_reference: string | null;
}

/** @returns undefined if Stripe has none */
async function findSessionId(
  tools: StripeTools,
  { payment_id, bank_reference }: Closing,
): Promise<string | undefined> {
  if (bank_reference !== null) return bank_reference;
  const record = await tools.book.get(payment_id);
  if (record === null) return undefined;
  const id = record.object ?? (await findSession(tools, record))?.id;
  if (id !== undefined) return id;
  if (tools.now().getTime() - record.tried_at.getTime() >= ARRIVAL_MS) return undefined;
  throw new BankFailure('A session may still be opened: ask again.');
}

export function readSession(tools: StripeTools, id: string): Promise<Session> {
  const path = `checkout/sessions/${id}`;
  return readStripe(tools, { path, params: { expand: EXPAND.session } }, Session);
}

/** State of a session: what the customer can still do, or has done. */
type State =
  | { is: 'unpaid' }
  /** Money may come without the customer: a voucher, a debit or a confirmation under way. */
  | { is: 'pending' | 'processing' | 'paid'; intent: PaymentIntent };

/** Ends what can be ended of a session, and reads what is left. */
async function endSession(
  tools: StripeTools,
  id: string,
  ends: (state: State) => boolean,
): Promise<State> {
  for (const _try of [1, 2, 3]) {
    const session = await readSession(tools, id);
    if (session.status === 'open') {
      // A refusal says that the customer was faster: it is read again.
      await callStripe(tools, { path: `checkout/sessions/${id}/expire`, post: true }, SessionHead);
      continue;
    }
    const state = readState(session);
    if (state.is === 'unpaid' || !ends(state)) return state;
    const path = `payment_intents/${state.intent.id}/cancel`;
    const params = { cancellation_reason: 'abandoned' };
    await callStripe(tools, { path, params, post: true }, PaymentIntent.pick({ id: true }));
  }
  throw new BankFailure('Stripe does not end the session: ask again.');
}

function readState({ status, payment_intent: intent }: Session): State {
  if (!intent || intent.status === 'canceled' || status === 'open') return { is: 'unpaid' };
  if (intent.status === 'succeeded') return { is: 'paid', intent };
  if (intent.status === 'processing') return { is: 'processing', intent };
  return { is: 'pending', intent };
}

/** Closes a session. A voucher that nobody has paid ends with it. */
export async function closeSession(input: Closing, tools: StripeTools): Promise<CloseAnswer> {
  await tools.book.noteClosing(input.payment_id);
  const id = await findSessionId(tools, input);
  if (id === undefined) return { outcome: 'closed' };
  const state = await endSession(tools, id, ({ is }) => is === 'pending');
  return { outcome: state.is === 'unpaid' ? 'closed' : 'already_authorized' };
}

/** Cancels what is under way, which Stripe does in rare cases only; else it is paid, or fails. */
export async function voidPayment(input: Closing, tools: StripeTools) {
  const id = await findSessionId(tools, input);
  if (id === undefined) return { outcome: 'voided' as const };
  const state = await endSession(tools, id, ({ is }) => is !== 'paid');
  if (state.is === 'unpaid') return { outcome: 'voided' as const };
  const { amount_received: amount, currency } = state.intent;
  return { outcome: 'already_settled' as const, amount, currency: currency.toUpperCase() };
}
