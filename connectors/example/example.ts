import { z } from 'zod';
import {
  assertSigned,
  type BankRequest,
  defineConnector,
  type PayoutAnswer,
  type Report,
  secretFile,
} from '../kit';

/** A transfer, as the imaginary bank shows it. `reference` is the ID that we sent. */
const Transfer = z.object({
  id: z.string(),
  reference: z.uuid(),
  state: z.enum(['queued', 'sent', 'arrived', 'rejected', 'returned']),
  reason: z.string().nullable(),
  value_date: z.iso.date().nullable(),
});
type Transfer = z.infer<typeof Transfer>;

/** A change of a transfer, in a webhook and in the list of changes. */
const Change = z.object({
  id: z.string(),
  at: z.iso.datetime({ offset: true }),
  transfer: Transfer,
});
const Changes = z.object({ data: z.array(Change).max(100), has_more: z.boolean() });
const Problem = z.object({ code: z.string() });

/** Names of callbacks by the bank's states. `queued` is the answer to the instruction itself. */
const CALLBACKS = {
  queued: 'submitted',
  sent: 'sent',
  arrived: 'completed',
  rejected: 'failed',
  returned: 'returned',
} as const;

/** Words for merchants by the bank's codes. They name no recipient. */
const REASONS = new Map([
  ['account_unknown', 'The recipient’s bank does not know the account.'],
  ['amount_too_high', 'The bank sends no transfer of this amount.'],
]);

const settings = { EXAMPLE_API_URL: z.url(), EXAMPLE_KEY_FILE: secretFile };

export const example = defineConnector({
  name: 'example',
  serves: ['sepa_credit_transfer', 'sepa_instant'],
  settings,
  limits: { perSecond: 20, atOnce: 5 },

  sendPayout: async (payout, { call, settings, recipient, reference }) => {
    const { first_name, last_name, iban } = await recipient();
    const request = {
      ...buildRequest(settings, '/transfers'),
      method: 'POST' as const,
      json: {
        reference: payout.payout_id,
        amount: payout.amount,
        currency: payout.currency,
        instant: payout.method === 'sepa_instant',
        to: { name: `${first_name} ${last_name}`, iban },
        text: await reference(),
      },
    };
    // The bank's idempotency key: a repeat answers with the first transfer.
    request.headers['Idempotency-Key'] = payout.payout_id;
    const answer = await call(request, { 200: Transfer, 201: Transfer, 422: Problem });
    if (answer.status === 422) return { outcome: 'refused', ...explain(answer.body.code) };
    return readTransfer(answer.body);
  },

  lookUpPayout: async ({ payout_id }, { call, settings }) => {
    const request = buildRequest(settings, `/transfers/by-reference/${payout_id}`);
    const answer = await call(request, { 200: Transfer, 404: Problem });
    return answer.status === 404 ? { outcome: 'not_found' } : readTransfer(answer.body);
  },

  webhook: {
    path: '/webhooks',
    read: async ({ body, headers, json }, { settings }) => {
      const signature = headers['example-signature'];
      assertSigned({ body, secret: settings.EXAMPLE_KEY_FILE, signature });
      return [readChange(Change.parse(json()))];
    },
  },

  // Webhooks get lost, so the list of changes is read, too. A change has one ID in both.
  poll: {
    seconds: 30,
    read: async (cursor, { call, settings }) => {
      const after = encodeURIComponent(cursor ?? '');
      const request = buildRequest(settings, `/changes?after=${after}`);
      const { body } = await call(request, { 200: Changes });
      return {
        reports: body.data.map(readChange),
        cursor: body.data.at(-1)?.id ?? cursor,
        more: body.has_more,
      };
    },
  },
});

function buildRequest(
  { EXAMPLE_API_URL, EXAMPLE_KEY_FILE }: { EXAMPLE_API_URL: string; EXAMPLE_KEY_FILE: string },
  path: string,
) {
  const headers: Record<string, string> = { Authorization: `Bearer ${EXAMPLE_KEY_FILE}` };
  return { url: `${EXAMPLE_API_URL}${path}`, headers } satisfies BankRequest;
}

/** Another code of the bank is not passed on: its text may quote the recipient. */
function explain(code: string): { code: string; message: string } {
  const message = REASONS.get(code);
  if (message !== undefined) return { code, message };
  return { code: 'other', message: 'The bank refused the transfer.' };
}

/** Answers as the bank answered first. What happened later is reported. */
function readTransfer({ id, state }: Transfer): PayoutAnswer {
  const wasSent = state !== 'queued' && state !== 'rejected';
  return { outcome: wasSent ? 'sent' : 'submitted', bank_reference: id };
}

function readChange({ id, at, transfer }: z.infer<typeof Change>): Report {
  const { reason, value_date } = transfer;
  const why = reason === null ? undefined : explain(reason);
  return {
    resource: 'payout',
    resource_id: transfer.reference,
    name: CALLBACKS[transfer.state],
    callback: {
      callback_id: id,
      occurred_at: at,
      bank_reference: transfer.id,
      ...(why === undefined ? {} : { code: why.code, reason: why.message }),
      ...(value_date === null ? {} : { value_date }),
    },
  };
}
