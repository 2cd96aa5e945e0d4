import { ApplicationFailure } from '@temporalio/common';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import {
  callback,
  openRefund,
  refundInput,
  scriptedBank,
  settledPayment,
  useWorkflowSetting,
  withBank,
} from '../../support/workflow-setting';
import { accepted, moneyOf, refunding, shows, storedRefund } from './setting';

const setting = useWorkflowSetting();

const ACT = { operator: 'ada', reason: 'the bank said so' };

test('an instruction without an answer had arrived: it is looked up, not sent again', async () => {
  const bank = scriptedBank({
    sendRefund: async () => {
      throw new Error('the connection was lost');
    },
    lookUpRefund: async () => ({ outcome: 'accepted', bank_reference: 'known' }),
  });
  await refunding(setting, bank, async ({ handle, id }) => {
    await accepted(handle);
    await handle.signal('settled', callback());
    expect(await handle.result()).toMatchObject({ status: 'settled' });
    expect(bank.told).toEqual(['openSession', `sendRefund ${id}`, `lookUpRefund ${id}`]);
    expect((await storedRefund(setting, id)).bank_reference).toBe('known');
    await saveHistory(handle, 'refund-looked-up');
  });
});

test('an instruction that the bank refused without our hearing it: looked up, it fails', async () => {
  const bank = scriptedBank({
    sendRefund: async () => {
      throw new Error('the connection was lost');
    },
    lookUpRefund: async () => ({ outcome: 'refused', code: 'no', message: 'No.' }),
  });
  await refunding(setting, bank, async ({ handle, id, payment }) => {
    expect(await handle.result()).toMatchObject({ status: 'failed' });
    expect((await storedRefund(setting, id)).failure).toEqual({ code: 'no', message: 'No.' });
    expect(await moneyOf(setting, payment)).toEqual({ refunded: 0, available: 1_050 });
  });
});

test('an instruction that never arrived is sent again, under the same id', async () => {
  let sent = 0;
  const bank = scriptedBank({
    sendRefund: async ({ refund_id }) => {
      sent += 1;
      if (sent <= 3) throw new Error('the bank is away');
      return { outcome: 'accepted', bank_reference: refund_id };
    },
  });
  await refunding(setting, bank, async ({ handle, id }) => {
    await setting.env.sleep('1m');
    expect(await accepted(handle)).toContain('never reached the bank');
    const round = [`sendRefund ${id}`, `lookUpRefund ${id}`];
    expect(bank.told).toEqual(['openSession', ...round, ...round, ...round, `sendRefund ${id}`]);
    await handle.signal('settled', callback());
    expect(await handle.result()).toMatchObject({ status: 'settled' });
    await saveHistory(handle, 'refund-sent-again');
  });
});

test('a connector that gives up for good, twice: the bank is asked until it says what it knows', async () => {
  let asked = 0;
  const bank = scriptedBank({
    sendRefund: async () => {
      throw ApplicationFailure.nonRetryable('unexpected answer');
    },
    lookUpRefund: async () => {
      asked += 1;
      if (asked === 1) throw ApplicationFailure.nonRetryable('unexpected answer');
      if (asked === 2) throw new Error('the bank is away');
      return { outcome: 'accepted', bank_reference: 'in-the-end' };
    },
  });
  await refunding(setting, bank, async ({ handle, id }) => {
    await shows(handle, 'looked up again later');
    await setting.env.sleep('2m');
    await accepted(handle);
    await handle.signal('settled', callback());
    await handle.result();
    expect(bank.told.filter((line) => line.startsWith('sendRefund'))).toHaveLength(1);
    expect(asked).toBe(3);
    expect((await storedRefund(setting, id)).bank_reference).toBe('in-the-end');
    await saveHistory(handle, 'refund-connector-gives-up');
  });
});

test('started again while it is processing: the bank is asked first, and told what it does not know', async () => {
  const bank = scriptedBank({
    sendRefund: async ({ refund_id }) => {
      const isFirst = bank.told.filter((line) => line.startsWith('sendRefund')).length === 1;
      if (isFirst) throw new Error('the connection was lost');
      return { outcome: 'accepted', bank_reference: `again-${refund_id}` };
    },
    lookUpRefund: async () => {
      const isFirst = bank.told.filter((line) => line.startsWith('lookUpRefund')).length === 1;
      if (isFirst) throw ApplicationFailure.nonRetryable('unexpected answer');
      return { outcome: 'not_found' };
    },
  });
  await refunding(setting, bank, async ({ handle, id }) => {
    await shows(handle, 'looked up again later');
    await handle.terminate('by hand');
    const again = await setting.env.client.workflow.start('refund', {
      workflowId: `refund:${id}`,
      taskQueue: setting.queues.lifecycle,
      args: [{ refund_id: id, resume: true, request_id: 'again' }],
    });
    await eventually('the bank to be asked', async () => bank.told.length === 4);
    // A connector might still be at what the run that was ended had sent.
    await setting.env.sleep('31s');
    expect(await accepted(again)).toContain('Started again in flight.');
    const round = [`sendRefund ${id}`, `lookUpRefund ${id}`];
    const asked = [`lookUpRefund ${id}`, `lookUpRefund ${id}`];
    expect(bank.told).toEqual(['openSession', ...round, ...asked, `sendRefund ${id}`]);
    await again.signal('settled', callback());
    expect(await again.result()).toMatchObject({ status: 'settled', version: 2 });
    expect((await storedRefund(setting, id)).bank_reference).toBe(`again-${id}`);
    await saveHistory(again, 'refund-resumed-in-flight');
  });
});

/** Last: an activity under way, even one left by its workflow, keeps this server from skipping time. */
describe('final before the bank has answered', () => {
  const gate = () => {
    let release = () => {};
    const opened = new Promise<void>((resolve) => {
      release = resolve;
    });
    return { opened, release };
  };

  test('by a callback: nothing waits for the answer', async () => {
    const { opened, release } = gate();
    const bank = scriptedBank({
      sendRefund: async () => {
        await opened;
        return { outcome: 'accepted', bank_reference: 'late' };
      },
    });
    await refunding(setting, bank, async ({ handle, id }) => {
      await eventually('the instruction', async () => bank.told.includes(`sendRefund ${id}`));
      await handle.signal('settled', callback({ bank_reference: 'from-callback' }));
      expect(await handle.result()).toMatchObject({ status: 'settled', version: 2 });
      release();
      expect(await storedRefund(setting, id)).toMatchObject({
        status: 'settled',
        bank_reference: 'from-callback',
      });
      await saveHistory(handle, 'refund-callback-first');
    });
  });

  test('by an operator: it is not sent again', async () => {
    const { opened, release } = gate();
    const bank = scriptedBank({
      sendRefund: async () => {
        throw new Error('the bank is away');
      },
      lookUpRefund: async () => {
        await opened;
        return { outcome: 'not_found' };
      },
    });
    await refunding(setting, bank, async ({ handle, id, payment }) => {
      await eventually('the question', async () => bank.told.includes(`lookUpRefund ${id}`));
      await handle.executeUpdate('mark_failed', { args: [ACT] });
      expect(await handle.result()).toMatchObject({ status: 'failed', version: 2 });
      release();
      expect(bank.told).toEqual(['openSession', `sendRefund ${id}`, `lookUpRefund ${id}`]);
      expect(await moneyOf(setting, payment)).toEqual({ refunded: 0, available: 1_050 });
    });
  });

  test('by an operator, told that it is overdue: with the connector down, nothing is sent', async () => {
    const bank = scriptedBank();
    const payment = await withBank(setting, bank, (connector) =>
      settledPayment(setting, connector),
    );
    const input = refundInput(payment, { due_seconds: 1 });
    const { handle } = await openRefund(setting, input);
    await eventually('the mark', async () => {
      const { attention } = await storedRefund(setting, input.refund_id);
      return attention === 'refund_overdue';
    });
    await handle.executeUpdate('mark_failed', { args: [ACT] });
    expect(await handle.result()).toMatchObject({ status: 'failed' });
    expect(await moneyOf(setting, payment)).toEqual({ refunded: 0, available: 1_050 });
    expect(bank.told).toEqual(['openSession']);
    await saveHistory(handle, 'refund-connector-down');
  });
});
