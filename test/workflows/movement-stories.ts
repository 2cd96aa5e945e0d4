import { randomUUID } from 'node:crypto';
import type { Duration } from '@temporalio/common';
import type { ConnectorActivities } from '../../connectors/contract/activities';
import type { CallbackName } from '../../src/domain/banks/callback';
import type { FeeBearer } from '../../src/domain/merchants/acquirer-fee';
import { PAYMENT_STATUSES, type PaymentInput } from '../../src/domain/payment/payment';
import { PAYOUT_STATUSES, type PayoutInput } from '../../src/domain/payout/payout';
import { REFUND_STATUSES } from '../../src/domain/refund/refund';
import { reverseOperation } from '../../src/service/money/balances/act';
import { adjustBalance } from '../../src/service/money/balances/adjust';
import type { DisputeDocument } from '../../src/store/disputes';
import { eventually } from '../support/eventually';
import { setFeeBearer } from '../support/fee-bearer';
import { saveHistory } from '../support/histories';
import { describeMovement } from '../support/movements';
import { readAccountRows } from '../support/trial-balance';
import { callback, openRefund, refundInput, scriptedBank } from '../support/workflow-setting';
import { ACT, isAt, refusalOf, type Tracked, useLifecycles } from './lifecycles';

const ACTS = [
  ...(['mark_completed', 'mark_failed', 'mark_returned', 'mark_reversed', 'mark_settled'] as const),
  ...(['acknowledge', 'cancel', 'claw_back', 'give_up_closing', 'resolve_movement'] as const),
];
type Rows = Record<string, number>;

/**
 * A report of the bank, an act of an operator, or a refund of a payment, which the bank then settles.
 * Then the status or attention reason that it changes (`clear` for none), or a part of its refusal,
 * and the merchant's trial balance. An act names a movement by its reference.
 */
export type Step =
  | [what: 'sleep', duration: Duration]
  | [what: 'save', history: string]
  /** Leaves so much in the balance. */
  | [what: 'spend', left: number]
  /** Says who bears acquirers' fees from then on. */
  | [what: 'bear', bearer: FeeBearer]
  | [what: 'malformed', name: CallbackName]
  /** Reverses an entry, named by its id without that of its resource. */
  | [what: 'reverse', entry: string, then?: '', rows?: Rows]
  | [
      what: (typeof ACTS)[number] | 'act dispute_won' | 'refund' | CallbackName,
      facts: object,
      then?: string,
      rows?: Rows,
    ];

type From =
  | 'submitted'
  | 'sent'
  | 'processing'
  | 'awaiting_customer'
  | 'settled'
  | 'cancelled'
  | 'expired';

export interface Row {
  title: string;
  steps: Step[];
  changes?: Partial<PayoutInput>;
  /** Answers of the bank of a payment. */
  bank?: Partial<ConnectorActivities>;
  /** Whether the bank has a name for each step. */
  reference_per_step?: true;
  /** In words, or in part. */
  movements?: unknown[];
  disputes?: unknown[];
  /** Kinds of the journal entries after the first; of a payment, all of them. */
  kinds?: string[];
  /** Ids of the journal entries, with ID for that of the resource, or the entries in part. */
  entries?: unknown[];
  stored?: object;
  /** Part of the payment of a refund. */
  payment?: object;
  unapplied?: string[];
  /** Ids of the voids and reversals that the bank is sent, with a movement named by its reference. */
  instructions?: unknown[];
}

export const MAIN = 'balances.main.available';

export const by = (bank_reference: string, amount?: number, more: object = {}) => ({
  ...{ bank_reference, ...(amount === undefined ? {} : { amount }), ...more },
});

const STATUSES: readonly string[] = [...PAYMENT_STATUSES, ...PAYOUT_STATUSES, ...REFUND_STATUSES];
const IN_FLIGHT = ['submitted', 'sent', 'processing', 'awaiting_customer', 'authorized'];

/** Stories of money that a bank moves, step by step; the ledger is verified after each story. */
export function useMovementStories() {
  const lifecycles = useLifecycles();
  const { setting, buildDeps, withPayment, withPayout, withStatus } = lifecycles;

  async function spend({ stored }: Tracked, left: number): Promise<void> {
    const { account_id } = await stored();
    const [balance] = await setting.stores.ledger.balances(account_id, false);
    const owner = { account_id, livemode: false, currency: 'EUR', balance_account: 'main' };
    const spent = { ...owner, amount: left - Number(balance?.available) };
    await adjustBalance(buildDeps(), { ...spent, against: 'adjustments' }, ACT, randomUUID());
  }

  /** Refunds a payment by an instruction that the bank answers at once: it leaves nothing in flight. */
  async function refund(
    { input, payment = input }: { input?: PaymentInput; payment?: PaymentInput },
    facts: object,
  ): Promise<void> {
    if (payment === undefined) throw new Error('There is no payment.');
    const { handle } = await openRefund(setting, refundInput(payment, facts));
    await handle.signal('settled', callback());
    await handle.result();
  }

  const readMovements = ({ id }: Pick<Tracked, 'id'>) => setting.stores.movements.forResource(id);

  /** Finds the newest movement with a reference. */
  async function findReferred(subject: Pick<Tracked, 'id'>, reference: string) {
    const movements = await readMovements(subject);
    const found = movements.findLast(({ bank_reference }) => bank_reference === reference);
    if (found === undefined) throw new Error(`No movement has the reference ${reference}.`);
    return found;
  }

  /** Signals to a run that may have ended, and waits until the report is applied or stored as unapplied. */
  async function report(subject: Tracked, name: CallbackName, facts: object): Promise<void> {
    const { env, stores } = setting;
    const occurred_at = new Date(await env.currentTimeMs()).toISOString();
    const sent = { callback_id: randomUUID(), occurred_at, ...facts };
    await subject.signalAfterEnd(name, sent);
    await eventually(`the report ${name}`, async () => {
      const { applied_callbacks = [] } = await subject.stored();
      const rows = await stores.callbacks.forResource(subject.id);
      const known = [...applied_callbacks, ...rows.map(({ body }) => Object(body).callback_id)];
      return known.includes(sent.callback_id);
    });
  }

  async function buildAct(subject: Tracked, facts: { movement?: string }): Promise<object> {
    if (facts.movement === undefined) return { ...ACT, ...facts };
    const { _id: movement } = await findReferred(subject, facts.movement);
    return { ...ACT, ...facts, movement };
  }

  async function playAll(subject: Tracked, from: string, steps: readonly Step[]): Promise<void> {
    const { id, handle, account_id } = subject;
    let state: { status: string; attention: string | null } = { status: from, attention: null };
    const run = async (what: string, facts: object): Promise<unknown> => {
      if (what === 'refund') return await refund(Object(subject), facts);
      const act = ACTS.find((each) => each === what) ?? what.split('act ')[1];
      if (act === undefined) return await report(subject, what as CallbackName, facts);
      return await subject.actAfterEnd(act, await buildAct(subject, facts));
    };
    for (const step of steps) {
      const [what, facts, then = '', rows] = step;
      if (what === 'sleep') await setting.env.sleep(facts);
      else if (what === 'save') await saveHistory(handle, facts);
      else if (what === 'spend') await spend(subject, facts);
      else if (what === 'bear') await setFeeBearer(setting.stores, account_id, facts);
      else if (what === 'malformed') await handle.signal(facts, { callback_id: 7 });
      else if (what === 'reverse') {
        await reverseOperation(buildDeps(), facts.replace('ID', id), ACT);
      } else if (then.startsWith('refused: ')) {
        const refusal = await refusalOf(run(what, facts));
        expect(`${refusal?.code}: ${refusal?.message}`).toContain(then.replace('refused: ', ''));
      } else {
        await run(what, facts);
        for (const word of then.split(' ').filter(Boolean)) {
          if (STATUSES.includes(word)) state = { ...state, status: word };
          else state = { ...state, attention: word === 'clear' ? null : word };
        }
        if (!IN_FLIGHT.includes(state.status)) await handle.result();
        await subject.becomes(state);
      }
      if (rows) expect(await readAccountRows(setting, account_id)).toEqual(rows);
    }
  }

  /** Opens a subject, and runs the story when it has come so far. */
  const reach = (
    from: From,
    { changes, bank }: Pick<Row, 'changes' | 'bank'>,
    story: (subject: Tracked) => Promise<void>,
  ) => {
    if (from === 'sent') return withPayout(scriptedBank(), story, changes);
    if (from === 'submitted' || from === 'processing') return withStatus[from](story);
    return withPayment(scriptedBank(bank), async (payment) => {
      await isAt(payment.handle, 'awaiting_customer');
      if (from === 'settled') await payment.signal('settled', by('first'));
      if (from === 'cancelled') await payment.act('cancel', { by: 'merchant' });
      if (!IN_FLIGHT.includes(from)) {
        expect(await payment.handle.result()).toMatchObject({ status: from });
      }
      await story(payment);
    });
  };

  /** Plays the rows of a table whose subjects begin with a status. */
  const playFrom = (from: From) => (row: Row) => {
    const { title: _, steps, stored = {}, payment = {}, ...expected } = row;
    return reach(from, row, async (subject) => {
      const { id, told } = subject;
      const { movements, disputes, ledger, payments, capabilities } = setting.stores;
      const { changes: __, bank: ___, reference_per_step, ...wanted } = expected;
      if (reference_per_step) {
        const { connector } = await subject.stored();
        const served = { serves: [], functions: [], contract: 1, reference_per_step };
        await capabilities.report(connector, served, { seen_at: new Date(), stopped: null });
      }
      await playAll(subject, from, steps);
      expect(await subject.differences()).toEqual([]);
      const moved = await movements.forResource(id);
      const nameInstruction = (instruction: string) =>
        moved.reduce(
          (text, { _id, bank_reference }) => text.replace(_id, `${bank_reference}`),
          instruction.replace(`:${id}`, ''),
        );
      const document = await subject.stored();
      expect(document).toMatchObject(stored);
      const isPayment = 'session_url' in document;
      const list = (name: string) => told.filter((line) => line.startsWith(name));
      if (!isPayment) expect(list('send')).toHaveLength(1);
      expect({
        movements: describeAll(moved, describeMovement, wanted.movements),
        disputes: (await disputes.forPayment(id)).map(describeDispute),
        kinds: (await subject.entryKinds()).slice(isPayment ? 0 : 1),
        entries: describeAll(
          await ledger.forResource(id),
          ({ _id }) => _id.replace(id, 'ID'),
          wanted.entries,
        ),
        unapplied: await subject.unapplied(),
        instructions: told.flatMap((line) => line.split(' ').slice(1).map(nameInstruction)),
      }).toMatchObject(wanted);
      if (!('payment_id' in document)) return;
      expect(await payments.get(document.payment_id)).toMatchObject(payment);
      expect(await subject.differences(document.payment_id)).toEqual([]);
    });
  };

  return { ...lifecycles, playFrom, playAll, report };
}

/** Describes in words what is not expected in part. */
const describeAll = <T>(rows: T[], describe: (row: T) => string, expected: unknown[] = []) =>
  rows.map((row, n) => (expected[n]?.constructor === Object ? row : describe(row)));

function describeDispute({ name, status, amount, fee, transfers }: DisputeDocument): string {
  const each = transfers.map(({ direction, ...of }) => `${direction} ${of.amount} held ${of.held}`);
  return `${name} ${status} ${amount} ${fee}: ${each.join(', ')}`;
}
