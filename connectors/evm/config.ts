import { readFileSync } from 'node:fs';
import { getAddress, isAddress, parseGwei } from 'viem';
import { z } from 'zod';
import { describeError } from '../../src/base/errors';
import { checkUrlTls, PLAIN_TEXT_ALLOWED } from '../../src/base/tls';
import { Environment, parseEnvironment, readServers } from '../../src/config';
import { type Env, toEnv } from '../../src/domain/environment';
import { isBalanceAccountName } from '../../src/domain/money/money';
import { createConnectors, SANDBOX_CONNECTOR } from '../../src/routing';
import type { TemporalAccess } from '../../src/temporal/access';
import { findStateDir } from '../kit/config';
import type { Asset } from './assets';

const path = z.string().min(1);
const count = (min: number, max: number) => z.int().min(min).max(max);
const percent = z.number().positive().max(1_000);
const units = z
  .string()
  .regex(/^(0|[1-9]\d{0,27})$/, 'must be an integer in the smallest unit, as text');
/** Smallest units by asset. */
const amounts = ({ ETH, USDC }: { ETH: string; USDC: string }) =>
  z.strictObject({ ETH: units.default(ETH), USDC: units.default(USDC) });

const CHECK_ALL = { ETH: '0', USDC: '0' };
const DEPOSIT_MIN = { ETH: '10000000000000', USDC: '10000' };

/** Names the files of secrets and contains none. */
export const EvmSettings = z.strictObject({
  connector: z
    .string()
    .refine(isBalanceAccountName, 'must be a connector’s name')
    .default('evm')
    .meta({ description: 'Name in `LIVE_CONNECTORS`' }),
  rpc_url_file: path.meta({ description: 'File with the URL of the node' }),
  check_rpc_url_file: path.optional().meta({
    description: 'The same of a [second node](#a-second-node); required on live',
  }),
  check_above: amounts(CHECK_ALL).optional().meta({
    description: 'Amounts above which it confirms deposits, as `deposit_min`',
    usual: 'none: all',
  }),
  chain_id: z.int().positive().meta({ description: '1 for mainnet' }),
  confirmations: count(1, 500).default(12).meta({
    description: 'Blocks that make a transaction final, its own included',
  }),
  start_block: count(0, 1e15).optional().meta({
    description: 'Block from which the first start reads',
    usual: '128 blocks before the newest',
  }),
  traces: z.boolean().default(false).meta({
    description: 'true: ether from contracts is seen, by the node’s `trace_block`',
  }),
  xpub_file: path.meta({
    description: "File with the extended public key of m/44'/60'/0'",
  }),
  deposit_min: amounts(DEPOSIT_MIN).optional().meta({
    description: 'Least amounts, in the smallest unit: `{"ETH": "…", "USDC": "…"}`',
    usual: '0.00001 ETH, 0.01 USDC',
  }),
  usdc_address: z
    .string()
    .refine((text) => isAddress(text), 'must be an address with its checksum')
    .transform((text) => getAddress(text))
    .optional()
    .meta({ description: 'Contract of USDC, with checksum; else only ETH is served' }),
  keystore_file: path.meta({
    description: 'Encrypted key (version 3) that pays settlements',
  }),
  keystore_password_file: path.meta({ description: 'File with its password' }),
  screening_file: path.meta({
    description: 'File with addresses of payers to hold, one per line',
  }),
  rates: path.meta({ description: 'Path or URL of the [rates](#rates)' }),
  rates_seconds: count(1, 86_400).default(300).meta({
    description: 'Age from which rates are refused',
  }),
  rates_check: path.optional().meta({ description: 'The same of a second source' }),
  rate_change_max: percent.default(20).meta({
    description: 'Percent by which a price may change in an hour',
  }),
  rate_difference_max: percent.default(3).meta({
    description: 'Percent by which the sources may differ, and USDC from 1 USD',
  }),
  fee_max_gwei: z
    .string()
    .regex(/^\d{1,9}(\.\d{1,9})?$/)
    .default('200')
    .meta({
      description: 'Price of gas, as text, above which settlements wait',
    }),
  raise_seconds: count(15, 86_400).default(180).meta({
    description: 'Age at which a settlement in no block offers more',
  }),
  poll_ms: count(100, 600_000).default(4_000).meta({
    description: 'Time between two reads',
  }),
});

/** The worker would store unsigned reports without applying them. */
const EvmEnvironment = Environment.omit({ KEYS_FILE: true, KEYS_DIR: true }).extend({
  EVM_CONFIG_FILE: path,
  CONNECTOR_KEY_FILE: path,
});

export type EvmConfig = z.infer<typeof EvmEnvironment> & {
  temporal: TemporalAccess;
  environment: Env;
  settings: z.infer<typeof EvmSettings>;
};

export function readEvmConfig(env: NodeJS.ProcessEnv = process.env): EvmConfig {
  const config = parseEnvironment(EvmEnvironment, env);
  const settings = readSettings(config.EVM_CONFIG_FILE);
  const { LIVE_CONNECTORS, SANDBOX_CONNECTORS } = config;
  const { liveNames } = createConnectors(SANDBOX_CONNECTOR, LIVE_CONNECTORS, SANDBOX_CONNECTORS);
  const environment = toEnv(liveNames.includes(settings.connector));
  if (environment === 'live' && config.CONNECTOR_STATE_DIR === '') {
    throw new Error(`The connector ${settings.connector} needs CONNECTOR_STATE_DIR.`);
  }
  if (environment === 'live' && settings.check_rpc_url_file === undefined) {
    throw new Error(
      `On live the connector ${settings.connector} needs check_rpc_url_file, the node of another ` +
        'provider: one node alone could report deposits that no chain has.',
    );
  }
  return {
    ...{ ...config, environment, CONNECTOR_STATE_DIR: findStateDir(config) },
    temporal: readServers(env, config),
    settings,
  };
}

function readSettings(file: string): z.infer<typeof EvmSettings> {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Error(`EVM_CONFIG_FILE ${file} cannot be read: ${describeError(error)}`);
  }
  const parsed = EvmSettings.safeParse(content);
  if (parsed.success && (parsed.data.check_above === undefined || parsed.data.check_rpc_url_file)) {
    return parsed.data;
  }
  const faults = parsed.success
    ? ['check_above: needs check_rpc_url_file, the node that checks']
    : parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw new Error(`EVM_CONFIG_FILE ${file} is not usable.\n  ${faults.join('\n  ')}`);
}

/**
 * @param urls of the nodes, which the message never quotes
 * @throws Error naming every setting at fault
 */
export function assertTls(
  { ALLOW_CLEAR_TEXT, settings }: Pick<EvmConfig, 'ALLOW_CLEAR_TEXT' | 'settings'>,
  { node, secondNode }: { node: string; secondNode: string | undefined },
): void {
  if (ALLOW_CLEAR_TEXT === PLAIN_TEXT_ALLOWED) return;
  const faults = [
    checkUrlTls('rpc_url_file', node),
    checkUrlTls('check_rpc_url_file', secondNode ?? ''),
    checkUrlTls('rates', settings.rates),
    checkUrlTls('rates_check', settings.rates_check ?? ''),
  ];
  const messages = faults.filter((fault) => fault !== undefined);
  if (messages.length > 0) throw new Error(messages.join('\n'));
}

/** Amounts in the smallest units, prices of gas in wei. */
export type ChainSettings = ReturnType<typeof toChainSettings>;

export function toChainSettings(settings: EvmConfig['settings']) {
  return {
    chainId: settings.chain_id,
    assets: { usdc: settings.usdc_address },
    confirmations: settings.confirmations,
    startBlock: settings.start_block,
    traces: settings.traces,
    checkAbove: toUnits(settings.check_above ?? CHECK_ALL),
    least: toUnits(settings.deposit_min ?? DEPOSIT_MIN),
    rateChangeMax: settings.rate_change_max,
    rateDifferenceMax: settings.rate_difference_max,
    feeCap: parseGwei(settings.fee_max_gwei),
    raiseAfterMs: settings.raise_seconds * 1_000,
  };
}

function toUnits({ ETH, USDC }: Record<Asset, string>): Record<Asset, bigint> {
  return { ETH: BigInt(ETH), USDC: BigInt(USDC) };
}
