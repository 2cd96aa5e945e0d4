import { MAGIC_AMOUNTS, REFUND_MAGIC_AMOUNTS } from '../../connectors/sandbox/magic-amounts';
import { planApproval, planRefund } from '../../connectors/sandbox/plan';
import { instruction } from './bank-server';
import { useBankWorld } from './bank-world';

const world = useBankWorld();

const activities = () => world.server.bank.activities;
const ACCEPTED = {
  outcome: 'accepted',
  bank_reference: expect.stringMatching(/^SBX[0-9A-F]{12}$/),
};

const told = (id: string) => world.told(id, 'refund');

async function statusOf(_id: string): Promise<string | undefined> {
  return (await world.refunds.findOne({ _id }))?.status;
}

describe('magic amounts of refunds', () => {
  it('count for refunds only, and those of payments for payments only', async () => {
    for (const amount of Object.keys(REFUND_MAGIC_AMOUNTS).map(Number)) {
      expect(planApproval(amount, true)).toEqual(planApproval(1_050, true));
      const opened = await activities().openSession(instruction({ amount }));
      expect(opened.outcome).toBe('opened');
    }
    for (const amount of Object.keys(MAGIC_AMOUNTS).map(Number)) {
      expect(planRefund(amount, true)).toEqual(planRefund(1_050, true));
      const { input } = await world.knowRefund({ amount });
      expect(await activities().sendRefund(input)).toEqual(ACCEPTED);
    }
  });

  it('66611 is refused at once, each time, and found as refused', async () => {
    const { input, id } = await world.knowRefund({ amount: 66_611 });
    const first = await activities().sendRefund(input);
    expect(first).toMatchObject({ outcome: 'refused', code: 'refund_refused' });
    expect(await activities().sendRefund(input)).toEqual(first);
    expect(await activities().lookUpRefund({ refund_id: id })).toEqual(first);
    expect([await world.rows(id), await statusOf(id)]).toEqual([[], 'refused']);
  });

  it('66612 is accepted, then fails with code and reason, also with autoplay off', async () => {
    await world.server.restart({ autoplay: false });
    const { input, id } = await world.knowRefund({ amount: 66_612 });
    const answer = await activities().sendRefund(input);
    expect(answer).toEqual(ACCEPTED);
    expect(await told(id)).toEqual(['failed']);
    const [callback] = await world.callbacks(id);
    const reason = 'The customer’s account is closed.';
    expect(callback?.body).toMatchObject({ code: 'account_closed', reason });
    expect(await statusOf(id)).toBe('failed');
    expect(await activities().lookUpRefund({ refund_id: id })).toEqual(answer);
    await world.server.restart();
  });

  it('66613 is accepted, and nothing is ever said', async () => {
    const { input, id } = await world.knowRefund({ amount: 66_613 });
    expect(await activities().sendRefund(input)).toEqual(ACCEPTED);
    expect([await world.rows(id), await statusOf(id)]).toEqual([[], 'accepted']);
  });

  it('66614 is taken, its answer is lost; it is found and settles', async () => {
    const { input, id } = await world.knowRefund({ amount: 66_614 });
    await expect(activities().sendRefund(input)).rejects.toThrow(
      'The answer of the bank got lost.',
    );
    const found = await activities().lookUpRefund({ refund_id: id });
    expect(found).toEqual(ACCEPTED);
    expect(await activities().sendRefund(input)).toEqual(found);
    expect(await told(id)).toEqual(['settled']);
    expect(await world.rows(id)).toHaveLength(1);
  });

  it('66615 gets lost on its way, is not found, and is taken when sent again', async () => {
    const { input, id } = await world.knowRefund({ amount: 66_615 });
    await expect(activities().sendRefund(input)).rejects.toThrow('lost in transit');
    expect(await activities().lookUpRefund({ refund_id: id })).toEqual({ outcome: 'not_found' });
    expect(await world.rows(id)).toEqual([]);
    const again = await Promise.all([
      activities().sendRefund(input),
      activities().sendRefund(input),
    ]);
    expect(again[0]).toEqual(ACCEPTED);
    expect(again[1]).toEqual(again[0]);
    expect(await activities().lookUpRefund({ refund_id: id })).toEqual(again[0]);
    expect(await told(id)).toEqual(['settled']);
    expect(await world.rows(id)).toHaveLength(1);
  });

  it('66616 is settled, settled again under the same id, then failed under another', async () => {
    await world.server.restart({ autoplay: false });
    const { input, id } = await world.knowRefund({ amount: 66_616 });
    await activities().sendRefund(input);
    expect(await told(id)).toEqual(['settled', 'failed']);
    const rows = await world.rows(id);
    expect(rows.map(({ name }) => name)).toEqual(['settled', 'settled', 'failed']);
    const [first, second, third] = rows.map(({ body }) => body.callback_id);
    expect([second === first, third === first]).toEqual([true, false]);
    expect(await world.callbacks(id)).toHaveLength(2);
    expect(await statusOf(id)).toBe('settled');
    await world.server.restart();
  });
});
