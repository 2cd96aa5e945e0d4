import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Address, getAddress } from 'viem';
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from 'viem/accounts';
import type { Outdated } from '../../../connectors/contract/activities';
import type {
  AddressInstruction,
  SettlementInstruction,
} from '../../../connectors/contract/crypto';
import type { ChainSettings } from '../../../connectors/evm/config';
import type { EvmDeps } from '../../../connectors/evm/context';
import { createEvm, type Evm } from '../../../connectors/evm/evm';
import { readExtendedKey } from '../../../connectors/evm/keys';
import { createNode } from '../../../connectors/evm/node';
import { createRates } from '../../../connectors/evm/rates';
import type { Report } from '../../../connectors/evm/report';
import type { Settlement } from '../../../connectors/evm/settlements';
import { connectMongo } from '../../../src/base/mongo';
import { retryUntilDone } from '../../support/eventually';
import { useFixture } from '../../support/fixture';
import { createTestLogger } from '../../support/quiet';
import { mongodbUri } from '../../support/servers';
import { CHAIN_ID, LISTED, startEthereum } from './ethereum';
import { createKiller } from './kills';
import { ACCOUNT } from './words';

export const CONFIRMATIONS = 3;
export const ETHER = 10n ** 18n;

/** A deposit as a product knows it that applies every report once. */
interface KnownDeposit {
  amount: string;
  confirmations: number;
  isHeld?: true;
}

/** Settings and parts of a connector that differ from the usual ones. */
type Change = Partial<
  ChainSettings & Pick<EvmDeps, 'node' | 'secondNode' | 'secondRates' | 'findTaken'>
>;

type Asset = 'ETH' | 'USDC';
type AddressChange = Partial<Pick<AddressInstruction, 'amount_due' | 'expires_at'>> & {
  id?: string;
};

/** Starts a connector on a real chain and database, and the product to which it reports. */
async function startEvmWorld() {
  const [chain, mongo] = await Promise.all([
    startEthereum(),
    connectMongo(mongodbUri(), 'test-evm'),
  ]);
  const database = `test_evm_${randomBytes(6).toString('hex')}`;
  const folder = mkdtempSync(join(tmpdir(), 'evm-'));
  const [screeningFile, ratesFile] = [join(folder, 'list.txt'), join(folder, 'rates.json')];
  writeFileSync(screeningFile, `# Nobody takes money from here.\n${LISTED}\n`);
  const prices = { ETH: { EUR: '2000' }, USDC: { EUR: '0.8' } };
  writeFileSync(ratesFile, JSON.stringify({ as_of: new Date().toISOString(), rates: prices }));
  const account = privateKeyToAccount(generatePrivateKey());
  const product = createProduct();
  const clock: { ahead_ms: number; stopped_at?: number | undefined } = { ahead_ms: 0 };
  const followed: Partial<Parameters<EvmDeps['meter']['followed']>[0]> = {};
  const { killAt, restore } = createKiller();
  const now = () => new Date((clock.stopped_at ?? Date.now()) + clock.ahead_ms);
  const settings: ChainSettings = {
    chainId: CHAIN_ID,
    assets: { usdc: getAddress(chain.token) },
    confirmations: CONFIRMATIONS,
    startBlock: undefined,
    traces: true,
    feeCap: 10n ** 12n,
    raiseAfterMs: 180_000,
    checkAbove: { ETH: 0n, USDC: 0n },
    least: { ETH: 10n ** 13n, USDC: 10_000n },
    rateChangeMax: 20,
    rateDifferenceMax: 3,
  };
  const build = (change: Change = {}): Evm =>
    createEvm({
      ...{ ...settings, node: createNode(chain.url), secondNode: undefined },
      ...{ secondRates: undefined, findTaken: async () => [], ...change },
      ...{ mongo, database, key: readExtendedKey(ACCOUNT.publicExtendedKey), account, now },
      rates: createRates({ location: ratesFile, ageSecondsMax: 600 }, () => new Date()),
      screeningFile,
      deliver: async (report) => product.take(report),
      findOutdated: async ({ crypto_settlement_id }) => product.findOutdated(crypto_settlement_id),
      meter: { followed: (state) => Object.assign(followed, state) },
      log: createTestLogger('test-evm'),
    });
  let evm = build();
  await evm.begin();
  /** Works until nothing is due. */
  const run = async (): Promise<void> => {
    while (await evm.round());
  };
  /** Makes blocks, each followed by what the connector does about it. */
  const makeBlocks = async (count: number): Promise<void> => {
    for (let made = 0; made < count; made += 1) {
      await chain.mine();
      await run();
    }
  };
  /** Gives a payment an address, by default a new one. */
  const giveAddress = async (
    asset: Asset,
    { id = randomUUID(), ...change }: AddressChange = {},
  ) => {
    const answer = await evm.activities.giveAddress({
      ...{ crypto_payment_id: id, asset, network: 'ethereum', amount_due: '1', livemode: true },
      expires_at: new Date(Date.now() + 1_800_000).toISOString(),
      ...change,
    });
    if (answer.outcome !== 'given') throw new Error(answer.message);
    return { id, address: getAddress(answer.address), answer };
  };
  await chain.client.setBalance({ address: account.address, value: 1_000n * ETHER });
  await chain.payToken(account.address, 10n ** 12n);
  await chain.mine();
  const db = mongo.db(database);
  return {
    ...{ chain, product, clock, db, payer: account, screeningFile, ratesFile },
    /** State that the connector's metrics show. */
    followed,
    get evm() {
      return evm;
    },
    ...{ build, run, makeBlocks, killAt, giveAddress },
    /** A new process on the same database. */
    restart: async (change?: Change): Promise<void> => {
      evm = build(change);
      await evm.begin();
    },
    /** Pays a new payment 1 ETH or 0.000005 USDC, and makes blocks. */
    deposit: async (asset: Asset, blocks: number = CONFIRMATIONS) => {
      const payment = await giveAddress(asset);
      const pay = asset === 'ETH' ? chain.pay : chain.payToken;
      const hash = await pay(payment.address, asset === 'ETH' ? ETHER : 5n);
      await makeBlocks(blocks);
      return { ...payment, hash };
    },
    /** Builds a settlement, by default to a new wallet, with what the connector can do about it. */
    buildSettlement: (
      asset: Asset,
      amount: bigint,
      wallet: Address = privateKeyToAddress(generatePrivateKey()),
      changes: Partial<SettlementInstruction> = {},
    ) => {
      const id = randomUUID();
      const input = {
        ...{ crypto_settlement_id: id, version: 1, asset, network: 'ethereum' },
        ...{ amount: String(amount), wallet_address: wallet, livemode: true, ...changes },
      };
      const { client, tokensOf } = chain;
      return {
        ...{ id, input, wallet },
        send: () => evm.activities.sendSettlement(input),
        lookUp: () => evm.activities.lookUpSettlement(input),
        cancel: () => evm.activities.cancelSettlement?.(input),
        readRow: () => db.collection<Settlement>('settlements').findOne({ _id: id }),
        /** Reads what the wallet has, in the smallest unit. */
        readBalance: () =>
          asset === 'ETH' ? client.getBalance({ address: wallet }) : tokensOf(wallet),
      };
    },
    end: async () => {
      restore();
      await chain.stop();
      await retryUntilDone(() => mongo.db(database).dropDatabase());
      await mongo.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Builds the product's side: each callback counts once, by its id, and means one thing. */
function createProduct() {
  const heard = new Map<string, string>();
  const reports: Report[] = [];
  const deliveries: string[] = [];
  const ended = new Set<string>();
  let isAway = false;
  const about = (id: string) => reports.filter(({ resource_id }) => resource_id === id);
  /** Deposits of a payment, as the reports leave them. */
  const listDeposits = (id: string) => {
    const known: Record<string, KnownDeposit> = {};
    for (const { name, callback } of about(id)) {
      const { transaction_id = '', amount = '', confirmations = 0 } = callback;
      const hold = callback.screening === 'failed' ? { isHeld: true as const } : {};
      if (name === 'deposit') known[transaction_id] = { amount, confirmations, ...hold };
      else delete known[transaction_id];
    }
    return known;
  };
  return {
    take: (report: Report) => {
      if (isAway) throw new Error('The product is away.');
      // A restored connector may see a deposit later than it did before.
      const { confirmations, ...facts } = report.callback;
      const said = JSON.stringify({ ...report, callback: facts });
      const before = heard.get(report.callback.callback_id);
      if (before !== undefined && before !== said) throw new Error(`another report: ${said}`);
      deliveries.push(report.callback.callback_id);
      if (before === undefined) reports.push(report);
      heard.set(report.callback.callback_id, said);
    },
    findOutdated: (id: string): Outdated | undefined =>
      ended.has(id) ? { outcome: 'outdated' } : undefined,
    endSettlement: (id: string) => ended.add(id),
    away: (is: boolean) => {
      isAway = is;
    },
    /** Ids of all callbacks, repeats included. */
    deliveries,
    ...{ about, listDeposits },
    confirmations: (id: string) => about(id).map(({ callback }) => callback.confirmations),
    names: (id: string) => about(id).map(({ name }) => name),
    /** Smallest units that count by now. */
    credited: (id: string): bigint =>
      Object.values(listDeposits(id))
        .filter(({ confirmations, isHeld }) => confirmations >= CONFIRMATIONS && !isHeld)
        .reduce((sum, { amount }) => sum + BigInt(amount), 0n),
  };
}

/** Starts a chain and its connector for one file's tests. */
export function useEvmWorld(): Awaited<ReturnType<typeof startEvmWorld>> {
  return useFixture(startEvmWorld, (world) => world.end());
}
