import { assertNever } from '../domain/assert';
import { ASSETS, bookCurrency, isNative, parseUnits } from '../domain/crypto/assets';
import { type Deposit, type DepositStep, depositKey } from '../domain/crypto/deposit';
import type { EntryLine, NewEntry } from './entries';
import { ENTRY_LINES } from './entry-lines';
import { buildEntry, type Owned } from './resource-entries';

type CryptoPaymentFacts = Omit<Owned, 'currency'> & { asset: string; network: string };
type CryptoSettlementFacts = Owned & { amount: string; fee: string };
type NetworkFeeFacts = Owned & { network: string; network_fee?: string };

export function settlementDraw(of: Pick<CryptoSettlementFacts, 'amount' | 'fee'>): bigint {
  return parseUnits(of.amount) + parseUnits(of.fee);
}

export function buildDepositEntry(
  step: DepositStep,
  payment: CryptoPaymentFacts,
  deposit: Deposit,
  at: string,
): NewEntry {
  const lines = buildDepositLines(step, payment.connector, deposit);
  const { network, asset } = payment;
  const currency = bookCurrency({ network, asset: deposit.asset ?? asset });
  const entry = buildEntry(`crypto_payment_${step}`, { ...payment, currency }, lines, { at });
  return { ...entry, step: depositKey(deposit) };
}

export function buildDepositLines(
  step: DepositStep,
  connector: string,
  { amount, held, reorged }: Deposit,
): EntryLine[] {
  const units = parseUnits(amount);
  switch (step) {
    case 'credited':
      return ENTRY_LINES.crypto_payment_credited(connector, units, held);
    case 'withdrawn':
      return ENTRY_LINES.crypto_payment_withdrawn(units);
    case 'written_off':
      return ENTRY_LINES.crypto_payment_written_off(connector, units, reorged);
    case 'held':
    case 'returned':
    case 'sent_back':
      return ENTRY_LINES[`crypto_payment_${step}`](connector, units);
    default:
      return assertNever(step);
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
