import type { ClientSession } from 'mongodb';
import { abandon } from '../src/base/mongo';
import { parseUnits } from '../src/domain/crypto/assets';
import {
  CRYPTO_SETTLEMENT_EVENTS,
  CRYPTO_SETTLEMENT_TRANSITIONS,
  type CryptoSettlementStatus,
  isSettlementEnded,
  leastSettlement,
  SETTLEMENT_DUE_SECONDS,
} from '../src/domain/crypto/settlement';
import type { CryptoSettlementInput } from '../src/domain/crypto/workflow';
import type { Failure } from '../src/domain/failure';
import { MAIN_BALANCE } from '../src/domain/money/money';
import {
  buildNetworkFee,
  buildSettlementEntry,
  settlementDraw,
} from '../src/ledger/crypto-entries';
import { bookId, type NewEntry, operationId } from '../src/ledger/entries';
import { explainShortage, InsufficientBalance } from '../src/ledger/locks';
import {
  applyMovements,
  listMovements,
  recordApplied,
  releaseSent,
} from '../src/movements/register';
import type { Stores } from '../src/store';
import type { CryptoSettlementDocument } from '../src/store/crypto-settlements';
import { addressAt, describeNoWallet } from '../src/store/wallets';
import { positionAt, readCryptoSubscribers } from './shared/events';
import {
  buildAcceptance,
  buildLockRequest,
  openReserved,
  type ReservedOpening,
} from './shared/opening';
import { bookOnce, createRecord } from './shared/record';
import {
  buildCommonChange,
  type Known,
  type RecordDeps,
  type RecordTable,
  type WriteAnswer,
} from './shared/record-table';

export type CryptoSettlementFacts = ReturnType<typeof readFacts>;

export type CryptoSettlementOpening = ReservedOpening<
  CryptoSettlementFacts,
  CryptoSettlementStatus
>;

export interface CryptoSettlementChange {
  failure: Failure;
  transaction_id: string;
  bank_reference: string;
  network_fee: string;
}

export interface NetworkFeeInput extends Known {
  crypto_settlement_id: string;
  /** Smallest units of the network's own asset. */
  network_fee: string;
  /** ISO 8601, ms. */
  at: string;
}

export function createCryptoSettlementActivities(deps: RecordDeps) {
  const { stores } = deps;
  const table: RecordTable<CryptoSettlementDocument, CryptoSettlementChange> = {
    resource: 'crypto_settlement',
    store: stores.crypto_settlements,
    transitions: CRYPTO_SETTLEMENT_TRANSITIONS,
    events: CRYPTO_SETTLEMENT_EVENTS,
    eventData: ({ _id }) => ({ crypto_settlement_id: _id }),
    buildChange: (transition) => {
      const { at, to, change } = transition;
      return {
        ...buildCommonChange(transition),
        ...(to.includes('completed') ? { completed_at: at } : {}),
        ...change,
      };
    },
    posted: ['completed', 'failed'],
    post: async (settlement, transition, session) => {
      const { to, at, change } = transition;
      const fee = change.network_fee === undefined ? undefined : buildNetworkFee(settlement, at);
      if (fee !== undefined) await stores.ledger.post(fee, session);
      if (to.includes('failed')) {
        const kind = 'crypto_settlement';
        const released = await releaseSent(stores, kind, settlement, transition, session);
        const entry = buildSettlementEntry('crypto_settlement_released', settlement, at);
        await stores.ledger.post(entry, session);
        return released;
      }
      if (!to.includes('completed')) return [];
      const { out } = await applyMovements(stores, settlement._id, transition.taken, session);
      const entry = buildSettlementEntry('crypto_settlement_captured', settlement, at, out);
      const amount = String(settlementDraw(settlement) - out);
      const applied = { kind: 'crypto_settlement', direction: 'out', amount } as const;
      const moved = { ...applied, entry: operationId(entry) };
      const movements = await recordApplied(stores, settlement, transition, moved, session);
      await stores.ledger.post(entry, session);
      return movements;
    },
    readSubscribers: readCryptoSubscribers,
  };
  const record = createRecord(deps, table, async (settlement, request_id) => ({
    facts: readFacts(settlement, request_id),
    movements: await listMovements(stores, settlement._id),
  }));
  return {
    openCryptoSettlement: (input: OpenCryptoSettlement): Promise<CryptoSettlementOpening> =>
      openCryptoSettlement(deps, input),
    releaseCryptoClaim: async ({ resource_id }: { resource_id: string }): Promise<void> => {
      await stores.idempotency.release(resource_id);
    },
    recordCryptoSettlementMove: record.transition,
    /** Books what the chain took of a settlement that had ended without its report. */
    recordNetworkFee: (input: NetworkFeeInput): Promise<WriteAnswer<CryptoSettlementDocument>> =>
      bookOnce<CryptoSettlementDocument, object>(
        deps,
        stores.crypto_settlements,
        { ...input, resource_id: input.crypto_settlement_id },
        async (settlement, session) => {
          const { network_fee, at } = input;
          const isBooked = settlement.network_fee !== undefined;
          if (isBooked || !isSettlementEnded(settlement.status)) {
            return { answer: {}, isNew: false };
          }
          const { crypto_settlements, ledger } = stores;
          await crypto_settlements.setNetworkFee(settlement._id, network_fee, session);
          const entry = buildNetworkFee({ ...settlement, network_fee }, at);
          if (entry !== undefined) await ledger.post(entry, session);
          return { answer: {}, isNew: true };
        },
      ),
    recordCryptoSettlementAttention: record.setAttention,
    loadCryptoSettlement: record.load,
  };
}

async function openCryptoSettlement(
  deps: RecordDeps,
  input: OpenCryptoSettlement,
): Promise<CryptoSettlementOpening> {
  const { crypto_settlements, wallets } = deps.stores;
  const { crypto_settlement_id: id, request_id, account_id, livemode, network, created_at } = input;
  const accept = (settlement: CryptoSettlementDocument) =>
    buildAcceptance(readFacts(settlement, request_id), 'pending', livemode);
  const existing = await crypto_settlements.get(id);
  if (existing !== null) return accept(existing);
  const registered = await wallets.get(account_id, livemode, network);
  const wallet = input.wallet_address ?? addressAt(registered, created_at);
  if (wallet === null) {
    const message = describeNoWallet(registered, network);
    return { outcome: 'refused', code: 'wallet_not_registered', message };
  }
  return await openReserved<CryptoSettlementDocument, CryptoSettlementOpening>(deps, {
    ...{ resource: 'crypto_settlement', id, request_id, get: crypto_settlements.get, accept },
    lockRequest: buildLockRequest(bookId(input), created_at),
    reserve: (session) => reserve(deps, input, wallet, session),
    refuseDebit: () => refuseDebit(deps, input),
    explainMissing: () => explainMissing(deps, id),
  });
}

async function explainMissing(
  { stores }: RecordDeps,
  id: string,
): Promise<CryptoSettlementOpening> {
  const record = await stores.idempotency.forResource(id);
  if (record?.request === null) throw new Error('The settlement is not visible yet.');
  const message = 'Its request is not there any more.';
  return { outcome: 'refused', code: 'temporarily_unavailable', message };
}

async function refuseDebit(
  { stores }: RecordDeps,
  input: OpenCryptoSettlement,
): Promise<CryptoSettlementOpening> {
  const { currency, amount } = input;
  const needed = amount === null ? leastSettlement(input, null) : parseUnits(amount);
  const withheld = await stores.movements.sumReorged(input);
  const debit = { balance_account: MAIN_BALANCE, currency, amount: needed, withheld };
  return { outcome: 'refused', ...(await explainShortage(stores.ledger, input, debit)) };
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

type OpenCryptoSettlement = CryptoSettlementInput & {
  created_at: string;
  /** Wallet of the first opening, for a rebuild. */
  wallet_address?: string;
};

/** @returns null when another attempt has cleared the request @throws InsufficientBalance */
async function reserve(
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
  const { crypto_settlement_id, scheduled, created_at, ...facts } = input;
  const amount = await checkAmount(stores, input, session);
  const due = Date.parse(created_at) + SETTLEMENT_DUE_SECONDS * 1_000;
  const settlement: CryptoSettlementDocument = {
    _id: crypto_settlement_id,
    ...facts,
    amount: String(parseUnits(amount)),
    fee: '0',
    wallet_address,
    version: 1,
    transition: 1,
    position: positionAt(created_at),
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
  const kind = 'crypto_settlement_reserved';
  await ledger.post(buildSettlementEntry(kind, settlement, created_at), session);
  await crypto_settlements.insert(settlement, session);
  return settlement;
}

/**
 * Leaves in the balance what the chain has removed.
 * @returns smallest units
 * @throws InsufficientBalance
 */
async function checkAmount(
  { ledger, movements }: Stores,
  input: OpenCryptoSettlement,
  session: ClientSession,
): Promise<string> {
  const { account_id, livemode, currency, created_at: at } = input;
  const withheld = await movements.sumReorged(input, session);
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
