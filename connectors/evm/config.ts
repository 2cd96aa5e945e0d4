import { getAddress, isAddress } from 'viem';
import { z } from 'zod';
import { isBalanceAccountName } from '../../src/domain/balance-account';
import { TASK_QUEUE_PREFIX } from '../../src/domain/task-queues';

const count = (min: number, max: number) => z.coerce.number().int().min(min).max(max);
const path = z.string().min(1);

/** Environment of the process; secrets come in files. */
export const Environment = z.object({
  EVM_CONNECTOR: z
    .string()
    .refine(isBalanceAccountName, 'must be a connector’s name')
    .default('evm'),
  /** File with the node's URL, which may hold a key. */
  EVM_RPC_URL_FILE: path,
  EVM_CHAIN_ID: count(1, Number.MAX_SAFE_INTEGER),
  /** Blocks after which a deposit or a settlement counts. */
  EVM_CONFIRMATIONS: count(1, 500).default(12),
  /** An empty text is a fault here, not block 0. */
  EVM_START_BLOCK: z
    .string()
    .regex(/^\d{1,15}$/, 'must be the number of a block')
    .transform(Number)
    .optional(),
  /** Whether the node has `trace_block`. */
  EVM_TRACES: z.enum(['on', 'off']).default('off'),
  /** File with the extended public key of `m/44'/60'/0'`. */
  EVM_XPUB_FILE: path,
  EVM_USDC_ADDRESS: z
    .string()
    .refine((text) => isAddress(text), 'must be an address with its checksum')
    .transform((text) => getAddress(text))
    .optional(),
  EVM_KEYSTORE_FILE: path,
  EVM_KEYSTORE_PASSWORD_FILE: path,
  EVM_SCREENING_FILE: path,
  /** Path, or a URL. */
  EVM_RATES: path,
  EVM_RATES_SECONDS: count(1, 86_400).default(300),
  EVM_FEE_MAX_GWEI: z
    .string()
    .regex(/^\d{1,9}(\.\d{1,9})?$/)
    .default('200'),
  EVM_RAISE_SECONDS: count(15, 86_400).default(180),
  EVM_POLL_MS: count(100, 600_000).default(4_000),
  MONGODB_URI: z.string().min(1),
  MONGODB_DB: z.string().default('payments'),
  TEMPORAL_ADDRESS: z.string().default('127.0.0.1:7233'),
  TEMPORAL_NAMESPACE: z.string().default('default'),
  TASK_QUEUE_PREFIX: z.string().regex(TASK_QUEUE_PREFIX).default(''),
  LOG_LEVEL: z.string().default('info'),
});

export type EvmConfig = z.infer<typeof Environment>;

/** @throws Error naming every variable at fault. */
export function readEvmConfig(env: NodeJS.ProcessEnv = process.env): EvmConfig {
  const parsed = Environment.safeParse(env);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  throw new Error(`The environment is not usable.\n  ${faults.join('\n  ')}`);
}
