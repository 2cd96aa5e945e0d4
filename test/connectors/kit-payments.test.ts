import { randomUUID } from 'node:crypto';
import { createKitActivities } from '../../connectors/kit/activities';
import { defineConnector, type TakesPayments } from '../../connectors/kit/definition';
import { createInstructionStore } from '../../connectors/kit/instructions';
import { useDatabase } from '../support/database';

type Bank = TakesPayments<Record<never, never>>;

const database = useDatabase({ indexed: false });
const never = () => Promise.reject(new Error('This must not be called.'));

/** The activities of a connector for payments, over functions of its bank. */
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

test('a session is opened once, and a repeat gets the same answer', async () => {
  const openSession = jest.fn(async () => OPENED);
  const bank = connect({ openSession });
  const input = instruct();
  expect([await bank.openSession(input), await bank.openSession(input)]).toEqual([OPENED, OPENED]);
  expect(openSession).toHaveBeenCalledTimes(1);
});

test('a session that was closed before it is opened does not reach the bank', async () => {
  const closeSession = jest.fn(async () => ({ outcome: 'closed' }) as const);
  const bank = connect({ closeSession });
  const input = instruct();
  const { payment_id } = input;
  expect(await bank.closeSession({ payment_id })).toEqual({ outcome: 'closed' });
  expect(closeSession.mock.calls[0]).toMatchObject([{ payment_id, bank_reference: null }, {}]);
  expect(await bank.openSession(input)).toEqual(CLOSED);
});

test('bank details in place of a page are of the amount of the payment', async () => {
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

test.each([
  ['closed', CLOSED],
  ['already_authorized', OPENED],
] as const)(
  'of a session that is closed while the bank opens it the bank decides: %s',
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
    expect(closeSession).toHaveBeenLastCalledWith(
      { payment_id, bank_reference: 'S-1' },
      expect.anything(),
    );
  },
);

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

test('late funds are sent back once, and not while an attempt may reach the bank', async () => {
  const accepted = { outcome: 'accepted', bank_reference: 'R-1' } as const;
  const reversePayment = jest.fn(async () => accepted);
  const bank = connect({ reversePayment });
  const payment_id = randomUUID();
  const money = { amount: 100, currency: 'EUR' };
  const input = { payment_id, instruction_id: `reversal:${payment_id}`, ...money };
  expect([await bank.reversePayment(input), await bank.reversePayment(input)]).toEqual([
    accepted,
    accepted,
  ]);
  expect(reversePayment).toHaveBeenCalledTimes(1);
  const another = { ...input, instruction_id: `reversal:${payment_id}:2` };
  reversePayment.mockRejectedValueOnce(new Error('away'));
  await expect(bank.reversePayment(another)).rejects.toThrow('away');
  await expect(bank.reversePayment(another)).rejects.toThrow('may still reach the bank');
  expect(reversePayment).toHaveBeenCalledTimes(2);
});

test('a payment of live is not opened at a test system', async () => {
  await expect(connect({}).openSession(instruct(true))).rejects.toThrow('serves the sandbox only');
});

test('refunds and payouts that the bank does not have are refused in words', async () => {
  const { sendRefund, lookUpRefund, sendPayout, lookUpPayout } = connect({});
  const refused = (message: string) => ({ outcome: 'refused', code: 'not_supported', message });
  const [refund, payout] = ['The bank has no refunds.', 'The bank has no payouts.'].map(refused);
  const money = { version: 1, amount: 1, currency: 'EUR', method: 'visa', livemode: false };
  const of = { payment_id: 'p', payment_bank_reference: null, ...money };
  expect(await sendRefund?.({ refund_id: 'r', ...of })).toEqual(refund);
  expect(await lookUpRefund?.({ refund_id: 'r' })).toEqual(refund);
  expect(await sendPayout?.({ payout_id: 'o', ...money })).toEqual(payout);
  expect(await lookUpPayout?.({ payout_id: 'o' })).toEqual(payout);
});
