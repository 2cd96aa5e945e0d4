import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { terminateIdle } from '../../support/skipping-server';
import { INSTRUCTED, instructions, PAYOUTS, REFUNDS } from '../instructed';
import { ACT, MONEY, useLifecycles } from '../lifecycles';

const lifecycles = useLifecycles();

const RESUMED = { refund: 'refund-resumed-in-flight', payout: 'payout-resumed-created' };

describe.each(INSTRUCTED)('an instruction of a $resource', (row) => {
  const { resource, done, money } = row;

  test.each([
    ['that arrived is looked up, and not sent again', 'taken', ['send', 'lookUp'], 'looked-up-1'],
    ['that never arrived is sent again', 'not found', ['send', 'lookUp', 'send'], 'sent-2'],
  ] as const)('without an answer %s', async (_title, lookedUp, sent, bank_reference) => {
    const bank = row.bank({ send: ['loses the connection', 'taken'], lookUp: [lookedUp] });
    await row.open(lifecycles, bank, async (subject) => {
      expect(subject.opened).toMatchObject(row.taken);
      await row.isTaken(subject);
      // Under the same id each time.
      expect(instructions(bank)).toEqual(sent.map((word) => `${word} ${subject.id}`));
      expect(await subject.money()).toEqual(money.taken);
      expect(await subject.endBy(done)).toMatchObject({ status: done });
      expect(await subject.stored()).toMatchObject({ bank_reference });
      const history = lookedUp === 'taken' ? 'looked-up' : 'sent-again';
      if (history === 'looked-up' || resource === 'payout') {
        await saveHistory(subject.handle, `${resource}-${history}`);
      }
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
      await eventually('the look-up', async () => instructions(bank).length === 3);
      // A connector might still be at what the run that was ended had sent.
      await lifecycles.setting.env.sleep('31s');
      await row.isTaken(subject);
      await subject.shows('Started again in flight');
      const [send, lookUp] = [`send ${id}`, `lookUp ${id}`];
      expect(instructions(bank)).toEqual([send, lookUp, lookUp, lookUp, send]);
      expect(await subject.money()).toEqual(money.taken);
      expect(await subject.endBy(done)).toMatchObject({ status: done });
      const transition = row.taken.version + 1;
      expect(await subject.stored()).toMatchObject({ transition, bank_reference: 'sent-2' });
      await saveHistory(handle, RESUMED[resource]);
    });
  });
});

test('an instruction whose refusal was lost is looked up, and fails', async () => {
  const bank = PAYOUTS.bank({ send: ['loses the connection'], lookUp: ['refused'] });
  await lifecycles.withPayout(bank, async ({ handle, stored, money }) => {
    expect(await handle.result()).toMatchObject({ status: 'failed', version: 2 });
    expect(await stored()).toMatchObject({ failure: { code: 'no', message: 'No.' } });
    expect(await money()).toEqual(MONEY.untouched);
  });
});

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

test('an instruction that its connector gives up is looked up until the bank answers', async () => {
  const { withRefund, setting } = lifecycles;
  const lookUp = ['gives up', 'loses the connection', 'taken'] as const;
  const bank = REFUNDS.bank({ send: ['gives up'], lookUp: [...lookUp] });
  await withRefund(bank, async ({ id, handle, shows, endBy, stored }) => {
    await shows('looked up again later');
    await setting.env.sleep('2m');
    await shows('instruction at the bank: accepted');
    await endBy('settled');
    expect(instructions(bank)).toEqual([`send ${id}`, ...Array(3).fill(`lookUp ${id}`)]);
    expect((await stored()).bank_reference).toBe('looked-up-3');
    await saveHistory(handle, 'refund-connector-gives-up');
  });
});

/** Last here: an activity under way, even one left by its workflow, keeps the server from skipping time. */
test.each(INSTRUCTED)(
  'an instruction of a $resource that an operator marks as failed is not sent again',
  async (row) => {
    const { opened, release } = gate();
    const notFound = async () => {
      await opened;
      return 'not found' as const;
    };
    const bank = row.bank({ send: ['loses the connection'], lookUp: [notFound] });
    await row.start(lifecycles, bank, async ({ id, act, handle, money }) => {
      await eventually('the look-up', async () => instructions(bank).includes(`lookUp ${id}`));
      await act('mark_failed', { ...ACT, ...row.confirmation });
      expect(await handle.result()).toMatchObject({ status: 'failed' });
      release();
      expect(instructions(bank)).toEqual([`send ${id}`, `lookUp ${id}`]);
      expect(await money()).toEqual(row.money.untouched);
    });
  },
);
