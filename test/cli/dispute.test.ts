import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DisputeDocument } from '../../src/store/disputes';
import { buildAccount, buildDispute, buildPayment } from '../support/factories';
import { useFixture } from '../support/fixture';
import { buildDisputeRow, paymentAt } from '../support/list-rows';
import { useService } from '../support/service';
import { asOperator, useCommands } from './cli';

const service = useService();
const commands = useCommands(service);
const shop = useFixture(() => buildAccount(service, { funds: 100_000 }));
const folder = useFixture(
  async () => ({ path: mkdtempSync(join(tmpdir(), 'evidence-')) }),
  async ({ path }) => rmSync(path, { recursive: true }),
);

const WHY = ['--reason', 'Ticket 42'];

function write(content: string): string {
  const path = join(folder.path, `${randomUUID()}.json`);
  writeFileSync(path, content);
  return path;
}

async function openDispute(): Promise<{ id: string; payment_id: string }> {
  const payment = await buildPayment(shop, { method: 'visa', status: 'settled' });
  return await buildDispute(shop, { payment_id: payment.id, code: '13.1' });
}

/** Stores disputes of a new account, oldest first, without workflows. */
async function storeDisputes(count: number, livemode = false) {
  const { account_id } = await buildAccount(service);
  const rows = Array.from({ length: count }, (_, n): DisputeDocument => {
    const payment = paymentAt(n, new Date(Date.now() - (count - n) * 60_000).toISOString());
    const owner = { account_id, livemode, payment_id: randomUUID() };
    return { ...buildDisputeRow(payment), ...owner, _id: `dp_${randomUUID()}` };
  });
  await service.collection<DisputeDocument>('disputes').insertMany(rows);
  return { account_id, rows };
}

const listIds = async (...args: string[]) => {
  const { data, ...page } = Object(await commands.json('dispute', 'list', ...args));
  return { ids: data.map(({ id }: { id: string }) => id), ...page };
};

test('dispute list selects by account, environment, status and payment, and pages', async () => {
  const { account_id, rows } = await storeDisputes(3);
  const newest = rows.toReversed().map(({ _id }) => _id);
  const end = { has_more: false, next_cursor: null };
  expect(await listIds(account_id)).toEqual({ ids: newest, ...end });
  expect(await listIds(account_id, '--env', 'live')).toEqual({ ids: [], ...end });
  expect(await listIds(account_id, '--status', 'won')).toEqual({ ids: [], ...end });
  expect((await listIds('--payment', rows[0]?.payment_id ?? '')).ids).toEqual([newest[2]]);
  const first = await listIds(account_id, '--limit', '2');
  expect(first).toEqual({ ids: newest.slice(0, 2), has_more: true, next_cursor: newest[1] });
  const rest = await listIds(account_id, '--limit', '2', '--before', first.next_cursor);
  expect(rest).toEqual({ ids: newest.slice(2), ...end });
  expect((await listIds('--limit', '1000')).ids).toEqual(expect.arrayContaining(newest));
  const { stdout } = await commands.cli('dispute', 'list', account_id);
  expect(stdout).toMatch(/^DISPUTE +OPENED +ACCOUNT +ENV +STATUS +AMOUNT +ANSWER UNTIL\n/);
  const refuse = async (...args: string[]) => (await commands.refusal(...args)).code;
  expect(await refuse('dispute', 'list', 'acct_none')).toBe('account_not_found');
  expect(await refuse('dispute', 'list', '--before', 'dp_none')).toBe('dispute_not_found');
  expect(await refuse('dispute', 'list', '--status', 'open')).toBe('invalid_usage');
});

test('dispute evidence sends a file once, and names what is wrong in another', async () => {
  const { id } = await openDispute();
  const send = (path: string) => ['dispute', 'evidence', id, '--file', path];
  for (const [content, code, message] of [
    ['{', 'invalid_usage', 'cannot be read'],
    ['{}', 'invalid_request', 'explanation: is required'],
  ] as const) {
    const refusal = { code, message: expect.stringContaining(message) };
    expect(await commands.refusal(...send(write(content)))).toEqual(refusal);
  }
  const missing = send(join(folder.path, 'none.json'));
  expect((await commands.refusal(...missing)).code).toBe('invalid_usage');
  const file = write(JSON.stringify({ explanation: 'Zebra was signed for.', carrier: 'PostNL' }));
  expect(await commands.json(...send(file))).toMatchObject({ id, object: 'dispute' });
  await service.becomes('disputes', id, { status: 'under_review' });
  expect(await commands.json(...send(file))).toMatchObject({ id, status: 'under_review' });
  const other = send(write('{"explanation": "Something else."}'));
  expect((await commands.refusal(...other)).code).toBe('dispute_closed');
  const owner = { account_id: shop.account_id, livemode: false, act: 'dispute.answered' } as const;
  const lines = await service.stores.auditLog.list({ ...owner, limit: 10 });
  expect(lines.every(({ target }) => target === id)).toBe(true);
  expect(lines.map(({ after }) => Object(after).outcome)).toEqual(
    expect.arrayContaining(['done', 'dispute_closed']),
  );
  expect(JSON.stringify(lines)).not.toContain('Zebra');
});

test('dispute accept gives in, is recorded with who and why, and is refused after the end', async () => {
  const { id } = await openDispute();
  const accept = ['dispute', 'accept', id];
  const by = ['--operator', 'mia', ...WHY];
  expect(await commands.json(...accept, ...by)).toMatchObject({ id, object: 'dispute' });
  const { audit } = await service.becomes('disputes', id, { status: 'accepted' }).then(async () => {
    return (await service.stores.disputes.get(id)) ?? { audit: [] };
  });
  expect(audit).toMatchObject([{ who: 'mia', what: 'accept', why: 'Ticket 42' }]);
  expect((await commands.refusal(...accept, ...by)).code).toBe('wrong_state');
  expect((await commands.refusal('dispute', 'accept', 'dp_none')).code).toBe('dispute_not_found');
  const bare = await openDispute();
  expect(await commands.json('dispute', 'accept', bare.id)).toMatchObject({ id: bare.id });
});

test('dispute accept on live needs an operator’s key and a reason', async () => {
  const [row] = (await storeDisputes(1, true)).rows;
  const accept = ['dispute', 'accept', row?._id ?? ''];
  expect((await commands.refusal(...accept, ...WHY)).code).toBe('operator_key_required');
  const mia = await asOperator(commands, `mia ${randomUUID()}`);
  expect((await mia.refusal(...accept)).code).toBe('operator_required');
});
