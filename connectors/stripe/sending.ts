import type { z } from 'zod';
import { BankFailure } from '../kit';
import { callStripe, type Outcome, type Params, type StripeTools } from './api';
import type { Refunded, Sent } from './book';

/** Stripe may drop a key after 24 hours: a repeat is then another refund. */
const KEY_MS = 23 * 3_600_000;

interface Sending<S extends z.ZodType> {
  /** Instruction id. */
  id: string;
  path: string;
  refunded?: Refunded;
  buildParams: (record: Sent) => Params;
  schema: S;
  /** Looks through Stripe's lists for what the instruction has made. */
  find: (record: Sent) => Promise<z.output<S> | undefined>;
}

/**
 * Sends an instruction under one idempotency key, which no look-up changes. Only a failure that
 * Stripe has stored under it, and an empty look-up, lead to a second key, at the next attempt; there
 * is no third.
 * @throws BankFailure where nobody knows what Stripe has done: the service asks again
 */
export async function sendOnce<S extends z.ZodType<{ id: string }>>(
  tools: StripeTools,
  { id, path, refunded, buildParams, schema, find }: Sending<S>,
): Promise<Outcome<z.output<S>>> {
  const { book, now } = tools;
  const record = await book.begin(id, refunded ?? null);
  const note = async (object: z.output<S>) => {
    await book.note(id, { object: object.id });
    return { object };
  };
  if (now().getTime() - record.begun_at.getTime() >= KEY_MS) {
    const found = await find(record);
    if (found !== undefined) return await note(found);
    throw new BankFailure('Stripe has not answered for 23 hours: an operator has to decide.');
  }
  try {
    const params = buildParams(record);
    const answer = await callStripe(tools, { path, params, post: true, key: record.key }, schema);
    return answer.problem === undefined ? await note(answer.object) : answer;
  } catch (error) {
    const { status = 0, headers } = (error instanceof BankFailure && error.answer) || {};
    // Stripe stores the failure under the key, so that no repeat helps.
    if (status < 500 || headers?.get('Idempotent-Replayed') !== 'true') throw error;
    const found = await find(record);
    if (found !== undefined) return await note(found);
    // The second key is the last one.
    await book.note(id, { key: `${id}:2` });
    throw error;
  }
}
