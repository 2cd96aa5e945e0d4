import { ActivityFailure } from '@temporalio/workflow';
import type { CryptoPaymentOpening, OpenCryptoPayment } from '../../activities/crypto-payments';
import { formatUnits } from '../../src/domain/crypto/assets';
import type { CryptoPaymentAttention } from '../../src/domain/crypto/payment';
import type { CryptoPaymentInput, CryptoPaymentResume } from '../../src/domain/crypto/workflow';
import type { RuleViolation } from '../../src/domain/errors';
import { timestamp } from '../shared/clock';
import { type Opening, receiveMissed } from '../shared/inbox';
import { writeLocally, writeScheduled } from '../shared/persist';
import { findRefusal } from '../shared/refusal';
import { isReported, showRefusal, upsertLabels } from '../shared/state';
import { requestTerms, screenDeposits, type Terms } from './bank';
import { messages } from './messages';
import {
  type CryptoPayment,
  type CryptoPaymentMailbox,
  isWaiting,
  newCryptoPayment,
  record,
} from './state';

export async function open(
  mail: CryptoPaymentMailbox,
  input: CryptoPaymentInput,
): Promise<Opening<CryptoPayment>> {
  const terms = await termsOrRefusal(mail, input);
  if ('code' in terms) return await refuseOpening(input, terms, null);
  const { expires_in_seconds, clock, ...facts } = input;
  const { chain_id = null, token_contract = null, ...otherTerms } = terms;
  const created_at = timestamp(mail);
  const fields = { ...facts, ...otherTerms, chain_id, token_contract, created_at };
  const opening = await openOrRefusal(fields);
  if ('code' in opening) return await refuseOpening(input, opening, 'address_in_use');
  const snapshot = { ...opening, attention: null };
  const payment = newCryptoPayment(mail, input.crypto_payment_id, snapshot, false);
  const assetAmount = formatUnits(terms.amount_due, input);
  upsertLabels(payment, { ...payment.labels, assetAmount });
  record.show(payment);
  return { outcome: 'accepted', resource: payment };
}

async function openOrRefusal(
  fields: OpenCryptoPayment,
): Promise<CryptoPaymentOpening | RuleViolation> {
  try {
    return await writeLocally((activities) => activities.openCryptoPayment(fields));
  } catch (error) {
    const message = findRefusal(error, 'address_in_use');
    if (message === undefined) throw error;
    return { code: 'asset_not_available', message };
  }
}

async function refuseOpening(
  { crypto_payment_id: resource_id }: CryptoPaymentInput,
  violation: RuleViolation,
  attention: CryptoPaymentAttention | null,
): Promise<Opening<CryptoPayment>> {
  await writeScheduled((activities) => activities.releaseCryptoClaim({ resource_id }));
  showRefusal({ status: 'awaiting_deposit', attention: null }, violation, attention);
  return { outcome: 'refused', ...violation };
}

export async function load(
  mail: CryptoPaymentMailbox,
  start: CryptoPaymentResume,
): Promise<Opening<CryptoPayment>> {
  const { crypto_payment_id: resource_id, request_id } = start;
  const snapshot = await writeScheduled((activities) =>
    activities.loadCryptoPayment({ resource_id, request_id }),
  );
  const payment = newCryptoPayment(mail, resource_id, snapshot, true);
  payment.isOverdueReported = isReported(payment, 'deposit_unconfirmed');
  receiveMissed(mail, messages, snapshot.missed);
  const ended = !isWaiting(payment);
  record.logActivity(payment, ended ? 'Started again after the end.' : 'Started again in flight.');
  screenDeposits(payment);
  return { outcome: 'accepted', resource: payment };
}

async function termsOrRefusal(
  mail: CryptoPaymentMailbox,
  input: CryptoPaymentInput,
): Promise<Terms | RuleViolation> {
  try {
    const terms = await requestTerms(mail, input);
    return typeof terms === 'string' ? { code: 'asset_not_available', message: terms } : terms;
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    const message = 'The connector gave no rate and address in time.';
    return { code: 'temporarily_unavailable', message };
  }
}
