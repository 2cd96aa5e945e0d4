import { ActivityFailure, ApplicationFailure, proxyActivities } from '@temporalio/workflow';
import type {
  AddressAnswer,
  CryptoConnectorActivities,
  RateAnswer,
} from '../../connectors/contract/crypto';
import { findUnscreened } from '../../src/domain/crypto/deposit';
import type { CryptoPaymentInput } from '../../src/domain/crypto/workflow';
import { now, toRealTime } from '../shared/clock';
import { bankQueue } from '../shared/instruction';
import type { CryptoPayment, CryptoPaymentMailbox } from './state';

type IssuedAddress = Extract<AddressAnswer, { outcome: 'given' }>;
type Quote = Extract<RateAnswer, { outcome: 'quoted' }>;

export interface Terms extends Pick<Quote, 'amount_due' | 'rate'>, Omit<IssuedAddress, 'outcome'> {
  /** The window begins with the rate. */
  expires_at: string;
}

export async function requestTerms(
  mail: Pick<CryptoPaymentMailbox, 'clock'>,
  input: CryptoPaymentInput,
): Promise<Terms | string> {
  const { quoteRate, giveAddress } = openingActivities(input.connector);
  const { crypto_payment_id, amount, currency, asset, network, livemode } = input;
  const about = { crypto_payment_id, asset, network, livemode };
  const quote = await quoteRate({ ...about, amount, currency });
  if (quote.outcome === 'declined') return quote.message;
  const { amount_due, rate } = quote;
  const expires_at = new Date(now(mail) + input.expires_in_seconds * 1_000).toISOString();
  const addressAnswer = await giveAddress({ ...about, amount_due, expires_at });
  if (addressAnswer.outcome === 'declined') return addressAnswer.message;
  const { outcome, ...addressFields } = addressAnswer;
  return { amount_due, rate, expires_at, ...addressFields };
}

function openingActivities(connector: string) {
  return proxyActivities<CryptoConnectorActivities>({
    taskQueue: bankQueue(connector),
    startToCloseTimeout: '10s',
    scheduleToCloseTimeout: '2 minutes',
    retry: { initialInterval: '500ms', backoffCoefficient: 2, maximumInterval: '10s' },
    summary: 'Ask for rate and address',
  });
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
