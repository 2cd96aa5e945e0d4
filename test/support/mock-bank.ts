import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { freePort } from '../../stack/ports';
import { eventually } from './eventually';
import { describeWith, installPythonTools } from './python-tools';

const REQUIREMENTS = resolve('test/connectors/sepa/requirements.txt');

export const BANK_MORNING = '2026-10-05T09:30';

interface Transfer {
  amount: number;
  note?: string;
  /** In the field for creditor references. */
  reference?: string;
  end_to_end_id?: string;
  /** Width at which the bank cuts the note. */
  wrap?: 35 | 70;
}

const PAYER = { account: 'ACME', debtor: { name: 'Zephyrine Quackenbush' } };

/** Describes tests that need this bank, which runs on Python. Without it, their title says so. */
export function describeWithBank(title: string, tests: () => void): void {
  describeWith('python3', title, tests);
}

/** A bank that we did not write, with two folders and a clock of its own. */
export async function startMockBank(clock = BANK_MORNING) {
  const packages = await installPythonTools(REQUIREMENTS);
  const folder = mkdtempSync(join(tmpdir(), 'mock-bank-'));
  const [drop, pickup] = [join(folder, 'drop'), join(folder, 'pickup')];
  for (const each of [drop, pickup]) mkdirSync(each);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  let child: ChildProcess;
  const start = async (at: string): Promise<void> => {
    child = spawn(
      'python3',
      [
        ...['-m', 'mockbank', '--quiet', '--port', String(port), '--clock', at],
        ...['--db', join(folder, 'bank.db'), '--drop-dir', drop, '--pickup-dir', pickup],
        // The tests say when it looks.
        ...['--drop-settle-ms', '0', '--drop-interval-ms', '3600000'],
      ],
      { env: { ...process.env, PYTHONPATH: packages }, stdio: 'ignore' },
    );
    const ask = () => fetch(`${url}/_mock/health`).catch(() => undefined);
    await eventually('the mock bank', async () => (await ask())?.ok);
  };
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  };
  const call = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${url}${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return JSON.parse(text);
  };
  await start(clock);
  return {
    ...{ drop, pickup },
    scan: () => call('POST', '/_mock/drop/scan'),
    advance: (days: number) => call('POST', `/_mock/advance?days=${days}`),
    /** Lets a payer's transfer come; in minor units. */
    credit: (transfer: Transfer) => call('POST', '/_mock/credits', { ...PAYER, ...transfer }),
    patch: (account: string, changes: object) =>
      call('PATCH', `/_mock/accounts/${account}`, changes),
    account: async (id: string) => await call('GET', `/_mock/accounts/${id}`),
    /** All payments of an `EndToEndId`. */
    payments: (id: string) => call('GET', `/_mock/payments/${id}?all`),
    restart: async (at: string): Promise<void> => {
      await stop('SIGKILL');
      await start(at);
    },
    stop: async (): Promise<void> => {
      await stop('SIGTERM');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
