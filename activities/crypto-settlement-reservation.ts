import type { ClientSession } from 'mongodb';
import { abandon } from '../src/base/mongo';
import { MAIN_BALANCE } from '../src/domain/account/balance-account';
import { parseUnits } from '../src/domain/crypto/assets';
import { leastSettlement, SETTLEMENT_DUE_SECONDS } from '../src/domain/crypto/settlement';
import type { CryptoSettlementInput } from '../src/domain/crypto/workflow';
import { buildSettlementEntry } from '../src/ledger/crypto-entries';
import type { NewEntry } from '../src/ledger/entries';
import { InsufficientBalance } from '../src/ledger/insufficient-balance';
import type { Stores } from '../src/store';
import type { CryptoSettlementDocument } from '../src/store/crypto-settlements';
import { positionAt, tieBase } from './shared/events';
import type { RecordDeps } from './shared/record-table';

export type OpenCryptoSettlement = CryptoSettlementInput & {
  created_at: string;
  /** Wallet of the first opening, for a rebuild. */
  wallet_address?: string;
};

/** @returns null when another attempt has cleared the request @throws InsufficientBalance */
export async function reserve(
  { stores }: Pick<RecordDeps, 'stores'>,
  input: OpenCryptoSettlement,
  wallet_address: string,
  session: ClientSession,
): Promise<CryptoSettlementDocument | null> {
  const { idempotency, crypto_settlements, ledger } = stores;
  if (input.scheduled !== true) {
    const request = await idempotency.clearRequest(input.crypto_settlement_id, session);
    if (request === null || !('settlement' in request)) return await abandon(session);
  }
  const amount = await checkAmount(stores, input, session);
  const settlement = newSettlement(input, amount, wallet_address);
  const kind = 'crypto_settlement_reserved';
  await ledger.post(buildSettlementEntry(kind, settlement, input.created_at), session);
  await crypto_settlements.insert(settlement, session);
  return settlement;
}

/**
 * Leaves in the balance what the chain has removed.
 * @returns smallest units
 * @throws InsufficientBalance
 */
async function checkAmount(
  { ledger, crypto_payments }: Stores,
  input: OpenCryptoSettlement,
  session: ClientSession,
): Promise<string> {
  const { account_id, livemode, currency, created_at: at } = input;
  const withheld = await crypto_payments.sumReorged(input, session);
  if (input.amount !== null && withheld === 0n) return input.amount;
  const kind = 'crypto_settlement_reserved';
  const about = { kind, resource_id: '', account_id, livemode, currency, at, lines: [] } as const;
  const emptyEntry: NewEntry = about;
  const balance = await ledger.balance(emptyEntry, MAIN_BALANCE, session);
  const available = BigInt(balance?.available ?? 0) - withheld;
  const needed = input.amount === null ? leastSettlement(input, null) : parseUnits(input.amount);
  if (available < needed) throw new InsufficientBalance('The balance does not hold it.');
  return input.amount ?? String(available);
}

/** @see docs/api.md#settlements */
function newSettlement(
  input: OpenCryptoSettlement,
  amount: string,
  wallet_address: string,
): CryptoSettlementDocument {
  const { crypto_settlement_id, scheduled, created_at, ...facts } = input;
  const due = Date.parse(created_at) + SETTLEMENT_DUE_SECONDS * 1_000;
  return {
    _id: crypto_settlement_id,
    ...facts,
    amount: String(parseUnits(amount)),
    fee: '0',
    wallet_address,
    version: 1,
    transition: 1,
    position: positionAt(created_at, 0, tieBase(1)),
    status: 'pending',
    transaction_id: null,
    failure: null,
    created_at,
    updated_at: created_at,
    completed_at: null,
    bank_reference: null,
    due_at: new Date(due).toISOString(),
    attention: null,
    audit: [],
  };
}
