import { getAddress, isAddress } from 'viem';
import { z } from 'zod';
import { CLEAR_TEXT_ALLOWED, urlInClear } from '../../src/clear-text';
import { parseEnvironment, SERVER_VARIABLES, serversIn } from '../../src/config';
import { isBalanceAccountName } from '../../src/domain/balance-account';
import { LIVE_DEMO_ALLOWED } from '../../src/live';
import type { TemporalAccess } from '../../src/temporal/access';

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
  /** Key that reports are signed with: unsigned, they would be noted as told and move nothing. */
  CONNECTOR_KEY_FILE: path,
  EVM_POLL_MS: count(100, 600_000).default(4_000),
  ...SERVER_VARIABLES,
  /** Whether Temporal may be a development server: this process moves live money only. */
  ALLOW_LIVE_DEMO: z.enum(['', LIVE_DEMO_ALLOWED]).default(''),
  LOG_LEVEL: z.string().default('info'),
});

export type EvmConfig = z.infer<typeof Environment> & { temporal: TemporalAccess };

/** @throws Error naming every variable at fault. */
export function readEvmConfig(env: NodeJS.ProcessEnv = process.env): EvmConfig {
  const config = parseEnvironment(Environment, env);
  return { ...config, temporal: serversIn(env, config) };
}

/**
 * Holds that whoever tells of money, or of its price, is not listened to in clear over a network.
 * @param node URL of the node, which the message does not quote
 * @throws Error naming every variable at fault
 */
export function assertPrivate(
  { ALLOW_CLEAR_TEXT, EVM_RATES }: Pick<EvmConfig, 'ALLOW_CLEAR_TEXT' | 'EVM_RATES'>,
  node: string,
): void {
  if (ALLOW_CLEAR_TEXT === CLEAR_TEXT_ALLOWED) return;
  const faults = [urlInClear('EVM_RPC_URL_FILE', node), urlInClear('EVM_RATES', EVM_RATES)];
  const told = faults.filter((fault) => fault !== undefined);
  if (told.length > 0) throw new Error(told.join('\n'));
}
