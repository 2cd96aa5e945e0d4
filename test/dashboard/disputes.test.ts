import { openUser, openVisitor, readText, visitor } from '../support/dashboard';
import { buildAccount, buildDispute, buildPayment } from '../support/factories';
import { useFixture } from '../support/fixture';
import { eventually } from '../support/http';
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

async function openDispute(fields: object = {}, { account } = merchant) {
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

test('a page of a dispute says what was taken, why and until when, and leads to its payment and back', async () => {
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
  expect(text).not.toContain('API call');
  const ofPayment = await page(`/payments/${payment.id}`);
  expect(ofPayment.html).toContain(`href="/dashboard/sandbox${path}"`);
  expect(ofPayment.text).toContain('Disputes of this payment');
  expect((await page(`/disputes/${dispute.id.toUpperCase()}`)).status).toBe(200);
});

test('disputes are listed by status, by their id and by their payment, and exported', async () => {
  const { payment, dispute } = await openDispute({ code: '13.1' });
  for (const [query, isListed] of [
    ['', true],
    ['?status=needs_response', true],
    ['?status=won', false],
    [`?search=${dispute.id}`, true],
    [`?search=${payment.id}`, true],
    ['?method=ideal', false],
  ] as const) {
    const { html } = await page(`/disputes${query}`);
    expect([query, html.includes(`/disputes/${dispute.id}"`)]).toEqual([query, isListed]);
  }
  const { html: csv } = await merchant.finance.get(
    `/dashboard/sandbox/disputes.csv?search=${payment.id}`,
  );
  expect(csv.split('\r\n')[1]).toMatch(
    new RegExp(`^${dispute.id},.*,needs_response,${payment.id},10.50,.*,EUR,visa,13.1,`),
  );
});

test('a member who may not answer sees the dispute, and no form', async () => {
  const { path } = await openDispute();
  const seen = await page(path, merchant.reader);
  expect(seen.text).toContain('The bank waits for your answer');
  expect(seen.html).not.toMatch(/Send evidence|Accept dispute/);
  expect((await page(path)).html).toMatch(/Send evidence.*Accept dispute/s);
});

test.each([
  ['no explanation', { carrier: 'PostNL' }, 'It is required.'],
  [
    'more than 20,000 characters in all',
    { explanation: 'é'.repeat(19_990), carrier: 'PostNL 12345' },
    'It must have at most 20000 characters in all.',
  ],
  ['no day', { explanation: EXPLANATION, shipped_at: 'soon' }, 'such as 2026-03-01.'],
])('evidence with %s is shown again as it was written, and not sent', async (_, form, fault) => {
  const { dispute, acts } = await openDispute();
  const refused = await merchant.finance.post(`${acts}/evidence`, form);
  expect([refused.status, refused.html.includes(fault)]).toEqual([400, true]);
  for (const text of Object.values(form)) expect(refused.html).toContain(text);
  expect((await merchant.finance.confirm(`${acts}/evidence`, form)).status).toBe(400);
  expect(await linesAbout(dispute.id)).toEqual([]);
});

test('evidence of the most characters is sent once, however often its form is', async () => {
  const { dispute, acts } = await openDispute();
  // Browsers send a line's end as two characters.
  const explanation = `${'漢'.repeat(19_990)}\r\n${'b'.repeat(9)}`;
  const form = { explanation };
  const confirmation = await merchant.finance.post(`${acts}/evidence`, form);
  expect(readText(confirmation.html)).toContain('It is sent once');
  expect(await linesAbout(dispute.id)).toEqual([]);
  const send = () => merchant.finance.confirm(`${acts}/evidence`, form);
  const [first] = await Promise.all([send(), send()]);
  expect(first).toMatchObject({ status: 303, location: acts });
  await service.becomes('disputes', dispute.id, { status: 'under_review' });
  const other = { explanation: EXPLANATION };
  await merchant.finance.confirm(`${acts}/evidence`, other);
  const lines = await linesAbout(dispute.id);
  expect(lines.filter(([, outcome]) => outcome === 'done').length).toBeGreaterThan(0);
  expect(lines.at(-1)).toEqual(['dispute.answered', 'dispute_closed']);
  expect(JSON.stringify(lines)).not.toContain('漢');
});

test('evidence whose outcome is unknown is shown again as it was written', async () => {
  const { dispute, acts } = await openDispute();
  const { disputes } = service.stores;
  const lost = jest.spyOn(disputes, 'storeEvidence').mockRejectedValueOnce(new Error('lost'));
  await service.withApp({}, async (url) => {
    const by = visitor(url, merchant.finance.secret);
    const { status, html } = await by.confirm(`${acts}/evidence`, { explanation: EXPLANATION });
    expect([status, html.includes(EXPLANATION)]).toEqual([503, true]);
    expect(html).toContain('It is not known yet whether the evidence was sent.');
  });
  lost.mockRestore();
  expect((await linesAbout(dispute.id)).at(-1)).toEqual(['dispute.answered', 'unknown']);
});

test('a dispute is accepted once it is confirmed, and takes no evidence after that', async () => {
  const { dispute, acts } = await openDispute();
  const confirmation = await merchant.finance.post(`${acts}/accept`);
  expect(readText(confirmation.html)).toContain('Accept the dispute? The customer keeps the money');
  expect((await service.stores.disputes.get(dispute.id))?.status).toBe('needs_response');
  await eventually('the acceptance', async () => {
    await merchant.finance.confirm(`${acts}/accept`);
    return (await service.stores.disputes.get(dispute.id))?.status === 'accepted';
  });
  const { text } = await page(`/disputes/${dispute.id}`);
  expect(text).toContain('You accepted it');
  await merchant.finance.confirm(`${acts}/evidence`, { explanation: EXPLANATION });
  expect((await linesAbout(dispute.id)).at(-1)).toEqual(['dispute.answered', 'dispute_closed']);
});

test('the overview names disputes until they are answered, the first deadline first', async () => {
  const own = await openMerchant();
  const opened: string[] = [];
  for (let n = 0; n < 6; n += 1) opened.push((await openDispute({}, own)).dispute.id);
  const listed = async () => {
    const { html } = await page('/overview', own.reader);
    const ids = [...html.matchAll(/\/disputes\/(dp_[0-9a-f-]{36})"/g)].map(([, id]) => id);
    return { ids, hasMore: html.includes('href="/dashboard/sandbox/disputes?status=needs_resp') };
  };
  expect(await listed()).toEqual({ ids: opened.slice(0, 5), hasMore: true });
  const [first = '', ...rest] = opened;
  const evidence = `/dashboard/sandbox/disputes/${first}/evidence`;
  await own.finance.confirm(evidence, { explanation: EXPLANATION });
  await service.becomes('disputes', first, { status: 'under_review' });
  expect(await listed()).toEqual({ ids: rest, hasMore: false });
});
