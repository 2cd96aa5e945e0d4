import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Address, getAddress } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import type { Outdated } from '../../../connectors/contract/activities';
import { createEvm, type Evm, type EvmDeps, type EvmSettings } from '../../../connectors/evm/evm';
import { readExtendedKey } from '../../../connectors/evm/extended-key';
import { createNode } from '../../../connectors/evm/node';
import { createRates } from '../../../connectors/evm/rates';
import type { Report } from '../../../connectors/evm/report';
import { createScreening } from '../../../connectors/evm/screening';
import { createLogger } from '../../../src/base/log';
import { connectMongo } from '../../../src/base/mongo';
import { useFixture } from '../../support/fixture';
import { mongodbUri } from '../../support/servers';
import { CHAIN_ID, LISTED, startEthereum } from './ethereum';
import { createKiller } from './kills';
import { ACCOUNT } from './words';

export const CONFIRMATIONS = 3;
export const ETHER = 10n ** 18n;

/** Deposit as a product knows it that heeds every report once. */
interface KnownDeposit {
  amount: string;
  confirmations: number;
}

/** Settings and node of a connector, as far as they are others than the usual ones. */
type Change = Partial<EvmSettings & Pick<EvmDeps, 'node'>>;

export type EvmWorld = Awaited<ReturnType<typeof startEvmWorld>>;

/** A connector on a real chain and a real database, and the product that it tells. */
export async function startEvmWorld(real?: Pick<EvmDeps, 'deliver' | 'findOutdated'>) {
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
  const clock = { ahead_ms: 0 };
  const { killAt, restore } = createKiller();
  const now = () => new Date(Date.now() + clock.ahead_ms);
  const settings: EvmSettings = {
    chainId: CHAIN_ID,
    assets: { usdc: getAddress(chain.token) },
    confirmations: CONFIRMATIONS,
    traces: true,
    feeCap: 10n ** 12n,
    raiseAfterMs: 180_000,
  };
  const build = (change: Change = {}): Evm =>
    createEvm({
      ...settings,
      node: createNode(chain.url),
      ...change,
      mongo,
      database,
      key: readExtendedKey(ACCOUNT.publicExtendedKey),
      account,
      rates: createRates({ location: ratesFile, ageSecondsMax: 600 }, () => new Date()),
      screening: createScreening(screeningFile),
      deliver: async (report) => product.take(report),
      findOutdated: async ({ crypto_settlement_id }) => product.findOutdated(crypto_settlement_id),
      ...real,
      now,
      log: createLogger('test-evm', process.env['TEST_LOG_LEVEL'] ?? 'silent'),
    });
  let evm = build();
  await evm.begin();
  await chain.client.setBalance({ address: account.address, value: 1_000n * ETHER });
  await chain.payToken(account.address, 10n ** 12n);
  await chain.mine();
  const run = async (): Promise<void> => {
    while (await evm.round());
  };
  return {
    chain,
    product,
    clock,
    payer: account,
    screeningFile,
    db: mongo.db(database),
    get evm() {
      return evm;
    },
    build,
    /** Works until nothing is due. */
    run,
    /** Makes blocks, each followed by what the connector does about it. */
    blocks: async (count: number): Promise<void> => {
      for (let made = 0; made < count; made += 1) {
        await chain.mine();
        await run();
      }
    },
    killAt,
    /** A new process on the same database. */
    restart: async (change?: Change): Promise<void> => {
      evm = build(change);
      await evm.begin();
    },
    /** Address of a new payment. */
    address: async (asset: 'ETH' | 'USDC', id = randomUUID()) => {
      const answer = await evm.activities.giveAddress({
        crypto_payment_id: id,
        asset,
        network: 'ethereum',
        amount_due: '1',
        livemode: true,
        expires_at: new Date(Date.now() + 1_800_000).toISOString(),
      });
      if (answer.outcome !== 'given') throw new Error(answer.message);
      return { id, address: getAddress(answer.address), answer };
    },
    settle: (
      asset: 'ETH' | 'USDC',
      amount: bigint,
      wallet: Address,
      id: string = randomUUID(),
    ) => ({
      crypto_settlement_id: id,
      version: 1,
      asset,
      network: 'ethereum',
      amount: String(amount),
      wallet_address: wallet,
      livemode: true,
    }),
    end: async () => {
      restore();
      await chain.stop();
      await mongo.db(database).dropDatabase();
      await mongo.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** The product's side: each callback counts once, by its id, and means one thing. */
function createProduct() {
  const heard = new Map<string, string>();
  const reports: Report[] = [];
  const ended = new Set<string>();
  let isAway = false;
  const about = (id: string) => reports.filter(({ resource_id }) => resource_id === id);
  return {
    take: (report: Report) => {
      if (isAway) throw new Error('The product is away.');
      const said = JSON.stringify(report);
      const before = heard.get(report.callback.callback_id);
      if (before !== undefined && before !== said) throw new Error(`said anew: ${said}`);
      if (before === undefined) reports.push(report);
      heard.set(report.callback.callback_id, said);
    },
    findOutdated: (id: string): Outdated | undefined =>
      ended.has(id) ? { outcome: 'outdated' } : undefined,
    /** The record says that a settlement has ended. */
    endInRecord: (id: string) => ended.add(id),
    away: (is: boolean) => {
      isAway = is;
    },
    about,
    names: (id: string) => about(id).map(({ name }) => name),
    /** Deposits of a payment, as the reports leave them. */
    deposits: (id: string): Record<string, KnownDeposit> => {
      const known: Record<string, KnownDeposit> = {};
      for (const { name, callback } of about(id)) {
        const { transaction_id = '', amount = '', confirmations = 0 } = callback;
        if (name === 'deposit') known[transaction_id] = { amount, confirmations };
        else delete known[transaction_id];
      }
      return known;
    },
    /** Smallest units that count by now. */
    credited(id: string): bigint {
      return Object.values(this.deposits(id))
        .filter(({ confirmations }) => confirmations >= CONFIRMATIONS)
        .reduce((sum, { amount }) => sum + BigInt(amount), 0n);
    },
  };
}

/** A chain and its connector for one file's tests. */
export function useEvmWorld(...args: Parameters<typeof startEvmWorld>): EvmWorld {
  return useFixture(
    () => startEvmWorld(...args),
    (world) => world.end(),
  );
}
