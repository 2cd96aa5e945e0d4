import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openSepaBook, shortenId } from '../../../src/service/sepa/book';
import { requestCut } from '../../../src/service/sepa/files';
import { type Child, startChild } from '../../../stack/child-process';
import { freePort } from '../../../stack/ports';
import { openShop } from '../../api/payout-setting';
import { commandsIn, useCommands } from '../../cli/cli';
import { type Dump, dumpDatabase, restoreDatabase } from '../../support/dump';
import { useFixture, useFreshFixture } from '../../support/fixture';
import { eventually } from '../../support/http';
import { retryUntilDone } from '../../support/insist';
import { mongodbUri, temporalAddress } from '../../support/servers';
import { useService } from '../../support/service';
import { IBAN } from './bank-files';

const ROUTES = 'sepa=sepa_credit_transfer';
const RAIL = 'sepa_credit_transfer';
const RELEASE = ['connector', 'release', 'sepa', '--env', 'sandbox', '--after-restore'];
const prefix = `sepa-restore-${randomUUID().slice(0, 8)}`;
// A product of its own: it routes to the connector, and its database is restored.
const service = useService({ live: { connectors: '', prefix }, tests: ROUTES });
const commands = useCommands(service);
const shop = useFixture(() => openShop(service));

/** Folders, database and processes of a connector, each new for a test. */
const world = useFreshFixture(async () => {
  const { mongo, database } = service;
  const folder = mkdtempSync(join(tmpdir(), 'sepa-restore-'));
  const [out, inbox] = [join(folder, 'out'), join(folder, 'in')];
  const own = mongo.db(`${database}_sepa`);
  const dbs = [mongo.db(database), own];
  const book = openSepaBook(own);
  const env = { ...commands.env, SANDBOX_CONNECTORS: ROUTES, TASK_QUEUE_PREFIX: prefix };
  let child: Child | undefined;
  let logs = '';
  const start = async (): Promise<void> => {
    const METRICS_PORT = String(await freePort());
    logs = join(folder, `${METRICS_PORT}.log`);
    child = await startChild({
      ...{ name: 'sepa', command: process.execPath, logFile: logs, graceMs: 15_000, ipc: true },
      args: [resolve('dist/connectors/sepa/main.js')],
      env: {
        ...{ PATH: process.env['PATH'], MONGODB_URI: mongodbUri(), MONGODB_DB: database },
        ...{ TEMPORAL_ADDRESS: temporalAddress(), TASK_QUEUE_PREFIX: prefix, METRICS_PORT },
        ...{ SANDBOX_CONNECTORS: ROUTES, KEYS_DIR: service.keysDir },
        ...{ SEPA_OUT_DIR: out, SEPA_IN_DIR: inbox, SEPA_IBAN: IBAN, SEPA_NAME: 'ACME' },
        ...{ SEPA_POLL_SECONDS: '0.2', CONNECTOR_STATE_DIR: join(folder, 'state') },
      },
    });
    await eventually('the connector', async () => {
      if (child?.hasExited()) throw new Error(readFileSync(logs, 'utf8'));
      const answer = await fetch(`http://127.0.0.1:${METRICS_PORT}/readyz`).catch(() => null);
      return answer?.ok === true;
    });
  };
  const kill = async () => {
    child?.kill();
    await child?.exited;
  };
  await start();
  const listFiles = () => {
    try {
      return readdirSync(out).filter((name) => name.startsWith('pain.001'));
    } catch {
      return [];
    }
  };
  const pay = async () => {
    const { body, status, text } = await shop.pay({
      ...{ method: RAIL, recipient_id: shop.recipients[RAIL] },
    });
    if (status !== 201) throw new Error(text);
    return String(body.id);
  };
  const becomes = (id: string, status: string) =>
    eventually(`a payout that is ${status}`, async () => {
      const { body } = await shop.get(`/v1/payouts/${id}`);
      return body.status === status;
    });
  return {
    ...{ out, book, own, start, kill, listFiles, pay, becomes },
    statePath: join(folder, 'state', 'sepa.sandbox.jsonl'),
    readLogs: () => readFileSync(logs, 'utf8'),
    submit: async (): Promise<string> => {
      const id = await pay();
      await becomes(id, 'submitted');
      return id;
    },
    cut: () => requestCut({ mongo, database, connector: 'sepa', now: () => new Date() }),
    /** Asks for a file without waiting for it. */
    ask: () => book.requests.insertOne({ _id: randomUUID(), at: new Date(), files: null }),
    dump: () => Promise.all(dbs.map(dumpDatabase)),
    restore: async (dumps: readonly Dump[]): Promise<void> => {
      for (const [index, db] of dbs.entries()) {
        const dump = dumps[index];
        if (dump !== undefined) await restoreDatabase(db, dump);
      }
    },
    isInFiles: (id: string) =>
      listFiles().filter((name) => readFileSync(join(out, name), 'utf8').includes(shortenId(id))),
    readStop: async () => (await service.stores.capabilities.get('sepa'))?.stopped,
    untilStopped: () =>
      eventually('a stop', async () => (await service.stores.capabilities.get('sepa'))?.stopped),
    cli: commandsIn(env).cli,
    stop: async (): Promise<void> => {
      await child?.stop();
      await retryUntilDone(() => own.dropDatabase());
      await mongo.db(database).collection('connector_capabilities').deleteMany({});
      rmSync(folder, { recursive: true });
    },
  };
});
afterEach(() => world.stop());

const sleepPolls = () => new Promise((done) => setTimeout(done, 1_500));

describe('after a restore of MongoDB and Temporal, the connector', () => {
  test.each([
    ['that was stopped meanwhile', true],
    ['that ran meanwhile', false],
  ])('%s sends no file until an operator releases it', async (_which, isStopped) => {
    const sent = await world.submit();
    const dump = await world.dump();
    await world.cut();
    expect(world.listFiles()).toHaveLength(1);
    if (isStopped) await world.kill();
    await world.restore(dump);
    await world.ask();
    if (isStopped) await world.start();
    const stop = await world.untilStopped();
    const [file = ''] = world.listFiles();
    expect(stop?.reason).toContain(file.replace(/^pain.001.001.09-|.xml$/g, ''));
    const later = await world.pay();
    await sleepPolls();
    expect(world.listFiles()).toEqual([file]);
    const health = await world.cli('connector', 'health', 'sepa', '--json');
    expect(JSON.parse(health.stdout)).toMatchObject({ healthy: false, stopped: { id: stop?.id } });
    expect(world.readLogs()).toContain('"code":"connector_stopped"');
    // What the bank has executed is ended before the release.
    const acted = await world.cli(
      ...['payout', 'act', sent, 'mark_completed', '--operator', 'ada', '--reason', 'Ticket 1'],
    );
    expect(acted).toMatchObject({ exit: 0 });
    const released = await world.cli(...RELEASE, '--reason', 'Ticket 1: compared', '--json');
    expect(JSON.parse(released.stdout)).toMatchObject({ connector: 'sepa', changed: true });
    await world.becomes(later, 'submitted');
    await eventually('a file', async () => {
      await world.cut();
      return world.isInFiles(later).length === 1;
    });
    expect(world.isInFiles(sent)).toEqual([file]);
    await eventually('the report', async () => (await world.readStop()) === null);
    const refused = await world.cli(...RELEASE, '--reason', 'again', '--json');
    expect(JSON.parse(refused.stderr).error.code).toBe('connector_not_stopped');
    // The acknowledged file stops nothing anymore.
    await world.kill();
    await world.start();
    const last = await world.submit();
    await world.cut();
    expect(world.isInFiles(last)).toHaveLength(1);
  });

  test('sends a file once that was noted and not uploaded before a kill', async () => {
    const payout = await world.submit();
    rmSync(world.out, { recursive: true });
    await world.ask();
    await eventually('the note', async () =>
      readFileSync(world.statePath, 'utf8').includes('"leaving"'),
    );
    await world.kill();
    mkdirSync(world.out);
    await world.start();
    await eventually('the file', async () => world.isInFiles(payout).length === 1);
    await world.cut();
    expect(world.listFiles()).toHaveLength(1);
    await eventually('a report', async () => (await world.readStop()) === null);
  });

  test('does not upload again what left before a restore to its cut', async () => {
    const payout = await world.submit();
    await world.cut();
    const [name = ''] = world.listFiles();
    const row = await world.book.files.findOne({ name });
    await world.kill();
    await world.book.files.updateOne({ name }, { $set: { state: 'cut', sent_at: null } });
    rmSync(join(world.out, name));
    await world.start();
    await world.untilStopped();
    const released = await world.cli(...RELEASE, '--reason', 'Ticket 2: the bank has the file');
    expect(released).toMatchObject({ exit: 0 });
    await eventually('the state', async () => {
      const file = await world.book.files.findOne({ _id: String(row?._id) });
      return file?.state === 'sent';
    });
    expect(world.isInFiles(payout)).toEqual([]);
  });

  test('is stopped where its state file is missing, and starts with an empty book', async () => {
    await world.submit();
    await world.cut();
    await world.kill();
    rmSync(world.statePath);
    await world.start();
    expect((await world.untilStopped())?.reason).toContain('its state file is missing');
    await world.kill();
    rmSync(world.statePath);
    await world.own.dropDatabase();
    await world.start();
    const payout = await world.submit();
    await world.cut();
    expect(world.isInFiles(payout)).toHaveLength(1);
  });
});
