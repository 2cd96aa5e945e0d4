import { SEARCH_KEYS } from '../../../src/domain/search-attributes';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { SILENT, useRestoreSetting } from './setting';

/** Temporal's list of workflows shows which histories must be read. */
const setting = useRestoreSetting();

const PAYOUTS = 6;
const SET_BACK = 2;

/** Counts the histories that a comparison reads: a run is named for nothing else. */
async function countReads<T>(compare: () => Promise<T>): Promise<{ result: T; read: number }> {
  const getHandle = jest.spyOn(setting.deps.temporal.workflow, 'getHandle');
  try {
    const result = await compare();
    const read = getHandle.mock.calls.filter(([, runId]) => runId !== undefined).length;
    return { result, read };
  } finally {
    getHandle.mockRestore();
  }
}

/** Waits until Temporal lists every workflow as it is. */
const untilListed = () =>
  eventually('a list that is current', async () => (await setting.look()).histories === 0);

test('reads only the histories of workflows whose version differs from the document', async () => {
  const ids: string[] = [];
  while (ids.length < PAYOUTS) ids.push(await setting.payout(SILENT));
  await untilListed();
  const payouts = setting.db.collection<{ _id: string }>('payouts');
  const behind = ids.slice(0, SET_BACK);
  const these = { _id: { $in: behind } };
  await payouts.updateMany(these, { $inc: { version: -1 } });

  const quick = await countReads(() => setting.look());
  const full = await countReads(() => setting.look(false, {}, { full: true }));
  await payouts.updateMany(these, { $inc: { version: 1 } });
  expect(quick.read).toBe(SET_BACK);
  expect(quick.result).toMatchObject({ histories: SET_BACK, documents: PAYOUTS });
  expect(full.read).toBeGreaterThanOrEqual(PAYOUTS);
  for (const { findings } of [quick.result, full.result]) {
    const named = findings.map(({ kind, id }) => `${kind} ${id}`);
    expect(named.toSorted()).toEqual(behind.map((id) => `behind ${id}`).toSorted());
  }
});

test('reads the history of a run that has posted without a transition, since it shows no version', async () => {
  const { stores } = setting;
  const id = await setting.payment();
  const handle = setting.handle('payment', id);
  const version = async () =>
    (await handle.describe()).typedSearchAttributes.get(SEARCH_KEYS.version);
  const { version: stored } = (await stores.payments.get(id)) ?? {};
  expect(await version()).toBe(stored);
  await setting.report('payment', id, 'settled', { amount: 1, currency: 'EUR' });
  const receipts = await eventually('funds in suspense', async () => {
    return (await stores.payments.get(id))?.receipts;
  });
  expect(await version()).toBeUndefined();
  await saveHistory(handle, 'payment-version-hidden');

  const payments = setting.db.collection<{ _id: string }>('payments');
  await payments.updateOne({ _id: id }, { $unset: { receipts: true } });
  const [lost] = await setting.left(1);
  expect(lost).toMatchObject({ kind: 'behind', resource: 'payment', id });
  await payments.updateOne({ _id: id }, { $set: { receipts } });
  expect(await setting.left(0)).toEqual([]);
});

const LOAD_MS = 12_000;
/** A workflow task may take so long on a busy machine after it has written. */
const SETTLE_MS = 25_000;

test('reports nothing that is in progress in a service under load', async () => {
  const { shop } = setting;
  const endAt = Date.now() + LOAD_MS;
  let isCompared = false;
  let made = 0;
  const load = async (make: () => Promise<unknown>) => {
    while (!isCompared) {
      await make();
      made += 1;
    }
  };
  const compare = async () => {
    const findings: unknown[] = [];
    try {
      for (let runs = 0; Date.now() < endAt || runs < 2 || made < 5; runs += 1) {
        findings.push(...(await setting.look(false, { settleMs: SETTLE_MS })).findings);
      }
    } finally {
      isCompared = true;
    }
    return findings;
  };
  const [findings] = await Promise.all([
    compare(),
    ...[1, 2].map(() => load(() => shop.settledPayment())),
    ...[1, 2].map(() => load(() => setting.payout())),
  ]);
  expect(findings).toEqual([]);
}, 480_000);
