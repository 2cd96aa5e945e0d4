import { randomUUID } from 'node:crypto';
import { verifyLedger } from '../../src/ledger-check/verify';
import { eventually } from '../support/http';
import { retryUntilDone } from '../support/insist';
import { openProcesses, type Processes } from '../support/processes';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set';
import { type MerchantBook, openMerchantBook } from './merchant-book';
import { RECOVERY_MS_MAX } from './running-stack';

let set: ReplicaSet | undefined;
let processes: Processes | undefined;
beforeAll(async () => {
  set = await startReplicaSet();
  processes = await openProcesses(set.uri);
});
afterAll(async () => {
  await processes?.close();
  await set?.stop();
});

const LANES = 3;
const STEP_DOWNS = 3;
/** Steps of the load between two blows. */
const STEPS_BETWEEN = 4;

function started() {
  if (set === undefined || processes === undefined) throw new Error('Nothing was started.');
  return { set, processes };
}

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

test('keeps each acknowledged write exactly once through elections and a killed primary', async () => {
  const { set, processes } = started();
  const book = openMerchantBook(processes);
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

const TRANSIENT = ['TransientTransactionError'];
const COMMIT = 'commitTransaction';
const NO_MAJORITY = { code: 64, errmsg: 'waiting for replication timed out' };
const FAILURES = 10;

test.each([
  [
    'a commit is made, yet no majority known to have it',
    COMMIT,
    { writeConcernError: NO_MAJORITY },
  ],
  ['the connection ends at a commit', COMMIT, { closeConnection: true }],
  ['a commit takes too long', COMMIT, { errorCode: 50 }],
  [
    'the server no longer knows the transaction',
    COMMIT,
    { errorCode: 251, errorLabels: TRANSIENT },
  ],
  ['an update meets another transaction', 'update', { errorCode: 112, errorLabels: TRANSIENT }],
  ['the connection ends at an insert', 'insert', { closeConnection: true }],
])('records each transition once where %s', async (_name, command, failure) => {
  const { set, processes } = started();
  const book = openMerchantBook(processes);
  await set.failNext(FAILURES, { failCommands: [command], ...failure });
  await loadedDuring(book, () => progress(book));
  expect(await set.failNoMore()).toBeGreaterThanOrEqual(FAILURES);
  await book.expectExact();
});

const GIVEN_UP_MS_MAX = 40_000;

test('gives up settlements without a majority in seconds, and records each once when it is repeated', async () => {
  const { set, processes } = started();
  const { records, authorizedPayment, settle } = processes.left;
  const account_id = `acct_${randomUUID()}`;
  const ids = Array.from({ length: 3 }, () => randomUUID());
  const payments = await Promise.all(
    ids.map((payment_id) =>
      retryUntilDone(() => authorizedPayment(records, { account_id, payment_id })),
    ),
  );
  await set.holdBack(true);
  const began = Date.now();
  const settled = await Promise.allSettled(payments.map((facts) => settle(records, facts)));
  const gaveUpAfter = Date.now() - began;
  await set.holdBack(false);
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  expect(gaveUpAfter).toBeLessThan(GIVEN_UP_MS_MAX);

  await Promise.all(payments.map((facts) => retryUntilDone(() => settle(records, facts))));
  const balances = await retryUntilDone(() => records.stores.ledger.balances(account_id, false));
  expect(balances).toMatchObject([{ available: 3_000, reserved: 0 }]);
  const { differences } = await retryUntilDone(() =>
    verifyLedger(records.mongo, records.db.databaseName),
  );
  expect(differences).toEqual([]);
});
