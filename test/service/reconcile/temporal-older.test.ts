import { randomUUID } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WorkflowNotFoundError } from '@temporalio/client';
import { isUnresolved } from '../../../src/service/reconcile/rebuild';
import { freePort } from '../../../stack/ports';
import { cacheDirectory, provision, temporalCli } from '../../../stack/provision';
import { startTemporal } from '../../../stack/temporal-server';
import { silentProgress } from '../../../stack/terminal';
import { useFixture } from '../../support/fixture';
import { eventually } from '../../support/http';
import { SILENT, useRestoreSetting } from './setting';

/** A Temporal server whose files can be copied and restored; it stays at its address. */
const temporal = useFixture(
  async () => {
    const { signal } = new AbortController();
    const context = { cacheDir: cacheDirectory(process.env), env: process.env, signal };
    const { path: executable } = await provision(temporalCli, {
      ...{ ...context, progress: silentProgress },
    });
    const folder = mkdtempSync(join(tmpdir(), 'restorable-temporal-'));
    const [dbFile, logFile] = [join(folder, 'temporal.db'), join(folder, 'temporal.log')];
    const port = await freePort();
    const start = () => startTemporal({ executable, dbFile, port, logFile });
    let server = await start();
    /** Copies its files while it is stopped; where there is none, there is none afterwards. */
    const copy = async (from: string, to: string) => {
      await server.stop();
      for (const suffix of ['', '-wal', '-shm']) {
        rmSync(`${to}${suffix}`, { force: true });
        if (existsSync(`${from}${suffix}`)) cpSync(`${from}${suffix}`, `${to}${suffix}`);
      }
      server = await start();
    };
    return {
      address: server.address,
      backUp: () => copy(dbFile, join(folder, 'backup.db')),
      restore: () => copy(join(folder, 'backup.db'), dbFile),
      close: async () => {
        await server.stop();
        rmSync(folder, { recursive: true });
      },
    };
  },
  ({ close }) => close(),
);
const setting = useRestoreSetting(() => ({ temporal: temporal.address }));

/** Time for two stops and starts of a server, and of its workers. */
const RESTARTS_MS = 500_000;

test(
  'pays each payout once when Temporal is older: its workflow starts again or syncs from the database',
  async () => {
    const { stores, service } = setting;
    // The bank takes this one to `submitted` and stays silent.
    const submitted = await setting.payout({ amount: 66_624 }, 'submitted');
    const sent = await setting.payout(SILENT);
    await service.stopWorkers();
    await temporal.backUp();
    await service.startWorkers();
    await setting.simulate('payout', submitted, { event: 'completed' });
    await setting.simulate('payout', sent, { event: 'completed' });
    const ended = await setting.payout(SILENT);
    await setting.simulate('payout', ended, { event: 'completed' });
    const running = await setting.payout(SILENT);
    const ids = [submitted, sent, ended, running];
    const readAll = () => setting.read(...ids.map((id) => ['payout', id] as const));
    const listStatuses = () =>
      Promise.all(ids.map(async (id) => (await stores.payouts.get(id))?.status));
    await eventually('the completions', async () => {
      return (await listStatuses()).filter((status) => status === 'completed').length === 3;
    });
    expect(await listStatuses()).toEqual(['completed', 'completed', 'completed', 'sent']);
    const before = await readAll();

    await service.stopWorkers();
    await temporal.restore();
    const [difference] = await setting.left(1);
    const orphan = { kind: 'orphan', id: running, workflow: 'not found', act: 'restart' };
    expect(difference).toMatchObject(orphan);
    const resolved = await eventually('both whose documents are newer', async () => {
      const { findings } = await setting.look();
      const newer = findings.filter((finding) => !isUnresolved(finding));
      return newer.length >= 2 && newer;
    });
    const early = expect.stringMatching(/^(created v1|submitted v2), run/);
    expect(
      resolved.map(({ kind, id, document, workflow }) => [kind, id, document, workflow]),
    ).toEqual(
      expect.arrayContaining([
        ['ahead', submitted, 'completed v4', early],
        ['ahead', sent, 'completed v4', 'sent v3, running'],
      ]),
    );
    expect((await setting.look(true)).findings).toContainEqual(
      expect.objectContaining({ ...orphan, done: true }),
    );
    expect(await setting.left(0)).toEqual([]);

    await service.startWorkers();
    await setting.simulate('payout', running, { event: 'completed' });
    // The bank reports once more to the workflows that are older.
    for (const id of [submitted, sent]) {
      const callback = { callback_id: randomUUID(), occurred_at: new Date().toISOString() };
      const signaled = setting.handle('payout', id).signal('completed', callback);
      // A workflow that has read its document in the meantime has ended.
      await signaled.catch((error: unknown) => {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      });
      await setting.handle('payout', id).result();
    }
    await eventually('the completion', async () => (await listStatuses())[3] === 'completed');
    expect(await listStatuses()).toEqual(['completed', 'completed', 'completed', 'completed']);
    const after = await readAll();
    expect(after.balances).toEqual(before.balances);
    expect(after.recorded.slice(0, 3)).toEqual(before.recorded.slice(0, 3));
    expect(after.recorded[3]?.entries).toEqual(before.recorded[3]?.entries);
    const bank = service.mongo.db(`${service.database}_sandbox_bank`);
    const payments = await bank.collection('payouts').find().toArray();
    expect(payments.map(({ _id }) => String(_id)).toSorted()).toEqual(ids.toSorted());
    expect(await setting.verified()).toEqual([]);
  },
  RESTARTS_MS,
);
