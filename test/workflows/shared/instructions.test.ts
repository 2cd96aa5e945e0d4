import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { terminateIdle } from '../../support/skipping-server';
import { INSTRUCTED, instructions, REFUNDS } from '../instructed';
import { ACT, useLifecycles } from '../lifecycles';

const lifecycles = useLifecycles();

describe.each(INSTRUCTED)('the instruction of a $resource', (row) => {
  const { resource, done, money } = row;

  test('without an answer had arrived: it is looked up, not sent again', async () => {
    const bank = row.bank({ send: ['loses the connection'], lookUp: ['taken'] });
    await row.open(lifecycles, bank, async (subject) => {
      expect(subject.opened).toMatchObject(row.taken);
      await row.isTaken(subject);
      expect(instructions(bank)).toEqual([`send ${subject.id}`, `lookUp ${subject.id}`]);
      expect(await subject.money()).toEqual(money.taken);
      expect(await subject.endBy(done)).toMatchObject({ status: done });
      expect(await subject.stored()).toMatchObject({ bank_reference: 'looked-up-1' });
      await saveHistory(subject.handle, `${resource}-looked-up`);
    });
  });

  test('was refused without our hearing it: it is looked up, and fails', async () => {
    const bank = row.bank({ send: ['loses the connection'], lookUp: ['refused'] });
    await row.open(lifecycles, bank, async (subject) => {
      expect(subject.opened).toMatchObject(row.openedRefused);
      expect(await subject.handle.result()).toMatchObject({ status: 'failed', version: 2 });
      expect(await subject.stored()).toMatchObject({ failure: { code: 'no', message: 'No.' } });
      expect(await subject.money()).toEqual(money.untouched);
    });
  });

  test('never arrived: it is sent again, under the same id', async () => {
    const bank = row.bank({ send: ['loses the connection', 'taken'] });
    await row.open(lifecycles, bank, async (subject) => {
      expect(subject.opened).toMatchObject(row.taken);
      await row.isTaken(subject);
      const { id } = subject;
      expect(instructions(bank)).toEqual([`send ${id}`, `lookUp ${id}`, `send ${id}`]);
      expect(await subject.money()).toEqual(money.taken);
      expect(await subject.endBy(done)).toMatchObject({ status: done });
      if (resource === 'payout') await saveHistory(subject.handle, 'payout-sent-again');
    });
  });

  test('is looked up first by a run that is started again, and sent if the bank has none', async () => {
    const bank = row.bank({
      send: ['loses the connection', 'taken'],
      lookUp: ['gives up', 'not found'],
    });
    await row.start(lifecycles, bank, async (subject) => {
      const { id, handle } = subject;
      await subject.shows('looked up again later');
      await terminateIdle(handle);
      await subject.restart();
      await eventually('the bank to be asked', async () => instructions(bank).length === 3);
      // A connector might still be at what the run that was ended had sent.
      await lifecycles.setting.env.sleep('31s');
      await row.isTaken(subject);
      await subject.shows('Started again in flight');
      const [send, lookUp] = [`send ${id}`, `lookUp ${id}`];
      expect(instructions(bank)).toEqual([send, lookUp, lookUp, lookUp, send]);
      expect(await subject.money()).toEqual(money.taken);
      const version = row.taken.version + 1;
      expect(await subject.endBy(done)).toMatchObject({ status: done, version });
      expect(await subject.stored()).toMatchObject({ bank_reference: 'sent-2' });
      await saveHistory(handle, RESUMED[resource]);
    });
  });
});

const RESUMED = { refund: 'refund-resumed-in-flight', payout: 'payout-resumed-created' };

test('an instruction that gets lost three times is sent again each time', async () => {
  const { withRefund, setting } = lifecycles;
  const lost = 'loses the connection';
  const bank = REFUNDS.bank({ send: [lost, lost, lost, 'taken'] });
  await withRefund(bank, async ({ id, handle, shows, endBy }) => {
    await setting.env.sleep('1m');
    expect(await shows('instruction at the bank: accepted')).toContain('never reached the bank');
    const round = [`send ${id}`, `lookUp ${id}`];
    expect(instructions(bank)).toEqual([...round, ...round, ...round, `send ${id}`]);
    expect(await endBy('settled')).toMatchObject({ status: 'settled' });
    await saveHistory(handle, 'refund-sent-again');
  });
});

test('a connector that gives up twice: the bank is asked until it says what it knows', async () => {
  const { withRefund, setting } = lifecycles;
  const lookUp = ['gives up', 'loses the connection', 'taken'] as const;
  const bank = REFUNDS.bank({ send: ['gives up'], lookUp: [...lookUp] });
  await withRefund(bank, async ({ id, handle, shows, endBy, stored }) => {
    await shows('looked up again later');
    await setting.env.sleep('2m');
    await shows('instruction at the bank: accepted');
    await endBy('settled');
    const asked = Array(3).fill(`lookUp ${id}`);
    expect(instructions(bank)).toEqual([`send ${id}`, ...asked]);
    expect((await stored()).bank_reference).toBe('looked-up-3');
    await saveHistory(handle, 'refund-connector-gives-up');
  });
});

/** Last: an activity under way, even one left by its workflow, keeps this server from skipping time. */
test.each(INSTRUCTED)(
  'a $resource that an operator ends before the answer is not sent again',
  async (row) => {
    const { opened, release } = gate();
    const notFound = async () => {
      await opened;
      return 'not found' as const;
    };
    const bank = row.bank({ send: ['loses the connection'], lookUp: [notFound] });
    await row.start(lifecycles, bank, async ({ id, act, handle, money }) => {
      await eventually('the question', async () => instructions(bank).includes(`lookUp ${id}`));
      await act('mark_failed', { ...ACT, ...row.confirmation });
      expect(await handle.result()).toMatchObject({ status: 'failed', version: 2 });
      release();
      expect(instructions(bank)).toEqual([`send ${id}`, `lookUp ${id}`]);
      expect(await money()).toEqual(row.money.untouched);
    });
  },
);
