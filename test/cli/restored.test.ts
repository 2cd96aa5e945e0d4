import { Registry } from 'prom-client';
import {
  advanceEpoch,
  type EpochDeps,
  type EpochGuard,
  readEpochs,
  watchEpochs,
} from '../../src/service/epoch';
import { createClient, eventually, idealPayment } from '../support/http';
import { useResourceSetting } from './resource-setting';

// Alone: a product whose MongoDB looks restored refuses all writes.
const setting = useResourceSetting({ alone: true });

const BACKUP = '2026-01-01T00:00:00.000Z';
const createDeps = () => {
  const { stores, temporal, now } = setting.deps;
  return { epoch: stores.epoch, temporal, lifecycleQueue: setting.idleQueue, now };
};
const advance = async (): Promise<void> =>
  advanceEpoch(createDeps(), await readEpochs(createDeps()));
const epochs = () => setting.deps.db.collection<{ _id: string }>('service_epoch');
/** Makes MongoDB as old as a backup. */
const restore = () => epochs().updateOne({ _id: 'epoch' }, { $set: { at: BACKUP } });

/** Sooner than the pause between two later results. */
const SOON_MS = 12_000;

/** Watches both stores as a process does. */
async function watch(
  advances: boolean,
  run: (guard: Watch) => Promise<void>,
  deps: EpochDeps = createDeps(),
): Promise<void> {
  const registry = new Registry();
  const lines: string[] = [];
  const write = (_: object, line: string) => void lines.push(line);
  const log = { warn: write, error: write };
  const behind = jest.fn();
  const options = { registry, log, advances, onBehind: behind };
  const guard = await watchEpochs(deps, options);
  try {
    await run({ ...guard, lines, behind, metrics: () => registry.metrics() });
  } finally {
    guard.close();
  }
}

interface Watch extends EpochGuard {
  lines: string[];
  behind: jest.Mock;
  metrics: () => Promise<string>;
}

afterEach(async () => {
  await epochs().deleteMany({});
});

test('a new database, and one that agrees, are written to', async () => {
  await watch(false, async ({ fault }) => expect(fault()).toBeUndefined());
  for (const _ of [1, 2]) {
    await watch(true, async ({ fault, lines, metrics }) => {
      expect({ fault: fault(), lines }).toEqual({ fault: undefined, lines: [] });
      expect(await metrics()).toContain('payments_mongodb_behind_seconds 0');
    });
  }
  const refused = await setting.refusal('reconcile', '--done', '--reason', 'r');
  expect(refused).toMatchObject({ code: 'not_behind' });
});

test('refuses writes after a restore of MongoDB until `reconcile` has run', async () => {
  await advance();
  await restore();
  await watch(true, async ({ fault, lines, behind, metrics }) => {
    expect(lines).toEqual([fault()]);
    expect(lines[0]).toContain(`MongoDB has the state of ${BACKUP}`);
    expect(behind).toHaveBeenCalledTimes(1);
    expect(await metrics()).toMatch(/payments_mongodb_behind_seconds [1-9]/);
    await setting.service.withApp({ epochs: { fault } }, async (url) => {
      const shop = createClient(url, setting.shop.key);
      const before = await setting.shop.count('idempotency');
      const refused = await shop.post('/v1/payments', idealPayment(), { once: true });
      expect(refused.status).toBe(503);
      expect(refused.body.error).toMatchObject({
        code: 'temporarily_unavailable',
        message: expect.stringMatching(/^The service is being restored\. Try again, with the same/),
      });
      expect(await setting.shop.count('idempotency')).toBe(before);
      expect((await shop.get('/v1/payments')).status).toBe(200);
      for (const path of ['/dashboard/sign-in', '/connectors/sandbox/callbacks']) {
        expect((await fetch(`${url}${path}`, { method: 'POST' })).status).toBe(503);
      }
      const ready = await (await fetch(`${url}/readyz`)).json();
      expect(ready).toMatchObject({ missing: expect.arrayContaining(['reconciled']) });
    });
  });
  // It stands in the database, so another process finds it too, and none moves it on.
  await watch(true, async ({ fault }) => expect(fault()).toBeDefined());
});

test('`reconcile --apply` allows writes again if --since is early enough', async () => {
  await advance();
  await restore();
  const isBehind = async () => {
    let isOld = false;
    await watch(false, async ({ fault }) => {
      isOld = fault() !== undefined;
    });
    return isOld;
  };
  await setting.json('reconcile');
  expect(await isBehind()).toBe(true);
  const late = await setting.cli('reconcile', '--apply', '--since', '2026-01-02T00:00:00Z');
  expect(late.stderr).toContain(`MongoDB has the state of ${BACKUP}: --since must not be later.`);
  expect(await isBehind()).toBe(true);
  const all = ['reconcile', '--apply', '--since', '2025-12-31T00:00:00Z'];
  await setting.deps.stores.epoch.noteLostKeys(true);
  expect((await setting.cli(...all)).stderr).toMatch(/^Idempotency keys are lost.* --done/m);
  expect(await isBehind()).toBe(true);
  await setting.deps.stores.epoch.noteLostKeys(false);
  await setting.json(...all);
  expect(await isBehind()).toBe(false);
  await watch(true, async ({ fault }) => expect(fault()).toBeUndefined());

  await restore();
  expect(await setting.refusal('reconcile', '--done')).toMatchObject({ code: 'invalid_request' });
  const done = await setting.json(
    'reconcile',
    '--done',
    '--reason',
    'two payouts are left, ticket 7',
  );
  expect(done).toMatchObject({ done: true, mongodb: BACKUP });
  expect(await isBehind()).toBe(false);
  const [line] = await setting.deps.stores.auditLog.list({
    ...{ account_id: undefined, livemode: undefined, since: undefined, limit: 1 },
  });
  expect(line).toMatchObject({
    act: 'stores.reconciled',
    after: { mongodb: BACKUP, reason: 'two payouts are left, ticket 7' },
  });
});

test('a process that cannot compare at its start refuses writes, and compares as soon as it can', async () => {
  await advance();
  await restore();
  const deps = createDeps();
  let isAway = true;
  let looks = 0;
  const read = async () => {
    if (isAway) throw new Error('away');
    looks += 1;
    return await deps.epoch.read();
  };
  await watch(
    true,
    async ({ fault, lines, behind }) => {
      expect(fault()).toContain('not compared yet');
      expect(lines).toEqual(['MongoDB and Temporal are not compared']);
      isAway = false;
      await eventually('the next look', async () => looks > 0, SOON_MS);
      // A busy Temporal may take longer than that to answer.
      await eventually('the first result', async () => fault()?.includes(BACKUP));
      expect(behind).toHaveBeenCalledTimes(1);
    },
    { ...deps, epoch: { ...deps.epoch, read } },
  );
});

test('a process that reads while another one advances the epoch sees no restore', async () => {
  await advance();
  const deps = createDeps();
  const current = deps.epoch.read;
  const earlier = async () => {
    const epoch = await current();
    return epoch && { ...epoch, at: BACKUP };
  };
  const read = jest.fn(current).mockImplementationOnce(earlier);
  await watch(
    true,
    async ({ fault, lines, behind }) => {
      expect(fault()).toBeUndefined();
      expect(lines).toEqual([]);
      expect(behind).not.toHaveBeenCalled();
      expect(read).toHaveBeenCalledTimes(2);
    },
    { ...deps, epoch: { ...deps.epoch, read } },
  );
});

test('a comparison is valid though the epochs cannot be raised', async () => {
  await advance();
  const deps = createDeps();
  const raise = async () => {
    throw new Error('denied');
  };
  const now = () => new Date(Date.now() + 120_000);
  await watch(
    true,
    async ({ fault, lines }) => {
      expect(fault()).toBeUndefined();
      expect(lines).toEqual(['MongoDB and Temporal are not compared']);
    },
    { ...deps, now, epoch: { ...deps.epoch, raise } },
  );
});

test('a Temporal that denies access to schedules stops no writes', async () => {
  await advance();
  const grpc = { code: 7, details: 'Request unauthorized.', metadata: {} };
  const denied = Object.assign(new Error('denied'), grpc);
  const schedules = jest.spyOn(setting.deps.temporal.schedule, 'getHandle');
  schedules.mockImplementation(() => {
    throw new Error('Failed', { cause: denied });
  });
  try {
    await watch(true, async ({ fault, lines }) => {
      expect(fault()).toBeUndefined();
      expect(lines).toEqual(['MongoDB and Temporal are not compared']);
    });
  } finally {
    schedules.mockRestore();
  }
});

test('a worker logs the time since which Temporal may have lost signals', async () => {
  await advance();
  const later = new Date(Date.now() + 3_600_000).toISOString();
  await epochs().updateOne({ _id: 'epoch' }, { $set: { at: later } });
  await watch(true, async ({ fault, lines }) => {
    expect(fault()).toBeUndefined();
    expect(lines).toEqual([expect.stringContaining('callback deliver --again --since 2')]);
  });
});
