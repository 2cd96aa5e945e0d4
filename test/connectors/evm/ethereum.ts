import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Address,
  createTestClient,
  type Hash,
  type Hex,
  http,
  pad,
  publicActions,
  walletActions,
} from 'viem';
import { anvil as chain } from 'viem/chains';
import { type Child, startChild, waitUntilUp } from '../../../stack/child-process';
import { freePort, LOOPBACK } from '../../../stack/ports';
import { cacheDirectory, provision } from '../../../stack/provision/provision';
import { silentProgress } from '../../../stack/terminal';
import { startWatchdog, type Watchdog } from '../../stack/watchdog';
import { anvil } from '../../support/anvil';
import { FORWARDER, REVERTING_FORWARDER, TOKEN_ABI, TOKEN_BYTECODE } from './token';

export const CHAIN_ID = chain.id;

/** Accounts that Anvil lets everyone send from. */
export const CUSTOMER: Address = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
export const LISTED: Address = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC';

/** Starts a real Ethereum node that makes blocks on request, and keeps its chain over a restart. */
export async function startEthereum() {
  const { signal } = new AbortController();
  const context = { cacheDir: cacheDirectory(process.env), env: process.env, signal };
  const { path } = await provision(anvil, { ...context, progress: silentProgress });
  const folder = mkdtempSync(join(tmpdir(), 'ethereum-'));
  const port = await freePort();
  const url = `http://${LOOPBACK}:${port}`;
  const transport = http(url, { retryCount: 0, timeout: UP_MS_MAX });
  const client = createTestClient({ mode: 'anvil', chain, transport, cacheTime: 0 })
    .extend(publicActions)
    .extend(walletActions);
  let running = await startNode(path, folder, port, () => client.getChainId());
  const mine = (blocks = 1) => client.mine({ blocks });
  const deployed = await client.deployContract({
    account: CUSTOMER,
    abi: TOKEN_ABI,
    bytecode: TOKEN_BYTECODE,
    args: [10n ** 15n],
  });
  await mine();
  const { contractAddress: token } = await client.getTransactionReceipt({ hash: deployed });
  if (token == null) throw new Error('The token was not deployed.');
  return {
    url,
    client,
    token,
    mine,
    /** Sends ether; it waits for a block. */
    pay: (to: Address, value: bigint, account = CUSTOMER): Promise<Hash> =>
      client.sendTransaction({ account, to, value, gas: 21_000n }),
    payToken: (to: Address, value: bigint, account = CUSTOMER): Promise<Hash> =>
      client.writeContract({
        account,
        address: token,
        abi: TOKEN_ABI,
        functionName: 'transfer',
        args: [to, value],
        gas: 100_000n,
      }),
    /** Sends ether by way of a contract, which may take all back after it. */
    forward: async (to: Address, value: bigint, reverts = false): Promise<Hash> => {
      const bytecode = reverts ? REVERTING_FORWARDER : FORWARDER;
      const made = await client.deployContract({ account: CUSTOMER, abi: [], bytecode });
      await mine();
      const { contractAddress } = await client.getTransactionReceipt({ hash: made });
      const data = pad(to);
      const call = { account: CUSTOMER, to: contractAddress, value, data, gas: 100_000n };
      return await client.sendTransaction(call);
    },
    /** Reads the bytes of a transaction, which another branch may include too. */
    bytesOf: (hash: Hash): Promise<Hex> =>
      client.request<{ Method: 'debug_getRawTransaction'; Parameters: [Hash]; ReturnType: Hex }>({
        method: 'debug_getRawTransaction',
        params: [hash],
      }),
    /** Makes the token refuse transfers to an account, from the next block's first moment on. */
    refuse: (who: Address) =>
      client.writeContract({
        account: CUSTOMER,
        address: token,
        abi: TOKEN_ABI,
        functionName: 'refuse',
        args: [who, true],
        gas: 100_000n,
        ...FIRST_IN_BLOCK,
      }),
    tokensOf: (address: Address) =>
      client.readContract({
        address: token,
        abi: TOKEN_ABI,
        functionName: 'balanceOf',
        args: [address],
      }),
    /** Takes blocks back, with what was in them, and lets the next ones differ from them. */
    reorganise: async (blocks: number) => {
      await client.request<{ Method: 'anvil_rollback'; Parameters: [number]; ReturnType: null }>({
        method: 'anvil_rollback',
        params: [blocks],
      });
      await client.increaseTime({ seconds: 60 });
    },
    /** Ends the node, which loses what waits for a block, and starts it on its chain again. */
    restart: async () => {
      await running.child.stop();
      running.watchdog.dismiss();
      running = await startNode(path, folder, port, () => client.getChainId());
    },
    /** Ends the node until `restart`. */
    away: () => running.child.stop(),
    stop: async () => {
      await running.child.stop();
      running.watchdog.dismiss();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Tip for which a block takes a transaction before all others. */
const FIRST_IN_BLOCK = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 11n };
const UP_MS_MAX = 90_000;
/** Time in which the node writes its chain down. */
const GRACE_MS = 10_000;

async function startNode(
  command: string,
  folder: string,
  port: number,
  probe: () => Promise<unknown>,
): Promise<{ child: Child; watchdog: Watchdog }> {
  const logFile = join(folder, 'anvil.log');
  const state = join(folder, 'state.json');
  const child = await startChild({
    name: 'Anvil',
    command,
    args: [
      ...['--host', LOOPBACK, '--port', String(port), '--chain-id', String(CHAIN_ID)],
      ...['--no-mining', '--silent', '--dump-state', state, '--preserve-historical-states'],
      ...(existsSync(state) ? ['--load-state', state] : []),
    ],
    logFile,
    graceMs: GRACE_MS,
  });
  const watchdog = startWatchdog([child.pid], folder);
  await waitUntilUp(child, logFile, UP_MS_MAX, probe);
  return { child, watchdog };
}
