import type { ClientSession } from 'mongodb';
import { MAIN_BALANCE } from '../src/domain/balance-account';
import { unitsOf } from '../src/domain/crypto';
import { SETTLEMENT_DUE_SECONDS } from '../src/domain/crypto-settlement';
import type { CryptoSettlementInput } from '../src/domain/crypto-workflow';
import { InsufficientBalance, type NewPosting } from '../src/ledger/postings';
import { settlementPosting } from '../src/ledger/steps';
import { abandon } from '../src/mongo';
import type { Stores } from '../src/store';
import type { CryptoSettlementDocument } from '../src/store/crypto-settlements';
import { positionAt, tieBase } from './events';
import type { RecordDeps } from './record-table';

export type OpenCryptoSettlement = CryptoSettlementInput & {
  /** ISO 8601, ms. */
  created_at: string;
  /** Wallet that it once went to, when its record is rebuilt: another may count by now. */
  wallet_address?: string;
};

/** Null when another attempt has emptied the claim. @throws InsufficientBalance */
export async function reserve(
  { stores }: Pick<RecordDeps, 'stores'>,
  input: OpenCryptoSettlement,
  wallet_address: string,
  session: ClientSession,
): Promise<CryptoSettlementDocument | null> {
  const { idempotency, crypto_settlements, ledger } = stores;
  if (input.scheduled !== true) {
    const claim = await idempotency.emptyClaim(input.crypto_settlement_id, session);
    if (claim === null || !('settlement' in claim)) return await abandon(session);
  }
  const amount = input.amount ?? (await wholeBalance(stores, input, session));
  const settlement = newSettlement(input, amount, wallet_address);
  await crypto_settlements.insert(settlement, session);
  const kind = 'crypto_settlement_reserved';
  await ledger.post(settlementPosting(kind, settlement, input.created_at), session);
  return settlement;
}

/** Smallest units of all that is available. @throws InsufficientBalance when that is nothing */
async function wholeBalance(
  { ledger }: Stores,
  input: OpenCryptoSettlement,
  session: ClientSession,
): Promise<string> {
  const { account_id, livemode, currency, created_at: at } = input;
  const kind = 'crypto_settlement_reserved';
  const about = { kind, resource_id: '', account_id, livemode, currency, at, legs: [] } as const;
  const nothing: NewPosting = about;
  const available = (await ledger.balance(nothing, MAIN_BALANCE, session))?.available ?? 0;
  if (available <= 0) throw new InsufficientBalance('The balance holds nothing.');
  return String(available);
}

/** The document as it is first written. @see docs/api.md#settlements */
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
    amount: String(unitsOf(amount)),
    fee: '0',
    wallet_address,
    version: 1,
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
