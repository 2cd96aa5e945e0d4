import type { ClientSession } from 'mongodb';
import { senderCheck } from '../src/domain/callback-mac';
import { formatUnits } from '../src/domain/crypto';
import {
  CRYPTO_SETTLEMENT_EVENTS,
  CRYPTO_SETTLEMENT_MOVES,
  type CryptoSettlementAttention,
  type CryptoSettlementStatus,
} from '../src/domain/crypto-settlement';
import type { Failure, RuleViolation } from '../src/domain/lifecycle';
import { bookId, InsufficientBalance } from '../src/ledger/postings';
import { settlementPosting } from '../src/ledger/steps';
import type { Stores } from '../src/store';
import type { CryptoSettlementDocument } from '../src/store/crypto-settlements';
import { addressAt } from '../src/store/wallets';
import { type OpenCryptoSettlement, reserve } from './crypto-settlement-reservation';
import { debitTurn, inDebitTurn } from './debit';
import { cryptoSubscriptionOf } from './events';
import { createRecord, openedOnce } from './record';
import type { OpenedStanding, RecordMove } from './record-inputs';
import { type RecordDeps, type RecordTable, standingOf } from './record-table';

/** Facts for the workflow to go on with; amount and wallet are known now. */
export type CryptoSettlementFacts = ReturnType<typeof factsOf>;

export type CryptoSettlementOpening =
  | ({
      outcome: 'accepted';
      facts: CryptoSettlementFacts;
      /** Written by this very call, so that the record can't have moved on yet. */
      isFresh?: true;
    } & OpenedStanding<CryptoSettlementStatus>)
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
  const senders = senderCheck(settlement.livemode);
  return { outcome: 'accepted', facts, status: 'pending', version: 1, senders } as const;
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
