import {
  BankFailure,
  type RefundAnswer,
  type RefundInstruction,
  type RefundLookup,
  type ReversalInstruction,
} from '../kit';
import { buildFailure, findInList, readStripe, type StripeTools } from './api';
import type { Refunded, Sent } from './book';
import { REFUSALS } from './codes';
import { BalanceTransaction, type PaymentIntent, RefundHead } from './objects';
import { sendOnce } from './sending';
import { readSession } from './sessions';

interface Sending {
  /** Instruction id, by which the refund is found. */
  id: string;
  amount: number;
  refunded: Refunded;
  /** Resource that a report is about. */
  metadata: { refund_id: string } | { payment_id: string };
}

async function send(
  tools: StripeTools,
  { id, amount, refunded, metadata }: Sending,
): Promise<RefundAnswer> {
  const { object, problem } = await sendOnce(tools, {
    ...{ id, path: 'refunds', refunded, schema: RefundHead },
    buildParams: () => ({ ...refunded, amount, metadata: { instruction_id: id, ...metadata } }),
    find: (record) => find(tools, record),
  });
  if (problem === undefined) return { outcome: 'accepted', bank_reference: object.id };
  const { code = '' } = problem;
  const message = REFUSALS[code];
  if (message === undefined) throw buildFailure(problem);
  // An earlier attempt may have made it, and that may be why nothing is left to refund.
  const made = await find(tools, { _id: id, refunded });
  if (made === undefined) return { outcome: 'refused', code, message };
  await tools.book.note(id, { object: made.id });
  return { outcome: 'accepted', bank_reference: made.id };
}

/** Finds a refund in the list of its payment. */
async function find(tools: StripeTools, { _id, refunded }: Pick<Sent, '_id' | 'refunded'>) {
  if (refunded === null) throw new BankFailure('The book does not say which payment it refunds.');
  const list = { path: 'refunds', params: refunded };
  const isOurs = ({ metadata }: RefundHead) => metadata?.['instruction_id'] === _id;
  return await findInList(tools, list, RefundHead, isOurs);
}

/** Sends a refund of what the payment has brought, by the reference under which it came. */
export async function sendRefund(
  { refund_id, payment_id, amount, payment_bank_reference }: RefundInstruction,
  tools: StripeTools,
): Promise<RefundAnswer> {
  // The service stores no reference that is longer than 200 characters, but the book has it.
  const reference = payment_bank_reference || (await tools.book.get(payment_id))?.object;
  if (!reference) throw new BankFailure('The payment has no reference of Stripe.');
  const known = (await tools.book.get(refund_id))?.refunded;
  const refunded = known ?? (await findRefunded(tools, reference));
  return await send(tools, { id: refund_id, amount, refunded, metadata: { refund_id } });
}

async function findRefunded(tools: StripeTools, reference: string): Promise<Refunded> {
  // What an operator has credited has the reference of its session still.
  if (reference.startsWith('cs_')) return { payment_intent: (await readPaid(tools, reference)).id };
  if (!reference.startsWith('txn_')) return { payment_intent: reference };
  const path = `balance_transactions/${reference}`;
  const { source } = await readStripe(tools, { path }, BalanceTransaction);
  if (source) return { charge: source };
  throw new BankFailure('The balance transaction of the payment has no charge.');
}

export async function lookUpRefund(
  { refund_id }: { refund_id: string },
  tools: StripeTools,
): Promise<RefundLookup> {
  const record = await tools.book.get(refund_id);
  if (record === null) return { outcome: 'not_found' };
  const { object } = record;
  const read = () => readStripe(tools, { path: `refunds/${object}` }, RefundHead);
  const found = await (object === null ? find(tools, record) : read());
  return found ? { outcome: 'accepted', bank_reference: found.id } : { outcome: 'not_found' };
}

async function readPaid(tools: StripeTools, session: string): Promise<PaymentIntent> {
  const { payment_intent: intent } = await readSession(tools, session);
  if (intent) return intent;
  throw new BankFailure('Nothing was paid on the page of the payment.');
}

/** Sends back what came too late, by the payment's own session. */
export async function reversePayment(
  { payment_id, instruction_id, amount, currency }: ReversalInstruction,
  tools: StripeTools,
): Promise<RefundAnswer> {
  const session = (await tools.book.get(payment_id))?.object;
  if (!session) throw new BankFailure('The book has no session of the payment.');
  const intent = await readPaid(tools, session);
  if (intent.currency.toUpperCase() !== currency) {
    const message = `Stripe refunds in ${intent.currency.toUpperCase()} what came as ${currency}.`;
    return { outcome: 'refused', code: 'currency_differs', message };
  }
  const refunded = { payment_intent: intent.id };
  return await send(tools, { id: instruction_id, amount, refunded, metadata: { payment_id } });
}
