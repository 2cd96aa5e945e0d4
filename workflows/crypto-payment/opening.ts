import { ActivityFailure } from '@temporalio/workflow';
import { formatUnits } from '../../src/domain/crypto';
import type { CryptoPaymentInput, CryptoPaymentResume } from '../../src/domain/crypto-workflow';
import type { RuleViolation } from '../../src/domain/lifecycle';
import type { Opening } from '../shared/mailbox';
import { writeLocally, writeScheduled } from '../shared/persist';
import { showRefusal, upsertLabels } from '../shared/view';
import { askTerms, screenDeposits, type Terms } from './bank';
import {
  type CryptoPayment,
  type CryptoPaymentMailbox,
  isWaiting,
  newCryptoPayment,
  record,
} from './life';

/** Opens a payment with the connector's rate and address, or says why not; then the key is free. */
export async function open(
  mail: CryptoPaymentMailbox,
  input: CryptoPaymentInput,
): Promise<Opening<CryptoPayment>> {
  const terms = await termsOrRefusal(input);
  if ('code' in terms) {
    const { crypto_payment_id: resource_id } = input;
    await writeScheduled((activities) => activities.releaseCryptoClaim({ resource_id }));
    showRefusal({ status: 'awaiting_deposit', attention: null }, terms);
    return { outcome: 'refused', ...terms };
  }
  const { expires_in_seconds, ...facts } = input;
  const { chain_id = null, token_contract = null, ...given } = terms;
  const created_at = new Date().toISOString();
  const opened = await writeLocally((activities) =>
    activities.openCryptoPayment({ ...facts, ...given, chain_id, token_contract, created_at }),
  );
  const loaded = { ...opened, attention: null };
  const payment = newCryptoPayment(mail, input.crypto_payment_id, loaded, false);
  const assetAmount = formatUnits(terms.amount_due, input);
  upsertLabels(payment, { ...payment.labels, assetAmount });
  record.show(payment);
  return { outcome: 'accepted', resource: payment };
}

/** Takes up a payment that is stored. */
export async function load(
  mail: CryptoPaymentMailbox,
  start: CryptoPaymentResume,
): Promise<Opening<CryptoPayment>> {
  const { crypto_payment_id: resource_id, request_id } = start;
  const loaded = await writeScheduled((activities) =>
    activities.loadCryptoPayment({ resource_id, request_id }),
  );
  const payment = newCryptoPayment(mail, resource_id, loaded, true);
  payment.overdueTold = payment.attention === 'deposit_unconfirmed';
  const ended = !isWaiting(payment);
  record.tell(payment, ended ? 'Started again after the end.' : 'Started again in flight.');
  screenDeposits(payment);
  return { outcome: 'accepted', resource: payment };
}

async function termsOrRefusal(input: CryptoPaymentInput): Promise<Terms | RuleViolation> {
  try {
    const terms = await askTerms(input);
    return typeof terms === 'string' ? { code: 'asset_not_available', message: terms } : terms;
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    const message = 'The connector gave no rate and address in time.';
    return { code: 'temporarily_unavailable', message };
  }
}
