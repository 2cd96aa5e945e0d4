import {
  type Address,
  createPublicClient,
  erc20Abi,
  type Hash,
  type Hex,
  http,
  numberToHex,
  parseAbiItem,
} from 'viem';

import { askNode, type Broadcast, orUndefined, toRefusal } from './node-answers';
import { type Movement, readMovements } from './traces';

const TIMEOUT_MS = 10_000;
/** Retries of one question, at 200, 400 and 800 ms; whoever asks waits longer after them. */
const RETRIES = 3;
const RETRY_MS = 200;

const TRANSFER = parseAbiItem(
  'event Transfer(address indexed from, address indexed to, uint256 value)',
);

/** Block as its header tells, with the transactions that move the chain's own coin. */
export interface Block {
  number: bigint;
  hash: Hash;
  parentHash: Hash;
  /** Seconds since 1970, by the chain's own clock. */
  timestamp: bigint;
  transactions: readonly Transaction[];
}

interface Transaction {
  hash: Hash;
  from: Address;
  /** Absent where a contract is made. */
  to: Address | null;
  /** Wei. */
  value: bigint;
  nonce: number;
}

/** Token that moved, by the log of its contract. */
export interface TokenTransfer {
  transactionHash: Hash;
  from: Address;
  to: Address;
  value: bigint;
}

/** Transaction to be tried out before it is signed. */
export interface Call {
  from: Address;
  to: Address;
  value: bigint;
  data: Hex;
}

export type EvmNode = ReturnType<typeof createNode>;

/**
 * Asks an Ethereum node over JSON-RPC. Each question is repeated after an error of the provider or
 * its rate limit.
 * @returns functions that throw NodeFailure when there is no answer
 */
export function createNode(url: string) {
  const transport = http(url, { timeout: TIMEOUT_MS, retryCount: RETRIES, retryDelay: RETRY_MS });
  const client = createPublicClient({ transport, cacheTime: 0 });
  return {
    chainId: () => askNode('eth_chainId', () => client.getChainId()),
    head: () => askNode('eth_blockNumber', () => client.getBlockNumber()),
    /** Block of a number; undefined where the node has none, or not yet. */
    block: (blockNumber: bigint): Promise<Block | undefined> =>
      askNode('eth_getBlockByNumber', () =>
        orUndefined('BlockNotFoundError', async () => {
          const block = await client.getBlock({ blockNumber, includeTransactions: true });
          return { ...block, transactions: block.transactions.map((each) => ({ ...each })) };
        }),
      ),
    /** Transfers of a token in exactly this block, whichever branch it is on. */
    transfers: (token: Address, blockHash: Hash): Promise<TokenTransfer[]> =>
      askNode('eth_getLogs', async () => {
        const logs = await client.getLogs({
          address: token,
          event: TRANSFER,
          blockHash,
          strict: true,
        });
        return logs.map(({ transactionHash, args }) => ({ transactionHash, ...args }));
      }),
    /** Ether that moved in exactly this block, by the node's traces (`trace_block`). */
    movements: ({ number, hash }: Block): Promise<Movement[]> =>
      askNode('trace_block', async () => {
        const method = 'trace_block';
        const raw = await client.request<{
          Method: 'trace_block';
          Parameters: [Hex];
          ReturnType: unknown;
        }>({ method, params: [numberToHex(number)] });
        return readMovements(raw, hash);
      }),
    /** Whether a transaction of a block did what it says; undefined where the node has no receipt. */
    succeeded: (hash: Hash): Promise<boolean | undefined> =>
      askNode('eth_getTransactionReceipt', () =>
        orUndefined('TransactionReceiptNotFoundError', async () => {
          const { status } = await client.getTransactionReceipt({ hash });
          return status === 'success';
        }),
      ),
    /** Number of transactions of an account that are in blocks, those that wait included or not. */
    getNonce: (address: Address, blockTag: 'latest' | 'pending') =>
      askNode('eth_getTransactionCount', () => client.getTransactionCount({ address, blockTag })),
    getBalance: (address: Address) =>
      askNode('eth_getBalance', () => client.getBalance({ address })),
    getTokenBalance: (token: Address, address: Address) =>
      askNode('balanceOf', () =>
        client.readContract({
          address: token,
          abi: erc20Abi,
          functionName: 'balanceOf',
          args: [address],
        }),
      ),
    getDecimals: (token: Address) =>
      askNode('decimals', () =>
        client.readContract({ address: token, abi: erc20Abi, functionName: 'decimals' }),
      ),
    /** Gas that a call takes; undefined where the chain would revert it. */
    estimateGas: ({ from, ...call }: Call): Promise<bigint | undefined> =>
      askNode('eth_estimateGas', () =>
        orUndefined('ExecutionRevertedError', () => client.estimateGas({ account: from, ...call })),
      ),
    /** Wei a unit of gas: the newest block's base, and what miners are tipped. */
    fees: () =>
      askNode('fees', async () => {
        const [{ baseFeePerGas }, tip] = await Promise.all([
          client.getBlock({ blockTag: 'latest' }),
          client.estimateMaxPriorityFeePerGas(),
        ]);
        if (baseFeePerGas === null) throw new Error('the chain has no base fee (EIP-1559)');
        return { base: baseFeePerGas, tip };
      }),
    /** Broadcasts signed bytes. */
    broadcast: (serializedTransaction: Hex): Promise<Broadcast> =>
      askNode('eth_sendRawTransaction', async () => {
        try {
          await client.sendRawTransaction({ serializedTransaction });
          return { outcome: 'held' };
        } catch (error) {
          const refusal = toRefusal(error);
          if (refusal === undefined) throw error;
          return refusal;
        }
      }),
  };
}
