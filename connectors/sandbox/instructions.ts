import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import { inTransaction } from '../../src/base/mongo';
import { omitUndefined } from '../../src/domain/defined';
import { bankReference } from '../../src/service/banks/sandbox';
import type {
  CloseAnswer,
  PayoutAnswer,
  PayoutLookup,
  RefundAnswer,
  RefundLookup,
  ReversalAnswer,
  ReversalInstruction,
  SessionAnswer,
  SessionInstruction,
  VoidAnswer,
} from '../contract/activities';
import type { ACTIVITIES } from '../contract/schemas';
import { acceptIntoBook, type BankRefusal, type Book, type BookEntry } from './book';
import {
  DECLINED,
  getBehavior,
  MAGIC_AMOUNTS,
  PAYOUT_MAGIC_AMOUNTS,
  REFUND_MAGIC_AMOUNTS,
} from './magic-amounts';
import { planPayout, planRefund, planReversal } from './plan';
import { type ReportDeps, takeSimulated } from './reports';
import { SESSION_STATUSES } from './sessions';

export interface InstructionDeps extends ReportDeps {
  autoplay: boolean;
  /** Without a slash at the end. */
  baseUrl: string;
  slowSessionMs: number;
}

export async function openSession(
  { sessions, baseUrl, slowSessionMs }: InstructionDeps,
  instruction: SessionInstruction,
): Promise<SessionAnswer> {
  const { payment_id, amount } = instruction;
  const behavior = getBehavior(MAGIC_AMOUNTS, amount);
  const isRefused = behavior === 'declined_at_open';
  const { session, made: isNew } = await sessions.make(payment_id, {
    instruction,
    ...(isRefused ? { status: 'declined', reason: 'Declined for this amount.' } : {}),
  });
  if (isRefused) {
    const message = 'The bank declined the payment: it does not take this amount.';
    return { outcome: 'declined', code: DECLINED, message };
  }
  // Only the first session is slow; a repeat is answered at once.
  if (isNew && behavior === 'slow_session') await sleep(slowSessionMs);
  return {
    outcome: 'opened',
    bank_reference: session.bank_reference,
    session_url: `${baseUrl}/session/${session.token}`,
  };
}

export async function closeSession(
  { sessions }: InstructionDeps,
  { payment_id }: { payment_id: string },
): Promise<CloseAnswer> {
  const closed = await sessions.step(payment_id, ['open'], { status: 'closed' });
  const { status } = closed ?? (await sessions.get(payment_id)) ?? { status: 'closed' };
  const isApproved = status === 'approved' || status === 'settled';
  return { outcome: isApproved ? 'already_authorized' : 'closed' };
}

/** Voids in one transaction with the pending settlement, so that only one of them happens. */
export async function voidPayment(
  deps: InstructionDeps,
  { payment_id }: { payment_id: string },
): Promise<VoidAnswer> {
  const { mongo, sessions, outbox, movements } = deps;
  await takeSimulated(deps, payment_id);
  await sessions.make(payment_id, { status: 'voided' });
  return await inTransaction(mongo, async (session) => {
    const current = await sessions.get(payment_id, session);
    // A simulated settlement is in the book alone.
    const settlement = await movements.findSettlement(payment_id, session);
    if (settlement || current?.status === 'settled' || current?.status === 'reversed') {
      const { amount, currency } = settlement ?? current?.instruction ?? {};
      return { outcome: 'already_settled', ...omitUndefined({ amount, currency }) };
    }
    await sessions.step(payment_id, SESSION_STATUSES, { status: 'voided' }, session);
    await outbox.drop({ resource: 'payment', resource_id: payment_id }, session);
    return { outcome: 'voided' };
  });
}

/** @param call `assertAwaited` throws once the connector has given up */
export async function reversePayment(
  deps: InstructionDeps,
  { input, assertAwaited }: { input: ReversalInstruction; assertAwaited: () => void },
): Promise<ReversalAnswer> {
  const { mongo, sessions, outbox, movements, autoplay } = deps;
  const { payment_id, instruction_id, amount, currency } = input;
  await takeSimulated(deps, payment_id);
  const reversal = { instruction_id, amount, currency };
  await sessions.make(payment_id, { status: 'closed' });
  const bank_reference = bankReference(instruction_id);
  const about = { resource: 'payment', resource_id: payment_id, bank_reference } as const;
  await inTransaction(mongo, async (session) => {
    assertAwaited();
    if (!(await sessions.reverse(payment_id, reversal, session))) return;
    const decision = {
      ...about,
      amount,
      currency,
      name: 'reversed',
      decision: instruction_id,
    } as const;
    await movements.book(decision, session);
    await outbox.add(about, planReversal({ amount, currency }, autoplay), session);
  });
  return { outcome: 'accepted', bank_reference };
}

/** Instruction as it is posted. */
interface Call<N extends 'sendRefund' | 'sendPayout'> {
  input: z.output<(typeof ACTIVITIES)[N]['instruction']>;
  /** Throws once the connector has given up. */
  assertAwaited: () => void;
}

/** Simulated: the instruction was executed, and its answer never arrives. */
export class AnswerLost extends Error {
  override readonly name = 'AnswerLost';
}

const REFUND_REFUSAL: BankRefusal = {
  code: 'refund_refused',
  message: 'The bank refused the refund: it does not send back this amount.',
};

const PAYOUT_REJECTION: BankRefusal = {
  code: 'payout_rejected',
  message: 'The bank rejected the payout: it does not send this amount.',
};

/**
 * Writes book and callbacks in one transaction; a repeat is answered from the book.
 * @throws AnswerLost
 */
export async function sendRefund(
  deps: InstructionDeps,
  { input: { activity: _, ...instruction }, assertAwaited }: Call<'sendRefund'>,
): Promise<RefundAnswer> {
  const { refund_id: _id, amount } = instruction;
  const behavior = getBehavior(REFUND_MAGIC_AMOUNTS, amount);
  const isRefused = behavior === 'refused';
  const { entry, isNew } = await acceptIntoBook(
    { ...deps, book: deps.refunds, assertAwaited },
    {
      resource: 'refund',
      _id,
      instruction,
      status: isRefused ? 'refused' : 'accepted',
      refusal: isRefused ? REFUND_REFUSAL : null,
      statement: null,
      planned: planRefund(amount, deps.autoplay),
    },
  );
  if (isNew && behavior === 'answer_lost') throw new AnswerLost();
  return buildRefundAnswer(entry);
}

export async function lookUpRefund(
  { refunds }: Pick<InstructionDeps, 'refunds'>,
  { refund_id }: { refund_id: string },
): Promise<RefundLookup> {
  const entry = await getArrivedEntry(refunds, refund_id);
  return entry === null ? { outcome: 'not_found' } : buildRefundAnswer(entry);
}

/** Returns the first answer, even if the refund has changed since. */
function buildRefundAnswer({ bank_reference, refusal }: BookEntry): RefundAnswer {
  return refusal === null
    ? { outcome: 'accepted', bank_reference }
    : { outcome: 'refused', ...refusal };
}

/** Stores nothing of the recipient. @throws AnswerLost */
export async function sendPayout(
  deps: InstructionDeps,
  { input, assertAwaited }: Call<'sendPayout'>,
): Promise<PayoutAnswer> {
  const { activity: _, recipient: __, reference, ...instruction } = input;
  const { payout_id: _id, amount } = instruction;
  const behavior = getBehavior(PAYOUT_MAGIC_AMOUNTS, amount);
  const sentStatus = behavior === 'stays_submitted' ? 'submitted' : 'sent';
  const isRejected = behavior === 'rejected';
  const { entry, isNew } = await acceptIntoBook(
    { ...deps, book: deps.payouts, assertAwaited },
    {
      resource: 'payout',
      _id,
      instruction,
      status: isRejected ? 'refused' : sentStatus,
      refusal: isRejected ? PAYOUT_REJECTION : null,
      statement: reference,
      planned: planPayout(amount, deps.autoplay),
    },
  );
  if (isNew && behavior === 'answer_lost') throw new AnswerLost();
  return buildPayoutAnswer(entry);
}

export async function lookUpPayout(
  { payouts }: Pick<InstructionDeps, 'payouts'>,
  { payout_id }: { payout_id: string },
): Promise<PayoutLookup> {
  const entry = await getArrivedEntry(payouts, payout_id);
  return entry === null ? { outcome: 'not_found' } : buildPayoutAnswer(entry);
}

function buildPayoutAnswer({ bank_reference, refusal, status }: BookEntry): PayoutAnswer {
  if (refusal !== null) return { outcome: 'refused', ...refusal };
  // Any status but `submitted` was reached through `sent`.
  return { outcome: status === 'submitted' ? 'submitted' : 'sent', bank_reference };
}

async function getArrivedEntry(book: Book, id: string): Promise<BookEntry | null> {
  const entry = await book.get(id);
  return entry?.status === 'lost' ? null : entry;
}
