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
  parseAbi,
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

const TOKEN_ABI = parseAbi([
  'constructor(uint256 supply)',
  'function transfer(address to, uint256 value) returns (bool)',
  'function balanceOf(address owner) view returns (uint256)',
  'function refuse(address who, bool on)',
]);

/**
 * Token of six decimals that refuses transfers to some, as USDC does. Made by solc 0.8.28 (optimizer
 * 1 run, paris, no metadata) of this source:
 *
 *     contract Token {
 *         event Transfer(address indexed from, address indexed to, uint256 value);
 *         mapping(address => uint256) public balanceOf;
 *         mapping(address => bool) public refused;
 *         constructor(uint256 supply) {
 *             balanceOf[msg.sender] = supply;
 *             emit Transfer(address(0), msg.sender, supply);
 *         }
 *         function decimals() external pure returns (uint8) { return 6; }
 *         function transfer(address to, uint256 value) external returns (bool) {
 *             require(!refused[to], "refused");
 *             balanceOf[msg.sender] -= value;
 *             balanceOf[to] += value;
 *             emit Transfer(msg.sender, to, value);
 *             return true;
 *         }
 *         function refuse(address who, bool on) external { refused[who] = on; }
 *     }
 */
const TOKEN_BYTECODE = `0x${[
  '6080604052348015600f57600080fd5b5060405161038b38038061038b833981016040819052602c916073565b',
  '33600081815260208181526040808320859055518481527fddf252ad1be2c89b69c2b068fc378daa952ba7f163',
  'c4a11628f55a4df523b3ef910160405180910390a350608b565b600060208284031215608457600080fd5b5051',
  '919050565b6102f18061009a6000396000f3fe608060405234801561001057600080fd5b506004361061005757',
  '60003560e01c8063313ce5671461005c57806366b5bb501461007057806370a08231146100ab578063a9059cbb',
  '146100d9578063e01940f3146100fc575b600080fd5b604051600681526020015b60405180910390f35b6100a9',
  '61007e36600461022d565b6001600160a01b03919091166000908152600160205260409020805460ff19169115',
  '15919091179055565b005b6100cb6100b9366004610269565b60006020819052908152604090205481565b6040',
  '51908152602001610067565b6100ec6100e736600461028b565b61011f565b6040519015158152602001610067',
  '565b6100ec61010a366004610269565b60016020526000908152604090205460ff1681565b6001600160a01b03',
  '821660009081526001602052604081205460ff16156101765760405162461bcd60e51b81526020600482015260',
  '076024820152661c99599d5cd95960ca1b604482015260640160405180910390fd5b3360009081526020819052',
  '6040812080548492906101959084906102cb565b90915550506001600160a01b03831660009081526020819052',
  '6040812080548492906101c29084906102de565b90915550506040518281526001600160a01b0384169033907f',
  'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef9060200160405180910390a350',
  '60015b92915050565b80356001600160a01b038116811461022857600080fd5b919050565b6000806040838503',
  '121561024057600080fd5b61024983610211565b91506020830135801515811461025e57600080fd5b80915050',
  '9250929050565b60006020828403121561027b57600080fd5b61028482610211565b9392505050565b60008060',
  '40838503121561029e57600080fd5b6102a783610211565b946020939093013593505050565b634e487b7160e0',
  '1b600052601160045260246000fd5b8181038181111561020b5761020b6102b5565b8082018082111561020b57',
  '61020b6102b556',
].join('')}` as const;

/** Contract that sends what it gets on to the address in its call data. */
const FORWARDER = '0x695f5f5f5f345f355af1005f52600a6016f3';

/** Contract that does so, and then reverts. */
const REVERTING_FORWARDER = '0x6b5f5f5f5f345f355af15f5ffd5f52600c6014f3';
