import { gate } from '../../support/gate';
import { eventually } from '../../support/http';
import { INSTRUCTED, instructions } from '../instructed';
import { useLifecycles } from '../lifecycles';

/**
 * Giving money back while an instruction may still arrive would pay it twice. On the real server:
 * the other one loses an activity that ends while its cancellation is on the way.
 */
const lifecycles = useLifecycles('real');

// A machine that stalls while the bank is asked uses up the seconds that an operator waits.
jest.retryTimes(3, { logErrorsBeforeRetry: true });

describe.each(INSTRUCTED)('a $resource is marked as failed while a connector sends it', (row) => {
  test('what the bank took meanwhile is not failed', async () => {
    const { opened, release } = gate();
    const bank = row.bank({ send: [() => opened.then(() => 'taken')] });
    await row.start(lifecycles, bank, async (subject) => {
      await eventually('the instruction', async () => instructions(bank).length === 1);
      const marked = subject.refusal('mark_failed');
      await subject.shows('mark_failed');
      release();
      const message = expect.stringMatching(/just taken|holds the payout/);
      expect(await marked).toMatchObject({ code: row.held, message });
      await row.isTaken(subject);
      await subject.endBy(row.done);
      expect(await subject.stored()).toMatchObject({ status: row.done, failure: null });
      expect(await subject.money()).toEqual(row.money.taken);
    });
  });

  test('an instruction that ends without an answer lets the operator decide', async () => {
    const { opened, release } = gate();
    const bank = row.bank({ send: [() => opened.then(() => 'loses the connection')] });
    await row.start(lifecycles, bank, async (subject) => {
      const { id, handle } = subject;
      await eventually('the instruction', async () => instructions(bank).length === 1);
      const marked = subject.act('mark_failed');
      await subject.shows('mark_failed');
      release();
      expect(await marked).toMatchObject({ status: 'failed' });
      await handle.result();
      expect(instructions(bank)).toEqual(['send', ...row.question].map((word) => `${word} ${id}`));
      expect(await subject.stored()).toMatchObject({ status: 'failed', attention: null });
      expect(await subject.money()).toEqual(row.money.untouched);
    });
  });
});
