import {
  assetRules,
  formatDecimalUnits,
  parseUnits,
  sufficientAmount,
} from '../domain/crypto/assets';
import type { Deposit } from '../domain/crypto/deposit';
import type { CryptoPaymentStatus } from '../domain/crypto/payment';

export type ShownDeposit = Omit<Deposit, 'key' | 'seen_at' | 'screening'>;

export interface CryptoPagePayment extends ShownCryptoPayment {
  account_id: string;
  play_url: string | null;
}

/** Amounts in smallest units. */
export interface ShownCryptoPayment {
  status: CryptoPaymentStatus;
  /** Minor units of `currency`. */
  amount: number;
  currency: string;
  asset: string;
  network: string;
  amount_due: string;
  tolerance_percent?: number;
  amount_received: string;
  address: string;
  /** BIP-21 or EIP-681, with the amount due. */
  payment_uri: string;
  deposits: readonly ShownDeposit[];
  reference: string | null;
  livemode: boolean;
  expires_at: string;
}

/**
 * Stages of a payment, as its payer sees them.
 * - `top_up`: a part has come, in time; `short`: too late
 * - `confirming`: enough has come, unconfirmed; `received`: confirmed
 * - `expired`: nothing came in time
 */
type StageName = 'pay' | 'top_up' | 'confirming' | 'received' | 'short' | 'held' | 'expired';

export interface Stage {
  name: StageName;
  /** Includes unconfirmed deposits. */
  seen: bigint;
  missing: bigint;
  surplus: bigint;
  secondsLeft: number;
}

export function getStage(payment: ShownCryptoPayment, now: Date): Stage {
  const pending = payment.deposits
    .filter(({ status, late }) => status === 'pending' && !late)
    .reduce((sum, { amount }) => sum + parseUnits(amount), 0n);
  const seen = parseUnits(payment.amount_received) + pending;
  const due = parseUnits(payment.amount_due);
  const rest = due - seen;
  const secondsLeft = Math.max(0, (Date.parse(payment.expires_at) - now.getTime()) / 1_000);
  const amounts = { seen, missing: rest > 0n ? rest : 0n, surplus: rest < 0n ? -rest : 0n };
  const stage = (name: StageName): Stage => ({ name, ...amounts, secondsLeft });
  const { status } = payment;
  if (status === 'received' || status === 'held' || status === 'expired') return stage(status);
  if (seen >= sufficientAmount(payment)) return stage('confirming');
  if (secondsLeft > 0) return stage(seen > 0n ? 'top_up' : 'pay');
  return stage(seen > 0n ? 'short' : 'expired');
}

export function buildUri({ payment_uri, asset, network }: ShownCryptoPayment, missing: bigint) {
  const amount = formatDecimalUnits(missing, assetRules(asset, network)?.decimals ?? 0);
  return payment_uri
    .replace(/([?&]amount=)[\d.]+/, `$1${amount}`)
    .replace(/([?&](?:value|uint256)=)\d+/, `$1${missing}`);
}
