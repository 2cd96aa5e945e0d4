import { randomUUID } from 'node:crypto';
import type { Shop } from '../api/payout-setting';
import { eventually } from '../support/eventually';
import type { Service } from '../support/service';

/**
 * Pays, and finds the payout before the API answers, which waits five seconds for a bank that has
 * not sent it.
 * @returns its ID
 */
export async function beginPayout(
  service: Pick<Service, 'collection'>,
  { pay }: Pick<Shop, 'pay'>,
  changes: object = {},
): Promise<string> {
  const metadata = { begun: randomUUID() };
  let refusal: unknown;
  pay({ ...changes, metadata }).then(
    ({ status, text }) => {
      if (status !== 201) refusal = new Error(text);
    },
    (error: unknown) => {
      refusal = error;
    },
  );
  const payouts = service.collection<{ _id: string; metadata: string }>('payouts');
  const { _id } = await eventually('a payout', async () => {
    if (refusal !== undefined) throw refusal;
    return await payouts.findOne({ metadata: JSON.stringify(metadata) });
  });
  return _id;
}
