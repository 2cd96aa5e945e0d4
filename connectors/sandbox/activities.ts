import { setTimeout as sleep } from 'node:timers/promises';
import { inTransaction } from '../../src/base/mongo';
import { omitUndefined } from '../../src/domain/defined';
import { bankReference } from '../../src/service/banks/sandbox-bank/movements';
import type {
  CloseAnswer,
  ConnectorActivities,
  Outdated,
  ReversalAnswer,
  ReversalInstruction,
  SessionAnswer,
  SessionInstruction,
  VoidAnswer,
} from '../contract/activities';
import { DECLINED } from './declines';
import { getBehavior, MAGIC_AMOUNTS } from './magic-amounts';
import {
  cancelPayout,
  lookUpPayout,
  lookUpRefund,
  type OutgoingDeps,
  sendPayout,
  sendRefund,
} from './outgoing';
import { planReversal } from './plan';
import { SESSION_STATUSES, type SessionStore } from './sessions';

export interface BankActivityDeps extends OutgoingDeps {
  takeReports: (resource_id: string) => Promise<void>;
  sessions: SessionStore;
  /** Without a slash at the end. */
  baseUrl: string;
  slowSessionMs: number;
  onOwnPayment: (payment_id: string) => void;
}

export function createBankActivities(deps: BankActivityDeps): ConnectorActivities {
  return {
    openSession: (input) => openSession(deps, input),
    closeSession: ({ payment_id }) => closeSession(deps, payment_id),
    voidPayment: ({ payment_id }) => voidPayment(deps, payment_id),
    reversePayment: (input) => reversePayment(deps, input),
    sendRefund: (input) => sendRefund(deps, input),
    lookUpRefund: ({ refund_id }) => lookUpRefund(deps.refunds, refund_id),
    sendPayout: (input) => sendPayout(deps, input),
    lookUpPayout: ({ payout_id }) => lookUpPayout(deps.payouts, payout_id),
    cancelPayout: ({ payout_id }) => cancelPayout(deps, payout_id),
  };
}

async function openSession(
  { sessions, baseUrl, slowSessionMs, onOwnPayment }: BankActivityDeps,
  instruction: SessionInstruction,
): Promise<SessionAnswer> {
  const { payment_id, amount, livemode } = instruction;
  onOwnPayment(payment_id);
  if (livemode) {
    const message = 'The sandbox bank takes no live payments.';
    return { outcome: 'declined', code: 'live_not_supported', message };
  }
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
  if (session.status === 'closed' || session.instruction === null) {
    const message = 'The payment was called off before the bank opened it.';
    return { outcome: 'declined', code: 'session_closed', message };
  }
  // Only the first session is slow; a repeat is answered at once.
  if (isNew && behavior === 'slow_session') await sleep(slowSessionMs);
  return {
    outcome: 'opened',
    bank_reference: session.bank_reference,
    session_url: `${baseUrl}/session/${session.token}`,
  };
}

async function closeSession(
  { sessions }: BankActivityDeps,
  payment_id: string,
): Promise<CloseAnswer> {
  // Stays for an `openSession` that has not arrived yet.
  await sessions.make(payment_id, { status: 'closed' });
  const closed = await sessions.step(payment_id, ['open'], { status: 'closed' });
  const { status } = closed ?? (await sessions.get(payment_id)) ?? { status: 'closed' };
  const isApproved = status === 'approved' || status === 'settled';
  return { outcome: isApproved ? 'already_authorized' : 'closed' };
}

/** Voids in one transaction with the pending settlement, so that only one of them happens. */
async function voidPayment(
  { mongo, sessions, outbox, movements, takeReports }: BankActivityDeps,
  payment_id: string,
): Promise<VoidAnswer> {
  await takeReports(payment_id);
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

async function reversePayment(
  deps: BankActivityDeps,
  instruction: ReversalInstruction,
): Promise<ReversalAnswer | Outdated> {
  const { mongo, sessions, outbox, movements, autoplay } = deps;
  const { payment_id, instruction_id, amount, currency } = instruction;
  await deps.takeReports(payment_id);
  const reversal = { instruction_id, amount, currency };
  const existing = await sessions.get(payment_id);
  const before = existing?.reversals.find((each) => each.instruction_id === instruction_id);
  if (before === undefined) {
    const outdated = await deps.findOutdated('payment', instruction);
    if (outdated !== undefined) return outdated;
  } else if (before.amount !== amount || before.currency !== currency) {
    const message = 'The money was sent back already, in another amount.';
    return { outcome: 'refused', code: 'reversal_mismatch', message };
  }
  await sessions.make(payment_id, { status: 'closed' });
  const bank_reference = bankReference(instruction_id);
  const about = { resource: 'payment', resource_id: payment_id, bank_reference } as const;
  await inTransaction(mongo, async (session) => {
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
