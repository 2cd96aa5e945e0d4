import { randomUUID } from 'node:crypto';
import { createEventReader } from '../../../connectors/stripe/events';
import { readFacts } from '../../../connectors/stripe/facts';
import { METHOD_IDS } from '../../../connectors/stripe/methods';
import { lookUpRefund, reversePayment, sendRefund } from '../../../connectors/stripe/refunds';
import { rehearse } from '../../../connectors/stripe/rehearse';
import { closeSession, openSession, voidPayment } from '../../../connectors/stripe/sessions';
import { listTransfers, makeStatement } from '../../../connectors/stripe/statements';
import { useFixture } from '../../support/fixture';
import { describeWithStripeMock, startStripeMock } from '../../support/stripe-mock';
import { ACCOUNT, decodeForm, type SeenRequest } from './fake';
import { buildPayment, openStripe } from './world';

interface Judge {
  /** Address of stripe-mock. */
  url: string;
  // biome-ignore lint/suspicious/noExplicitAny: a document of 8 MB.
  openApi: any;
}

/** Holds a request against stripe-mock, and request and answer against Stripe's document. */
async function checkRequest(
  { method, path, headers, body, answer }: SeenRequest,
  { url, openApi }: Judge,
) {
  const [address = '', query = ''] = path.split('?');
  const endpoint = `${method} ${address.replace(/\/[a-z]+_(test_)?\d{6}\w+/, '/{id}')}`;
  const names = ['authorization', 'stripe-version', 'content-type', 'idempotency-key'];
  const own = names.flatMap((name) => (headers[name] ? [[name, headers[name]]] : []));
  const init = { method, headers: Object.fromEntries(own), ...(method === 'POST' ? { body } : {}) };
  const second = await fetch(`${url}${path}`, init);
  const faults = second.ok ? [] : [`stripe-mock: ${second.status} ${await second.text()}`];
  const operation = Object.entries<Judge['openApi']>(openApi.paths).find(
    ([template]) => template.replace(/\{\w+\}/, '{id}') === endpoint.split(' ')[1],
  )?.[1][method.toLowerCase()];
  const parameters = (operation.parameters ?? []).map((each: Judge['openApi']) => [
    each.name,
    each.schema,
  ]);
  const schema =
    method === 'GET'
      ? { type: 'object', properties: Object.fromEntries(parameters) }
      : operation.requestBody.content['application/x-www-form-urlencoded'].schema;
  faults.push(...findFaults(openApi, schema, decodeForm(method === 'GET' ? query : body), 'sent'));
  if (answer?.status === 200) {
    const answered = operation.responses['200'].content['application/json'].schema;
    faults.push(...findFaults(openApi, answered, answer.body, 'answered'));
  }
  return { endpoint, faults: faults.map((fault) => `${endpoint}: ${fault}`) };
}

/** Finds fields that a schema does not have, and values that it refuses; one may leave fields out. */
function findFaults(
  openApi: Judge['openApi'],
  schema: Judge['openApi'],
  value: unknown,
  at: string,
): string[] {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1);
    return findFaults(openApi, openApi.components.schemas[name], value, at);
  }
  if (at.endsWith('.data.object') && schema.properties === undefined) {
    // Of an event, which may be about anything.
    const { object } = Object(value);
    return findFaults(openApi, openApi.components.schemas[object], value, `${at}:${object}`);
  }
  if (value === null) return schema.nullable === true ? [] : [`${at} is null`];
  if (schema.anyOf !== undefined) {
    const each = schema.anyOf.map((one: Judge['openApi']) => findFaults(openApi, one, value, at));
    // The nearest one says what is wrong.
    return each.toSorted((a: string[], b: string[]) => a.length - b.length)[0];
  }
  if (schema.enum !== undefined && schema['x-stripeBypassValidation'] !== true) {
    if (!schema.enum.includes(value)) return [`${at} is ${value}`];
  }
  if (schema.type === 'object' || schema.type === 'array') {
    if (typeof value !== 'object') return [`${at} is no ${schema.type}`];
    return Object.entries(Object(value)).flatMap(([name, each]) => {
      const inner = schema.items ?? schema.properties?.[name] ?? schema.additionalProperties;
      if (!inner) return [`${at}.${name} is unknown`];
      return findFaults(openApi, inner, each, `${at}.${name}`);
    });
  }
  if (schema.type === 'integer')
    return Number.isInteger(Number(value)) ? [] : [`${at} is ${value}`];
  const isText = typeof value === 'string' && value.length <= (schema.maxLength ?? 5_000);
  return schema.type !== 'string' || isText ? [] : [`${at} is no text`];
}

describeWithStripeMock('what Stripe’s own mock knows of the API', () => {
  const world = useFixture(openStripe, (opened) => opened.stop());
  const mock = useFixture(startStripeMock, ({ stop }) => stop());

  test('has every request of the connector, and of its rehearsal', async () => {
    const { bank, tools } = world;
    for (const method of METHOD_IDS) await openSession(buildPayment({ method }), tools);
    const [paid, voucher, lost] = [
      buildPayment(),
      buildPayment({ method: 'multibanco' }),
      buildPayment(),
    ];
    for (const payment of [paid, voucher]) await openSession(payment, tools);
    bank.failNext('stored_500');
    await openSession(lost, tools).catch(() => undefined);
    await openSession(lost, tools).catch(() => undefined);
    await closeSession({ payment_id: lost.payment_id, bank_reference: null }, tools).catch(
      () => undefined,
    );
    await bank.complete(voucher.payment_id, 'requires_action');
    const { id: session } = bank.findSession(voucher.payment_id);
    await voidPayment({ payment_id: voucher.payment_id, bank_reference: session }, tools);
    const charge = await bank.pay(paid.payment_id);
    const refund = { ...paid, refund_id: randomUUID(), version: 1, amount: 100 };
    const payment_bank_reference = String(charge['balance_transaction']);
    bank.failNext('cut_after');
    await sendRefund({ ...refund, payment_bank_reference }, tools).catch(() => undefined);
    await lookUpRefund(refund, tools);
    await reversePayment({ ...refund, instruction_id: `reversal:${paid.payment_id}` }, tools);
    for (const thing of bank.things.values()) await readFacts(thing, tools);
    const read = createEventReader();
    for (let [page, cursor] = [0, null as string | null]; page < 6; page += 1) {
      cursor = (await read(cursor, tools)).cursor;
    }
    const day = { account: ACCOUNT, currency: 'EUR', since: new Date(0) };
    const period = { opening: null, isBooked: () => false, isCompared: true };
    bank.arrive(await bank.payOut(), 'TRACE-1');
    await bank.payOut({ amount: 100 });
    await makeStatement({ ...day, end: new Date(bank.now() * 1_000 + 1_000), ...period }, tools);
    await listTransfers(() => false, tools);
    const wrong: string[] = [];
    const step = (name: string, isRight: boolean) => {
      if (!isRight) wrong.push(name);
      const pending = [...bank.things.values()].filter((each) => each['status'] === 'pending');
      for (const each of pending) if (each.object === 'refund') void bank.settleRefund(each);
    };
    await rehearse(tools, step, 1);
    expect(wrong).toEqual([]);
    const openApi = mock.openApi();
    const counts = new Map<string, number>();
    const faults: string[] = [];
    for (const seen of bank.requests) {
      const { endpoint, ...found } = await checkRequest(seen, { url: mock.url, openApi });
      faults.push(...found.faults);
      counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1);
    }
    expect([...new Set(faults)]).toEqual([]);
    expect([...counts.keys()].toSorted()).toEqual([
      'GET /v1/account',
      'GET /v1/balance',
      'GET /v1/balance_transactions',
      'GET /v1/balance_transactions/{id}',
      'GET /v1/charges/{id}',
      'GET /v1/checkout/sessions',
      'GET /v1/checkout/sessions/{id}',
      'GET /v1/events',
      'GET /v1/payment_intents/{id}',
      'GET /v1/payouts',
      'GET /v1/payouts/{id}',
      'GET /v1/refunds',
      'GET /v1/refunds/{id}',
      'POST /v1/checkout/sessions',
      'POST /v1/checkout/sessions/{id}/expire',
      'POST /v1/payment_intents',
      'POST /v1/payment_intents/{id}/cancel',
      'POST /v1/refunds',
    ]);
  });
});
