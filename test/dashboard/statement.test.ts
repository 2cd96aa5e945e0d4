import { randomUUID } from 'node:crypto';
import { inTransaction } from '../../src/base/mongo';
import { buildPosition } from '../../src/domain/cursor';
import { createLedgerStore } from '../../src/ledger/book';
import type { EntryDocument } from '../../src/ledger/documents';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { openUser, openVisitor } from '../support/dashboard';
import { settledPayment } from '../support/http';
import { useService } from '../support/service';

const service = useService();

/** Credits a balance at a time, in euros or an asset. */
async function post(account_id: string, at: string, amount: number | bigint, currency = 'EUR') {
  const ledger = createLedgerStore(service.mongo.db(service.database), () => new Date(at));
  const lines = ENTRY_LINES.adjusted('main', amount, 'adjustments');
  const owner = { account_id, livemode: false, currency, at, lines };
  await inTransaction(service.mongo, (session) =>
    ledger.post({ kind: 'adjusted', resource_id: randomUUID(), ...owner }, session),
  );
}

/** Names of the latest months, `YYYY-MM`, newest first. */
const months = [0, 1, 2].map((before) => {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - before))
    .toISOString()
    .slice(0, 7);
});
const [current = '', last = '', earlier = ''] = months;

async function openReader(role: 'read_only' | 'developer' = 'read_only') {
  const merchant = await service.account();
  const user = await openUser(service.stores, merchant.account_id, role);
  const by = await openVisitor(service, user);
  const path = '/dashboard/sandbox/balances/statement';
  const show = async (query = '') => {
    const { html } = await by.get(`${path}${query}`);
    const body = html.slice(html.indexOf('<main'));
    return body.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
  };
  const csv = async (query = '') => {
    const { html, headers } = await by.get(`${path}.csv${query}`);
    return { headers, rows: html.trimEnd().split('\r\n') };
  };
  return { ...merchant, by, show, csv };
}

test('a statement has the opening and closing of each balance and every line between', async () => {
  const { account_id, key, show, csv, by } = await openReader();
  await post(account_id, `${earlier}-20T10:00:00.000Z`, 5_000);
  await post(account_id, `${last}-01T00:00:00.000Z`, -700);
  await post(account_id, `${last}-28T23:59:59.999Z`, 20n * 10n ** 17n, 'ETH.ethereum');
  const { id } = await settledPayment(service, key);

  const text = await show(`?month=${last}`);
  expect(text).toContain('main, EUR Opening balance €50.00 Closing balance €43.00');
  expect(text).toMatch(/adjustment [0-9a-f-]{36} -€7\.00 €0\.00 -€7\.00 €43\.00/);
  expect(text).toContain('ETH on ethereum Opening balance 0 ETH Closing balance 2 ETH');
  expect(text).not.toContain(id);
  const now = await show();
  expect(now).toContain('main, EUR Opening balance €43.00 Closing balance €53.50');
  expect(now).toContain(`payment ${id} €10.50 €0.00 €10.50 €53.50`);
  expect(now).toContain('Nothing came or left in this month.');
  expect(await show('?month=1999-13')).toBe(now);

  const { headers, rows } = await csv(`?month=${last}`);
  expect(headers.get('content-disposition')).toContain(`"statement-sandbox-${last}.csv"`);
  expect(rows.map((row) => row.replace(/[0-9a-f-]{36}/, 'ID'))).toEqual([
    'posted_at,balance_account,currency,type,reference_type,reference,gross,fee,net,balance',
    `${last}-01T00:00:00.000Z,main,EUR,opening,,,,,,50.00`,
    `${last}-01T00:00:00.000Z,main,EUR,adjustment,adjustment,ID,-7.00,0.00,-7.00,43.00`,
    `${last}-28T23:59:59.999Z,main,ETH on ethereum,adjustment,adjustment,ID,2,0,2,2`,
    `${current}-01T00:00:00.000Z,main,EUR,closing,,,,,,43.00`,
    `${current}-01T00:00:00.000Z,main,ETH on ethereum,closing,,,,,,2`,
  ]);
  const opening = `${current}-01T00:00:00.000Z,main,EUR,opening,,,,,,43.00`;
  expect((await csv()).rows).toContain(opening);
  const link = (await by.get('/dashboard/sandbox/balances')).html;
  expect(link).toContain('href="/dashboard/sandbox/balances/statement"');
});

test('lines beyond those of a page are in the CSV and in the closing balance', async () => {
  const { account_id, show, csv } = await openReader('developer');
  const at = `${last}-02T00:00:00.000Z`;
  await post(account_id, at, 10_000);
  const rows = service.collection<EntryDocument>('journal_entries');
  const { _id, ...row } = (await rows.findOne({ account_id })) ?? {};
  const copies = Array.from({ length: 501 }, (_, n) => {
    const position = buildPosition(Date.parse(at) + 1, n);
    return { ...row, _id: `copy ${n} of ${_id}`, position };
  });
  const copyRows = service.collection<{ _id: string }>('journal_entries');
  await copyRows.insertMany(copies);
  const text = await show(`?month=${last}`);
  expect(text).toContain('The CSV has all lines of this month.');
  expect(text).toContain('Opening balance €0.00 Closing balance €50,200.00');
  expect(text.split('adjustment ')).toHaveLength(501);
  expect((await csv(`?month=${last}`)).rows).toHaveLength(504);
  // The ledger check of the shared product would report them.
  await copyRows.deleteMany({ _id: { $in: copies.map((copy) => copy._id) } });
});

test('a merchant without money has an empty statement, without lines of others', async () => {
  const other = await openReader();
  await post(other.account_id, `${last}-10T00:00:00.000Z`, 100);
  const { show, csv } = await openReader();
  expect(await show(`?month=${last}`)).toContain('Nothing was available, came or left');
  expect((await csv(`?month=${last}`)).rows).toHaveLength(1);
});
