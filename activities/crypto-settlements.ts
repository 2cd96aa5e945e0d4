import type { ClientSession } from 'mongodb';
import { insufficientBalance } from '../src/domain/account/balance';
import { MAIN_BALANCE } from '../src/domain/account/balance-account';
import { getVerificationMode } from '../src/domain/callback/signature';
import { parseUnits } from '../src/domain/crypto/assets';
import {
  CRYPTO_SETTLEMENT_EVENTS,
  CRYPTO_SETTLEMENT_TRANSITIONS,
  type CryptoSettlementAttention,
  type CryptoSettlementStatus,
  SMALLEST_SETTLEMENT,
} from '../src/domain/crypto/settlement';
import type { Failure, RuleViolation } from '../src/domain/lifecycle';
import { bookId, InsufficientBalance } from '../src/ledger/entries';
import { buildSettlementEntry } from '../src/ledger/resource-entries';
import type { Stores } from '../src/store';
import type { CryptoSettlementDocument } from '../src/store/crypto-settlements';
import { addressAt } from '../src/store/wallets';
import { type OpenCryptoSettlement, reserve } from './crypto-settlement-reservation';
import { buildLockRequest, withDebitLock } from './shared/debit';
import { readCryptoSubscription } from './shared/events';
import { createRecord, openWithRetry } from './shared/record';
import type { OpenedState, TransitionInput } from './shared/record-inputs';
import { buildCommonChange, type RecordDeps, type RecordTable } from './shared/record-table';

export type CryptoSettlementFacts = ReturnType<typeof readFacts>;

export type CryptoSettlementOpening =
  | ({
      outcome: 'accepted';
      facts: CryptoSettlementFacts;
    } & OpenedState<CryptoSettlementStatus>)
  | ({ outcome: 'refused' } & RuleViolation);

export interface CryptoSettlementChange {
  failure: Failure;
  transaction_id: string;
  bank_reference: string;
}

type SettlementTransition = TransitionInput<
  CryptoSettlementStatus,
  CryptoSettlementAttention,
  CryptoSettlementChange
>;

export function createCryptoSettlementActivities(deps: RecordDeps) {
  const record = createRecord(deps, recordTable(deps.stores));
  return {
    openCryptoSettlement: (input: OpenCryptoSettlement): Promise<CryptoSettlementOpening> =>
      openWithRetry(() => openCryptoSettlement(deps, input)),
    /**
     * Releases the idempotency key of a refused crypto resource; a stored resource keeps its key.
     */
    releaseCryptoClaim: async ({ resource_id }: { resource_id: string }): Promise<void> => {
      await deps.stores.idempotency.release(resource_id);
    },
    recordCryptoSettlementMove: record.transition,
    recordCryptoSettlementAttention: record.setAttention,
    loadCryptoSettlement: record.load,
  };
}

function recordTable(
  stores: Stores,
): RecordTable<
  CryptoSettlementStatus,
  CryptoSettlementAttention,
  CryptoSettlementChange,
  CryptoSettlementDocument,
  ReturnType<typeof buildSnapshot>
> {
  return {
    resource: 'crypto_settlement',
    store: stores.crypto_settlements,
    transitions: CRYPTO_SETTLEMENT_TRANSITIONS,
    events: CRYPTO_SETTLEMENT_EVENTS,
    eventData: ({ _id }) => ({ crypto_settlement_id: _id }),
    buildChange,
    posted: ['completed', 'failed'],
    post: async (settlement, { to, at }, session) => {
      const { ledger } = stores;
      if (to.includes('completed')) {
        await ledger.post(
          buildSettlementEntry('crypto_settlement_captured', settlement, at),
          session,
        );
      }
      if (to.includes('failed')) {
        await ledger.post(
          buildSettlementEntry('crypto_settlement_released', settlement, at),
          session,
        );
      }
    },
    readSubscription: readCryptoSubscription,
    buildSnapshot,
  };
}

const NO_WALLET = {
  outcome: 'refused',
  code: 'wallet_not_registered',
  message: 'No wallet on this network counts yet.',
} as const;

async function openCryptoSettlement(
  deps: RecordDeps,
  input: OpenCryptoSettlement,
): Promise<CryptoSettlementOpening> {
  const { stores } = deps;
  const { crypto_settlement_id, request_id, account_id, livemode, network, created_at } = input;
  const existing = await stores.crypto_settlements.get(crypto_settlement_id);
  if (existing !== null) return buildAcceptance(existing, request_id);
  const wallet =
    input.wallet_address ??
    addressAt(await stores.wallets.get(account_id, livemode, network), created_at);
  if (wallet === null) return NO_WALLET;
  try {
    const work = (session: ClientSession) => reserve(deps, input, wallet, session);
    const settlement = await withDebitLock(deps, buildLockRequest(bookId(input), created_at), work);
    if (settlement !== null) {
      deps.log.info({ crypto_settlement_id, request_id }, 'crypto settlement opened');
      return buildAcceptance(settlement, request_id);
    }
  } catch (error) {
    if (!(error instanceof InsufficientBalance)) throw error;
    // A scheduled opening has no idempotency record: an earlier attempt may have reserved the
    // amount.
    const concurrent = await stores.crypto_settlements.get(crypto_settlement_id);
    return concurrent === null
      ? await refuseDebit(deps, input)
      : buildAcceptance(concurrent, request_id);
  }
  const storedSettlement = await stores.crypto_settlements.get(crypto_settlement_id);
  if (storedSettlement !== null) return buildAcceptance(storedSettlement, request_id);
  const record = await stores.idempotency.forResource(crypto_settlement_id);
  if (record?.request === null) throw new Error('The settlement is not visible yet.');
  const message = 'Its request is not there any more.';
  return { outcome: 'refused', code: 'temporarily_unavailable', message };
}

/** Builds the first answer, whatever has happened since. */
function buildAcceptance(settlement: CryptoSettlementDocument, request_id: string) {
  const facts = readFacts(settlement, request_id);
  const verification = getVerificationMode(settlement.livemode);
  return { outcome: 'accepted', facts, status: 'pending', version: 1, verification } as const;
}

async function refuseDebit(
  { stores }: RecordDeps,
  { account_id, livemode, currency, amount }: OpenCryptoSettlement,
): Promise<CryptoSettlementOpening> {
  const needed = amount === null ? SMALLEST_SETTLEMENT : parseUnits(amount);
  const debit = { balance_account: MAIN_BALANCE, currency, amount: needed };
  const rows = await stores.ledger.balances(account_id, livemode);
  return { outcome: 'refused', ...insufficientBalance(rows, debit) };
}

function buildChange(transition: SettlementTransition): Partial<CryptoSettlementDocument> {
  const { at, to, change } = transition;
  return {
    ...buildCommonChange(transition),
    ...(to.includes('completed') ? { completed_at: at } : {}),
    ...change,
  };
}

function buildSnapshot(settlement: CryptoSettlementDocument, request_id: string) {
  const { status, version, attention } = settlement;
  return { facts: readFacts(settlement, request_id), status, version, attention };
}

function readFacts(settlement: CryptoSettlementDocument, request_id: string) {
  const { _id, account_id, livemode, connector, asset, network, amount, due_at } = settlement;
  return {
    crypto_settlement_id: _id,
    ...{ account_id, livemode, connector, asset, network, amount },
    wallet_address: settlement.wallet_address,
    due_at_ms: Date.parse(due_at),
    request_id,
  };
}
