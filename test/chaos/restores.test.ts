import { eventually } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { findDifferences } from './race';
import { BANK_NAMES, openDrill } from './restore-drill';
import type { RunningStack, StackOptions } from './running-stack';

/**
 * Puts MongoDB and Temporal back, together and each alone, as docs/operations.md says, under payouts,
 * settlements and kills. Banks and chain are not put back: none may execute an instruction twice.
 * `RESTORES=all` runs it.
 */
const AT_ONCE = 3;
/** Instructions that were not sent are repeated after up to two minutes. */
const DONE_MS_MAX = 180_000;
/** Payouts and settlements of which the service does not know that a bank has them. */
const UNSENT = ['created', 'submitted', 'pending'];
/** Longer than the pause between two attempts of an instruction. */
const QUIET_MS = 3_000;

interface Case {
  what: string;
  folders: ('mongodb' | 'temporal')[];
  /** Runs what the start waits for. */
  whileStarting?: StackOptions['whileStarting'];
  /** Runs what the docs say once it has started. */
  repair?: (stack: RunningStack, since: string) => Promise<unknown>;
}

const CASES: readonly Case[] = [
  { what: 'both stores', folders: ['mongodb', 'temporal'] },
  {
    what: 'MongoDB alone',
    folders: ['mongodb'],
    whileStarting: (cli) => {
      const agree = () => cli('reconcile', '--apply').catch(() => undefined);
      return eventually('the stores to agree', agree, DONE_MS_MAX);
    },
  },
  {
    what: 'Temporal alone',
    folders: ['temporal'],
    repair: async ({ cli }, since) => {
      await cli('callback', 'deliver', '--again', '--since', since);
      await cli('orphan', 'restart');
    },
  },
];

const drill = useFixture(openDrill, (opened) => opened.close());
const payEach = async (count: number): Promise<string[]> =>
  await Promise.all(
    BANK_NAMES.flatMap((name) => Array.from({ length: count }, () => drill.pay(name))),
  );

/** Waits until each is executed, and completed. */
async function untilCompleted(ids: readonly string[]): Promise<void> {
  let statuses: string[] = [];
  const isCompleted = async () => {
    await drill.finish();
    statuses = await Promise.all(ids.map(async (id) => String((await drill.read(id)).status)));
    return statuses.every((status) => status === 'completed');
  };
  await eventually('payouts to be completed', isCompleted, DONE_MS_MAX).catch(() => undefined);
  expect(statuses).toEqual(ids.map(() => 'completed'));
}

/** Pays while processes are killed, until the banks have executed all of it. */
async function payUnderKills(): Promise<string[]> {
  const [ids] = await Promise.all([payEach(AT_ONCE), drill.kill()]);
  await untilCompleted(ids);
  return ids;
}

const before: string[] = [];
const unsent: string[] = [];
let backedUpAt = '';

beforeAll(async () => {
  before.push(...(await payUnderKills()));
  await drill.stop(async () => void unsent.push(...(await payEach(1))));
  for (const name of ['mongodb', 'temporal']) drill.copy(name, 'backup');
  backedUpAt = new Date().toISOString();
  await drill.start();
  await untilCompleted(unsent);
}, 600_000);

test.each(CASES)(
  'nothing is paid twice where $what is put back',
  async (each) => {
    const since = await payUnderKills();
    const late: string[] = [];
    const bank = await drill.stop(async () => void late.push(...(await payEach(1))));
    for (const name of each.folders) drill.copy(name, 'data');
    const isMongo = each.folders.includes('mongodb');
    const { whileStarting } = each;
    await drill.start(whileStarting ? { whileStarting } : {}, isMongo ? bank : undefined);
    await each.repair?.(drill.stack(), backedUpAt);
    const meanwhile = await payEach(1);
    if (isMongo) await expectNothingSent([...late, ...meanwhile]);
    const known = await endExecuted([...before, ...unsent, ...since, ...late]);
    if (isMongo) for (const name of BANK_NAMES) await drill.release(name);
    await untilCompleted([...known, ...meanwhile]);
    const all = [...before, ...unsent, ...since, ...meanwhile];
    expect(await drill.countExecuted(all)).toEqual(all.map(() => 1));
    expect(Math.max(...(await drill.countExecuted(late)))).toBeLessThanOrEqual(1);
    expect(await findDifferences(drill.stack())).toEqual([]);
  },
  300_000,
);

/** Expects that connectors say why they are stopped, and send nothing. */
async function expectNothingSent(ids: readonly string[]): Promise<void> {
  for (const name of BANK_NAMES) {
    const isStopped = async () => (await drill.readStop(name)) !== null;
    await eventually(`a stop of ${name}`, isStopped, DONE_MS_MAX);
  }
  await new Promise((done) => setTimeout(done, QUIET_MS));
  expect(await drill.countExecuted(ids)).toEqual(ids.map(() => 0));
}

/** Marks as completed what the service has as unsent and a bank has executed. @returns what it has */
async function endExecuted(ids: readonly string[]): Promise<string[]> {
  const executed = await drill.countExecuted(ids);
  const known: string[] = [];
  for (const [at, id] of ids.entries()) {
    const { status } = await drill.read(id);
    if (status === undefined) continue;
    known.push(id);
    if (!UNSENT.includes(status) || executed[at] === 0) continue;
    await drill.complete(id);
  }
  return known;
}
