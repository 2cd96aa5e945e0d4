import { assertNever } from '../../src/domain/assert';
import { formatUnits } from '../../src/domain/crypto/assets';
import type { CryptoCallback, CryptoPaymentCallbackName } from '../../src/domain/crypto/callback';
import { isAnyPending } from '../../src/domain/crypto/deposit';
import { applyDeposit, applyReorg, applyWrongAsset } from '../../src/domain/crypto/deposit-report';
import type { DepositChange } from '../../src/domain/crypto/deposit-set';
import { omitUndefined } from '../../src/domain/defined';
import { timestamp } from '../shared/clock';
import { note } from '../shared/state';
import { applyChange, getDepositSet } from './deposits';
import { type CryptoPayment, record } from './state';

export async function applyCallback(
  payment: CryptoPayment,
  name: CryptoPaymentCallbackName,
  callback: CryptoCallback,
): Promise<void> {
  const { callback_id } = callback;
  const change = buildChange(payment, name, callback);
  if (change === undefined) {
    note(payment, `callback ${name} (${callback_id}) lacks fields that it must have`);
    await record.recordUnapplied(payment, name, callback, 'it lacks fields');
    return await record.flagMalformed(payment);
  }
  note(payment, `callback ${name} (${callback_id}): ${describe(payment, callback)}`);
  const closes = name === 'expired' && change.kind === 'changed';
  const closed_early_at = closes ? payment.facts.expires_at : undefined;
  await applyChange(payment, change, { name, callback, ...omitUndefined({ closed_early_at }) });
}

function describe({ facts }: CryptoPayment, callback: CryptoCallback): string {
  const { transaction_id = '', amount, confirmations = 0 } = callback;
  if (amount === undefined) return transaction_id;
  const depth = `${confirmations} of ${facts.required_confirmations} confirmations`;
  const { network, asset } = facts;
  const pair = { network, asset: callback.asset ?? asset };
  return `${formatUnits(amount, pair)} by ${transaction_id}, ${depth}`;
}

function buildChange(
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
      const { required_confirmations } = payment.facts;
      const { asset } = more;
      const report = { transaction_id, amount, asset, seen_at, ...mined };
      return applyWrongAsset(
        book,
        { ...report, confirmations: required_confirmations },
        payment.facts,
      );
    }
    case 'expired':
      return closeEarly(payment);
    default:
      return assertNever(name);
  }
}

function closeEarly(payment: CryptoPayment): DepositChange {
  const isEmpty = payment.status === 'awaiting_deposit' && !isAnyPending(payment.deposits);
  if (!isEmpty) return { kind: 'unapplied', reason: 'a deposit is there, or it has ended' };
  payment.facts.expires_at = timestamp(payment);
  payment.closesAt = Date.parse(payment.facts.expires_at);
  return { kind: 'changed', deposits: [...payment.deposits], steps: [] };
}
