import { workflowInfo } from '@temporalio/workflow';
import { assertNever } from '../../src/domain/assert';
import { assetRules, formatUnits } from '../../src/domain/crypto/assets';
import type { CryptoCallback, CryptoPaymentCallbackName } from '../../src/domain/crypto/callback';
import { amountReceived, isAnyPending, isRequestedAsset } from '../../src/domain/crypto/deposit';
import { applyDeposit, applyReorg, applyWrongAsset } from '../../src/domain/crypto/deposit-report';
import {
  computeStatus,
  type DepositChange,
  type DepositSet,
  getDepositAttention,
} from '../../src/domain/crypto/deposit-set';
import {
  CRYPTO_PAYMENT_EVENTS,
  type CryptoPaymentAttention,
} from '../../src/domain/crypto/payment';
import { omitUndefined } from '../../src/domain/defined';
import { now, timestamp } from '../shared/clock';
import type { AuditedAct } from '../shared/operator-acts';
import { writeScheduled } from '../shared/persist';
import { StaleState } from '../shared/record';
import { note } from '../shared/state';
import { screenDeposits } from './bank';
import { type CryptoPayment, record } from './state';

interface Cause {
  name?: CryptoPaymentCallbackName;
  callback?: CryptoCallback;
  audit?: AuditedAct;
  /** ISO 8601, ms. */
  closed_early_at?: string;
}

export function getDepositSet(payment: CryptoPayment): DepositSet {
  const { status, deposits, movements, accepted, facts } = payment;
  const { amount_due, sufficient = amount_due } = facts;
  return { status, deposits, movements, accepted, sufficient };
}

export function isOpen(payment: CryptoPayment): boolean {
  return now(payment) < payment.closesAt;
}

export async function applyCallback(
  payment: CryptoPayment,
  name: CryptoPaymentCallbackName,
  callback: CryptoCallback,
): Promise<void> {
  const { callback_id } = callback;
  const change = readReport(payment, name, callback);
  if (change === undefined) {
    note(payment, `callback ${name} (${callback_id}) lacks fields that it must have`);
    await record.recordUnapplied(payment, name, callback, 'it lacks fields');
    return await record.flagMalformed(payment);
  }
  note(payment, `callback ${name} (${callback_id}): ${describe(payment, name, callback)}`);
  const closes = name === 'expired' && change.kind === 'changed';
  const closed_early_at = closes ? payment.facts.expires_at : undefined;
  await applyChange(payment, change, { name, callback, ...omitUndefined({ closed_early_at }) });
}

function describe(
  { facts }: CryptoPayment,
  name: CryptoPaymentCallbackName,
  { transaction_id = '', amount, confirmations = 0, ...callback }: CryptoCallback,
): string {
  const { asset = name === 'wrong_asset' ? '' : facts.asset } = callback;
  const pair = assetRules(asset, facts.network);
  if (amount === undefined || pair === undefined) return transaction_id;
  const depth = `${confirmations} of ${facts.required_confirmations} confirmations`;
  return `${formatUnits(amount, pair)} by ${transaction_id}, ${depth}`;
}

function readReport(
  payment: CryptoPayment,
  name: CryptoPaymentCallbackName,
  { transaction_id, amount, confirmations, occurred_at, screening, ...more }: CryptoCallback,
): DepositChange | undefined {
  const book = getDepositSet(payment);
  const seen_at = new Date(occurred_at).toISOString();
  const mined = more.mined_at && { mined_at: new Date(more.mined_at).toISOString() };
  switch (name) {
    case 'deposit': {
      if (transaction_id === undefined || amount === undefined) return undefined;
      if (confirmations === undefined) return undefined;
      const verdict = { screening: screening ?? null };
      const report = { transaction_id, amount, confirmations, seen_at, ...mined, ...verdict };
      return applyDeposit(book, report, payment.facts);
    }
    case 'deposit_undone':
      return transaction_id === undefined
        ? undefined
        : applyReorg(book, transaction_id, more.asset);
    case 'wrong_asset': {
      if (transaction_id === undefined || amount === undefined) return undefined;
      const { required_confirmations, network } = payment.facts;
      // No book has an asset of another network.
      const asset = assetRules(more.asset ?? '', network)?.asset;
      const report = { transaction_id, amount, asset, seen_at, ...mined };
      return applyWrongAsset(
        book,
        { ...report, confirmations: required_confirmations },
        payment.facts,
      );
    }
    case 'expired': {
      const isEmpty = payment.status === 'awaiting_deposit' && !isAnyPending(payment.deposits);
      if (!isEmpty) return { kind: 'unapplied', reason: 'a deposit is there, or it has ended' };
      payment.facts.expires_at = timestamp(payment);
      payment.closesAt = Date.parse(payment.facts.expires_at);
      return { kind: 'changed', deposits: [...payment.deposits], steps: [] };
    }
    default:
      return assertNever(name);
  }
}

/** @throws StaleState after a sync from the database */
export async function applyChange(
  payment: CryptoPayment,
  change: DepositChange,
  { name, callback, audit, closed_early_at }: Cause,
): Promise<void> {
  if (change.kind === 'unapplied') {
    if (name !== undefined && callback !== undefined) {
      await record.recordUnapplied(payment, name, callback, change.reason);
    }
    if (change.attention !== undefined) await record.setAttention(payment, change.attention);
    return;
  }
  const { deposits, steps, accepted = payment.accepted } = change;
  const status = computeStatus({ ...getDepositSet(payment), deposits, accepted }, isOpen(payment));
  const isSame = status === payment.status && accepted === payment.accepted && steps.length === 0;
  if (isSame && JSON.stringify(deposits) === JSON.stringify(payment.deposits)) {
    const cause = { ...(name && { name }), ...(callback && { callback }) };
    return await applyChange(payment, { kind: 'unapplied', reason: 'it is known already' }, cause);
  }
  const isNew = !payment.reported.some((each) => each.status === status);
  const isReported =
    status !== payment.status && isNew && CRYPTO_PAYMENT_EVENTS[status] !== undefined;
  const reportedStates = isReported
    ? [...payment.reported, { status, transition: payment.transition + 1 }]
    : payment.reported;
  const amount_received = String(amountReceived(deposits));
  const write = record.transition(payment, [status], {
    change: {
      deposits,
      accepted,
      amount_received,
      reported: [...reportedStates],
      is_reported: isReported,
      steps,
      ...(closed_early_at === undefined ? {} : { closed_early_at }),
    },
    // Makes a repeat known without an event, callback or act.
    id: `${workflowInfo().runId}:${payment.transition + 1}`,
    ...(callback === undefined ? {} : { callback_id: callback.callback_id }),
    ...(audit === undefined ? {} : { audit }),
    // Scheduled, since a lost task would lose what follows the credit.
    scheduled: true,
  });
  await orReload(payment, write);
  payment.deposits = deposits;
  payment.accepted = accepted;
  payment.reported = reportedStates;
  await updateAttention(payment);
  screenDeposits(payment);
}

const NON_DEPOSIT_REASONS: readonly CryptoPaymentAttention[] = [
  'amount_differs',
  'too_many_deposits',
  'wrong_asset',
  'malformed_callback',
  'message_given_up',
  'books_refused',
];

export async function updateAttention(payment: CryptoPayment): Promise<void> {
  const attention = getDepositAttention(
    getDepositSet(payment),
    isOpen(payment),
    payment.acknowledged,
  );
  const current = payment.attention;
  const isOfDeposit = current === 'wrong_asset' && !payment.deposits.every(isRequestedAsset);
  const isOtherReason = current !== null && NON_DEPOSIT_REASONS.includes(current) && !isOfDeposit;
  if (attention === null && isOtherReason) return record.show(payment);
  await record.setAttention(payment, attention);
}

/** @throws StaleState after a sync of state and deposits from the database */
export async function orReload<T>(payment: CryptoPayment, write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    if (!(error instanceof StaleState)) throw error;
    const { id: resource_id, facts } = payment;
    const snapshot = await writeScheduled((activities) =>
      activities.loadCryptoPayment({ resource_id, request_id: facts.request_id }),
    );
    const { status, version, transition, attention } = snapshot;
    const { deposits, movements, accepted, reported } = snapshot;
    const state = { status, version, transition, attention };
    Object.assign(payment, { ...state, deposits, movements, accepted, reported });
    record.show(payment);
    await updateAttention(payment);
    screenDeposits(payment);
    throw error;
  }
}
