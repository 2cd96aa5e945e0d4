import type { ClientSession } from 'mongodb';
import { MAIN_BALANCE } from '../src/domain/balance-account';
import { formatUnits, unitsOf } from '../src/domain/crypto';
import {
  CRYPTO_SETTLEMENT_EVENTS,
  CRYPTO_SETTLEMENT_MOVES,
  type CryptoSettlementAttention,
  type CryptoSettlementStatus,
  SETTLEMENT_DUE_SECONDS,
} from '../src/domain/crypto-settlement';
import type { CryptoSettlementInput } from '../src/domain/crypto-workflow';
import type { Failure, RuleViolation } from '../src/domain/lifecycle';
import { bookId, InsufficientBalance, type NewPosting } from '../src/ledger/postings';
import { settlementPosting } from '../src/ledger/steps';
import { abandon } from '../src/mongo';
import type { Stores } from '../src/store';
import type { CryptoSettlementDocument } from '../src/store/crypto-settlements';
import { addressAt } from '../src/store/wallets';
import { debitTurn, inDebitTurn } from './debit';
import { cryptoSubscriptionOf, positionAt, tieBase } from './events';
import { createRecord, openedOnce, type RecordDeps, type RecordTable, standingOf } from './record';
import type { RecordMove, Standing } from './record-inputs';

export type OpenCryptoSettlement = CryptoSettlementInput & {
  /** ISO 8601, ms. */
  created_at: string;
  /** Wallet that it once went to, when its record is rebuilt: another may count by now. */
  wallet_address?: string;
};

/** Facts for the workflow to go on with; amount and wallet are known now. */
export type CryptoSettlementFacts = ReturnType<typeof factsOf>;

export type CryptoSettlementOpening =
  | ({
      outcome: 'accepted';
      facts: CryptoSettlementFacts;
      /** Written by this very call, so that the record can't have moved on yet. */
      isFresh?: true;
    } & Standing<CryptoSettlementStatus>)
  /** Nothing is stored and nothing moved. */
  | ({ outcome: 'refused' } & RuleViolation);

/** Fields that a move of a settlement changes beside its status. */
export interface CryptoSettlementChange {
  failure: Failure;
  transaction_id: string;
  bank_reference: string;
}

type Move = RecordMove<CryptoSettlementStatus, CryptoSettlementAttention, CryptoSettlementChange>;

/** The writes of a settlement's lifecycle. One activity is one idempotent step. */
export function createCryptoSettlementActivities(deps: RecordDeps) {
  const record = createRecord(deps, recordTable(deps.stores));
  return {
    /** Reserves the amount and writes the settlement, or says why not. */
    openCryptoSettlement: (input: OpenCryptoSettlement): Promise<CryptoSettlementOpening> =>
      openedOnce(() => openCryptoSettlement(deps, input)),
    /** Frees the key of a crypto resource that was refused; one that is written keeps it. */
    releaseCryptoClaim: async ({ resource_id }: { resource_id: string }): Promise<void> => {
      await deps.stores.idempotency.release(resource_id);
    },
    recordCryptoSettlementMove: record.move,
    recordCryptoSettlementAttention: record.setAttention,
    readCryptoSettlementStanding: record.standing,
    loadCryptoSettlement: record.load,
  };
}

/** A settlement's record: what was reserved has left, or is given back. */
function recordTable(
  stores: Stores,
): RecordTable<
  CryptoSettlementStatus,
  CryptoSettlementAttention,
  CryptoSettlementChange,
  CryptoSettlementDocument,
  ReturnType<typeof loaded>
> {
  return {
    resource: 'crypto_settlement',
    store: stores.crypto_settlements,
    moves: CRYPTO_SETTLEMENT_MOVES,
    events: CRYPTO_SETTLEMENT_EVENTS,
    eventData: ({ _id }) => ({ crypto_settlement_id: _id }),
    changeOf,
    posted: ['completed', 'failed'],
    post: async (settlement, { to, at }, session) => {
      const { ledger } = stores;
      if (to.includes('completed')) {
        await ledger.post(settlementPosting('crypto_settlement_captured', settlement, at), session);
      }
      if (to.includes('failed')) {
        await ledger.post(settlementPosting('crypto_settlement_released', settlement, at), session);
      }
    },
    subscriptionOf: cryptoSubscriptionOf,
    loaded,
  };
}

const NO_WALLET = {
  outcome: 'refused',
  code: 'wallet_not_registered',
  message: 'No wallet on this network counts yet.',
} as const;

const TOO_LITTLE = {
  outcome: 'refused',
  code: 'insufficient_balance',
  message: 'The balance does not hold this amount.',
} as const;

async function openCryptoSettlement(
  deps: RecordDeps,
  input: OpenCryptoSettlement,
): Promise<CryptoSettlementOpening> {
  const { stores } = deps;
  const { crypto_settlement_id, request_id, account_id, livemode, network, created_at } = input;
  const existing = await stores.crypto_settlements.get(crypto_settlement_id);
  if (existing !== null) return accepted(existing, request_id);
  const wallet =
    input.wallet_address ??
    addressAt(await stores.wallets.get(account_id, livemode, network), created_at);
  if (wallet === null) return NO_WALLET;
  try {
    const work = (session: ClientSession) => reserve(deps, input, wallet, session);
    const opened = await inDebitTurn(deps, debitTurn(bookId(input), created_at), work);
    if (opened !== null) {
      deps.log.info({ crypto_settlement_id, request_id }, 'crypto settlement opened');
      return { ...accepted(opened, request_id), isFresh: true };
    }
  } catch (error) {
    if (!(error instanceof InsufficientBalance)) throw error;
    // Another attempt of this very opening may have taken it: a scheduled one empties no claim.
    const taken = await stores.crypto_settlements.get(crypto_settlement_id);
    return taken === null ? await lackOfMoney(deps, input) : accepted(taken, request_id);
  }
  const written = await stores.crypto_settlements.get(crypto_settlement_id);
  if (written !== null) return accepted(written, request_id);
  const claim = await stores.idempotency.forResource(crypto_settlement_id);
  if (claim?.request === null) throw new Error('The settlement is not to be seen yet.');
  const message = 'Its request is not there any more.';
  return { outcome: 'refused', code: 'temporarily_unavailable', message };
}

/** As it was first answered, whatever has happened since. */
function accepted(settlement: CryptoSettlementDocument, request_id: string) {
  const facts = factsOf(settlement, request_id);
  return { outcome: 'accepted', facts, status: 'pending', version: 1 } as const;
}

/** Null when another attempt has emptied the claim. @throws InsufficientBalance */
async function reserve(
  { stores }: RecordDeps,
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

async function lackOfMoney(
  { stores }: RecordDeps,
  { account_id, livemode, currency, asset, network }: OpenCryptoSettlement,
): Promise<CryptoSettlementOpening> {
  const rows = await stores.ledger.balances(account_id, livemode);
  const held = rows.find((row) => row.currency === currency)?.available ?? 0;
  const message = `The balance holds ${formatUnits(BigInt(held), { asset, network })}.`;
  return { ...TOO_LITTLE, message };
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

function changeOf(move: Move): Partial<CryptoSettlementDocument> {
  const { at, to, change } = move;
  return {
    ...standingOf(move),
    ...(to.includes('completed') ? { completed_at: at } : {}),
    ...change,
  };
}

/** State and facts of a settlement whose workflow starts again. */
function loaded(settlement: CryptoSettlementDocument, request_id: string) {
  const { status, version, attention } = settlement;
  return { facts: factsOf(settlement, request_id), status, version, attention };
}

/** The facts that a workflow needs, from its opening or when it starts again. */
function factsOf(settlement: CryptoSettlementDocument, request_id: string) {
  const { _id, account_id, livemode, connector, asset, network, amount, due_at } = settlement;
  return {
    crypto_settlement_id: _id,
    ...{ account_id, livemode, connector, asset, network, amount },
    wallet_address: settlement.wallet_address,
    due_at_ms: Date.parse(due_at),
    request_id,
  };
}
