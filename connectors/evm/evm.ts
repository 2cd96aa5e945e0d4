import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../src/base/log';
import { formatUnits } from '../../src/domain/crypto/assets';
import type { CryptoConnectorActivities } from '../contract/crypto';
import { createAddresses, type PaymentAddress } from './addresses';
import { type Asset, NETWORK } from './assets';
import { createChainBook } from './chain-store';
import type { EvmContext, EvmDeps } from './context';
import { createDeposits } from './deposits';
import { createFindings } from './findings';
import { beginFollowing, follow, watchPending } from './follower';
import { assertChain, assertToken, NodeFailure } from './node';
import { createNonces } from './nonces';
import { cancelSettlement, lookUpSettlement, rebroadcast, sendSettlement } from './paying';
import { createRateBounds } from './rates';
import { giveAddress, quoteRate, readChainTime, screenSource } from './receiving';
import { reportDeposits, reportSettlements } from './reports';
import { createSettlements } from './settlements';

const BACKOFF_MS = 1_000;
const BACKOFF_MS_MAX = 60_000;
const GRACE_MS = 10_000;

export interface Evm {
  activities: CryptoConnectorActivities;
  /** Checks node and configuration, and sets the cursor of a first start. Safe to repeat. */
  begin: () => Promise<void>;
  /** @returns whether more may be due at once */
  round: () => Promise<boolean>;
}

/** Stores all state in its database, so it may be killed at any point. */
export function createEvm(deps: EvmDeps): Evm {
  const { mongo, node, account, assets } = deps;
  const db = mongo.db(deps.database);
  const book = createChainBook(db);
  const addresses = createAddresses({ ...deps, db });
  const deposits = createDeposits(db);
  const settlements = createSettlements(db);
  const nonces = createNonces({ db, node, settlements, payer: account.address });
  const findings = createFindings({ ...deps, db });
  const findImplausible = createRateBounds({
    db,
    changeMax: deps.rateChangeMax,
    differenceMax: deps.rateDifferenceMax,
    readSecond: deps.secondRates,
    now: deps.now,
  });
  const stores = { book, addresses, deposits, settlements, nonces, findings };
  const all: EvmContext = { ...deps, ...stores, findImplausible, payer: account.address };
  return {
    activities: {
      quoteRate: (input) => quoteRate(all, input),
      giveAddress: (input) => giveAddress(all, input),
      readChainTime: () => readChainTime(all),
      screenSource: (input) => screenSource(all, input),
      sendSettlement: (input) => sendSettlement(all, input),
      cancelSettlement: ({ crypto_settlement_id }) => cancelSettlement(all, crypto_settlement_id),
      lookUpSettlement: ({ crypto_settlement_id }) => lookUpSettlement(all, crypto_settlement_id),
    },
    begin: async () => {
      await assertChain(node, deps.chainId);
      await assertToken(node, assets);
      await book.bind(deps.chainId);
      const indexed = [addresses, deposits, settlements];
      await Promise.all(indexed.map((store) => store.ensureIndexes()));
      await beginFollowing(all);
      const head = Number(await node.head());
      if ((await node.pending(head).catch(() => undefined)) === undefined) {
        deps.log.warn({}, 'the node shows no pending transactions: deposits are seen in blocks');
      }
      await addresses.begin();
      await settlements.assertOwn(account.address);
      await nonces.begin();
      await nonces.check();
    },
    round: async () => {
      await assertChain(node, deps.chainId);
      const isBehind = await follow(all);
      const at = await book.cursor();
      if (at !== null) {
        if (!isBehind) await watchPending(all, at.number);
        const unchecked = await reportDeposits(all, at.number);
        await reportSettlements(all, at.number);
        deps.meter.followed({
          at: at.mined_at,
          unchecked,
          findings: await findings.count(),
          dust: await deposits.countDust(),
        });
      }
      if (!isBehind) {
        if ((await deps.maySend?.()) ?? true) await rebroadcast(all);
        await checkBalances(all);
      }
      return isBehind;
    },
  };
}

interface RoundsDeps {
  evm: Pick<Evm, 'begin' | 'round'>;
  pollMs: number;
  signal: AbortSignal;
  log: Logger;
  graceMs?: number;
}

/** @throws Error if the node's answer does not fit the configuration */
export async function beginWithRetry(deps: RoundsDeps): Promise<void> {
  const { evm, signal, log } = deps;
  for (let failures = 0; !signal.aborted; failures += 1) {
    try {
      await withGrace(deps, evm.begin());
      return;
    } catch (err) {
      if (!(err instanceof NodeFailure)) throw err;
      log.warn({ err }, 'the node does not answer, tried again later');
      await pause(getBackoffMs(failures), signal);
    }
  }
}

export async function runRounds(deps: RoundsDeps): Promise<void> {
  const { evm, pollMs, signal, log } = deps;
  let failures = 0;
  while (!signal.aborted) {
    let wait = pollMs;
    try {
      if (await withGrace(deps, evm.round())) wait = 0;
      failures = 0;
    } catch (err) {
      wait = getBackoffMs(failures);
      failures += 1;
      const text = 'the round over the chain failed, tried again later';
      if (failures > 1) log.error({ err, attempt: failures }, text);
      else log.warn({ err }, text);
    }
    await pause(wait, signal);
  }
}

/** @returns undefined if the work outlasts the stop */
async function withGrace<T>(
  { signal, graceMs = GRACE_MS }: RoundsDeps,
  work: Promise<T>,
): Promise<T | undefined> {
  const over = new AbortController();
  const stopped = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { signal: over.signal });
  });
  const timeout = stopped.then(() => pause(graceMs, over.signal)).then(() => undefined);
  return await Promise.race([work, timeout]).finally(() => over.abort());
}

function getBackoffMs(failures: number): number {
  return Math.min(BACKOFF_MS * 2 ** Math.min(failures, 10), BACKOFF_MS_MAX);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms === 0) return;
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}

/** Second comparison, for deposits that came late. */
const AGAIN_MS = 6 * 3_600_000;
const BATCH = 25;

/**
 * Compares balances with known deposits: when a payment's window closes, and hours later. A lower
 * balance was transferred by the owner; a higher one has funds that no block showed.
 */
async function checkBalances(deps: EvmContext): Promise<void> {
  const { book, addresses, node, log } = deps;
  const cursor = await book.cursor();
  const at = cursor?.mined_at;
  if (cursor === null || at === undefined) return;
  const due = await addresses.dueForCheck(at, BATCH);
  if (due.length === 0) return;
  try {
    for (const address of due) {
      const findings = await compare(deps, address, cursor.number);
      // The balances are of the followed branch only if the node still has its block.
      if ((await node.block(BigInt(cursor.number)))?.hash !== cursor.hash) return;
      for (const finding of findings) await deps.findings.record(finding);
      await addresses.checkAgain(address, AGAIN_MS);
    }
  } catch (err) {
    log.warn({ err }, 'balances of addresses could not be compared, tried again later');
  }
}

async function compare(
  { node, assets: { usdc }, deposits }: EvmContext,
  { _id, address }: PaymentAddress,
  number: number,
) {
  const known = await deposits.sums(_id, number, 'with dust');
  const at = BigInt(number);
  const balances: [Asset, bigint][] = [['ETH', await node.getBalance(address, at)]];
  if (usdc !== undefined) balances.push(['USDC', await node.getTokenBalance(usdc, address, at)]);
  return balances.flatMap(([asset, balance]) => {
    const excess = balance - known[asset];
    if (excess <= 0n) return [];
    const amount = formatUnits(excess, { asset, network: NETWORK });
    return {
      name: 'unexplained_balance' as const,
      // What has come since the first comparison is another finding.
      subject: `${_id}:${asset}:${excess}`,
      crypto_payment_id: _id,
      text: `The address ${address} has ${amount} that no known deposit explains.`,
    };
  });
}
