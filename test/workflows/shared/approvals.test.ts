import type { WorkflowHandle } from '@temporalio/client';
import { signCallback } from '../../../src/callbacks/mac';
import type { CallbackResource } from '../../../src/domain/callback/callback';
import { LIFECYCLES } from '../../../src/lifecycles';
import { decide } from '../../../src/service/approvals/decide';
import { asOperator, commandsIn } from '../../cli/cli';
import { operatorsAudit } from '../../support/audit';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { mongodbUri, temporalAddress } from '../../support/servers';
import {
  callback,
  openPayment,
  openRefund,
  paymentInput,
  refundInput,
  scriptedBank,
  withBank,
} from '../../support/workflow-setting';
import { ACT, refusalOf, useLifecycles } from '../lifecycles';

const { setting, withPayment, withPayout } = useLifecycles('real');

/** Any amount of a currency that the limits do not name needs a second operator. */
const LIVE = { livemode: true, currency: 'KWD' };
const WHY = ['--reason', 'Ticket 42'];

type Commands = Awaited<ReturnType<typeof asOperator>>;
let [mia, bo, leo]: Commands[] = [];
beforeAll(async () => {
  const commands = commandsIn({
    DATA_DIR: 'none',
    MONGODB_URI: mongodbUri(),
    MONGODB_DB: setting.database,
    TEMPORAL_ADDRESS: temporalAddress(),
  });
  mia = await asOperator(commands, 'mia', 'approver');
  bo = await asOperator(commands, 'bo', 'approver');
  leo = await asOperator(commands, 'leo');
});

interface Opened {
  kind: CallbackResource;
  id: string;
  handle: WorkflowHandle;
}
type Story = (opened: Opened) => Promise<unknown>;

const stored = async ({ kind, id }: Pick<Opened, 'kind' | 'id'>) => {
  const document = await LIFECYCLES[kind].get(setting.stores, id);
  if (document === null) throw new Error('not stored');
  return document;
};
const available = async ({ kind, id }: Opened, account?: string) => {
  const { account_id } = await stored({ kind, id });
  const [row] = await setting.stores.ledger.balances(account ?? account_id, true);
  return row?.available ?? 0;
};
const update = (handle: WorkflowHandle, what: string, more: object = {}) =>
  handle.executeUpdate<{ status: string; approval_id?: string }, [object]>(what, {
    args: [{ ...ACT, ...more }],
  });
async function requested(handle: WorkflowHandle, what: string, more: object = {}) {
  const answer = await update(handle, what, more);
  expect(answer).toEqual({
    status: 'approval_required',
    approval_id: expect.stringMatching(/^appr_/),
  });
  return answer.approval_id ?? '';
}
const approve = (by: Commands | undefined, id: string) =>
  by?.json('approval', 'approve', id, ...WHY);
const approval = (id: string) => setting.stores.approvals.get(id);

const payments = (story: Story) =>
  withPayment(
    scriptedBank(),
    async ({ id, handle, becomes }) => {
      await becomes({ status: 'awaiting_customer' });
      await story({ kind: 'payment', id, handle });
    },
    LIVE,
  );
const payouts = (story: Story) =>
  withPayout(scriptedBank(), ({ id, handle }) => story({ kind: 'payout', id, handle }), LIVE);
const refunds = (story: Story) =>
  withBank(setting, scriptedBank(), async (connector) => {
    const payment = paymentInput(connector, LIVE);
    const { handle: paid } = await openPayment(setting, payment);
    const about = { resource: 'payment', resource_id: payment.payment_id } as const;
    const report = callback();
    const told = { connector, ...about, name: 'settled', callback: report } as const;
    const mac = signCallback(await setting.connectorKey(connector), told);
    await paid.signal('settled', { ...report, mac });
    await paid.result();
    const { handle, opened } = await openRefund(setting, refundInput(payment));
    await story({ kind: 'refund', id: opened.refund_id, handle });
  });
const CONFIRMED = { bank_confirmed_not_executed: true };

test.each<[string, (story: Story) => Promise<void>, string, object, string]>([
  ['payment', payments, 'mark_settled', {}, 'settled'],
  ['refund', refunds, 'mark_settled', { amount: 1 }, 'settled'],
  ['refund', refunds, 'mark_failed', {}, 'failed'],
  ['payout', payouts, 'mark_failed', CONFIRMED, 'failed'],
  ['payout', payouts, 'mark_returned', { amount: 900 }, 'returned'],
])(
  'a live %s: %#. an update without proof waits for two operators, and moves money once',
  (noun, open, what, more, end) =>
    open(async (opened) => {
      const { handle } = opened;
      const before = await stored(opened);
      const money = await available(opened);
      const id = await requested(handle, what, { ...more, approved_by: 'bo' });
      expect(await requested(handle, what, more)).toBe(id);
      expect(await stored(opened)).toEqual(before);
      expect(await approve(mia, id)).toMatchObject({
        ...{ state: 'requested', status: 'approval_required' },
        ...{ requested_by: 'mia', requester_verified: true },
      });
      expect((await mia?.refusal('approval', 'approve', id, ...WHY))?.code).toBe('same_operator');
      expect(await stored(opened)).toEqual(before);
      expect(await approve(bo, id)).toMatchObject({ state: 'done' });
      const after = await stored(opened);
      expect(after.status).toBe(end);
      expect(after.audit.at(-1)).toMatchObject({
        ...{ who: 'mia', what, why: ACT.reason, approved_by: 'bo', approval_id: id },
      });
      const { account_id } = after;
      const [line] = await setting.stores.auditLog.list({ account_id, limit: 1 });
      expect(line).toMatchObject({ after: { what, approved_by: 'bo', approval_id: id } });
      expect(await approve(bo, id)).toMatchObject({ state: 'done' });
      if (end !== 'settled') await expectMore(opened, money);
      await handle.result();
      await saveHistory(handle, `${noun.replace(' ', '-')}-${what.replace('_', '-')}-approved`);
    }),
);

async function expectMore(opened: Opened, money: number | bigint): Promise<void> {
  await eventually('the credit', async () => (await available(opened)) > money);
}

test('on live what credits no more than the limit, or nothing, needs nobody; in the sandbox nothing', async () => {
  await withPayout(
    scriptedBank(),
    async ({ act }) => expect(await act('mark_returned')).toMatchObject({ status: 'returned' }),
    { livemode: true },
  );
  await payouts(async ({ handle }) => {
    expect(await update(handle, 'mark_completed')).toMatchObject({ status: 'completed' });
  });
  await withPayout(
    scriptedBank(),
    async ({ act }) => expect(await act('mark_returned')).toMatchObject({ status: 'returned' }),
    { currency: 'KWD' },
  );
});

describe('on the command line', () => {
  const act = (id: string, what: string, ...more: string[]) => [
    ...['payout', 'act', id, what, ...WHY, ...more],
  ];

  test('a live act needs a key; its request is that operator’s, and another approves it', () =>
    payouts(async (opened) => {
      const { id } = opened;
      const bare = commandsIn({ ...mia?.env, OPERATOR_KEY: '' });
      const named = act(id, 'mark_completed', '--operator', 'mia');
      expect((await bare.refusal(...named)).code).toBe('operator_key_required');
      const snoozed = act(id, 'snooze', '--operator', 'mia', '--hours', '1');
      expect((await bare.cli(...snoozed)).exit).toBe(0);
      const asked = await leo?.json(...act(id, 'mark_returned'));
      expect(asked).toEqual({
        status: 'approval_required',
        approval_id: expect.stringMatching(/^appr_/),
      });
      const { approval_id } = Object(asked);
      expect(await approval(approval_id)).toMatchObject({
        ...{ act: 'payout.mark_returned', target: id, amount: '1000', currency: 'KWD' },
        ...{ requested_by: 'leo', requester_id: expect.stringMatching(/^op_/) },
      });
      const refused = await leo?.refusal('approval', 'approve', approval_id, ...WHY);
      expect(refused?.code).toBe('same_operator');
      expect(await approve(bo, approval_id)).toMatchObject({ state: 'done', decided_by: 'bo' });
      expect(await stored(opened)).toMatchObject({
        status: 'returned',
        audit: [{ what: 'snooze' }, { who: 'leo', approved_by: 'bo', approval_id }],
      });
    }));

  test('an approval whose command was killed, and two at once, end in one return', () =>
    payouts(async (opened) => {
      const { approval_id } = Object(await leo?.json(...act(opened.id, 'mark_returned')));
      const { mongo, stores } = setting;
      const deps = { mongo, stores, now: () => new Date(), audit: operatorsAudit(stores) };
      const operator = { operator_id: 'op_1', name: 'mia', role: 'approver' } as const;
      await decide(deps, approval_id, { to: 'approved', operator, reason: 'Why' });
      expect((await stored(opened)).status).toBe('sent');
      const twice = await Promise.all([approve(bo, approval_id), approve(mia, approval_id)]);
      expect(twice).toMatchObject([{ state: 'done' }, { state: 'done' }]);
      expect((await stored(opened)).audit).toMatchObject([{ who: 'leo', approved_by: 'mia' }]);
    }));

  test('what the state does not allow any more is refused in words, for good', () =>
    payments(async (opened) => {
      const settle = ['payment', 'act', opened.id, 'mark_settled', ...WHY];
      const { approval_id } = Object(await leo?.json(...settle));
      await update(opened.handle, 'mark_failed');
      const refusal = await bo?.refusal('approval', 'approve', approval_id, ...WHY);
      expect(refusal).toMatchObject({ code: 'wrong_state' });
      expect(await approval(approval_id)).toMatchObject({ state: 'refused', refusal });
      expect((await stored(opened)).status).toBe('failed');
    }));
});

test('an approval is good for its own act, amount and time only', () =>
  payouts(async (opened) => {
    const { handle } = opened;
    const id = await requested(handle, 'mark_returned', { amount: 900 });
    const refused = async (what: string, more: object) =>
      (await refusalOf(update(handle, what, more)))?.code;
    const sameAct = { amount: 900, approval_id: id };
    expect(await refused('mark_returned', { approval_id: 'appr_1' })).toBe('approval_not_found');
    expect(await refused('mark_returned', sameAct)).toBe('approval_decided');
    await approve(mia, id);
    expect(await refused('mark_returned', sameAct)).toBe('approval_decided');
    const approvals = setting.mongo.db(setting.database).collection<{ _id: string }>('approvals');
    await approvals.updateOne({ _id: id }, { $set: { state: 'approved' } });
    expect(await refused('mark_returned', { approval_id: id })).toBe('approval_differs');
    expect(await refused('mark_returned', { amount: 901, approval_id: id })).toBe(
      'approval_differs',
    );
    expect(await refused('mark_failed', { approval_id: id })).toBe('approval_differs');
    await approvals.updateOne({ _id: id }, { $set: { amount: '899' } });
    expect(await refused('mark_returned', sameAct)).toBe('approval_differs');
    await approvals.updateOne({ _id: id }, { $set: { amount: '900', expires_at: '2020-01-01' } });
    expect(await refused('mark_returned', sameAct)).toBe('approval_expired');
    expect((await stored(opened)).audit).toEqual([]);
  }));

test('an approval that ends while the bank is asked moves nothing, and the payout goes on', async () => {
  let asked = () => {};
  let answer = () => {};
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const mayAnswer = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const bank = scriptedBank({
    lookUpPayout: async () => {
      asked();
      await mayAnswer;
      return { outcome: 'not_found' };
    },
  });
  const story: Story = async (opened) => {
    const { handle } = opened;
    const id = await requested(handle, 'mark_failed');
    await approve(mia, id);
    const approved = bo?.cli('approval', 'approve', id, ...WHY, '--json');
    await isAsked;
    const refusal = { code: 'wrong_state', message: 'Another command was refused.' };
    expect(await setting.stores.approvals.refuse(id, refusal)).toBe(true);
    answer();
    expect(await approved).toMatchObject({ exit: 1 });
    expect(await stored(opened)).toMatchObject({ status: 'sent', audit: [] });
    expect(await update(handle, 'mark_completed')).toMatchObject({ status: 'completed' });
    await saveHistory(handle, 'payout-approval-ended');
  };
  await withPayout(bank, ({ id, handle }) => story({ kind: 'payout', id, handle }), LIVE);
});
