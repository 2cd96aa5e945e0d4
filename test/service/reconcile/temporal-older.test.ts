import { randomUUID } from 'node:crypto';
import { WorkflowNotFoundError } from '@temporalio/client';
import { isUnresolved } from '../../../src/service/reconcile/rebuild';
import { useFixture } from '../../support/fixture';
import { eventually } from '../../support/http';
import { openRestorableTemporal } from './restorable-temporal';
import { useRestoreSetting } from './setting';

/** Temporal comes back as it was at a backup, while MongoDB and the bank have gone on. */
const temporal = useFixture(openRestorableTemporal, ({ close }) => close());
const setting = useRestoreSetting(() => ({ temporal: temporal.address }));

/** Time for two stops and starts of a server, and of its workers. */
const RESTARTS_MS = 500_000;
/** Banks that take a payout and stay silent: before `sent`, and after it. */
const SILENT_BEFORE_SENT = { amount: 66_624 };
const SILENT = { amount: 66_623 };

test(
  'what moved meanwhile is paid once: workflows start again, or take the record over',
  async () => {
    const { stores, shop } = setting;
    const [submitted, sent] = [
      await setting.payout(SILENT_BEFORE_SENT, 'submitted'),
      await setting.payout(SILENT),
    ];
    await setting.service.stopWorkers();
    await temporal.backUp();
    await setting.service.startWorkers();
    await setting.simulate('payout', submitted, { event: 'completed' });
    await setting.simulate('payout', sent, { event: 'completed' });
    const ended = await setting.payout(SILENT);
    await setting.simulate('payout', ended, { event: 'completed' });
    const running = await setting.payout(SILENT);
    const ids = [submitted, sent, ended, running];
    const statuses = async () =>
      await Promise.all(ids.map(async (id) => (await stores.payouts.get(id))?.status));
    await eventually('the completions', async () => {
      return (await statuses()).filter((status) => status === 'completed').length === 3;
    });
    expect(await statuses()).toEqual(['completed', 'completed', 'completed', 'sent']);
    const balance = await shop.balance();
    const recorded = await Promise.all(ids.map(setting.recorded));

    await setting.service.stopWorkers();
    await temporal.restore();
    const [left] = await setting.left(1);
    const orphan = { kind: 'orphan', id: running, workflow: 'not found', act: 'restart' };
    expect(left).toMatchObject(orphan);
    const ahead = await eventually('both that are ahead', async () => {
      const found = (await setting.look()).findings.filter((finding) => !isUnresolved(finding));
      return found.length >= 2 && found;
    });
    expect(ahead.map(({ kind, id, document, workflow }) => [kind, id, document, workflow])).toEqual(
      expect.arrayContaining([
        [
          'ahead',
          submitted,
          'completed v4',
          expect.stringMatching(/^(created v1|submitted v2), run/),
        ],
        ['ahead', sent, 'completed v4', 'sent v3, running'],
      ]),
    );
    expect((await setting.look(true)).findings).toContainEqual(
      expect.objectContaining({ ...orphan, done: true }),
    );
    expect(await setting.left(0)).toEqual([]);

    await setting.service.startWorkers();
    await setting.simulate('payout', running, { event: 'completed' });
    // The bank's word reaches those that are behind once more.
    for (const id of [submitted, sent]) {
      const callback = { callback_id: randomUUID(), occurred_at: new Date().toISOString() };
      const told = setting.handle('payout', id).signal('completed', callback);
      // One that has read its document in the meantime has ended.
      await told.catch((error: unknown) => {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      });
      await setting.handle('payout', id).result();
    }
    await eventually('the completion', async () => (await statuses())[3] === 'completed');
    expect(await statuses()).toEqual(['completed', 'completed', 'completed', 'completed']);
    expect(await shop.balance()).toEqual(balance);
    const afterwards = await Promise.all(ids.map(setting.recorded));
    expect(afterwards.slice(0, 3)).toEqual(recorded.slice(0, 3));
    expect(afterwards[3]?.postings).toEqual(recorded[3]?.postings);
    const bank = setting.service.mongo.db(`${setting.service.database}_sandbox_bank`);
    const payments = await bank.collection('payouts').find().toArray();
    expect(payments.map(({ _id }) => String(_id)).toSorted()).toEqual(ids.toSorted());
    const { stdout } = await setting.cli('ledger', 'verify', '--json');
    expect(JSON.parse(stdout).data.differences).toEqual([]);
  },
  RESTARTS_MS,
);
