import { randomUUID } from 'node:crypto';
import type { Report } from '../../connectors/kit';
import { createKitActivities } from '../../connectors/kit/activities';
import { defineConnector, type TakesPayments } from '../../connectors/kit/definition';
import { createInstructionStore } from '../../connectors/kit/instructions';
import { createReportDelivery } from '../../connectors/kit/reports';
import { ServiceError } from '../../src/domain/errors';
import { useDatabase } from '../support/database';
import { gate } from '../support/gate';

type Bank = TakesPayments<Record<never, never>>;

const database = useDatabase({ indexed: false });
const never = () => Promise.reject(new Error('This must not be called.'));

/** Builds the activities of a connector for payments from functions of its bank. */
function connect(bank: Partial<Bank>) {
  const now = () => new Date();
  const definition = defineConnector({
    ...{ name: 'acme', serves: ['visa'], settings: {} },
    poll: { seconds: 1, read: async () => ({ reports: [], cursor: null }) },
    ...{ openSession: never, closeSession: never, voidPayment: never, reversePayment: never },
    ...bank,
  });
  const { openSession, closeSession, voidPayment, reversePayment, ...others } = createKitActivities(
    {
      ...{ definition, now, livemode: false },
      buildTools: () => ({ settings: {}, call: never, log: console, now }),
      instructions: createInstructionStore(database.db, now),
      findOutdated: async () => undefined,
      ...{ decryptRecipient: never, readReference: never },
    },
  );
  if (!openSession || !closeSession || !voidPayment || !reversePayment) throw new Error('missing');
  return { openSession, closeSession, voidPayment, reversePayment, ...others };
}

const instruct = (livemode = false) => ({
  ...{ payment_id: randomUUID(), amount: 4_950, currency: 'EUR', method: 'visa', country: null },
  ...{ livemode, return_url: 'https://shop.example', expires_at: '2039-01-01T00:00:00Z' },
});
const OPENED = {
  outcome: 'opened',
  bank_reference: 'S-1',
  session_url: 'https://bank.example/1',
} as const;
const CLOSED = { outcome: 'declined', code: 'session_closed', message: expect.any(String) };

describe('a session', () => {
  test.each([
    ['closed', CLOSED],
    ['already_authorized', OPENED],
  ] as const)(
    'that is closed while the bank opens it is as the bank decides: %s',
    async (outcome, expected) => {
      const input = instruct();
      const { payment_id } = input;
      const closeSession = jest.fn(async () => ({ outcome }));
      const openSession = async () => {
        await bank.closeSession({ payment_id });
        return OPENED;
      };
      const bank = connect({ openSession, closeSession });
      expect(await bank.openSession(input)).toEqual(expected);
      const session = { payment_id, bank_reference: 'S-1' };
      expect(closeSession).toHaveBeenLastCalledWith(session, expect.anything());
    },
  );

  test('with bank details in place of a page has the amount of the payment', async () => {
    const input = instruct();
    const transferred = (amount: number) => {
      const account = { iban: 'DE89370400440532013000', account_holder: 'ACME', bic: null };
      const instructions = { ...account, reference: 'RF18539007547034', amount };
      return { outcome: 'opened', bank_reference: 'R-1', instructions } as const;
    };
    const wrong = connect({ openSession: async () => transferred(1) });
    await expect(wrong.openSession(input)).rejects.toThrow('another amount');
    const right = connect({ openSession: async () => transferred(input.amount) });
    expect(await right.openSession(input)).toEqual(transferred(4_950));
  });

  test('of a live payment does not open at a test system', async () => {
    const opening = connect({}).openSession(instruct(true));
    await expect(opening).rejects.toThrow('serves the sandbox only');
  });
});

test('a void names the bank’s reference', async () => {
  const voidPayment = jest.fn(async () => ({ outcome: 'voided' }) as const);
  const bank = connect({ openSession: async () => OPENED, voidPayment });
  const input = instruct();
  await bank.openSession(input);
  const instruction = { payment_id: input.payment_id, instruction_id: `void:${input.payment_id}` };
  expect(await bank.voidPayment(instruction)).toEqual({ outcome: 'voided' });
  const expected = { ...instruction, bank_reference: 'S-1' };
  expect(voidPayment).toHaveBeenCalledWith(expected, expect.anything());
});

test('late funds are not sent back while an attempt may reach the bank', async () => {
  const accepted = { outcome: 'accepted', bank_reference: 'R-1' } as const;
  const reversePayment = jest.fn(async () => accepted);
  const bank = connect({ reversePayment });
  const payment_id = randomUUID();
  const money = { amount: 100, currency: 'EUR' };
  const input = { payment_id, instruction_id: `reversal:${payment_id}`, ...money };
  expect(await bank.reversePayment(input)).toEqual(accepted);
  const another = { ...input, instruction_id: `reversal:${payment_id}:2` };
  reversePayment.mockRejectedValueOnce(new Error('away'));
  await expect(bank.reversePayment(another)).rejects.toThrow('away');
  await expect(bank.reversePayment(another)).rejects.toThrow('may still reach the bank');
  expect(reversePayment).toHaveBeenCalledTimes(2);
});

test('refunds and payouts that the bank does not have are refused with a message', async () => {
  const { sendRefund, lookUpRefund, sendPayout, lookUpPayout } = connect({});
  const refused = (message: string) => ({ outcome: 'refused', code: 'not_supported', message });
  const [refund, payout] = ['The bank has no refunds.', 'The bank has no payouts.'].map(refused);
  const money = { version: 1, amount: 1, currency: 'EUR', method: 'visa', livemode: false };
  const facts = { payment_id: 'p', payment_bank_reference: null, ...money };
  expect(await sendRefund?.({ refund_id: 'r', ...facts })).toEqual(refund);
  expect(await lookUpRefund?.({ refund_id: 'r' })).toEqual(refund);
  expect(await sendPayout?.({ payout_id: 'o', ...money })).toEqual(payout);
  expect(await lookUpPayout?.({ payout_id: 'o' })).toEqual(payout);
});

describe('the delivery of reports', () => {
  const clock = { now: new Date() };
  const connectProduct = (deliver: (report: Report) => Promise<void>) =>
    createReportDelivery({
      ...{ db: database.db, deliver, now: () => clock.now },
      ...{ meter: { setAside: () => undefined }, log: { error: () => undefined } },
    });
  const buildReport = (resource_id: string, name: 'sent' | 'completed'): Report => {
    const callback_id = `${name}:${resource_id}`;
    const callback = { callback_id, occurred_at: '2026-11-26T10:00:00Z' };
    return { resource: 'payout', resource_id, name, callback };
  };

  test('keeps the order for each payout, and lets no payout wait for another one', async () => {
    const [slow, quick] = [randomUUID(), randomUUID()];
    const done: string[] = [];
    const [held, quickEnd] = [gate(), gate()];
    const { deliver } = connectProduct(async ({ resource_id, name }) => {
      if (resource_id === slow && name === 'sent') await held.opened;
      done.push(`${name}:${resource_id}`);
      if (resource_id === quick && name === 'completed') quickEnd.release();
    });
    const delivered = deliver(
      [slow, quick].flatMap((id) => [buildReport(id, 'sent'), buildReport(id, 'completed')]),
    );
    await quickEnd.opened;
    expect(done).toEqual([`sent:${quick}`, `completed:${quick}`]);
    held.release();
    await delivered;
    expect(done.slice(2)).toEqual([`sent:${slow}`, `completed:${slow}`]);
  });

  test.each(['rate_limited', 'record_behind'])(
    'sets what is refused by %s aside with all behind it of the same payout, and tries it again',
    async (code) => {
      const [refused, good] = [randomUUID(), randomUUID()];
      const done: string[] = [];
      let isRefused = true;
      const { deliver, retry } = connectProduct(async ({ resource_id, name }) => {
        if (resource_id === refused && isRefused) throw new ServiceError(code, 'No.');
        done.push(`${name}:${resource_id}`);
      });
      const passMinutes = async (minutes: number) => {
        clock.now = new Date(clock.now.getTime() + minutes * 60_000);
        expect(await retry()).toBe(false);
      };
      const first = [buildReport(refused, 'sent'), buildReport(good, 'sent')];
      for (const reports of [first, first]) await deliver(reports);
      await passMinutes(1);
      isRefused = false;
      await deliver([buildReport(refused, 'completed')]);
      await passMinutes(1);
      expect(done).toEqual([`sent:${good}`, `sent:${good}`]);
      await passMinutes(1);
      expect(done.slice(2)).toEqual([`sent:${refused}`, `completed:${refused}`]);
      expect(await database.db.collection('reports_set_aside').countDocuments()).toBe(0);
    },
  );

  test('begins no more reports after one has failed', async () => {
    const ids = Array.from({ length: 30 }, () => randomUUID());
    let calls = 0;
    const { deliver } = connectProduct(async () => {
      calls += 1;
      throw new Error('Temporal is away');
    });
    await expect(deliver(ids.map((id) => buildReport(id, 'sent')))).rejects.toThrow('away');
    expect(calls).toBeLessThanOrEqual(10);
  });
});
