import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { scriptedBank } from '../../support/workflow-setting';
import { PAYOUTS } from '../instructed';
import { ACT, MONEY, useLifecycles } from '../lifecycles';

const { setting, withUnsentPayout } = useLifecycles();

/** The first instruction was lost, and the connector could not look it up: it waits a minute. */
const stuckBank = (found: 'not found' | 'refused') =>
  PAYOUTS.bank({ send: ['loses the connection', 'taken'], lookUp: ['gives up', found] });

test('the bank does not know it: it is sent again at once, under the same id', async () => {
  await withUnsentPayout(stuckBank('not found'), async (payout) => {
    const { id, handle, told } = payout;
    await payout.shows('looked up again later');
    const answer = { payout_id: id, status: 'sent', version: 3, bank: 'sent' };
    expect(await payout.act('resubmit')).toEqual(answer);
    const round = [`sendPayout ${id}`, `lookUpPayout ${id}`];
    expect(told).toEqual([...round, `lookUpPayout ${id}`, `sendPayout ${id}`]);
    expect(await payout.stored()).toMatchObject({
      bank_reference: 'sent-2',
      audit: [
        {
          who: 'ada',
          what: 'resubmit',
          why: 'confirmed by telephone',
          when: expect.any(String),
          before: 'no attention',
          after: 'no attention',
        },
      ],
    });
    expect(await payout.eventTypes()).toEqual(['payout.submitted', 'payout.sent']);
    expect(await payout.money()).toEqual(MONEY.captured);
    await setting.env.sleep('2h');
    expect(await payout.endBy('completed')).toMatchObject({ status: 'completed' });
    expect(told).toHaveLength(4);
    await saveHistory(handle, 'payout-resubmitted');
  });
});

test('the bank has it queued: nothing is sent again, and the operator is told so', async () => {
  const queued = async () => ({ outcome: 'submitted', bank_reference: 'queue-1' }) as const;
  const bank = scriptedBank({ sendPayout: queued, lookUpPayout: queued });
  await withUnsentPayout(bank, async ({ id, shows, act, told, money }) => {
    await shows('instruction at the bank: submitted');
    const answer = { payout_id: id, status: 'submitted', version: 2, bank: 'submitted' };
    expect(await act('resubmit')).toEqual(answer);
    expect(told).toEqual([`sendPayout ${id}`, `lookUpPayout ${id}`]);
    expect(await money()).toEqual(MONEY.reserved);
  });
});

test('the bank has refused it: it fails', async () => {
  await withUnsentPayout(stuckBank('refused'), async ({ id, shows, act, money }) => {
    await shows('looked up again later');
    const answer = { payout_id: id, status: 'failed', version: 2, bank: 'refused' };
    expect(await act('resubmit')).toEqual(answer);
    expect(await money()).toEqual(MONEY.untouched);
  });
});

/** Last: an activity under way, even one left by its workflow, keeps this server from skipping time. */
test('the bank reports it meanwhile: nothing waits for the look-up, neither does the operator', async () => {
  const { opened, release } = gate();
  const notFound = () => opened.then(() => 'not found' as const);
  const bank = PAYOUTS.bank({ send: ['loses the connection'], lookUp: [notFound] });
  await withUnsentPayout(bank, async ({ id, handle, shows, endBy, told, money }) => {
    await eventually('the question', async () => told.includes(`lookUpPayout ${id}`));
    const resubmission = await handle.startUpdate<object, [object]>('resubmit', {
      args: [ACT],
      waitForStage: 'ACCEPTED',
    });
    await shows('operator ada: resubmit');
    const ended = endBy('completed', { bank_reference: 'from-callback' });
    const state = { payout_id: id, status: 'completed', version: 4 };
    expect(await resubmission.result()).toEqual(state);
    expect(await ended).toMatchObject({ status: 'completed', version: 4 });
    release();
    expect(told.filter((line) => line.startsWith('sendPayout'))).toHaveLength(1);
    expect(await money()).toEqual(MONEY.captured);
    await saveHistory(handle, 'payout-callback-first');
  });
});
