import {
  type Address,
  BaseError,
  createPublicClient,
  erc20Abi,
  type Hash,
  type Hex,
  hexToBytes,
  http,
  isAddressEqual,
  keccak256,
  numberToHex,
  parseAbiItem,
  parseEventLogs,
  toEventSelector,
} from 'viem';
import { type Assets, DECIMALS } from './assets';
import { type Movement, readMovements } from './traces';

/** Retries come at 200, 400 and 800 ms; then the caller waits longer. */
const FIRST_NODE = { timeout: 10_000, retryCount: 3 };
/** Short, since the rounds wait for the second node too. */
export const SECOND_NODE = { timeout: 5_000, retryCount: 1 };
const RETRY_MS = 200;

const TRANSFER = parseAbiItem(
  'event Transfer(address indexed from, address indexed to, uint256 value)',
);

const TRANSFER_TOPIC = toEventSelector(TRANSFER);

export interface Block {
  number: bigint;
  hash: Hash;
  parentHash: Hash;
  /** Seconds since 1970, by the chain's clock. */
  timestamp: bigint;
  /** Null on some chains. */
  logsBloom: Hex | null;
  transactions: readonly Transaction[];
}

interface Transaction {
  hash: Hash;
  from: Address;
  /** Null if the transaction creates a contract. */
  to: Address | null;
  value: bigint;
  nonce: number;
}

export interface PendingTransaction extends Transaction {
  input: Hex;
}

export interface Receipt {
  succeeded: boolean;
  /** Wei for gas. */
  fee: bigint;
}

export interface Call {
  from: Address;
  to: Address;
  value: bigint;
  data: Hex;
}

export type EvmNode = ReturnType<typeof createNode>;

/** @returns functions that throw NodeFailure if there is no answer */
export function createNode(url: string, { timeout, retryCount } = FIRST_NODE) {
  const transport = http(url, { timeout, retryCount, retryDelay: RETRY_MS });
  const client = createPublicClient({ transport, cacheTime: 0 });
  return {
    chainId: () => askNode('eth_chainId', () => client.getChainId()),
    head: () => askNode('eth_blockNumber', () => client.getBlockNumber()),
    block: (blockNumber: bigint): Promise<Block | undefined> =>
      askNode('eth_getBlockByNumber', () =>
        orUndefined('BlockNotFoundError', async () => {
          const block = await client.getBlock({ blockNumber, includeTransactions: true });
          return { ...block, transactions: block.transactions.map((each) => ({ ...each })) };
        }),
      ),
    /**
     * Transactions that the node would put into a block after that one, and that pay for it.
     * Undefined if it does not show them: some answer with their newest block.
     */
    pending: (after: number): Promise<PendingTransaction[] | undefined> =>
      askNode('the pending block', async () => {
        try {
          const params = { blockTag: 'pending', includeTransactions: true } as const;
          const block = await client.getBlock(params);
          const number: bigint | null = block.number;
          if (number !== null && number <= after) return undefined;
          return block.transactions.flatMap(({ maxFeePerGas, gasPrice, ...each }) => {
            const offer = maxFeePerGas ?? gasPrice ?? 0n;
            return offer >= (block.baseFeePerGas ?? 0n) ? [each] : [];
          });
        } catch (error) {
          if (toRefusal(error) === undefined && !isNamed(error, 'BlockNotFoundError')) throw error;
          return undefined;
        }
      }),
    /** Number of its block, or null for none yet; undefined for an unknown transaction. */
    findBlockOf: (hash: Hash): Promise<bigint | null | undefined> =>
      askNode('eth_getTransactionByHash', () =>
        orUndefined('TransactionNotFoundError', async () => {
          const { blockNumber } = await client.getTransaction({ hash });
          return blockNumber;
        }),
      ),
    transfers: (token: Address, blockHash: Hash): Promise<Movement[]> =>
      askNode('eth_getLogs', async () => {
        const logs = await client.getLogs({
          address: token,
          event: TRANSFER,
          blockHash,
          strict: true,
        });
        return logs.map(({ transactionHash: hash, args }) => ({ hash, ...args }));
      }),
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
    /** Undefined if the logs lack the bloom of the header: the node does not have all. */
    provenTransfers: (
      token: Address,
      { hash: blockHash, logsBloom }: Block,
    ): Promise<Movement[] | undefined> =>
      askNode('eth_getLogs', async () => {
        const logs = await client.getLogs({ blockHash });
        if (logsBloom === null || !matchesBloom(logsBloom, logs)) return undefined;
        const ofToken = logs.filter(({ address }) => isAddressEqual(address, token));
        const transfers = parseEventLogs({ abi: [TRANSFER], logs: ofToken, strict: true });
        return transfers.map(({ transactionHash: hash, args }) => ({ hash, ...args }));
      }),
    receipt: (hash: Hash): Promise<Receipt | undefined> =>
      askNode('eth_getTransactionReceipt', () =>
        orUndefined('TransactionReceiptNotFoundError', async () => {
          const receipt = await client.getTransactionReceipt({ hash });
          const { status, gasUsed, effectiveGasPrice } = receipt;
          return { succeeded: status === 'success', fee: gasUsed * effectiveGasPrice };
        }),
      ),
    getNonce: (address: Address, blockTag: 'latest' | 'pending') =>
      askNode('eth_getTransactionCount', () => client.getTransactionCount({ address, blockTag })),
    /** @param at by default the newest block */
    getBalance: (address: Address, at?: bigint) =>
      askNode('eth_getBalance', () => client.getBalance({ address, ...atBlock(at) })),
    getTokenBalance: (token: Address, address: Address, at?: bigint) =>
      askNode('balanceOf', () =>
        client.readContract({
          address: token,
          abi: erc20Abi,
          functionName: 'balanceOf',
          args: [address],
          ...atBlock(at),
        }),
      ),
    getDecimals: (token: Address) =>
      askNode('decimals', () =>
        client.readContract({ address: token, abi: erc20Abi, functionName: 'decimals' }),
      ),
    /** @returns undefined if the chain would revert the call */
    estimateGas: ({ from, ...call }: Call): Promise<bigint | undefined> =>
      askNode('eth_estimateGas', () =>
        orUndefined('ExecutionRevertedError', () => client.estimateGas({ account: from, ...call })),
      ),
    /** Wei per unit of gas: the newest block's base fee, and the tip for miners. */
    fees: () =>
      askNode('fees', async () => {
        const [{ baseFeePerGas }, tip] = await Promise.all([
          client.getBlock({ blockTag: 'latest' }),
          client.estimateMaxPriorityFeePerGas(),
        ]);
        if (baseFeePerGas === null) throw new Error('the chain has no base fee (EIP-1559)');
        return { base: baseFeePerGas, tip };
      }),
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

export function mayTransfer({ logsBloom }: Block, token: Address): boolean {
  return logsBloom !== null && mayContain(logsBloom, [token, TRANSFER_TOPIC]);
}

function atBlock(blockNumber: bigint | undefined): { blockNumber?: bigint } {
  return blockNumber === undefined ? {} : { blockNumber };
}

/** @throws Error with an explanation; repeat the check, since a provider may switch chains */
export async function assertChain(node: Pick<EvmNode, 'chainId'>, chainId: number): Promise<void> {
  const actual = await node.chainId();
  if (actual === chainId) return;
  throw new Error(`The node is on chain ${actual}, and chain_id is ${chainId}.`);
}

/** @throws Error with an explanation */
export async function assertToken(
  node: Pick<EvmNode, 'getDecimals'>,
  { usdc }: Assets,
): Promise<void> {
  if (usdc === undefined) return;
  const decimals = await node.getDecimals(usdc);
  if (decimals === DECIMALS.USDC) return;
  throw new Error(`The contract at usdc_address has ${decimals} decimals, and USDC has 6.`);
}

export interface BloomLog {
  address: Hex;
  topics: readonly Hex[];
}

const BYTES = 256;

export function mayContain(bloom: Hex, values: readonly Hex[]): boolean {
  const filter = hexToBytes(bloom);
  return values.flatMap(getBits).every(({ byte, mask }) => ((filter[byte] ?? 0) & mask) !== 0);
}

/** Whether these are all logs of the block: its header commits to them by the bloom. */
export function matchesBloom(bloom: Hex, logs: readonly BloomLog[]): boolean {
  const filter = new Uint8Array(BYTES);
  for (const { address, topics } of logs) {
    for (const { byte, mask } of [address, ...topics].flatMap(getBits)) {
      filter[byte] = (filter[byte] ?? 0) | mask;
    }
  }
  return hexToBytes(bloom).every((byte, at) => byte === filter[at]);
}

/** Three bits, by the first six bytes of the hash. */
function getBits(value: Hex): { byte: number; mask: number }[] {
  const hash = keccak256(value, 'bytes');
  return [0, 2, 4].map((at) => {
    const bit = (((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) & 0x7ff;
    return { byte: BYTES - 1 - (bit >> 3), mask: 1 << (bit & 7) };
  });
}

/** Excludes the node's URL, which may contain a key, and the request. */
export class NodeFailure extends Error {
  override readonly name = 'NodeFailure';
}

/** `held`: the node has the bytes, or a block does. */
type Broadcast = { outcome: 'held' } | { outcome: 'refused'; reason: string };

/** @throws NodeFailure instead of any other error */
async function askNode<T>(question: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const root = error instanceof BaseError ? error.walk() : error;
    // Its name alone: the message would quote the URL or the request.
    const name = root instanceof Error ? root.name : 'no error';
    throw new NodeFailure(`The node did not answer ${question}: ${name}`);
  }
}

async function orUndefined<T>(name: string, ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof BaseError && error.walk((each) => isNamed(each, name)) !== null) {
      return undefined;
    }
    throw error;
  }
}

function isNamed(error: unknown, name: string): boolean {
  return error instanceof Error && error.name === name;
}

/** @returns undefined if the node has not answered */
export function toRefusal(error: unknown): Broadcast | undefined {
  if (!(error instanceof BaseError)) return undefined;
  // A JSON-RPC error is the node's answer; all others mean that it was not reached.
  if (error.walk((each) => isNamed(each, 'RpcRequestError')) === null) return undefined;
  const { details } = error;
  if (/already ?(known|imported)|known transaction/i.test(details)) return { outcome: 'held' };
  return { outcome: 'refused', reason: details.slice(0, 200) };
}
