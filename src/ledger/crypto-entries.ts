import { assertNever } from '../domain/assert';
import type { Units } from '../domain/banks/movement';
import { ASSETS, bookCurrency, isNative, parseUnits } from '../domain/crypto/assets';
import type { DepositEntry } from '../domain/crypto/deposit-money';
import type { EntryLine, NewEntry } from './entries';
import { ENTRY_LINES } from './entry-lines';
import { buildEntry, type Owned } from './resource-entries';

type CryptoSettlementFacts = Owned & { amount: string; fee: string };
type NetworkFeeFacts = Owned & { network: string; network_fee?: string };

export function settlementDraw(of: Pick<CryptoSettlementFacts, 'amount' | 'fee'>): bigint {
  return parseUnits(of.amount) + parseUnits(of.fee);
}

/** Money of a deposit, as its row of the register has it. */
interface DepositMoney {
  /** Smallest units. */
  amount: Units;
  /** Book of the asset that came. */
  currency: string;
  /** It was held at first. */
  isFromSuspense: boolean;
  /** The chain has removed it after it was credited. */
  isReorged: boolean;
}

/** @param step key of the deposit */
export function buildDepositEntry(
  kind: DepositEntry,
  step: string,
  payment: Omit<Owned, 'currency'>,
  money: DepositMoney,
  { at, offsets }: { at: string; offsets?: string | undefined },
): NewEntry {
  const lines = buildDepositLines(kind, payment.connector, money);
  const owner = { ...payment, currency: money.currency };
  const entry = buildEntry(`crypto_payment_${kind}`, owner, lines, { at });
  return { ...entry, step, offsets };
}

export function buildDepositLines(
  kind: DepositEntry,
  connector: string,
  { amount, isFromSuspense, isReorged }: Omit<DepositMoney, 'currency'>,
): EntryLine[] {
  const units = BigInt(amount);
  switch (kind) {
    case 'credited':
      return ENTRY_LINES.crypto_payment_credited(connector, units, isFromSuspense);
    case 'withdrawn':
      return ENTRY_LINES.crypto_payment_withdrawn(units);
    case 'written_off':
      return ENTRY_LINES.crypto_payment_written_off(connector, units, isReorged);
    case 'held':
    case 'returned':
    case 'sent_back':
      return ENTRY_LINES[`crypto_payment_${kind}`](connector, units);
    default:
      return assertNever(kind);
  }
}

/** @returns undefined where the network took nothing, or an asset that has no book */
export function buildNetworkFee(settlement: NetworkFeeFacts, at: string): NewEntry | undefined {
  const { network, network_fee = '0', connector } = settlement;
  const pair = ASSETS.find((each) => each.network === network && isNative(each));
  const fee = parseUnits(network_fee);
  if (fee === 0n || pair === undefined) return undefined;
  const owner = { ...settlement, currency: bookCurrency(pair) };
  const lines = ENTRY_LINES.crypto_settlement_fee(connector, fee);
  return buildEntry('crypto_settlement_fee', owner, lines, { at });
}

/** @param held part of what was sent that is in suspense, in the smallest units */
export function buildSettlementEntry(
  kind: 'crypto_settlement_reserved' | 'crypto_settlement_captured' | 'crypto_settlement_released',
  settlement: CryptoSettlementFacts,
  at: string,
  held = 0n,
): NewEntry {
  const draw = settlementDraw(settlement);
  const lines =
    kind === 'crypto_settlement_captured'
      ? ENTRY_LINES[kind](settlement.connector, draw, held)
      : ENTRY_LINES[kind](draw);
  const entry = buildEntry(kind, settlement, lines, { at });
  return kind === 'crypto_settlement_reserved'
    ? { ...entry, fee: parseUnits(settlement.fee) }
    : entry;
}
