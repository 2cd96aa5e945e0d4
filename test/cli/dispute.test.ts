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

const listIds = async (args: string) => {
  const { data, ...page } = Object(await commands.json(`dispute list ${args}`));
  return { ids: data.map(({ id }: { id: string }) => id), ...page };
};
const refuse = async (line: string, ...more: string[]) =>
  (await commands.refusal(`dispute ${line}`, ...more)).code;

test('dispute list selects by account, environment, status and payment, and pages', async () => {
  const { account_id, rows } = await storeDisputes(3);
  const newest = rows.toReversed().map(({ _id }) => _id);
  const end = { has_more: false, next_cursor: null };
  expect(await listIds(account_id)).toEqual({ ids: newest, ...end });
  for (const other of ['--env live', '--status won']) {
    expect(await listIds(`${account_id} ${other}`)).toEqual({ ids: [], ...end });
  }
  expect((await listIds(`--payment ${rows[0]?.payment_id}`)).ids).toEqual([newest[2]]);
  const first = await listIds(`${account_id} --limit 2`);
  expect(first).toEqual({ ids: newest.slice(0, 2), has_more: true, next_cursor: newest[1] });
  const rest = await listIds(`${account_id} --limit 2 --before ${first.next_cursor}`);
  expect(rest).toEqual({ ids: newest.slice(2), ...end });
  expect((await listIds('--limit 1000')).ids).toEqual(expect.arrayContaining(newest));
  const { stdout } = await commands.cli(`dispute list ${account_id}`);
  expect(stdout).toMatch(/^DISPUTE +OPENED +ACCOUNT +ENV +STATUS +AMOUNT +ANSWER UNTIL\n/);
  expect(await refuse('list acct_none')).toBe('account_not_found');
  expect(await refuse('list --before dp_none')).toBe('dispute_not_found');
  expect(await refuse('list --status open')).toBe('invalid_usage');
});

test('dispute evidence sends a file once, and names what is wrong in another', async () => {
  const { id } = await openDispute();
  const send = (path: string) => `dispute evidence ${id} --file ${path}`;
  for (const [path, code, message] of [
    [write('{'), 'invalid_usage', 'cannot be read'],
    [write('{}'), 'invalid_request', 'explanation: is required'],
    [join(folder.path, 'none.json'), 'invalid_usage', 'none.json'],
  ] as const) {
    const refusal = { code, message: expect.stringContaining(message) };
    expect(await commands.refusal(send(path))).toEqual(refusal);
  }
  const file = write(JSON.stringify({ explanation: 'Zebra was signed for.', carrier: 'PostNL' }));
  expect(await commands.json(send(file))).toMatchObject({ id, object: 'dispute' });
  await service.becomes('disputes', id, { status: 'under_review' });
  expect(await commands.json(send(file))).toMatchObject({ id, status: 'under_review' });
  const other = send(write('{"explanation": "Something else."}'));
  expect((await commands.refusal(other)).code).toBe('dispute_closed');
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
  const accept = `accept ${id} --operator mia`;
  expect(await commands.json(`dispute ${accept}`, ...WHY)).toMatchObject({ id, object: 'dispute' });
  await service.becomes('disputes', id, { status: 'accepted' });
  const audit = [{ who: 'mia', what: 'accept', why: 'Ticket 42' }];
  expect(await service.stores.disputes.get(id)).toMatchObject({ audit });
  expect(await refuse(accept, ...WHY)).toBe('wrong_state');
  expect(await refuse('accept dp_none')).toBe('dispute_not_found');
  const bare = await openDispute();
  expect(await commands.json(`dispute accept ${bare.id}`)).toMatchObject({ id: bare.id });
  const [live] = (await storeDisputes(1, true)).rows;
  expect(await refuse(`accept ${live?._id}`, ...WHY)).toBe('operator_key_required');
  const mia = await asOperator(commands, `mia ${randomUUID()}`);
  expect((await mia.refusal(`dispute accept ${live?._id}`)).code).toBe('operator_required');
});
