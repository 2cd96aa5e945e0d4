import { z } from 'zod';
import type { PatientClient } from '../chaos/patient-client';
import { madeBy } from '../chaos/race';
import type { RunningStack } from '../chaos/running-stack';

const Shown = z.object({
  payout: z.object({
    status: z.string(),
    version: z.number(),
    attention: z.string().nullable(),
    failure: z.object({ code: z.string() }).nullable(),
  }),
  postings: z.array(z.object({ kind: z.string() })),
  audit: z.array(
    z.object({
      who: z.string(),
      when: z.iso.datetime(),
      what: z.string(),
      why: z.string().min(1),
      before: z.string(),
      after: z.string(),
    }),
  ),
});
const Orphans = z.object({ data: z.array(z.object({ id: z.string(), workflow: z.string() })) });
const Balances = z.object({
  data: z.array(
    z.object({
      balance_account: z.string(),
      currency: z.string(),
      available: z.number(),
      reserved: z.number(),
    }),
  ),
});
const NAMES = { type: 'bank_account', first_name: 'Jan', last_name: 'Jansen' };
const ADDRESS = { address_line1: 'Damrak 1', city: 'Amsterdam', postal_code: '1012 LG' };
const RECIPIENTS = {
  EUR: { ...NAMES, ...ADDRESS, iban: 'NL91ABNA0417164300' },
  GBP: { ...NAMES, ...ADDRESS, sort_code: '601613', account_number: '31926819' },
};
const RAILS = { EUR: 'sepa_instant', GBP: 'faster_payments' };
type Currency = keyof typeof RAILS;

/** Requests of a merchant, and answers of the product's command line to an operator. */
export interface Desk {
  /** The new payout's id. @param amount minor units; no two the same */
  pay(currency: Currency, amount: number): Promise<string>;
  show(id: string): Promise<z.infer<typeof Shown>>;
  orphans(): Promise<z.infer<typeof Orphans>['data']>;
  /** Amounts of the balance `main`, by currency, in minor units. */
  balances(): Promise<Map<string, { available: number; reserved: number }>>;
}

export function openDesk(stack: RunningStack, client: PatientClient, account: string): Desk {
  const recipient = async (currency: Currency): Promise<string> => {
    const call = { method: 'POST', path: '/v1/payout-recipients' } as const;
    const body = RECIPIENTS[currency];
    const answer = await client.insist({ ...call, body, idempotencyKey: currency });
    return z.object({ id: z.string() }).parse(JSON.parse(answer.text)).id;
  };
  return {
    async pay(currency, amount) {
      const recipient_id = await recipient(currency);
      const body = { recipient_id, method: RAILS[currency], currency, amount };
      const idempotencyKey = `${currency}-${amount}`;
      const call = { method: 'POST', path: '/v1/payouts', body, idempotencyKey } as const;
      return madeBy(await client.insist(call)).id;
    },
    show: async (id) => Shown.parse(await stack.cli('payout', 'show', id)),
    orphans: async () => Orphans.parse(await stack.cli('orphan', 'list')).data,
    async balances() {
      const shown = await stack.cli('balance', 'show', account, '--env', 'sandbox');
      const rows = Balances.parse(shown).data.filter((row) => row.balance_account === 'main');
      return new Map(
        rows.map(({ currency, available, reserved }) => [currency, { available, reserved }]),
      );
    },
  };
}
