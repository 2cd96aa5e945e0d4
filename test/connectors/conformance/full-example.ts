import { z } from 'zod';
import { example } from '../../../connectors/example/example';
import {
  assertSigned,
  type ConnectorDefinition,
  type DisputeLookup,
  defineConnector,
  type Evidence,
  type RefundAnswer,
  type Report,
  type Tools,
} from '../../../connectors/kit';

type Settings = typeof example extends ConnectorDefinition<infer S> ? S : never;
type ExampleTools = Tools<Settings>;
type Money = { amount: number; currency: string };
const NO_MONEY: Money = { amount: 0, currency: 'EUR' };

const Order = z.looseObject({ id: z.string() });
const Changes = z.object({ data: z.array(Order), has_more: z.boolean() });
const Anything = z.unknown();

const PAYOUT_NAMES: Record<string, string> = {
  ...{ queued: 'submitted', arrived: 'completed', rejected: 'failed' },
};

/** Reads a change of an order as the fake bank publishes it. */
export function readReport(change: unknown): Report {
  const { id: callback_id, at: occurred_at, transfer } = Object(change);
  const { kind: resource = 'payout', reference: resource_id, state } = transfer;
  const name = resource === 'payout' ? (PAYOUT_NAMES[state] ?? state) : state;
  const ofDispute = name.startsWith('dispute_') ? { dispute_id: `D-${resource_id}` } : {};
  const callback = { callback_id, occurred_at, bank_reference: transfer.id, ...ofDispute };
  return { resource, resource_id, name, callback } as Report;
}

function buildRequest({ settings }: Pick<ExampleTools, 'settings'>, path: string) {
  const headers: Record<string, string> = { Authorization: `Bearer ${settings.EXAMPLE_KEY_FILE}` };
  return { url: `${settings.EXAMPLE_API_URL}${path}`, headers };
}

function buildLookUp(tools: ExampleTools, reference: string) {
  return buildRequest(tools, `/transfers/by-reference/${encodeURIComponent(reference)}`);
}

/** Request that posts an order, under its reference as its key. */
function buildPost(tools: Pick<ExampleTools, 'settings'>, json: Money & { reference: string }) {
  const { url, headers } = buildRequest(tools, '/transfers');
  return {
    ...{ method: 'POST' as const, url, json },
    headers: { ...headers, 'Idempotency-Key': json.reference },
  };
}

async function post(
  tools: ExampleTools,
  reference: string,
  { amount, currency }: Money,
  about: { kind: string; evidence?: Evidence },
) {
  const order = buildPost(tools, { reference, amount, currency, ...about });
  return (await tools.call(order, { 200: Order, 201: Order })).body.id;
}

async function accept(...args: Parameters<typeof post>): Promise<RefundAnswer> {
  return { outcome: 'accepted', bank_reference: await post(...args) };
}

async function find(tools: ExampleTools, reference: string) {
  const answer = await tools.call(buildLookUp(tools, reference), { 200: Order, 404: Anything });
  return answer.status === 404 ? undefined : answer.body.id;
}

async function findAnswer(
  { instruction_id }: { instruction_id: string },
  tools: ExampleTools,
): Promise<DisputeLookup> {
  const id = await find(tools, instruction_id);
  return { outcome: id === undefined ? 'not_found' : 'accepted' };
}

/** Sends a payout, and passes on any code with which the bank refuses it. */
export const sendWithAnyCode: NonNullable<ConnectorDefinition<Settings>['sendPayout']> = async (
  { payout_id: reference, amount, currency },
  { call, settings, recipient },
) => {
  const order = { reference, amount, currency, to: await recipient() };
  const Problem = z.object({ code: z.string() });
  const answers = { 200: Order, 201: Order, 422: Problem };
  const answer = await call(buildPost({ settings }, order), answers);
  if (answer.status !== 422) return { outcome: 'submitted', bank_reference: answer.body.id };
  return { outcome: 'refused', code: answer.body.code, message: 'The bank refused it.' };
};

/** The example, for a bank that also takes payments, sends refunds and disputes payments. */
export const fullExample = defineConnector({
  ...example,
  serves: ['sepa_credit_transfer', 'sepa_instant', 'ideal'],
  limits: { perSecond: 200, atOnce: 50 },

  openSession: async ({ payment_id, ...money }, tools) => {
    const id = await post(tools, payment_id, money, { kind: 'payment' });
    const session_url = `${tools.settings.EXAMPLE_API_URL}/pay/${id}`;
    return { outcome: 'opened', bank_reference: id, session_url };
  },
  closeSession: async ({ payment_id }, tools) => {
    const order = { ...buildLookUp(tools, payment_id), method: 'DELETE' as const };
    const { status } = await tools.call(order, { 200: Order, 404: Anything, 409: Anything });
    return { outcome: status === 409 ? 'already_authorized' : 'closed' };
  },
  voidPayment: async () => ({ outcome: 'already_settled' }),
  reversePayment: ({ instruction_id, ...money }, tools) =>
    accept(tools, instruction_id, money, { kind: 'reversal' }),

  sendRefund: ({ refund_id, ...money }, tools) =>
    accept(tools, refund_id, money, { kind: 'refund' }),
  lookUpRefund: async ({ refund_id }, tools) => {
    const bank_reference = await find(tools, refund_id);
    if (bank_reference === undefined) return { outcome: 'not_found' };
    return { outcome: 'accepted', bank_reference };
  },

  submitEvidence: async ({ instruction_id }, tools) => {
    const evidence = await tools.evidence();
    await post(tools, instruction_id, NO_MONEY, { kind: 'evidence', evidence });
    return { outcome: 'accepted' };
  },
  lookUpEvidence: findAnswer,
  acceptDispute: async ({ instruction_id }, tools) => {
    await post(tools, instruction_id, NO_MONEY, { kind: 'acceptance' });
    return { outcome: 'accepted' };
  },
  lookUpAcceptance: findAnswer,

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
    read: async (cursor, tools) => {
      const changes = buildRequest(tools, `/changes?after=${encodeURIComponent(cursor ?? '')}`);
      const { body } = await tools.call(changes, { 200: Changes });
      const last = body.data.at(-1)?.id ?? cursor;
      return { reports: body.data.map(readReport), cursor: last, more: body.has_more };
    },
  },
});

/** The example, which polls often enough for a test. */
export function quickExample(): ConnectorDefinition<Settings> {
  const { poll } = example;
  return {
    ...example,
    limits: { perSecond: 200, atOnce: 50 },
    ...(poll && { poll: { ...poll, seconds: 0.2 } }),
  };
}
