import { randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient, isApiError, verifyWebhook } from '../../clients/typescript/src';
import { fund } from '../api/fund';
import { useFixture } from '../support/fixture';
import { useHook } from '../support/hook';
import { eventually, idealPayment } from '../support/http';
import { runProgram } from '../support/programs';
import { useAccount, useService } from '../support/service';

const PACKAGE = join(__dirname, '../../clients/typescript');
const ROOT = join(__dirname, '../..');

const service = useService();
const account = useAccount(service);
const hook = useHook(service);
const settings = () => ({ apiKey: account.key, baseUrl: service.url });
const client = useFixture(async () => createClient(settings()));

async function settlePayment(changes: { reference?: string } = {}) {
  const { id } = await client.payments.create({ ...idealPayment(), ...changes });
  await client.sandbox.simulatePayment(id, { event: 'settled' });
  return await eventually('a settled payment', async () => {
    const payment = await client.payments.get(id);
    return payment.status === 'settled' && payment;
  });
}

test('a payment is created, settled, reported by a webhook, and refunded', async () => {
  await hook.register(account);
  const payment = await settlePayment();
  const [delivery] = await eventually('the webhook', async () => {
    const settled = hook.about(payment.id).filter(({ body }) => body.includes('payment.settled'));
    return settled.length > 0 && settled;
  });
  const event = verifyWebhook({
    body: delivery?.body ?? '',
    signature: String(delivery?.headers['service-signature']),
    secret: hook.secret,
  });
  expect(event).toMatchObject({ type: 'payment.settled', data: { payment_id: payment.id } });
  const refund = await client.refunds.create({ payment_id: payment.id, amount: 250 });
  await client.sandbox.simulateRefund(refund.id, { event: 'settled' });
  expect(await client.refunds.get(refund.id)).toMatchObject({ amount: 250 });
  const { data } = await client.payments.listRefunds(payment.id);
  expect(data.map(({ id }) => id)).toEqual([refund.id]);
  const types = (await client.balanceTransactions.list()).data.map(({ type }) => type);
  expect(types).toEqual(expect.arrayContaining(['payment', 'refund']));
});

test('a create that is repeated under its key gives the first answer again', async () => {
  const idempotencyKey = randomUUID();
  const replays: (string | null)[] = [];
  const options = {
    idempotencyKey,
    onResponse: ({ headers }: { headers: Headers }) =>
      replays.push(headers.get('Idempotent-Replayed')),
  };
  const first = await client.payments.create(idealPayment(), options);
  const second = await client.payments.create(idealPayment(), options);
  expect(second.id).toBe(first.id);
  expect(replays.at(-1)).toBe('true');
  const reused = client.payments.create(idealPayment({ amount: 1 }), { idempotencyKey });
  await expect(reused).rejects.toMatchObject({ code: 'idempotency_key_reused', status: 422 });
});

test('a payout goes to a recipient, and a list gives its rows page by page', async () => {
  await fund(service, account, 1_000_000);
  const recipient = await client.recipients.create({
    ...{ type: 'bank_account', first_name: 'Ada', last_name: 'Lovelace' },
    ...{ iban: 'NL91ABNA0417164300', address_line1: 'Keizersgracht 1' },
    ...{ city: 'Amsterdam', postal_code: '1015 CN' },
  });
  const ids: string[] = [];
  for (let amount = 101; amount <= 103; amount += 1) {
    const body = { recipient_id: recipient.id, method: 'sepa_instant', amount, currency: 'EUR' };
    ids.unshift((await client.payouts.create(body)).id);
  }
  const rows: string[] = [];
  for await (const { id } of client.payouts.list({ limit: 2 })) rows.push(id);
  expect(rows).toEqual(ids);
  const pages = [];
  for await (const page of client.payouts.list({ limit: 2 }).pages()) pages.push(page.data.length);
  expect(pages).toEqual([2, 1]);
  expect((await client.payouts.listMethods()).map(({ method }) => method)).toContain(
    'sepa_instant',
  );
  expect((await client.recipients.delete(recipient.id)).deleted).toBe(true);
});

test('a refusal has a code, the wrong fields, and the ID of the request', async () => {
  const body = idealPayment({ currency: 'JPY', country: 'PT' });
  const error = await client.payments.create(body).catch((reason: unknown) => reason);
  expect(isApiError(error, 'method_requirements_not_met')).toBe(true);
  expect(error).toMatchObject({ status: 422, requestId: expect.stringMatching(/^[\w-]{8,}$/) });
  const { details } = isApiError(error) ? error : { details: [] };
  expect(details.map(({ field }) => field).toSorted()).toEqual(['country', 'currency']);
  const stranger = createClient({ ...settings(), apiKey: 'sk_sandbox_of_nobody' });
  await expect(stranger.balances.list()).rejects.toMatchObject({ code: 'api_key_invalid' });
});

test('the exact text of an answer can be read, whatever numbers are in metadata', async () => {
  const metadata = { exact: '12345678901234567890', number: 1.5 };
  const payment = await client.payments.create({ ...idealPayment(), metadata });
  expect(payment.metadata).toEqual(metadata);
  const raw = await account.postRaw(
    '/v1/payments',
    JSON.stringify(idealPayment()).replace(/}$/, ',"metadata":{"n":12345678901234567890}}'),
  );
  let text = '';
  await client.payments.get(raw.body.id, {
    onResponse: (response) => {
      text = response.text;
    },
  });
  expect(text).toContain('"n":12345678901234567890');
});

test('balances, methods and crypto have the shapes of their types', async () => {
  const [balance] = await client.balances.list();
  expect(balance).toMatchObject({ object: 'balance', available: expect.any(Number) });
  const catalog = await client.paymentMethods.list();
  const available = await client.paymentMethods.listAvailable();
  expect(catalog.map(({ method }) => method)).toContain(available[0]?.method);
  await service.stores.accounts.setCrypto(account.account_id, true);
  const pair = { asset: 'ETH', network: 'ethereum' };
  const { id } = await client.crypto.payments.create({ ...pair, amount: 1_000, currency: 'EUR' });
  await client.sandbox.simulateCryptoPayment(id, { event: 'received' });
  await eventually('the deposit', async () => {
    return (await client.crypto.payments.get(id)).status === 'received';
  });
  expect((await client.crypto.settlements.list()).data).toEqual([]);
});

describe('the packed package', () => {
  const folder = mkdtempSync(join(tmpdir(), 'consumer-'));
  const run = (command: string, args: string[], cwd = folder) => runProgram(command, args, { cwd });

  beforeAll(async () => {
    cpSync(join(PACKAGE, 'consumer'), folder, { recursive: true });
    await run('npm', ['pack', '--silent', '--pack-destination', folder], PACKAGE);
    await run('npm', ['install', '--offline', '--no-save', './durable-payments-client-1.0.0.tgz']);
    symlinkSync(join(ROOT, 'node_modules/@types'), join(folder, 'node_modules/@types'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test('has what it needs and nothing else', async () => {
    const output = await run('find', ['node_modules/@durable-payments', '-type', 'f']);
    const files = output.split('\n');
    expect(files.some((path) => path.endsWith('dist/index.d.ts'))).toBe(true);
    expect(files.filter((path) => /\/src\/|consumer|lock/.test(path))).toEqual([]);
  });

  test('type-checks in a project, as ES module and as CommonJS', async () => {
    expect(await run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', '.'])).toBe('');
  });

  test.each(['esm.mjs', 'cjs.cjs'])('runs in Node.js: %s', async (file) => {
    const output = await run(process.execPath, [file, service.url, account.key]);
    expect(output).toMatch(/^(?:created|awaiting_customer) payment_not_found\n$/);
  });
});
