import { randomUUID } from 'node:crypto';
import type { DisputeDocument } from '../../src/store/disputes';
import { openUser, openVisitor, readText, visitor } from '../support/dashboard';
import { buildAccount, buildDispute, buildPayment } from '../support/factories';
import { useFixture } from '../support/fixture';
import { buildDisputeRow, paymentAt } from '../support/list-rows';
import { useService } from '../support/service';

const service = useService();

async function openMerchant() {
  const account = await buildAccount(service, { funds: 100_000 });
  const open = async (role: 'finance' | 'read_only') =>
    openVisitor(service, await openUser(service.stores, account.account_id, role));
  return { account, finance: await open('finance'), reader: await open('read_only') };
}

const merchant = useFixture(openMerchant);

const page = async (path: string, by = merchant.finance) => {
  const seen = await by.get(`/dashboard/sandbox${path}`);
  return { ...seen, text: readText(seen.html) };
};

const EXPLANATION = 'The parcel was signed for.';

async function openDispute(fields: object = {}) {
  const { account } = merchant;
  const payment = await buildPayment(account, { method: 'visa', status: 'settled' });
  const dispute = await buildDispute(account, { payment_id: payment.id, ...fields });
  const path = `/disputes/${dispute.id}`;
  return { payment, dispute, path, acts: `/dashboard/sandbox${path}` };
}

const linesAbout = async (target: string) => {
  const owner = { account_id: merchant.account.account_id, livemode: false };
  const lines = await service.stores.auditLog.list({ ...owner, limit: 100 });
  const own = lines.filter((line) => line.target === target).toReversed();
  return own.map(({ act, after }) => [act, Object(after).outcome]);
};

test('a dispute is shown with its payment, listed and exported, and only a member who may answer it can', async () => {
  const { payment, dispute, path } = await openDispute({ amount: 400, code: '13.3' });
  const { text, html } = await page(path);
  for (const words of [
    'Dispute of a payment of €10.50',
    'Withdrawn €4.00',
    'not as described, or were defective (13.3)',
    'The bank waits for your answer until',
    'from now',
    'Bank reported dispute opened',
    'Ledger: payment dispute opened',
    'main, available: -€4.00',
    'Event dispute.opened',
  ]) {
    expect(text).toContain(words);
  }
  expect(html).toContain(`href="/dashboard/sandbox/payments/${payment.id}"`);
  expect(html).toMatch(/Send evidence.*Accept dispute/s);
  expect(text).not.toContain('API call');
  const read = await page(path, merchant.reader);
  expect(read.text).toContain('The bank waits for your answer');
  expect(read.html).not.toMatch(/Send evidence|Accept dispute/);
  const ofPayment = await page(`/payments/${payment.id}`);
  expect(ofPayment.html).toContain(`href="/dashboard/sandbox${path}"`);
  expect(ofPayment.text).toContain('Disputes of this payment');
  expect((await page(`/disputes/${dispute.id.toUpperCase()}`)).status).toBe(200);
  for (const [query, isListed] of [
    ['', true],
    ['?status=needs_response', true],
    ['?status=won', false],
    [`?search=${dispute.id}`, true],
    [`?search=${payment.id}`, true],
    ['?method=ideal', false],
  ] as const) {
    const list = await page(`/disputes${query}`);
    expect([query, list.html.includes(`/disputes/${dispute.id}"`)]).toEqual([query, isListed]);
  }
  const csv = await page(`/disputes.csv?search=${payment.id}`);
  expect(csv.html.split('\r\n')[1]).toMatch(
    new RegExp(`^${dispute.id},.*,needs_response,${payment.id},4.00,.*,EUR,visa,13.3,`),
  );
});

test('evidence with a fault, or whose outcome is unknown, is shown again as it was written', async () => {
  const { dispute, acts } = await openDispute();
  const long = { explanation: 'é'.repeat(19_990), carrier: 'PostNL 12345' };
  for (const [form, fault] of [
    [{ carrier: 'PostNL' }, 'It is required.'],
    [long, 'It must have at most 20000 characters in all.'],
    [{ explanation: EXPLANATION, shipped_at: 'soon' }, 'such as 2026-03-01.'],
  ] as const) {
    const refused = await merchant.finance.post(`${acts}/evidence`, form);
    expect([refused.status, refused.html.includes(fault)]).toEqual([400, true]);
    for (const text of Object.values(form)) expect(refused.html).toContain(text);
    expect((await merchant.finance.confirm(`${acts}/evidence`, form)).status).toBe(400);
  }
  expect(await linesAbout(dispute.id)).toEqual([]);
  const { disputes } = service.stores;
  const { storeEvidence } = disputes;
  const lost = jest.spyOn(disputes, 'storeEvidence').mockImplementationOnce(async (...written) => {
    await storeEvidence(...written);
    throw new Error('The answer got lost.');
  });
  await service.withApp({}, async (url) => {
    const by = visitor(url, merchant.finance.secret);
    const { status, html } = await by.confirm(`${acts}/evidence`, { explanation: EXPLANATION });
    expect([status, html.includes(EXPLANATION)]).toEqual([503, true]);
    expect(html).toContain('It is not known yet whether the evidence was sent.');
    const { html: later } = await page(`/disputes/${dispute.id}`);
    expect(later).toContain('Send evidence');
    expect(later).toContain('only the same texts are accepted');
    await by.confirm(`${acts}/evidence`, { explanation: EXPLANATION });
  });
  lost.mockRestore();
  const outcomes = (await linesAbout(dispute.id)).map(([, outcome]) => outcome);
  expect(outcomes).toEqual(['requested', 'unknown', 'requested', 'done']);
});

test('a bank that asks again after the evidence is not answered here', async () => {
  const { payment, path, acts } = await openDispute();
  await merchant.finance.confirm(`${acts}/evidence`, { explanation: EXPLANATION });
  await merchant.account.post(`/v1/sandbox/payments/${payment.id}/simulate`, {
    ...{ event: 'dispute_updated', dispute_status: 'needs_response' },
  });
  const { text, html } = await page(path);
  expect(text).toContain('The bank asks again');
  expect(html).not.toContain('Send evidence');
});

test('a dispute that was decided before the answer arrived says what the bank decided', async () => {
  const { payment, dispute, path } = await openDispute();
  const rows = service.collection<DisputeDocument>('disputes');
  await rows.updateOne({ _id: dispute.id }, { $set: { answering: 'evidence' } });
  expect((await page(path)).text).toContain('Your answer is being sent');
  await merchant.account.post(`/v1/sandbox/payments/${payment.id}/simulate`, {
    event: 'dispute_lost',
  });
  const { text } = await page(path);
  expect(text).toContain('The bank decided for the customer');
  expect(text).not.toContain('being sent');
});

test('a bank that has refused the evidence is answered without us', async () => {
  const { dispute, path } = await openDispute();
  const rows = service.collection<DisputeDocument>('disputes');
  await rows.updateOne({ _id: dispute.id }, { $set: { answers_refused: ['evidence'] } });
  const { text, html } = await page(path);
  expect(text).toContain('The bank has refused the evidence');
  expect(text).toContain('before its deadline');
  expect(html).not.toContain('Send evidence');
  await rows.updateOne({ _id: dispute.id }, { $set: { evidence_due_at: '2026-01-01T00:00:00Z' } });
  expect((await page(path)).text).not.toContain('before its deadline');
});

test('evidence of the most characters is sent once, however often its form is', async () => {
  const { dispute, acts } = await openDispute();
  // Browsers send a line's end as two characters.
  const form = { explanation: `${'漢'.repeat(19_990)}\r\n${'b'.repeat(9)}` };
  const confirmation = await merchant.finance.post(`${acts}/evidence`, form);
  expect(readText(confirmation.html)).toContain('It is sent once');
  expect(await linesAbout(dispute.id)).toEqual([]);
  const send = () => merchant.finance.confirm(`${acts}/evidence`, form);
  const [first] = await Promise.all([send(), send()]);
  expect(first).toMatchObject({ status: 303, location: acts });
  await service.becomes('disputes', dispute.id, { status: 'under_review' });
  await merchant.finance.confirm(`${acts}/evidence`, { explanation: EXPLANATION });
  const lines = await linesAbout(dispute.id);
  expect(lines.filter(([, outcome]) => outcome === 'done').length).toBeGreaterThan(0);
  expect(lines.at(-1)).toEqual(['dispute.answered', 'dispute_closed']);
  expect(JSON.stringify(lines)).not.toContain('漢');
});

test('the overview names disputes until they are answered, the first deadline first', async () => {
  const own = await openMerchant();
  const { account_id } = own.account;
  const rows = Array.from({ length: 6 }, (_, n) => {
    const payment = paymentAt(n, new Date(Date.now() - (6 - n) * 60_000).toISOString());
    const dispute = buildDisputeRow({ ...payment, _id: randomUUID(), account_id });
    // The ledger check of the shared product would report what a transfer lacks.
    return { ...dispute, transfers: [] };
  });
  const disputes = service.collection<DisputeDocument>('disputes');
  await disputes.insertMany(rows.toReversed());
  const [first, ...rest] = rows.map(({ _id }) => _id);
  const listed = async () => {
    const { html } = await page('/overview', own.reader);
    const ids = [...html.matchAll(/\/disputes\/(dp_[0-9a-f-]{36})"/g)].map(([, id]) => id);
    return { ids, hasMore: html.includes('href="/dashboard/sandbox/disputes?status=needs_resp') };
  };
  expect(await listed()).toEqual({ ids: [first, ...rest.slice(0, 4)], hasMore: true });
  await disputes.updateOne({ _id: first }, { $set: { status: 'under_review' } });
  expect(await listed()).toEqual({ ids: rest, hasMore: false });
  const [open = '', ...due] = rest;
  await disputes.updateOne({ _id: open }, { $set: { evidence_due_at: null } });
  expect(await listed()).toEqual({ ids: [...due, open], hasMore: false });
});
