import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Document, MongoServerError } from 'mongodb';
import { verifyLedger } from '../../src/ledger-check/verify';
import { type Child, startChild, waitUntilUp } from '../../stack/child-process';
import { freePort, LOOPBACK } from '../../stack/ports';
import { mongod } from '../../stack/provision/mongod';
import { startWatchdog, type Watchdog } from '../stack/watchdog';
import { withClient } from '../support/database';
import { eventually, retryUntilDone } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { openProcesses, type WorkerProcess } from '../support/processes';
import { provisionQuietly } from '../support/programs';
import { type PayoutFacts, payoutFacts } from '../support/records';
import { RECOVERY_MS_MAX } from './running-stack';

const set = useFixture(startReplicaSet, ({ stop }) => stop());
const processes = useFixture(
  () => openProcesses(set.uri),
  ({ close }) => close(),
);

const LANES = 3;
const STEP_DOWNS = 3;
/** Steps of the load between two blows. */
const STEPS_BETWEEN = 4;

/** Loads a book while something is done to the servers, and until it is done. */
async function loadedDuring(book: MerchantBook, act: () => Promise<void>): Promise<void> {
  let isOver = false;
  const acted = act().finally(() => {
    isOver = true;
  });
  const lane = async () => {
    do await book.live();
    while (!isOver);
  };
  await Promise.all([acted, ...Array.from({ length: LANES }, lane)]);
}

async function progress(book: MerchantBook): Promise<void> {
  const before = book.answered();
  const more = async () => book.answered() >= before + STEPS_BETWEEN;
  await eventually('more steps to be acknowledged', more, RECOVERY_MS_MAX);
}

test('each acknowledged write is stored exactly once through elections and a killed primary', async () => {
  const book = openMerchantBook();
  const before = await set.elections();
  await loadedDuring(book, async () => {
    for (let blow = 0; blow < STEP_DOWNS; blow += 1) {
      await progress(book);
      await set.stepDown();
    }
    await progress(book);
    const killed = await set.killPrimary();
    await progress(book);
    await set.restart(killed);
    await progress(book);
  });
  // At least: a node that is starved of time may call one of its own.
  expect(await set.elections()).toBeGreaterThanOrEqual(before + STEP_DOWNS + 1);
  await book.expectExact();
});

const COMMIT = 'commitTransaction';
const NO_MAJORITY = { code: 64, errmsg: 'waiting for replication timed out' };
const FAILURES = 10;

const transient = (errorCode: number) => ({
  ...{ errorCode, errorLabels: ['TransientTransactionError'] },
});

test.each([
  ['a commit is made, yet no majority is known', COMMIT, { writeConcernError: NO_MAJORITY }],
  ['the connection ends at a commit', COMMIT, { closeConnection: true }],
  ['a commit takes too long', COMMIT, { errorCode: 50 }],
  ['the server no longer knows the transaction', COMMIT, transient(251)],
  ['an update meets another transaction', 'update', transient(112)],
  ['the connection ends at an insert', 'insert', { closeConnection: true }],
])('each transition is recorded once where %s', async (_name, command, failure) => {
  const book = openMerchantBook();
  await set.failNext(FAILURES, { failCommands: [command], ...failure });
  await loadedDuring(book, () => progress(book));
  expect(await set.failNoMore()).toBeGreaterThanOrEqual(FAILURES);
  await book.expectExact();
});

const GIVEN_UP_MS_MAX = 40_000;

test('settlements without a majority are given up in seconds, and each is recorded once when it is repeated', async () => {
  const { records, authorizedPayment, settle } = processes.left;
  const account_id = `acct_${randomUUID()}`;
  const pay = (payment_id: string) =>
    retryUntilDone(() => authorizedPayment(records, { account_id, payment_id }));
  const payments = await Promise.all(Array.from({ length: 3 }, () => pay(randomUUID())));
  await set.holdBack(true);
  const began = Date.now();
  const settled = await Promise.allSettled(payments.map((facts) => settle(records, facts)));
  const gaveUpAfter = Date.now() - began;
  await set.holdBack(false);
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  expect(gaveUpAfter).toBeLessThan(GIVEN_UP_MS_MAX);

  await Promise.all(payments.map((facts) => retryUntilDone(() => settle(records, facts))));
  await expectLedger(account_id, 3_000);
});

async function expectLedger(account_id: string, available: number): Promise<void> {
  const { stores, mongo, db } = processes.left.records;
  // An election that a starved node calls may interrupt any read.
  const balances = await retryUntilDone(() => stores.ledger.balances(account_id, false));
  expect(balances).toEqual([{ balance_account: 'main', currency: 'EUR', available, reserved: 0 }]);
  const { differences } = await retryUntilDone(() => verifyLedger(mongo, db.databaseName));
  expect(differences).toEqual([]);
}

const PAYMENT = 1_000;
const REFUND = 100;
const PAYOUT = { amount: 50, fee: 1 };

/** Ends of a payout: what it posts last, and what the merchant's balance has less then. */
const ENDS = {
  completed: { posting: [], cost: PAYOUT.amount + PAYOUT.fee },
  failed: { posting: ['payout_reversed'], cost: 0 },
  returned: { posting: ['payout_returned'], cost: PAYOUT.fee },
} as const;
const END_NAMES = ['completed', 'failed', 'returned'] as const;

/** A payment that is settled and refunded in part, and a payout. */
interface Course {
  payment_id: string;
  refund_id: string;
  payout_id: string;
  refundEnd: 'settled' | 'failed';
  payoutEnd: (typeof END_NAMES)[number];
}

type MerchantBook = ReturnType<typeof openMerchantBook>;

/**
 * Book of one merchant that two processes write. Both get each step at once, as an attempt that was
 * given up continues next to its successor, and repeat it until it answers.
 */
function openMerchantBook() {
  const { left, right } = processes;
  const account_id = `acct_${randomUUID()}`;
  const courses: Course[] = [];
  let begun = 0;
  let answered = 0;

  async function both<T>(step: (worker: WorkerProcess) => Promise<T>): Promise<[T, T]> {
    const done = (worker: WorkerProcess) => retryUntilDone(() => step(worker));
    const answers = await Promise.all([done(left), done(right)]);
    answered += 1;
    return answers;
  }

  async function live(): Promise<void> {
    const n = begun;
    begun += 1;
    const refundEnd = n % 2 === 0 ? 'settled' : 'failed';
    const payoutEnd = END_NAMES[n % END_NAMES.length] ?? 'completed';
    const wanted = { account_id, payment_id: randomUUID(), amount: PAYMENT };
    const [payment] = await both((worker) => worker.authorizedPayment(worker.records, wanted));
    await both((worker) => worker.settle(worker.records, payment));

    const { refund_id, opening } = await both(({ openRefund, records }) =>
      openRefund(records, payment, REFUND, randomUUID(), `refund-${n}`),
    ).then(assertSame);
    const accepted = { outcome: 'accepted', version: 1 };
    expect(opening).toMatchObject(accepted);
    const opened = await both((worker) =>
      openedPayout(worker, payoutFacts({ account_id, ...PAYOUT }), `payout-${n}`),
    ).then(assertSame);
    expect(opened.opening).toMatchObject(accepted);
    const { payout_id } = opened;
    await both((worker) => worker.transitionRefund(worker.records, payment, refund_id, refundEnd));
    const payout = payoutFacts({ account_id, payout_id, ...PAYOUT });
    const created = { status: 'created', version: 1, transition: 1 } as const;
    const sent = await both((worker) =>
      worker.transitionPayout(worker.records, payout, created, ['submitted', 'sent']),
    ).then(assertSame);
    await both((worker) =>
      worker.transitionPayout(worker.records, payout, { ...sent, status: 'sent' }, [payoutEnd]),
    );
    courses.push({ payment_id: payment.payment_id, refund_id, payout_id, refundEnd, payoutEnd });
  }

  return {
    live,
    answered: () => answered,
    expectExact: () => expectExact(account_id, courses),
  };
}

/** Opens a payout and, where another attempt's is not to be seen yet, looks again as its workflow does. */
async function openedPayout(
  { records, openPayout }: WorkerProcess,
  facts: PayoutFacts,
  key: string,
) {
  const { payout_id, opening } = await openPayout(records, facts, key);
  if (opening.outcome === 'accepted') return { payout_id, opening };
  const input = { ...facts, payout_id, created_at: '', accept_by_ms: 0 };
  return { payout_id, opening: await records.payouts.abandonPayout(input) };
}

function assertSame<T>([first, second]: [T, T]): T {
  expect(second).toEqual(first);
  return first;
}

async function expectExact(account_id: string, courses: readonly Course[]): Promise<void> {
  const { db } = processes.left.records;
  const find = (collection: string, filter: object) =>
    retryUntilDone(() => db.collection(collection).find(filter).toArray());
  const list = async (collection: string, filter: object, name: (row: Document) => string) =>
    (await find(collection, filter)).map(name).sort();
  const expected = (describe: (course: Course) => string[]) => courses.flatMap(describe).sort();

  const byState = ({ _id, status, refunded = '' }: Document) => `${_id} ${status} ${refunded}`;
  expect(await list('payments', { account_id }, byState)).toEqual(
    expected((of) => [`${of.payment_id} settled ${of.refundEnd === 'settled' ? REFUND : 0}`]),
  );
  expect(await list('refunds', { account_id }, byState)).toEqual(
    expected((of) => [`${of.refund_id} ${of.refundEnd} `]),
  );
  expect(await list('payouts', { account_id }, byState)).toEqual(
    expected((of) => [`${of.payout_id} ${of.payoutEnd} `]),
  );
  expect(await find('idempotency_records', { account_id })).toHaveLength(3 * courses.length);
  const byType = ({ resource_id, type }: Document) => `${resource_id} ${type}`;
  expect(await list('events', { account_id }, byType)).toEqual(expected(listEvents));
  const book = `${account_id}:sandbox:EUR`;
  expect(await list('journal_entries', { book }, ({ _id }) => String(_id))).toEqual(
    expected(listEntryIds),
  );
  const gained = courses.map(
    ({ refundEnd, payoutEnd }) =>
      PAYMENT - (refundEnd === 'settled' ? REFUND : 0) - ENDS[payoutEnd].cost,
  );
  const available = gained.reduce((sum, each) => sum + each, 0);
  await expectLedger(account_id, available);
}

function listEvents({ payment_id, refund_id, payout_id, refundEnd, payoutEnd }: Course): string[] {
  const paid = ['awaiting_customer', 'authorized', 'settled'];
  return [
    ...paid.map((status) => `${payment_id} payment.${status}`),
    `${refund_id} refund.${refundEnd}`,
    ...['submitted', 'sent', payoutEnd].map((status) => `${payout_id} payout.${status}`),
  ];
}

function listEntryIds(course: Course): string[] {
  const { payment_id, refund_id, payout_id, refundEnd, payoutEnd } = course;
  const paidOut = ['payout_reserved', 'payout_captured', ...ENDS[payoutEnd].posting];
  return [
    `payment_settled:${payment_id}`,
    ...['refund_accepted', `refund_${refundEnd}`].map((kind) => `${kind}:${refund_id}`),
    ...paidOut.map((kind) => `${kind}:${payout_id}`),
  ];
}

const NODES = 3;
const UP_MS_MAX = 90_000;
const ELECTED_MS_MAX = 90_000;
const NAME = 'elections';
/** Seconds for which a primary that stepped down is no candidate. */
const STEP_DOWN_SECONDS = 3;
const NOT_PRIMARY = 10_107;

interface Node {
  port: number;
  running: { child: Child; watchdog: Watchdog } | undefined;
}

/** Starts three nodes that elect a primary among them, small, and able to fail on demand. */
async function startReplicaSet() {
  const path = await provisionQuietly(mongod);
  const folder = mkdtempSync(join(tmpdir(), 'replica-set-'));
  const nodes: Node[] = [];
  const stop = async () => {
    await Promise.all(nodes.map(({ running }) => running?.child.stop()));
    rmSync(folder, { recursive: true, force: true });
    for (const { running } of nodes) running?.watchdog.dismiss();
  };
  try {
    while (nodes.length < NODES) nodes.push({ port: await freePort(), running: undefined });
    await Promise.all(nodes.map((node) => startNode(path, folder, node)));
    await initiate(nodes);
  } catch (error) {
    await stop();
    throw error;
  }
  let failureCount = 0;
  return {
    uri: `mongodb://${nodes.map(getHost).join()}/?replicaSet=${NAME}`,
    elections: async () => {
      const { term } = await runAdmin(await waitForPrimary(nodes), { replSetGetStatus: 1 });
      return Number(term);
    },
    /** Makes the primary give its place up at once, whatever its followers lack. */
    stepDown: async () => {
      const command = { replSetStepDown: STEP_DOWN_SECONDS, secondaryCatchUpPeriodSecs: 0 };
      // An election of its own may have come first.
      await eventually('the primary to step down', async () => {
        const primary = await waitForPrimary(nodes);
        return await runAdmin(primary, { ...command, force: true }).catch((error: unknown) => {
          if (error instanceof MongoServerError && error.code === NOT_PRIMARY) return undefined;
          throw error;
        });
      });
    },
    /** Kills the primary, as a machine that loses its power does. */
    killPrimary: async (): Promise<Node> => {
      const node = await waitForPrimary(nodes);
      node.running?.child.kill();
      await node.running?.child.exited;
      node.running?.watchdog.dismiss();
      node.running = undefined;
      return node;
    },
    restart: (node: Node) => startNode(path, folder, node),
    /** Fails the next commands of the clients under test, on whichever node they go to. */
    failNext: async (times: number, data: Document) => {
      const failing = { ...data, appName: 'records' };
      failureCount = await setFailPoint(nodes, { mode: { times }, data: failing });
    },
    /** Keeps followers from taking writes over, so that no majority has them; or lets them. */
    holdBack: async (isHeld: boolean) => {
      const mode = isHeld ? 'alwaysOn' : 'off';
      await runOnAll(nodes, { configureFailPoint: 'stopReplProducer', mode });
    },
    /** Ends the failures; says how many commands have met them. */
    failNoMore: async () => (await setFailPoint(nodes, { mode: 'off' })) - failureCount,
    stop,
  };
}

const getHost = ({ port }: Node) => `${LOOPBACK}:${port}`;

async function startNode(command: string, folder: string, node: Node): Promise<void> {
  const { port } = node;
  const dbPath = join(folder, String(port));
  const logFile = join(folder, `${port}.log`);
  mkdirSync(dbPath, { recursive: true });
  const child = await startChild({
    name: 'MongoDB',
    command,
    args: [
      ...['--dbpath', dbPath, '--port', String(port), '--bind_ip', LOOPBACK],
      ...['--replSet', NAME, '--wiredTigerCacheSizeGB', '0.25', '--oplogSize', '64'],
      ...['--nounixsocket', '--setParameter', 'enableTestCommands=1'],
      ...['--setParameter', 'transactionLifetimeLimitSeconds=3'],
      ...['--setParameter', 'diagnosticDataCollectionEnabled=false'],
    ],
    logFile,
    graceMs: 0,
  });
  node.running = { child, watchdog: startWatchdog([child.pid], folder) };
  await waitUntilUp(child, logFile, UP_MS_MAX, () => runAdmin(node, { ping: 1 }));
}

async function initiate(nodes: readonly Node[]): Promise<void> {
  const members = nodes.map((node, _id) => ({ _id, host: getHost(node) }));
  const settings = { electionTimeoutMillis: 2_000, heartbeatIntervalMillis: 500 };
  const [first] = nodes;
  if (first === undefined) throw new Error('The set has no node.');
  await runAdmin(first, { replSetInitiate: { _id: NAME, members, settings } });
  await waitForPrimary(nodes);
}

async function waitForPrimary(nodes: readonly Node[]): Promise<Node> {
  return await eventually('a primary', () => currentPrimary(nodes), ELECTED_MS_MAX);
}

async function currentPrimary(nodes: readonly Node[]): Promise<Node | undefined> {
  for (const node of nodes) {
    if (node.running === undefined) continue;
    const hello: Document | null = await runAdmin(node, { hello: 1 }).catch(() => null);
    if (hello?.['isWritablePrimary'] === true) return node;
  }
  return undefined;
}

/** Sets the fail point of each node; says how often it was met before. */
async function setFailPoint(nodes: readonly Node[], setting: Document): Promise<number> {
  const answers = await runOnAll(nodes, { configureFailPoint: 'failCommand', ...setting });
  return answers.reduce((sum, answer) => sum + Number(answer['count']), 0);
}

function runOnAll(nodes: readonly Node[], command: Document): Promise<Document[]> {
  return Promise.all(nodes.map((node) => runAdmin(node, command)));
}

function runAdmin(node: Node, command: Document): Promise<Document> {
  const uri = `mongodb://${getHost(node)}/?directConnection=true`;
  return withClient(uri, (client) => client.db('admin').command(command));
}
