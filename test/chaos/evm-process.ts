import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import * as Keystore from 'ox/Keystore';
import { type Address, getAddress } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import type { ConnectorKey } from '../../connectors/contract/callbacks';
import { type Child, startChild } from '../../stack/child-process';
import { CHAIN_ID } from '../connectors/evm/ethereum';
import { ACCOUNT } from '../connectors/evm/words';
import { eventually } from '../support/eventually';

/** Process of the connector, as `docs/evm.md` runs it. */
const MAIN = resolve('dist/connectors/evm/main.js');
const PASSWORD = 'correct horse';
const STOP_MS_MAX = 60_000;
const UP_MS_MAX = 90_000;

interface EvmProcessOptions {
  /** URLs of the node, and of one that checks it. */
  node: string;
  secondNode?: string;
  token: Address;
  connector: string;
  confirmations: number;
  /** Key that reports are signed with. */
  signing: ConnectorKey;
  /** Servers, database and queues of the product, where they are known before it starts. */
  env?: NodeJS.ProcessEnv;
}

export type EvmProcess = ReturnType<typeof createEvmProcess>;

/** The connector's process, one at a time, with files of its own for what it is given. */
export function createEvmProcess(options: EvmProcessOptions) {
  const folder = mkdtempSync(join(tmpdir(), 'evm-process-'));
  const key = generatePrivateKey();
  const env = {
    ...{ PATH: process.env['PATH'], DATA_DIR: folder },
    ...environment(folder, key, options),
  };
  let child: Child | undefined;
  let starts = 0;
  const logFile = () => join(folder, `${starts}.log`);
  const said = () => readFileSync(logFile(), 'utf8');
  /** Starts a process, which may have to wait for the node. */
  const start = async (change: NodeJS.ProcessEnv = {}): Promise<Child> => {
    starts += 1;
    child = await startChild({
      ...{ name: 'evm', command: process.execPath, args: [MAIN], logFile: logFile() },
      ...{ env: { ...env, ...change }, ipc: true, graceMs: STOP_MS_MAX },
    });
    return child;
  };
  const until = (words: string) => {
    const isSaid = async () => {
      if (child?.hasExited()) throw new Error(`The process has ended:\n${said()}`);
      return said().includes(words);
    };
    return eventually(`“${words}”`, isSaid, UP_MS_MAX);
  };
  const kill = async () => {
    child?.kill();
    await child?.exited;
  };
  return {
    /** Account that pays settlements. */
    payer: privateKeyToAddress(key),
    ...{ start, said, until, kill },
    /** Starts a process and waits until it follows the chain. */
    follow: async () => {
      await start();
      await until('the chain is followed');
    },
    /** Ends the process by SIGTERM and returns how it ended, in words. */
    stop: async () => {
      await child?.stop();
      return await child?.exited;
    },
    destroy: async () => {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Variables of the process, whose secrets lie in files. */
function environment(
  folder: string,
  key: `0x${string}`,
  { node, secondNode, token, connector, confirmations, signing, env }: EvmProcessOptions,
) {
  const file = (name: string, content: string): string => {
    const path = join(folder, name);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  };
  const [derived, how] = Keystore.scrypt({ password: PASSWORD, n: 1_024 });
  const rates = { ETH: { EUR: '2000' }, USDC: { EUR: '0.8' } };
  const settings = {
    connector,
    rpc_url_file: file('node', `${node}\n`),
    ...(secondNode === undefined ? {} : { check_rpc_url_file: file('second-node', secondNode) }),
    chain_id: CHAIN_ID,
    confirmations,
    traces: true,
    xpub_file: file('xpub', ACCOUNT.publicExtendedKey),
    usdc_address: getAddress(token),
    keystore_file: file('keystore', JSON.stringify(Keystore.encrypt(key, derived, how))),
    keystore_password_file: file('password', PASSWORD),
    screening_file: file('list', '# Nobody.\n'),
    rates: file('rates', JSON.stringify({ as_of: new Date().toISOString(), rates })),
    rates_seconds: 3_600,
    fee_max_gwei: '1000',
    raise_seconds: 86_400,
    poll_ms: 100,
  };
  return {
    EVM_CONFIG_FILE: file('evm.json', JSON.stringify(settings)),
    CONNECTOR_KEY_FILE: file('key.json', JSON.stringify(signing)),
    ALLOW_LIVE_DEMO: 'yes',
    ...env,
  };
}
