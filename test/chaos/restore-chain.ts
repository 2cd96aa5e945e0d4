import { join } from 'node:path';
import type { Db } from 'mongodb';
import { createWalletStore } from '../../src/store/wallets';
import { ASSET, ETHER, IN_ETHER, WALLET } from '../api/crypto-setting';
import { runApproved } from '../cli/cli';
import { startEthereum } from '../connectors/evm/ethereum';
import { eventually } from '../support/eventually';
import { createEvmProcess } from './evm-process';
import type { PatientClient } from './patient-client';
import type { RunningStack } from './running-stack';

const CONNECTOR = 'evm';
/** Routes live money to it, on what a demo runs. */
export const CHAIN_ENV = { LIVE_CONNECTORS: `${CONNECTOR}=eth_ethereum`, ALLOW_LIVE_DEMO: 'yes' };
/** Each settlement has an amount of its own, by which the chain distinguishes them. */
const AMOUNT_MIN = 10n ** 15n;
const FUNDED_MS_MAX = 90_000;

/** Works on a database, by its name from that of the service. */
export type WithDb = <T>(
  pick: (name: string) => string,
  work: (db: Db) => Promise<T>,
) => Promise<T>;

export const SAME = (database: string) => database;

/** Opens a chain, which no restore puts back, and its connector as a process. */
export async function openChain(stack: RunningStack, withDb: WithDb) {
  const chain = await startEthereum();
  const place = { env: { ...CHAIN_ENV, DATA_DIR: stack.dataDir } };
  const create = ['connector', 'key', 'create', CONNECTOR];
  const evm = createEvmProcess({
    ...{ node: chain.url, secondNode: chain.url, token: chain.token, connector: CONNECTOR },
    ...{ confirmations: 1, signing: Object(await runApproved(place, ...create)) },
    env: { ...CHAIN_ENV, CONNECTOR_STATE_DIR: join(stack.dataDir, 'connectors') },
  });
  const { payer: address } = evm;
  await chain.client.setBalance({ address, value: 10n * ETHER });
  const amounts = new Map<string, bigint>();

  /** Puts into a block what waits for one. */
  const mine = async (): Promise<void> => {
    const [mined, sent] = await Promise.all([
      chain.client.getTransactionCount({ address }),
      chain.client.getTransactionCount({ address, blockTag: 'pending' }),
    ]);
    if (mined < sent) await chain.mine();
  };
  const listSent = async (): Promise<bigint[]> => {
    await mine();
    const length = Number(await chain.client.getBlockNumber()) + 1;
    const read = (at: number) =>
      chain.client.getBlock({ blockNumber: BigInt(at), includeTransactions: true });
    const blocks = await Promise.all(Array.from({ length }, (_, at) => read(at)));
    const all = blocks.flatMap(({ transactions }) => transactions);
    return all.filter(({ from }) => from === address.toLowerCase()).map(({ value }) => value);
  };
  return {
    mine,
    start: evm.start,
    kill: evm.kill,
    destroy: async (): Promise<void> => {
      await evm.destroy();
      await chain.stop();
    },
    /** Gives a merchant a wallet that takes effect at once, and ether. */
    fund: async (client: PatientClient, account_id: string): Promise<void> => {
      const now = new Date().toISOString();
      const wallet = { account_id, livemode: true, network: 'ethereum', address: WALLET } as const;
      await withDb(SAME, (db) => createWalletStore(db).set(wallet, { now, counts_from: now }));
      const isServed = async () => {
        const key = `fund-${Date.now()}`;
        const { body } = await client.post('/v1/crypto/payments', IN_ETHER, key);
        return body.id !== undefined && body;
      };
      const payment = await eventually('a payment in ether', isServed, FUNDED_MS_MAX);
      await chain.pay(payment.address, BigInt(payment.amount_due));
      await chain.mine();
      const isReceived = async () =>
        (await client.get(`/v1/crypto/payments/${payment.id}`)).body.status === 'received';
      await eventually('the payment to be received', isReceived, FUNDED_MS_MAX);
    },
    settle: async (client: PatientClient) => {
      const amount = AMOUNT_MIN + BigInt(Math.floor(Math.random() * 1e9));
      const body = { ...ASSET, amount: String(amount) };
      const made = await client.post('/v1/crypto/settlements', body, `settlement-${amount}`);
      amounts.set(made.body.id, amount);
      return made;
    },
    countSent: async (ids: readonly string[]): Promise<number[]> => {
      const sent = await listSent();
      return ids.map((id) => sent.filter((value) => value === amounts.get(id)).length);
    },
    /**
     * Starts it over a database that is older than the chain: it refuses, until an operator who has
     * compared them sets the next nonce.
     * @see docs/evm.md#after-a-restore
     */
    startOlder: async (servers: NodeJS.ProcessEnv): Promise<void> => {
      const refused = await evm.start(servers);
      expect(await refused.exited).toBe('ended with exit code 1');
      expect(evm.said()).toContain('compare them before anything is paid');
      const $set = { next: await chain.client.getTransactionCount({ address }) };
      const setNonce = (db: Db) =>
        db.collection<{ _id: string }>('nonces').updateOne({ _id: address }, { $set });
      await withDb((database) => `${database}_${CONNECTOR}`, setNonce);
      await evm.start(servers);
    },
  };
}
