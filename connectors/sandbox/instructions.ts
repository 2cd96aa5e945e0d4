import { setTimeout as sleep } from 'node:timers/promises';
import type { MongoClient } from 'mongodb';
import { inTransaction } from '../../src/base/mongo';
import { omitUndefined } from '../../src/domain/defined';
import { bankReference, type MovementStore } from '../../src/service/banks/sandbox-bank/movements';
import type {
  CloseAnswer,
  ReversalAnswer,
  ReversalInstruction,
  SessionAnswer,
  SessionInstruction,
  VoidAnswer,
} from '../contract/activities';
import { DECLINED } from './declines';
import { getBehavior, MAGIC_AMOUNTS } from './magic-amounts';
import type { Outbox } from './outbox';
import { planReversal } from './plan';
import { type ReportDeps, takeSimulated } from './reports';
import { SESSION_STATUSES, type SessionStore } from './sessions';

export interface IncomingDeps extends ReportDeps {
  mongo: MongoClient;
  sessions: SessionStore;
  outbox: Outbox;
  movements: MovementStore;
  autoplay: boolean;
  /** Without a slash at the end. */
  baseUrl: string;
  slowSessionMs: number;
}

export async function openSession(
  { sessions, baseUrl, slowSessionMs }: IncomingDeps,
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
  { sessions }: IncomingDeps,
  { payment_id }: { payment_id: string },
): Promise<CloseAnswer> {
  const closed = await sessions.step(payment_id, ['open'], { status: 'closed' });
  const { status } = closed ?? (await sessions.get(payment_id)) ?? { status: 'closed' };
  const isApproved = status === 'approved' || status === 'settled';
  return { outcome: isApproved ? 'already_authorized' : 'closed' };
}

/** Voids in one transaction with the pending settlement, so that only one of them happens. */
export async function voidPayment(
  deps: IncomingDeps,
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
  deps: IncomingDeps,
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
