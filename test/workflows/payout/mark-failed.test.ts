import { randomUUID } from 'node:crypto';
import { gate } from '../../support/gate';
import { eventually } from '../../support/http';
import { callback, scriptedBank, useWorkflowSetting } from '../../support/workflow-setting';
import {
  ACT,
  late,
  moneyOf,
  type PayingOut,
  payingOut,
  refusalOf,
  shows,
  storedPayout,
  unawaited,
} from './setting';

/**
 * Giving money back while an instruction may still be on its way would pay it twice. On the real
 * server: the other one loses an activity that ends while its cancellation is on the way.
 */
const setting = useWorkflowSetting('real');

test('an instruction that a connector has begun is waited for; what the bank took is not failed', async () => {
  const { opened, release } = gate();
  const bank = scriptedBank({
    sendPayout: async () => {
      await opened;
      return { outcome: 'sent', bank_reference: 'taken' };
    },
  });
  await unawaited(setting, bank, async ({ handle, id }) => {
    await eventually('the connector to begin', async () => bank.told.length === 1);
    const marked = refusalOf(handle.executeUpdate('mark_failed', { args: [ACT] }));
    await shows(handle, 'mark_failed');
    release();
    expect(await marked).toMatchObject({
      code: 'wrong_state',
      message: expect.stringMatching(/just taken/),
    });
    await eventually(
      'it to be sent',
      async () => (await storedPayout(setting, id)).status === 'sent',
    );
    await handle.signal('completed', callback());
    await handle.result();
    expect(await storedPayout(setting, id)).toMatchObject({ status: 'completed', failure: null });
  });
});

test('an instruction that ends without an answer lets the operator decide', async () => {
  const { opened, release } = gate();
  const bank = scriptedBank({
    sendPayout: async () => {
      await opened;
      throw new Error('connection reset');
    },
  });
  await unawaited(setting, bank, async ({ handle, id, input }) => {
    await eventually('the connector to begin', async () => bank.told.length === 1);
    const marked = handle.executeUpdate('mark_failed', { args: [ACT] });
    await shows(handle, 'mark_failed');
    release();
    expect(await marked).toMatchObject({ status: 'failed' });
    await handle.result();
    expect(bank.told).toHaveLength(1);
    expect(await storedPayout(setting, id)).toMatchObject({ status: 'failed', attention: null });
    expect(await moneyOf(setting, input)).toMatchObject({ reserved: 0 });
  });
});

describe('a second instruction', () => {
  /** Two attempts, each held until it is let go; the bank knows neither while it is asked. */
  function heldTwice() {
    const [first, second] = [gate(), gate()];
    let attempts = 0;
    const bank = scriptedBank({
      sendPayout: async () => {
        attempts += 1;
        if (attempts === 1) {
          await first.opened;
          throw new Error('connection reset');
        }
        await second.opened;
        return { outcome: 'sent', bank_reference: 'second' };
      },
      lookUpPayout: async () => ({ outcome: 'not_found' }),
    });
    const sends = () => bank.told.filter((line) => line.startsWith('sendPayout')).length;
    return { bank, first, second, sends };
  }

  test('waits for the first, and is not given when the payout is marked as failed meanwhile', async () => {
    const { bank, first, sends } = heldTwice();
    await unawaited(setting, bank, async ({ handle, id, input }) => {
      await eventually('the connector to begin', async () => sends() === 1);
      const again = handle.executeUpdate('resubmit', { args: [ACT] });
      await shows(handle, 'resubmit');
      const marked = handle.executeUpdate('mark_failed', { args: [ACT] });
      await shows(handle, 'mark_failed');
      expect(sends()).toBe(1);
      first.release();
      expect(await marked).toMatchObject({ status: 'failed' });
      expect(await again).toMatchObject({ status: 'failed' });
      await handle.result();
      expect(sends()).toBe(1);
      expect(await moneyOf(setting, input)).toMatchObject({ reserved: 0 });
      expect(await storedPayout(setting, id)).toMatchObject({ status: 'failed', attention: null });
    });
  });

  test('is waited for by a mark that comes after the first one has ended', async () => {
    const { bank, first, second, sends } = heldTwice();
    await unawaited(setting, bank, async ({ handle, id }) => {
      await eventually('the connector to begin', async () => sends() === 1);
      const again = handle.executeUpdate('resubmit', { args: [ACT] });
      await shows(handle, 'resubmit');
      first.release();
      await eventually('the second attempt', async () => sends() === 2);
      const marked = refusalOf(handle.executeUpdate('mark_failed', { args: [ACT] }));
      await shows(handle, 'mark_failed');
      second.release();
      expect(await marked).toMatchObject({ message: expect.stringMatching(/just taken/) });
      expect(await again).toMatchObject({ bank: 'sent', status: 'sent' });
      await handle.signal('completed', callback());
      await handle.result();
      expect(await storedPayout(setting, id)).toMatchObject({ status: 'completed' });
    });
  });

  test('is never left behind by a run that ends: its answer is taken in first', async () => {
    const { opened, release } = gate();
    const bank = scriptedBank({
      sendPayout: async () => {
        await opened;
        return { outcome: 'sent', bank_reference: 'late' };
      },
    });
    await unawaited(setting, bank, async ({ handle, id }) => {
      await eventually('the connector to begin', async () => bank.told.length === 1);
      await handle.signal('failed', callback());
      await shows(handle, '**failed**');
      expect((await handle.describe()).status.name).toBe('RUNNING');
      release();
      await handle.result();
      expect(await storedPayout(setting, id)).toMatchObject({
        status: 'failed',
        attention: 'moved_after_failed',
      });
    });
  });
});

test('a run ends with the word of the bank, also while no connector takes the instruction', async () => {
  const nobody = { connector: `nobody-${randomUUID().slice(0, 8)}` };
  const story = async ({ handle }: PayingOut) => {
    await shows(handle, '**created**');
    await handle.signal('failed', callback());
    expect(await handle.result()).toMatchObject({ status: 'failed' });
  };
  await unawaited(setting, scriptedBank(), story, nobody);
});

test('a mark of a restart ends with the payout', async () => {
  await payingOut(setting, scriptedBank(), async ({ handle, id }) => {
    await handle.terminate('by mistake');
    await (await late(setting, id, 'completed')).result();
    expect(await storedPayout(setting, id)).toMatchObject({ status: 'completed', attention: null });
  });
});
