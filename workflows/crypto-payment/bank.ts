import { ActivityFailure, ApplicationFailure, proxyActivities } from '@temporalio/workflow';
import type { CryptoPaymentOpening } from '../../activities/crypto-payments';
import type {
  AddressAnswer,
  CryptoConnectorActivities,
  RateAnswer,
} from '../../connectors/contract/crypto';
import { formatUnits } from '../../src/domain/crypto/assets';
import { findUnscreened } from '../../src/domain/crypto/deposit';
import type { CryptoPaymentAttention } from '../../src/domain/crypto/payment';
import type { CryptoPaymentInput, CryptoPaymentResume } from '../../src/domain/crypto/workflow';
import type { RuleViolation } from '../../src/domain/errors';
import { now, timestamp, toRealTime } from '../shared/clock';
import { type Opening, receiveMissed } from '../shared/inbox';
import { bankQueue } from '../shared/instruction';
import { writeLocally, writeScheduled } from '../shared/persist';
import { findRefusal } from '../shared/refusal';
import { isReported, showRefusal, upsertLabels } from '../shared/state';
import {
  type CryptoPayment,
  type CryptoPaymentMailbox,
  isWaiting,
  messages,
  newCryptoPayment,
  record,
} from './state';

export async function open(
  mail: CryptoPaymentMailbox,
  input: CryptoPaymentInput,
): Promise<Opening<CryptoPayment>> {
  const terms = await requestTerms(mail, input);
  if ('code' in terms) return await refuseOpening(input, terms, null);
  const { expires_in_seconds, clock, ...facts } = input;
  const { chain_id = null, token_contract = null, ...otherTerms } = terms;
  const created_at = timestamp(mail);
  const fields = { ...facts, ...otherTerms, chain_id, token_contract, created_at };
  let opening: CryptoPaymentOpening;
  try {
    opening = await writeLocally((activities) => activities.openCryptoPayment(fields));
  } catch (error) {
    const message = findRefusal(error, 'address_in_use');
    if (message === undefined) throw error;
    return await refuseOpening(input, decline({ message }), 'address_in_use');
  }
  const snapshot = { ...opening, attention: null };
  const payment = newCryptoPayment(mail, input.crypto_payment_id, snapshot, false);
  const assetAmount = formatUnits(terms.amount_due, input);
  upsertLabels(payment, { ...payment.labels, assetAmount });
  record.show(payment);
  return { outcome: 'accepted', resource: payment };
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

interface Terms
  extends Pick<Extract<RateAnswer, { outcome: 'quoted' }>, 'amount_due' | 'rate'>,
    Omit<Extract<AddressAnswer, { outcome: 'given' }>, 'outcome'> {
  /** The window begins with the rate. */
  expires_at: string;
}

async function requestTerms(
  mail: Pick<CryptoPaymentMailbox, 'clock'>,
  { crypto_payment_id, amount, currency, connector, ...input }: CryptoPaymentInput,
): Promise<Terms | RuleViolation> {
  const { quoteRate, giveAddress } = proxyActivities<CryptoConnectorActivities>({
    taskQueue: bankQueue(connector),
    startToCloseTimeout: '10s',
    scheduleToCloseTimeout: '2 minutes',
    retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '10s' },
    summary: 'Ask for rate and address',
  });
  const { asset, network, livemode, expires_in_seconds } = input;
  const about = { crypto_payment_id, asset, network, livemode };
  try {
    const quote = await quoteRate({ ...about, amount, currency });
    if (quote.outcome === 'declined') return decline(quote);
    const { amount_due, rate } = quote;
    const expires_at = new Date(now(mail) + expires_in_seconds * 1_000).toISOString();
    const issued = await giveAddress({ ...about, amount_due, expires_at });
    if (issued.outcome === 'declined') return decline(issued);
    const { outcome, ...addressFields } = issued;
    return { amount_due, rate, expires_at, ...addressFields };
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    const message = 'The connector gave no rate and address in time.';
    return { code: 'temporarily_unavailable', message };
  }
}

function decline({ message }: { message: string }): RuleViolation {
  return { code: 'asset_not_available', message };
}

export function screenDeposits(payment: CryptoPayment): void {
  const { id: crypto_payment_id, facts, inbox, screenings } = payment;
  const { asset, network, livemode, connector } = facts;
  const { screenSource } = proxyActivities<CryptoConnectorActivities>({
    taskQueue: bankQueue(connector),
    startToCloseTimeout: '30s',
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '2 minutes' },
    summary: 'Screen the source of a deposit',
  });
  for (const { transaction_id } of findUnscreened(payment.deposits)) {
    if (screenings.has(transaction_id)) continue;
    screenings.add(transaction_id);
    const about = { crypto_payment_id, transaction_id, asset, network, livemode };
    void screenSource(about).then(
      (answer) => inbox.push({ kind: 'screened', transaction_id, answer }),
      (error) => {
        if (!(error instanceof ActivityFailure)) throw error;
        // An unscreened deposit must not be credited: an operator decides.
        const reason = 'The connector refused to screen it.';
        const answer = { outcome: 'failed', code: 'not_screened', reason } as const;
        inbox.push({ kind: 'screened', transaction_id, answer });
      },
    );
  }
}

/** Short, since deposits and operators wait for it. */
const CHAIN_MS_MAX = 10_000;

/**
 * True where the connector cannot say.
 * @param until account time in ms since the epoch
 */
export async function isChainRead(
  { facts, clock }: CryptoPayment,
  until: number,
): Promise<boolean> {
  const { network, livemode, connector } = facts;
  const { readChainTime } = proxyActivities<Required<CryptoConnectorActivities>>({
    taskQueue: bankQueue(connector),
    scheduleToCloseTimeout: CHAIN_MS_MAX,
    retry: { maximumAttempts: 1 },
    summary: 'Ask how far the chain is read',
  });
  try {
    const { reported_until } = await readChainTime({ network, livemode });
    return reported_until !== null && Date.parse(reported_until) >= toRealTime(clock, until);
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    // The activity is optional.
    const { cause } = error;
    return cause instanceof ApplicationFailure && cause.type === 'NotFoundError';
  }
}
