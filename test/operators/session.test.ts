import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, chromium as engine } from 'playwright-core';
import { cacheDirectory, provision } from '../../stack/provision/provision';
import { temporalCli } from '../../stack/provision/temporal';
import { showProgress } from '../../stack/terminal';
import { findDifferences, listAll, RECIPIENT, useMerchant } from '../chaos/race';
import { startWebhookReceiver } from '../chaos/webhook-receiver';
import { useFixture } from '../support/fixture';
import { chromium } from '../support/servers';

/**
 * Evening on call, with nothing but the Temporal UI's query, the `temporal` command line and
 * the product's own: of ten payouts three are stuck, each for another reason. Each is found, wrong
 * acts are refused with the reason and move nothing, and the act that fits resolves each.
 */
const STUCK =
  'ServiceAttention IS NOT NULL AND WorkflowType="payout" AND ExecutionStatus="Running"';
const SILENT_AFTER_SENT = 66_623;
const STAYS_SUBMITTED = 66_624;
/** Minor units, in EUR and in GBP; no magic amounts. */
const SMOOTH = [1_051, 1_052, 1_053, 1_054, 1_055, 1_056];
const SMOOTH_GBP = 1_057;

const BRITISH = { iban: undefined, sort_code: '601613', account_number: '31926819' };
const PAYOUTS = {
  EUR: { method: 'sepa_instant', recipient: RECIPIENT },
  GBP: { method: 'faster_payments', recipient: { ...RECIPIENT, ...BRITISH } },
};

const receiver = useFixture(startWebhookReceiver, (started) => started.close());
const merchant = useMerchant('On call', { autoplay: 'on' });
let temporal: TemporalCli;
let camera: Camera | undefined;
let before: Awaited<ReturnType<typeof readBalances>>;
/** Ids: sent, then silence; never sent; ended from outside. */
let a: string;
let b: string;
let c: string;
let smooth: string[];

beforeAll(async () => {
  const { stack, account } = merchant;
  const state = stack.state();
  if (state === undefined) throw new Error('The stack has stopped.');
  temporal = await openTemporalCli(state.temporal.address);
  camera = await openCamera(state.temporal.ui_url ?? '');
  await receiver.register(stack, account);
  before = await readBalances();
});
afterAll(() => camera?.close());

/** @param amount minor units; no two the same */
async function pay(currency: keyof typeof PAYOUTS, amount: number): Promise<string> {
  const { client } = merchant;
  const { method, recipient } = PAYOUTS[currency];
  const recipient_id = (await client.post('/v1/payout-recipients', recipient, currency)).body.id;
  const body = { recipient_id, method, currency, amount };
  return (await client.post('/v1/payouts', body, `${currency}-${amount}`)).body.id;
}

const show = (id: string) => merchant.stack.cli('payout', 'show', id);
const listStatuses = async () =>
  new Map((await listAll(merchant.client, '/v1/payouts')).map(({ id, status }) => [id, status]));
const listOrphans = async () => (await merchant.stack.cli('orphan', 'list')).data;

/** Amounts of the balance `main`, in EUR and in GBP. */
async function readBalances() {
  const { data } = (await merchant.client.get('/v1/balances')).body;
  const read = (wanted: string): { available: number; reserved: number } => {
    const isMain = ({ balance_account, currency }: Record<string, string>) =>
      balance_account === 'main' && currency === wanted;
    const { available, reserved } = data.find(isMain);
    return { available, reserved };
  };
  return { EUR: read('EUR'), GBP: read('GBP') };
}

test('one query finds the three stuck payouts among ten', async () => {
  const stuck = [pay('EUR', SILENT_AFTER_SENT), pay('EUR', STAYS_SUBMITTED)] as const;
  const ended = pay('GBP', STAYS_SUBMITTED);
  const others = [...SMOOTH.map((amount) => pay('EUR', amount)), pay('GBP', SMOOTH_GBP)];
  [a, b, c, smooth] = [await stuck[0], await stuck[1], await ended, await Promise.all(others)];

  await terminate(c);
  expect(await listOrphans()).toMatchObject([{ id: c, workflow: 'TERMINATED' }]);
  await merchant.stack.cli('orphan', 'restart', c);
  expect(await listOrphans()).toEqual([]);

  await merchant.client.persevere('the others to complete', async () => {
    const statuses = await listStatuses();
    return smooth.every((id) => statuses.get(id) === 'completed') ? true : undefined;
  });
  // The first two are overdue by now.
  await merchant.stack.cli('clock', 'advance', merchant.account, '--by', 'PT61S');
  const stuckIds = [a, b, c].map(findWorkflow).sort();
  await merchant.client.persevere('three stuck payouts, and no other', async () =>
    `${(await temporal.find(STUCK)).sort()}` === `${stuckIds}` ? true : undefined,
  );
  await camera?.list('1-list', STUCK, 3);
});

test('the page of each stuck payout says what is wrong and which updates fit', async () => {
  const { data } = await merchant.stack.cli('attention', 'list');
  const reasons = new Map(
    data.map((row: Record<string, string>) => [row['resource_id'], row['reason']]),
  );
  const expected = ['not_completed', 'not_sent', 'restarted_in_flight'];
  expect([a, b, c].map((id) => reasons.get(id))).toEqual(expected);
  const pages = [a, b, c].map((id) => temporal.details(findWorkflow(id)));
  const [ofA, ofB, ofC] = await Promise.all(pages);
  expect(ofA).toMatch(/\*\*sent\*\*.*mark_completed.*not_completed/s);
  expect(ofB).toMatch(/\*\*submitted\*\*.*resubmit.*not_sent/s);
  expect(ofC).toMatch(/restarted_in_flight.*snooze/s);
  await camera?.workflow('2-not-completed', findWorkflow(a));
  await camera?.workflow('3-not-sent', findWorkflow(b));
  await camera?.workflow('4-restarted', findWorkflow(c));
});

test('an update that does not fit is refused with the reason, and moves no money', async () => {
  const act = { operator: 'ada', reason: 'a guess' };
  const readAll = async () => [await listAll(merchant.client, '/v1/payouts'), await readBalances()];
  const then = await readAll();
  await Promise.all([
    refused(b, 'mark_returned', act, 'The payout is submitted; only one that was sent'),
    refused(a, 'resubmit', act, 'The payout is sent; only one that the bank has not sent'),
    refused(a, 'mark_completed', { reason: 'a guess' }, 'operator: is required'),
    refused(b, 'mark_failed', { operator: 'ada' }, 'reason: is required'),
    refused(b, 'snooze', { ...act, hours: 0 }, 'hours: must be more than 0'),
    refused(b, 'snooze', act, 'hours: is required'),
  ]);
  expect(await readAll()).toEqual(then);
  expect(await temporal.find(STUCK)).toHaveLength(3);
});

test('the fitting update resolves each payout, and the query then finds nothing', async () => {
  const word = { operator: 'ada', reason: 'the bank found it on its statement, line 14' };
  expect(await updated(a, 'mark_completed', word)).toEqual({ status: 'completed' });

  const ask = { operator: 'ada', reason: 'overdue: where does it stand?' };
  expect(await updated(b, 'resubmit', ask)).toEqual({ status: 'submitted', bank: 'submitted' });
  const guess = { operator: 'ada', reason: 'it takes too long' };
  await refused(b, 'mark_failed', guess, 'The bank holds the payout');
  const rejected = {
    operator: 'ada',
    reason: 'the bank will not send it, call 4711',
    bank_confirmed_not_executed: true,
  };
  expect(await updated(b, 'mark_failed', rejected)).toEqual({ status: 'failed' });

  expect(await updated(c, 'resubmit', ask)).toEqual({ status: 'submitted', bank: 'submitted' });
  const wait = { operator: 'ada', reason: 'the bank is at it, ticket 12', hours: 2 };
  expect(await updated(c, 'snooze', wait)).toEqual({ status: 'submitted' });

  await merchant.client.persevere('the query to find nothing', async () =>
    (await temporal.find(STUCK)).length === 0 ? true : undefined,
  );
  await camera?.list('5-list-after', STUCK, 0);

  // Later the bank calls back; this time by the product's own command line.
  const by = ['--operator', 'ben', '--reason', 'the recipient has it, call 4712'];
  const done = await merchant.stack.cli('payout', 'act', c, 'mark_completed', ...by);
  expect(done).toMatchObject({ status: 'completed', attention: null });
});

test('API, audit trail, books and events agree afterwards', async () => {
  const statuses = await listStatuses();
  expect([a, b, c].map((id) => statuses.get(id))).toEqual(['completed', 'failed', 'completed']);
  expect(smooth.map((id) => statuses.get(id))).toEqual(smooth.map(() => 'completed'));
  expect(statuses.size).toBe(10);

  const [ofA, ofB, ofC] = await Promise.all([a, b, c].map(show));
  expectAudit(ofA, [['ada', 'mark_completed', 'sent', 'completed']]);
  expectAudit(ofB, [
    ['ada', 'resubmit', 'not_sent', 'not_sent'],
    ['ada', 'mark_failed', 'submitted', 'failed'],
  ]);
  expectAudit(ofC, [
    ['ada', 'resubmit', 'restarted_in_flight', 'restarted_in_flight'],
    ['ada', 'snooze', 'restarted_in_flight', 'no attention'],
    ['ben', 'mark_completed', 'submitted', 'completed'],
  ]);
  expect(ofB.payout.failure).toMatchObject({ code: 'failed_at_bank' });
  const log = await merchant.stack.cli('audit', 'list', '--account', merchant.account);
  const targets = log.data.map(({ target }: { target: string }) => target);
  expect(targets).toContain(c);
  for (const id of smooth) expect(targets).not.toContain(id);

  const drawn = SILENT_AFTER_SENT + SMOOTH.reduce((sum, amount) => sum + amount, 0);
  const drawnGbp = STAYS_SUBMITTED + SMOOTH_GBP;
  expect(await readBalances()).toEqual({
    EUR: { available: before.EUR.available - drawn, reserved: 0 },
    GBP: { available: before.GBP.available - drawnGbp, reserved: 0 },
  });
  expect(await findDifferences(merchant.stack)).toEqual([]);
  await expectEventsOnce();
});

/** Both runs of a terminated workflow write under one id: an event that came twice would show. */
async function expectEventsOnce(): Promise<void> {
  const through = ['payout.submitted', 'payout.sent', 'payout.completed'];
  const wanted = [a, c, ...smooth].flatMap((id) => through.map((type) => `${id} ${type}`));
  wanted.push(`${b} payout.submitted`, `${b} payout.failed`);
  await merchant.client.persevere('every event to be delivered', async () =>
    receiver.received.size >= wanted.length ? true : undefined,
  );
  const got = [...receiver.received.values()];
  const named = got.map(({ event }) => `${event.data['payout_id']} ${event.type}`);
  expect(named.sort()).toEqual(wanted.sort());
  // An answer of a busy machine may come too late; the log of attempts then shows it.
  for (const { event, times } of got.filter((each) => each.times !== 1)) {
    const { attempts } = await merchant.stack.cli('event', 'show', event.id);
    expect([event.id, attempts.length]).toEqual([event.id, times]);
  }
  expect(receiver.faults).toEqual([]);
}

/** Before and after are states; of an act that changes no state, attention reasons. */
function expectAudit({ audit }: { audit: Audit[] }, wanted: readonly string[][]): void {
  const acts = audit.map((row) => [row.who, row.what, row.before, row.after]);
  expect(acts).toEqual(wanted);
  for (const { why } of audit) expect(why).not.toBe('');
  const times = audit.map(({ when }) => Date.parse(when));
  expect(times).not.toContain(Number.NaN);
  expect(times).toEqual(times.toSorted((one, other) => one - other));
}

type Audit = Record<'who' | 'when' | 'what' | 'why' | 'before' | 'after', string>;

const QUESTIONS_MAX = 10;

/** Sends an update again when a busy machine's bank did not answer in its seconds. */
async function updateInTime(id: string, name: string, act: OperatorAct) {
  for (let left = QUESTIONS_MAX; ; left -= 1) {
    const ran = await temporal.update(findWorkflow(id), name, act);
    if (!ran.stderr.includes('The bank did not answer in time') || left === 1) return ran;
  }
}

async function refused(id: string, name: string, act: OperatorAct, words: string): Promise<void> {
  const { code, stderr } = await updateInTime(id, name, act);
  expect(stderr).toContain(words);
  expect(code).toBe(1);
}

/** Answer of an update, but for ids and versions. */
async function updated(id: string, name: string, act: OperatorAct) {
  const { stdout, stderr } = await temporal.update(findWorkflow(id), name, act);
  expect(stderr).toBe('');
  const { status, bank } = JSON.parse(stdout).result;
  return { status, bank };
}

/** As somebody does by mistake in the UI. */
async function terminate(id: string): Promise<void> {
  const end = ['--workflow-id', findWorkflow(id), '--reason', 'by mistake'];
  expect(await temporal.run('workflow', 'terminate', ...end)).toMatchObject({ code: 0 });
}

function findWorkflow(id: string): string {
  return `payout:${id}`;
}

const ARGS = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'];
const VIEW = { width: 1500, height: 1000 };

type Camera = NonNullable<Awaited<ReturnType<typeof openCamera>>>;

/**
 * Takes pictures of what an operator sees in the Temporal UI. Undefined unless SCREENSHOTS names a
 * folder. @param ui its base URL
 */
async function openCamera(ui: string) {
  const folder = process.env['SCREENSHOTS'];
  if (folder === undefined || folder === '') return undefined;
  mkdirSync(folder, { recursive: true });
  const browser: Browser = await engine.launch({ executablePath: chromium(), args: ARGS });
  const page = await browser.newPage({ viewport: VIEW });
  const shoot = async (name: string): Promise<void> => {
    await page.screenshot({ path: join(folder, `${name}.png`) });
  };
  return {
    /** @param rows how many the list is to show */
    async list(name: string, query: string, rows: number): Promise<void> {
      await page.goto(`${ui}/namespaces/default/workflows?query=${encodeURIComponent(query)}`);
      await page.getByRole('heading', { name: new RegExp(`^${rows} Workflow`) }).waitFor();
      await shoot(name);
    },
    /** A workflow's page with its current details, and the form of an update. */
    async workflow(name: string, workflowId: string): Promise<void> {
      await page.goto(`${ui}/namespaces/default/workflows/${encodeURIComponent(workflowId)}`);
      await page.getByText('User Metadata').first().click();
      const details = page.locator('iframe[src*="Waits"]');
      await details.contentFrame().getByText('Waiting for').waitFor();
      await shoot(`${name}-details`);
      await page.getByRole('button', { name: 'More Actions' }).click();
      await page.getByRole('menuitem', { name: 'Send an Update' }).click();
      await page.getByRole('button', { name: 'Select an Update' }).click();
      await page.getByRole('option').first().waitFor();
      await shoot(`${name}-update`);
    },
    close: () => browser.close(),
  };
}

const COMMAND_MS_MAX = 60_000;

/** How one command ended, and what it wrote. */
interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
}

interface OperatorAct {
  operator?: string;
  reason?: string;
  hours?: number;
}

type TemporalCli = Awaited<ReturnType<typeof openTemporalCli>>;

/** Opens the real `temporal` command line. @param address host:port of the server */
async function openTemporalCli(address: string) {
  const { path } = await provision(temporalCli, {
    ...{ cacheDir: cacheDirectory(process.env), env: process.env },
    ...{ progress: showProgress(process.stderr), signal: new AbortController().signal },
  });
  const run = (...args: string[]) => runTool(path, [...args, '--address', address]);
  const must = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(...args);
    if (code !== 0) throw new Error(`temporal ${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  return {
    run,
    /** Workflow ids that a visibility query gives. */
    find: async (query: string): Promise<string[]> => {
      type Listed = { execution: { workflowId: string } };
      const listed: Listed[] = JSON.parse(
        await must('workflow', 'list', '--query', query, '-o', 'json'),
      );
      return listed.map(({ execution }) => execution.workflowId);
    },
    /** Runs `temporal workflow update execute`, however it ends. */
    update: (workflowId: string, name: string, act: OperatorAct) =>
      run(
        ...['workflow', 'update', 'execute', '--workflow-id', workflowId, '--name', name],
        ...['--input', JSON.stringify(act), '-o', 'json'],
      ),
    /** Current details, as `temporal workflow metadata` prints them. */
    details: async (workflowId: string): Promise<string> => {
      const metadata = await must('workflow', 'metadata', '--workflow-id', workflowId);
      return metadata.slice(metadata.indexOf('Current Details:'));
    },
  };
}

/** Without the developer's own settings of the tool. */
async function runTool(path: string, args: readonly string[]): Promise<Ran> {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('TEMPORAL_'));
  const child = spawn(path, args, {
    env: Object.fromEntries(own),
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: COMMAND_MS_MAX,
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  return await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
}
