import { randomUUID } from 'node:crypto';
import type { Duration } from '@temporalio/common';
import type { CallbackName } from '../../src/domain/banks/callback';
import type { FeeBearer } from '../../src/domain/merchants/acquirer-fee';
import { PAYMENT_STATUSES } from '../../src/domain/payment/payment';
import { PAYOUT_STATUSES } from '../../src/domain/payout/payout';
import type { PayoutInput } from '../../src/domain/payout/workflow';
import { REFUND_STATUSES } from '../../src/domain/refund/refund';
import { adjustBalance } from '../../src/service/money/balances/adjust';
import { setFeeBearer } from '../support/fee-bearer';
import { saveHistory } from '../support/histories';
import { eventually } from '../support/http';
import { describeMovement } from '../support/movements';
import { readAccountRows } from '../support/trial-balance';
import { scriptedBank } from '../support/workflow-setting';
import { ACT, isAt, type Tracked, useLifecycles } from './lifecycles';

const ACTS = [
  ...(['mark_completed', 'mark_failed', 'mark_returned', 'mark_reversed', 'mark_settled'] as const),
  ...(['acknowledge', 'claw_back', 'resolve_movement'] as const),
];
type Rows = Record<string, number>;

/**
 * A report of the bank or an act of an operator, then the status or attention reason that it
 * changes (`clear` for none), or a part of its refusal, and the merchant's trial balance. An act
 * names a movement by its reference.
 */
export type Step =
  | [what: 'sleep', duration: Duration]
  | [what: 'save', history: string]
  /** Leaves so much in the balance. */
  | [what: 'spend', left: number]
  /** Says who bears acquirers' fees from then on. */
  | [what: 'bear', bearer: FeeBearer]
  | [what: (typeof ACTS)[number] | CallbackName, facts: object, then: string, rows?: Rows];

export interface Row {
  title: string;
  from: 'submitted' | 'sent' | 'processing' | 'awaiting_customer' | 'settled' | 'cancelled';
  steps: Step[];
  changes?: Partial<PayoutInput>;
  /** Whether the bank has a name for each step. */
  reference_per_step?: true;
  movements?: unknown[];
  /** Kinds of the journal entries after the first; of a payment, all of them. */
  kinds?: string[];
  stored?: object;
  /** Part of the payment of a refund. */
  payment?: object;
  unapplied?: string[];
  /** Names of the reversals that the bank is sent. */
  reversals?: string[];
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
    let state: { status: string; attention: string | null } = { status: from, attention: null };
    for (const step of steps) {
      const [what, facts, then = '', rows] = step;
      if (what === 'sleep') await setting.env.sleep(facts);
      else if (what === 'save') await saveHistory(subject.handle, facts);
      else if (what === 'spend') await spend(subject, facts);
      else if (what === 'bear') await setFeeBearer(setting.stores, subject.account_id, facts);
      else if (then.startsWith('refused: ')) {
        const refusal = await subject.refusalAfterEnd(what, await buildAct(subject, facts));
        expect(`${refusal?.code}: ${refusal?.message}`).toContain(then.replace('refused: ', ''));
      } else {
        const act = ACTS.find((each) => each === what);
        if (act !== undefined) await subject.actAfterEnd(act, await buildAct(subject, facts));
        else await report(subject, what as CallbackName, facts);
        for (const word of then.split(' ').filter(Boolean)) {
          if (STATUSES.includes(word)) state = { ...state, status: word };
          else state = { ...state, attention: word === 'clear' ? null : word };
        }
        if (!IN_FLIGHT.includes(state.status)) await subject.handle.result();
        await subject.becomes(state);
        if (rows) expect(await readAccountRows(setting, subject.account_id)).toEqual(rows);
      }
    }
  }

  /** Opens a subject, and runs the story when it has come so far. */
  const reach = (
    { from, changes }: Pick<Row, 'from' | 'changes'>,
    story: (subject: Tracked) => Promise<void>,
  ) => {
    if (from === 'sent') return withPayout(scriptedBank(), story, changes);
    if (from !== 'settled' && from !== 'cancelled') return withStatus[from](story);
    return withPayment(scriptedBank(), async (payment) => {
      await isAt(payment.handle, 'awaiting_customer');
      if (from === 'settled') await payment.signal('settled', by('first'));
      else await payment.act('cancel', { by: 'merchant' });
      expect(await payment.handle.result()).toMatchObject({ status: from });
      await story(payment);
    });
  };

  const play = ({ from, steps, changes, stored = {}, ...expected }: Row) =>
    reach({ from, ...(changes && { changes }) }, async (subject) => {
      const { connector } = await subject.stored();
      if (expected.reference_per_step) {
        const served = { serves: [], functions: [], contract: 1, reference_per_step: true };
        const seen = { seen_at: new Date(), stopped: null };
        await setting.stores.capabilities.report(connector, served, seen);
      }
      await playAll(subject, from, steps);
      expect(await subject.differences()).toEqual([]);
      const document = await subject.stored();
      expect(document).toMatchObject(stored);
      const { movements, kinds, unapplied, payment, reversals } = expected;
      const moved = await readMovements(subject);
      if (movements) expect(moved.map(describeMovement)).toEqual(movements);
      const isPayment = 'session_url' in document;
      if (kinds) expect((await subject.entryKinds()).slice(isPayment ? 0 : 1)).toEqual(kinds);
      if (unapplied) expect(await subject.unapplied()).toEqual(unapplied);
      if (reversals) {
        const sent = subject.told.filter((line) => line.startsWith('reversePayment'));
        expect(sent.map((line) => line.replace(/^.*reversal:[^:]*/, 'reversal'))).toEqual(
          reversals,
        );
      }
      const sends = subject.told.filter((line) => line.startsWith('send'));
      expect(sends).toHaveLength(isPayment ? 0 : 1);
      if (!('payment_id' in document)) return;
      expect(await setting.stores.payments.get(document.payment_id)).toMatchObject(payment ?? {});
      expect(await subject.differences(document.payment_id)).toEqual([]);
    });

  return { ...lifecycles, play, playAll, readMovements, findReferred };
}
