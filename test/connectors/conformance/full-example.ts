import { z } from 'zod';
import { example } from '../../../connectors/example/example';
import {
  assertSigned,
  type ConnectorDefinition,
  defineConnector,
  type RefundAnswer,
  type Report,
  type Tools,
} from '../../../connectors/kit';

type Settings = typeof example extends ConnectorDefinition<infer S> ? S : never;
type ExampleTools = Tools<Settings>;

const Order = z.object({ id: z.string(), reference: z.string(), state: z.string() });
const OrderChange = z.object({
  id: z.string(),
  at: z.string(),
  transfer: z.looseObject({
    ...{ id: z.string(), reference: z.string(), kind: z.string().optional(), state: z.string() },
  }),
});
const Anything = z.unknown();

const PAYOUT_NAMES: Record<string, string> = {
  ...{ queued: 'submitted', arrived: 'completed', rejected: 'failed' },
};

/** Reads a change of an order as the fake bank publishes it. */
export function readReport(change: unknown): Report {
  const { id, at, transfer } = OrderChange.parse(change);
  const { kind = 'payout', reference, state } = transfer;
  const name = kind === 'payout' ? (PAYOUT_NAMES[state] ?? state) : state;
  return {
    ...{ resource: kind, resource_id: reference, name },
    callback: { callback_id: id, occurred_at: at, bank_reference: transfer.id },
  } as Report;
}

async function post(
  { call, settings }: ExampleTools,
  json: { reference: string; kind: string; amount: number; currency: string },
) {
  const headers = {
    Authorization: `Bearer ${settings.EXAMPLE_KEY_FILE}`,
    'Idempotency-Key': json.reference,
  };
  const url = `${settings.EXAMPLE_API_URL}/transfers`;
  const { body } = await call({ method: 'POST', url, headers, json }, { 200: Order, 201: Order });
  return body;
}

function at({ settings }: ExampleTools, reference: string) {
  return {
    url: `${settings.EXAMPLE_API_URL}/transfers/by-reference/${encodeURIComponent(reference)}`,
    headers: { Authorization: `Bearer ${settings.EXAMPLE_KEY_FILE}` },
  };
}

async function accept(
  tools: ExampleTools,
  reference: string,
  { amount, currency }: { amount: number; currency: string },
  kind: string,
): Promise<RefundAnswer> {
  const { id } = await post(tools, { reference, kind, amount, currency });
  return { outcome: 'accepted', bank_reference: id };
}

/** Sends a payout, and passes on any code with which the bank refuses it. */
export const sendWithAnyCode: NonNullable<ConnectorDefinition<Settings>['sendPayout']> = async (
  { payout_id, amount, currency },
  { call, settings, recipient },
) => {
  const request = {
    ...{ method: 'POST' as const, url: `${settings.EXAMPLE_API_URL}/transfers` },
    headers: {
      Authorization: `Bearer ${settings.EXAMPLE_KEY_FILE}`,
      'Idempotency-Key': payout_id,
    },
    json: { reference: payout_id, amount, currency, to: await recipient() },
  };
  const Problem = z.object({ code: z.string() });
  const answer = await call(request, { 200: Order, 201: Order, 422: Problem });
  if (answer.status !== 422) return { outcome: 'submitted', bank_reference: answer.body.id };
  return { outcome: 'refused', code: answer.body.code, message: 'The bank refused it.' };
};

/** The example, for a bank that also takes payments and sends refunds. */
export const fullExample = defineConnector({
  ...example,
  serves: ['sepa_credit_transfer', 'sepa_instant', 'ideal'],
  limits: { perSecond: 200, atOnce: 50 },

  openSession: async ({ payment_id, amount, currency }, tools) => {
    const { id } = await post(tools, { reference: payment_id, kind: 'payment', amount, currency });
    const session_url = `${tools.settings.EXAMPLE_API_URL}/pay/${id}`;
    return { outcome: 'opened', bank_reference: id, session_url };
  },
  closeSession: async ({ payment_id }, tools) => {
    const request = { ...at(tools, payment_id), method: 'DELETE' as const };
    const { status } = await tools.call(request, { 200: Order, 404: Anything, 409: Anything });
    return { outcome: status === 409 ? 'already_authorized' : 'closed' };
  },
  voidPayment: async () => ({ outcome: 'already_settled' }),
  reversePayment: ({ instruction_id, ...money }, tools) =>
    accept(tools, instruction_id, money, 'reversal'),

  sendRefund: ({ refund_id, ...money }, tools) => accept(tools, refund_id, money, 'refund'),
  lookUpRefund: async ({ refund_id }, tools) => {
    const answer = await tools.call(at(tools, refund_id), { 200: Order, 404: Anything });
    if (answer.status === 404) return { outcome: 'not_found' };
    return { outcome: 'accepted', bank_reference: answer.body.id };
  },

  webhook: {
    path: '/webhooks',
    read: async ({ body, headers, json }, { settings }) => {
      const signature = headers['example-signature'];
      assertSigned({ body, secret: settings.EXAMPLE_KEY_FILE, signature });
      return [readReport(json())];
    },
  },
  poll: {
    seconds: 0.2,
    read: async (cursor, { call, settings }) => {
      const Changes = z.object({ data: z.array(OrderChange), has_more: z.boolean() });
      const request = {
        url: `${settings.EXAMPLE_API_URL}/changes?after=${encodeURIComponent(cursor ?? '')}`,
        headers: { Authorization: `Bearer ${settings.EXAMPLE_KEY_FILE}` },
      };
      const { body } = await call(request, { 200: Changes });
      const last = body.data.at(-1)?.id ?? cursor;
      return { reports: body.data.map(readReport), cursor: last, more: body.has_more };
    },
  },
});
