import { signCallback } from '../../../src/callbacks/mac';
import { decide } from '../../../src/service/approvals/decide';
import { asOperator, commandsIn } from '../../cli/cli';
import { operatorsAudit } from '../../support/audit';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { mongodbUri, temporalAddress } from '../../support/servers';
import {
  callback,
  openRefund,
  refundInput,
  type ScriptedBank,
  scriptedBank,
} from '../../support/workflow-setting';
import {
  ACT,
  refusalOf,
  type Tracked,
  type TrackedPayment,
  trackRefund,
  useLifecycles,
} from '../lifecycles';

const { setting, withPayment, withPayout } = useLifecycles('real');

/** Any amount of a currency that the limits do not name needs a second operator. */
const LIVE = { livemode: true, currency: 'KWD' };
const WHY = ['--reason', 'Ticket 42'];
const CONFIRMED = { bank_confirmed_not_executed: true };

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

type Subject = Pick<Tracked, 'id' | 'handle' | 'stored' | 'act'>;
type Story = (subject: Subject) => Promise<unknown>;

const update = ({ act }: Subject, what: string, more: object = {}) =>
  act(what, { ...ACT, ...more });
const readRequest = (answer: unknown): string => {
  const approval_id = expect.stringMatching(/^appr_/);
  expect(answer).toEqual({ status: 'approval_required', approval_id });
  return Object(answer).approval_id;
};
/** Updates without proof. @returns id of the approval that it needs */
const request = async (subject: Subject, what: string, more: object = {}) =>
  readRequest(await update(subject, what, more));
/** As `request`, by leo on the command line. */
const requestByCommand = async ({ id }: Subject, kind: string, what: string) =>
  readRequest(await leo?.json(kind, 'act', id, what, ...WHY));
const approve = (by: Commands | undefined, id: string) =>
  by?.json('approval', 'approve', id, ...WHY);
const refuseApproval = (by: Commands | undefined, id: string) =>
  by?.refusal('approval', 'approve', id, ...WHY);
const readAvailable = async ({ stored }: Subject) => {
  const [row] = await setting.stores.ledger.balances((await stored()).account_id, true);
  return row?.available ?? 0;
};

const withLivePayment = (story: (payment: TrackedPayment) => Promise<unknown>) =>
  withPayment(
    scriptedBank(),
    async (payment) => {
      await payment.becomes({ status: 'awaiting_customer' });
      await story(payment);
    },
    LIVE,
  );

const withLivePayout = (story: Story, bank: ScriptedBank = scriptedBank()) =>
  withPayout(bank, story, LIVE);

const withLiveRefund = (story: Story) =>
  withLivePayment(async ({ id, handle: paid, input }) => {
    const { connector } = input;
    const about = { connector, resource: 'payment', resource_id: id, name: 'settled' } as const;
    const report = callback();
    const key = await setting.connectorKey(connector);
    const signature = signCallback(key, { ...about, callback: report });
    await paid.signal('settled', { ...report, mac: signature });
    await paid.result();
    const { handle, opened } = await openRefund(setting, refundInput(input));
    await story(trackRefund(setting, opened.refund_id, input, handle));
  });

test.each([
  ['payment', withLivePayment, 'mark_settled', {}, 'settled'],
  ['refund', withLiveRefund, 'mark_settled', { amount: 1 }, 'settled'],
  ['refund', withLiveRefund, 'mark_failed', {}, 'failed'],
  ['payout', withLivePayout, 'mark_failed', CONFIRMED, 'failed'],
  ['payout', withLivePayout, 'mark_returned', { amount: 900 }, 'returned'],
] as const)(
  'an update without proof on a live %s waits for two operators, and moves money once: %#',
  (kind, withResource, what, more, end) =>
    withResource(async (subject) => {
      const { handle, stored } = subject;
      const before = await stored();
      const money = await readAvailable(subject);
      const id = await request(subject, what, { ...more, approved_by: 'bo' });
      expect(await request(subject, what, more)).toBe(id);
      expect(await stored()).toEqual(before);
      expect(await approve(mia, id)).toMatchObject({
        ...{ state: 'requested', status: 'approval_required' },
        ...{ requested_by: 'mia', requester_verified: true },
      });
      expect((await refuseApproval(mia, id))?.code).toBe('same_operator');
      expect(await stored()).toEqual(before);
      expect(await approve(bo, id)).toMatchObject({ state: 'done' });
      const after = await stored();
      expect(after.status).toBe(end);
      expect(after.audit.at(-1)).toMatchObject({
        ...{ who: 'mia', what, why: ACT.reason, approved_by: 'bo', approval_id: id },
      });
      const { account_id } = after;
      const [line] = await setting.stores.auditLog.list({ account_id, limit: 1 });
      expect(line).toMatchObject({ after: { what, approved_by: 'bo', approval_id: id } });
      expect(await approve(bo, id)).toMatchObject({ state: 'done' });
      if (end !== 'settled') {
        await eventually('the credit', async () => (await readAvailable(subject)) > money);
      }
      await handle.result();
      await saveHistory(handle, `${kind}-${what.replace('_', '-')}-approved`);
    }),
);

test('an update of the sandbox, of no more than the limit or of no credit needs nobody', async () => {
  for (const changes of [{ livemode: true }, { currency: 'KWD' }]) {
    await withPayout(
      scriptedBank(),
      async ({ act }) => expect(await act('mark_returned')).toMatchObject({ status: 'returned' }),
      changes,
    );
  }
  await withLivePayout(async ({ act }) => {
    expect(await act('mark_completed')).toMatchObject({ status: 'completed' });
  });
});

describe('a live act on the command line', () => {
  test('needs a key of an operator, and the approval of another one', () =>
    withLivePayout(async (payout) => {
      const { id, stored } = payout;
      const bare = commandsIn({ ...mia?.env, OPERATOR_KEY: '' });
      const act = (what: string, ...more: string[]) => [
        ...['payout', 'act', id, what, ...WHY, '--operator', 'mia', ...more],
      ];
      expect((await bare.refusal(...act('mark_completed'))).code).toBe('operator_key_required');
      expect((await bare.cli(...act('snooze', '--hours', '1'))).exit).toBe(0);
      const approval_id = await requestByCommand(payout, 'payout', 'mark_returned');
      expect(await setting.stores.approvals.get(approval_id)).toMatchObject({
        ...{ act: 'payout.mark_returned', target: id, amount: '1000', currency: 'KWD' },
        ...{ requested_by: 'leo', requester_id: expect.stringMatching(/^op_/) },
      });
      expect((await refuseApproval(leo, approval_id))?.code).toBe('same_operator');
      expect(await approve(bo, approval_id)).toMatchObject({ state: 'done', decided_by: 'bo' });
      expect(await stored()).toMatchObject({
        status: 'returned',
        audit: [{ what: 'snooze' }, { who: 'leo', approved_by: 'bo', approval_id }],
      });
    }));

  test('is done once after its command was killed and two others approve it at once', () =>
    withLivePayout(async (payout) => {
      const { stored } = payout;
      const approval_id = await requestByCommand(payout, 'payout', 'mark_returned');
      const { mongo, stores } = setting;
      const deps = { mongo, stores, now: () => new Date(), audit: operatorsAudit(stores) };
      const operator = { operator_id: 'op_1', name: 'mia', role: 'approver' } as const;
      await decide(deps, approval_id, { to: 'approved', operator, reason: 'Why' });
      expect((await stored()).status).toBe('sent');
      const twice = await Promise.all([approve(bo, approval_id), approve(mia, approval_id)]);
      expect(twice).toMatchObject([{ state: 'done' }, { state: 'done' }]);
      expect((await stored()).audit).toMatchObject([{ who: 'leo', approved_by: 'mia' }]);
    }));

  test('is refused for good when the state no longer allows it', () =>
    withLivePayment(async (payment) => {
      const approval_id = await requestByCommand(payment, 'payment', 'mark_settled');
      await payment.act('mark_failed');
      const refusal = await refuseApproval(bo, approval_id);
      expect(refusal).toMatchObject({ code: 'wrong_state' });
      expect(await setting.stores.approvals.get(approval_id)).toMatchObject({
        ...{ state: 'refused', refusal },
      });
      expect((await payment.stored()).status).toBe('failed');
    }));
});

test('an approval is valid for its own act, amount and time only', () =>
  withLivePayout(async (payout) => {
    const id = await request(payout, 'mark_returned', { amount: 900 });
    const readRefusal = async (what: string, more: object) =>
      (await refusalOf(update(payout, what, more)))?.code;
    const same = ['mark_returned', { amount: 900, approval_id: id }] as const;
    const unknown = { approval_id: 'appr_1' };
    expect(await readRefusal('mark_returned', unknown)).toBe('approval_not_found');
    expect(await readRefusal(...same)).toBe('approval_decided');
    await approve(mia, id);
    expect(await readRefusal(...same)).toBe('approval_decided');
    const approvals = setting.mongo.db(setting.database).collection<{ _id: string }>('approvals');
    const change = (values: Record<string, string>) =>
      approvals.updateOne({ _id: id }, { $set: values });
    await change({ state: 'approved' });
    for (const [what, more] of [
      ['mark_returned', {}],
      ['mark_returned', { amount: 901 }],
      ['mark_failed', {}],
    ] as const) {
      expect(await readRefusal(what, { ...more, approval_id: id })).toBe('approval_differs');
    }
    await change({ amount: '899' });
    expect(await readRefusal(...same)).toBe('approval_differs');
    await change({ amount: '900', expires_at: '2020-01-01' });
    expect(await readRefusal(...same)).toBe('approval_expired');
    expect((await payout.stored()).audit).toEqual([]);
  }));

test('an approval that ends while the bank is queried moves no money', async () => {
  const [query, answer] = [gate(), gate()];
  const bank = scriptedBank({
    lookUpPayout: async () => {
      query.release();
      await answer.opened;
      return { outcome: 'not_found' };
    },
  });
  const story: Story = async (payout) => {
    const id = await request(payout, 'mark_failed');
    await approve(mia, id);
    const approved = bo?.cli('approval', 'approve', id, ...WHY, '--json');
    await query.opened;
    const refusal = { code: 'wrong_state', message: 'Another command was refused.' };
    expect(await setting.stores.approvals.refuse(id, refusal)).toBe(true);
    answer.release();
    expect(await approved).toMatchObject({ exit: 1 });
    expect(await payout.stored()).toMatchObject({ status: 'sent', audit: [] });
    expect(await payout.act('mark_completed')).toMatchObject({ status: 'completed' });
    await saveHistory(payout.handle, 'payout-approval-ended');
  };
  await withLivePayout(story, bank);
});
