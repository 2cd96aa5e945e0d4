import type { MovementDocument } from '../../../src/store/movements';
import { describeMovement } from '../../support/movements';
import { readAccountRows } from '../../support/trial-balance';
import { type ScriptedBank, scriptedBank } from '../../support/workflow-setting';
import { ACT, isAt, type TrackedPayment, useLifecycles } from '../lifecycles';

export type Story = (payment: TrackedPayment) => Promise<unknown>;

export const MERCHANT = { by: 'merchant' };

interface Expected {
  status?: string;
  attention?: string | null;
  movements?: string[];
  /** Trial balance of the merchant. */
  rows?: Record<string, number>;
  /** Kinds of the journal entries. */
  kinds?: string[];
}

/** Stories of payments of 1,050, and what their records, movements and entries say. */
export function usePaymentStories() {
  const lifecycles = useLifecycles();
  const { setting, withPayment } = lifecycles;

  /** Runs the story of a payment that waits for its customer, and verifies the ledger afterwards. */
  const withOpen = (story: Story, bank: ScriptedBank = scriptedBank()) =>
    withPayment(bank, async (payment) => {
      await isAt(payment.handle, 'awaiting_customer');
      await story(payment);
      expect(await payment.differences()).toEqual([]);
    });

  const withEnded = (how: 'cancelled' | 'expired' | 'settled', story: Story, bank?: ScriptedBank) =>
    withOpen(async (payment) => {
      if (how === 'settled') await payment.signal('settled', { bank_reference: 'first' });
      if (how === 'cancelled') await payment.act('cancel', MERCHANT);
      expect(await payment.handle.result()).toMatchObject({ status: how });
      await story(payment);
    }, bank);

  const readEntries = ({ id }: TrackedPayment) => setting.stores.ledger.forResource(id);

  const readMovements = ({ id }: Pick<TrackedPayment, 'id'>) =>
    setting.stores.movements.forResource(id);

  /** Lists the movements as words, the oldest first. */
  const describeMovements = async (payment: Pick<TrackedPayment, 'id'>): Promise<string[]> =>
    (await readMovements(payment)).map(describeMovement);

  async function findReferred(
    payment: TrackedPayment,
    reference: string,
  ): Promise<MovementDocument> {
    const movements = await readMovements(payment);
    const found = movements.findLast(({ bank_reference }) => bank_reference === reference);
    if (found === undefined) throw new Error(`No movement has the reference ${reference}.`);
    return found;
  }

  async function expectState(payment: TrackedPayment, expected: Expected): Promise<void> {
    const { movements, rows, kinds, ...stored } = expected;
    expect(await payment.stored()).toMatchObject(stored);
    if (movements) expect(await describeMovements(payment)).toEqual(movements);
    if (rows) expect(await readAccountRows(setting, payment.account_id)).toEqual(rows);
    if (kinds) expect(await payment.entryKinds()).toEqual(kinds);
  }

  return {
    ...lifecycles,
    ...{ withOpen, withEnded, readEntries, readMovements, describeMovements, findReferred },
    expectState,
  };
}

/** Builds the trial balance of a merchant whose only money is in suspense. */
export function buildHeld(amount: number, currency = 'EUR'): Record<string, number> {
  const unit = currency === 'EUR' ? '' : ` ${currency}`;
  return amount === 0 ? {} : { [`suspense.late${unit}`]: amount, [`clearing${unit}`]: -amount };
}

export const resolve = ({ actAfterEnd }: TrackedPayment, as: string, more: object = {}) =>
  actAfterEnd('resolve_movement', { ...ACT, as, ...more });

export const refuseResolve = ({ refusalAfterEnd }: TrackedPayment, as: string, more: object = {}) =>
  refusalAfterEnd('resolve_movement', { ...ACT, as, ...more });

export const wrongState = (message: string) => ({ code: 'wrong_state', message });
