import { randomUUID } from 'node:crypto';
import { openShop } from '../../api/payout-setting';
import { commandsIn, useCommands } from '../../cli/cli';
import { dumpDatabase, restoreDatabase } from '../../support/dump';
import { useFixture } from '../../support/fixture';
import { eventually } from '../../support/http';
import { NAME, useHttpBank } from './world';

const RELEASE = ['connector', 'release', NAME, '--env', 'sandbox', '--after-restore'];

// A product of its own, whose epoch is put back.
const { prefix, service, bank, connector } = useHttpBank();
const shop = useFixture(() => openShop(service));
const commands = useCommands(service);
const cli = (...args: string[]) =>
  commandsIn({
    ...{ ...commands.env, TASK_QUEUE_PREFIX: prefix },
    SANDBOX_CONNECTORS: `${NAME}=sepa_credit_transfer|sepa_instant|ideal`,
  }).cli(...args);

const pay = async () => {
  const method = 'sepa_credit_transfer';
  const { body, text } = await shop.pay({ method, recipient_id: shop.recipients[method] });
  if (body.id === undefined) throw new Error(text);
  return String(body.id);
};
const untilSent = (id: string) =>
  eventually('the instruction', async () => bank.sent(id).length === 1);
const readStop = async () => (await service.stores.capabilities.get(NAME))?.stopped;
const epochs = () => service.db.collection<{ _id: string; at: string }>('service_epoch');

/** Sends nothing for a payout until an operator releases the connector. */
async function expectStopped(id: string, reason: RegExp): Promise<void> {
  const stop = await eventually('a stop', readStop);
  expect(stop.reason).toMatch(reason);
  await eventually('a log line', async () => connector.readLogs().includes('connector_stopped'));
  expect(bank.sent(id)).toEqual([]);
  const health = await cli('connector', 'health', NAME, '--json');
  expect(JSON.parse(health.stdout).faults).toEqual(
    expect.arrayContaining([expect.stringContaining('it sends nothing until')]),
  );
  expect(await cli(...RELEASE, '--reason', `Ticket ${randomUUID()}`)).toMatchObject({ exit: 0 });
  await untilSent(id);
  await eventually('the report', async () => (await readStop()) === null);
}

test('an epoch that is put back while it runs stops a connector before the next instruction', async () => {
  const { at } = await service.stores.epoch.raise(new Date().toISOString());
  await untilSent(await pay());
  await epochs().updateOne({}, { $set: { at: '2026-01-01T00:00:00.000Z' } });
  const id = await pay();
  await expectStopped(id, /^MongoDB has the state of 2026-01-01/);
  await epochs().updateOne({}, { $set: { at } });
});

test('a restore of its database stops a connector that was stopped, whatever the epoch is', async () => {
  const own = service.mongo.db(`${service.database}_${NAME}`);
  await untilSent(await pay());
  const dump = await dumpDatabase(own);
  // The count is raised at most once a second.
  await new Promise((done) => setTimeout(done, 1_100));
  await untilSent(await pay());
  await connector.kill();
  await restoreDatabase(own, dump);
  await epochs().updateOne({}, { $set: { at: new Date().toISOString() } });
  const id = await pay();
  await connector.start();
  await expectStopped(id, /database is older than its state file/);
});
