import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import { createBankClient } from '../../../connectors/kit/bank-client';
import { HIDDEN } from '../../../connectors/kit/page/hide';
import { createStepLog } from '../../../connectors/kit/page/steps';

const payout_id = '7b1e2c90-6a41-4c65-9a0b-2f64d50cf0aa';
const answer = { outcome: 'submitted', bank_reference: 'B-1' } as const;
const server = createServer((_request, response) => void response.end(JSON.stringify(answer)));
beforeAll(() => new Promise<void>((done) => void server.listen(0, '127.0.0.1', done)));
afterAll(() => server.close());

test('the page shows the activity of an instruction over HTTP, and nothing of the recipient', async () => {
  const steps = createStepLog({ now: () => new Date(), log: { warn: () => undefined } });
  const client = createBankClient({ needsTls: false, count: () => undefined });
  const call = steps.watchCall(client());
  const schema = z.object({ outcome: z.enum(['submitted', 'sent']), bank_reference: z.string() });
  const instruction = { activity: 'sendPayout', payout_id, amount: 1_000, currency: 'EUR' };
  const text = JSON.stringify({ ...instruction, recipient: { first_name: 'Ada' } });
  const { sendPayout } = steps.watchActivities({
    sendPayout: async () => {
      const { port } = server.address() as AddressInfo;
      const url = `http://127.0.0.1:${port}/instructions/sendPayout`;
      await call({ method: 'POST', url, text }, { 200: schema });
      return answer;
    },
  });
  const facts = { payout_id, amount: 1_000, currency: 'EUR', version: 1 };
  await sendPayout?.({ ...facts, method: 'sepa_instant', livemode: false });
  expect(steps.list()).toMatchObject([
    {
      source: 'sendPayout',
      exchanges: [
        {
          name: 'POST /instructions/sendPayout',
          sent: { ...instruction, recipient: { first_name: HIDDEN } },
          received: answer,
        },
      ],
    },
  ]);
});
