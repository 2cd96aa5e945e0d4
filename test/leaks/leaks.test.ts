import { readdirSync, readFileSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils';
import { connectMongo } from '../../src/base/mongo';
import { connectTemporal } from '../../src/temporal/access';
import type { StackState } from '../../stack/data-dir';
import { useMerchant } from '../chaos/race';
import { fetchPage } from '../support/dashboard';
import { eventually } from '../support/eventually';

/**
 * Nothing that identifies a recipient or a payer, or grants access, is in plain text in MongoDB,
 * Temporal, a log or a file. Values that are stored in plain text on purpose prove that the scan works.
 */
const PAYER = {
  email: 'w.oosterhuis-payer@example.com',
  first_name: 'Wijbrandina',
  last_name: 'Oosterhuis-Quax',
  reference: 'payer-41',
};
const [FIRST, LAST, BORN] = ['Quenntinella', 'Vanderbrugge-Osei', '1971-03-17'];
const [CARD, BAD_CARD] = ['4539148803436467', '4539148803436468'];
const [IBAN, IBAN_SPACED] = ['NL91ABNA0417164300', 'NL91 ABNA 0417 1643 00'];
const [SORT_CODE, ACCOUNT_NUMBER] = ['601613', '31926819'];
const EMAIL = 'q.vanderbrugge@example.com';
const NAMES = { first_name: FIRST, last_name: LAST, date_of_birth: BORN, email: EMAIL };
const ADDRESS = {
  ...{ address_line1: 'Grimsbyweg 4711', city: 'Quarnbekerzijl', postal_code: '3511 QX' },
};
const EXPIRY = { expiry_month: '11', expiry_year: '2039' };
const UK_ACCOUNT = { sort_code: SORT_CODE, account_number: ACCOUNT_NUMBER };
const RECIPIENTS = {
  card: { type: 'card', ...NAMES, ...ADDRESS, ...EXPIRY, card_number: CARD },
  sepa: { type: 'bank_account', ...NAMES, ...ADDRESS, iban: IBAN_SPACED },
  uk: { type: 'bank_account', ...NAMES, ...ADDRESS, ...UK_ACCOUNT },
};
/** Six digits also occur by chance in numbers and fractions of seconds, which are no texts. */
const SORT_CODE_ALONE = new RegExp(`(?<![\\w.:])${SORT_CODE}(?!\\w)`);
/** Eight also occur within longer numbers and ids. */
const ACCOUNT_NUMBER_ALONE = new RegExp(`(?<![\\da-f])${ACCOUNT_NUMBER}(?![\\da-f])`);
const SECRETS = [
  ...[...Object.values(NAMES), ...Object.values(ADDRESS), CARD, BAD_CARD, IBAN, IBAN_SPACED],
  ...[ACCOUNT_NUMBER_ALONE, SORT_CODE_ALONE, `${SORT_CODE}${ACCOUNT_NUMBER}`],
  ...[PAYER.email, PAYER.first_name, PAYER.last_name],
];
/** Stored in plain text: the scan must find it. */
const CONTROL = 'leaks-control-70391';

const merchant = useMerchant('Leaks', { autoplay: 'on' });

test('the scan finds every secret where it is stored on purpose', () => {
  const sent = JSON.stringify([RECIPIENTS, PAYER, BAD_CARD, IBAN, SORT_CODE + ACCOUNT_NUMBER]);
  expect(findings([{ name: 'requests', text: sent }], SECRETS)).toHaveLength(SECRETS.length);
});

test('the service stores nothing in plain text that identifies a recipient or payer or grants access', async () => {
  const { stack } = merchant;
  const ids = await recipients();
  const acts = [listAccessSecrets(), payments(), wrongRequests(), payouts(ids)] as const;
  const [access, tokens] = await Promise.all(acts);
  const secrets = [...SECRETS, ...access, ...tokens];
  const state = stack.readState();
  const stored = await mongoPlaces(state);
  const histories = await historyPlaces(state);
  const running = filePlaces(stack.dataDir);
  const requests = stored.filter(({ name }) => name.endsWith('.requests'));
  for (const places of [stored, requests, running]) expectControl(places, CONTROL);
  expectControl(histories, ids.sepa);
  expect(findings([...stored, ...histories, ...running], secrets)).toEqual([]);
  const passwords = passwordsOfMongo();
  const elsewhere = running.filter(({ name }) => !HOLD_PASSWORDS.includes(name));
  expectControl(running, passwords[0] ?? '');
  expect(findings([...stored, ...histories, ...elsewhere], passwords)).toEqual([]);
  expect(await stack.stop()).toBe(0);
  // What was still in memory is in the files now.
  expect(findings(filePlaces(stack.dataDir), secrets)).toEqual([]);
});

/** Files of users of MongoDB, which nobody but their owner may read. */
const HOLD_PASSWORDS = ['mongodb-login.json', 'stack.json'];

function passwordsOfMongo(): string[] {
  const [login = '', ...others] = HOLD_PASSWORDS.map((name) => join(merchant.stack.dataDir, name));
  for (const path of [login, ...others]) expect(statSync(path).mode & 0o777).toBe(0o600);
  return Object.values(JSON.parse(readFileSync(login, 'utf8')));
}

function expectControl(places: readonly Place[], value: string): void {
  expect(findings(places, [value])).not.toEqual([]);
}

async function recipients() {
  const make = async (name: keyof typeof RECIPIENTS): Promise<string> => {
    const post = () => merchant.client.post('/v1/payout-recipients', RECIPIENTS[name], name);
    const [first, again] = [await post(), await post()];
    expect([first.status, again.text]).toEqual([201, first.text]);
    return first.body.id;
  };
  const [card, sepa, uk] = await Promise.all([make('card'), make('sepa'), make('uk')]);
  return { card, sepa, uk };
}

/** Keys, secrets and sessions that were handed out. */
async function listAccessSecrets(): Promise<string[]> {
  const { stack, opened } = merchant;
  const { account_id, sandbox_key, live_key, dashboard_email, dashboard_password } = opened;
  const url = 'http://localhost:9/hook';
  const set = await stack.cli('webhook', 'set', account_id, '--env', 'sandbox', '--url', url);
  const rolled = await stack.cli('webhook', 'roll', account_id, '--env', 'sandbox');
  const form = { email: dashboard_email, password: dashboard_password };
  const { cookie = '' } = await fetchPage(stack.url, 'POST', '/dashboard/sign-in', { form });
  expect(cookie.length).toBeGreaterThan(20);
  const signingSecrets = [set.signing_secret, rolled.signing_secret];
  return [sandbox_key, live_key, dashboard_password, ...signingSecrets, cookie];
}

/** Makes payments of one payer, paid, refused and repeated. @returns tokens of their pages */
async function payments(): Promise<string[]> {
  const { client } = merchant;
  const urls = { success_url: 'https://shop.example/ok', error_url: 'https://shop.example/no' };
  const body = { method: 'ideal', amount: 1_050, currency: 'EUR', country: 'NL', ...urls };
  const pay = (payment: object, key: string) => client.post('/v1/payments', payment, key);
  const tokens: string[] = [];
  for (const key of ['paid', 'open']) {
    const sent = { ...body, customer: PAYER };
    const first = await pay(sent, key);
    expect([first.status, (await pay(sent, key)).text]).toEqual([201, first.text]);
    const { id, redirect_url, customer } = first.body;
    expect(customer).toEqual(PAYER);
    await fetch(redirect_url, { redirect: 'manual' });
    tokens.push(redirect_url.split('/').at(-1));
    const path = `/v1/sandbox/payments/${id}/simulate`;
    if (key === 'open') continue;
    for (const event of ['settled', 'dispute_opened']) {
      expect((await client.post(path, { event })).status).toBe(200);
    }
    await sendEvidence(id);
  }
  const payer = `${PAYER.first_name} ${PAYER.last_name} <${PAYER.email}>`;
  const metadata = { [CARD]: CARD, about: `${payer}, ${BORN}`, iban: IBAN, n: Number(CARD) };
  const reference = `${payer} ${IBAN_SPACED}`;
  const refused = { ...body, method: PAYER.first_name, reference, metadata };
  expect((await pay(refused, 'refused')).status).toBe(422);
  const wrong = { ...body, amount: 1.5, customer: { ...PAYER, country: PAYER.last_name } };
  expect((await pay(wrong, 'wrong')).status).toBe(400);
  return tokens;
}

/** Sends evidence that names the payer, first a wrong one. */
async function sendEvidence(payment_id: string): Promise<void> {
  const { client } = merchant;
  const dispute = await eventually('a dispute', async () => {
    const { body } = await client.get(`/v1/disputes?payment_id=${payment_id}`);
    return body.data[0];
  });
  const explanation = `${PAYER.first_name} ${PAYER.last_name} has signed for it.`;
  const body = { explanation, customer_reference: PAYER.email };
  const path = `/v1/disputes/${dispute.id}/evidence`;
  expect((await client.post(path, { ...body, shipped_at: PAYER.last_name })).status).toBe(400);
  expect((await client.post(path, body)).body.evidence_submitted_at).not.toBeNull();
}

/** Refusals must not repeat what they refuse, neither to the caller nor to a log. */
async function wrongRequests(): Promise<void> {
  const { client } = merchant;
  const { card, sepa } = RECIPIENTS;
  const wrong: object[] = [
    { ...card, card_number: BAD_CARD },
    { ...card, [CARD]: CARD },
    { ...card, card_number: Number(CARD) },
    { ...sepa, iban: `${IBAN}1` },
    { ...sepa, country: FIRST },
    { ...card, date_of_birth: `${BORN}T` },
    { type: FIRST, scheme: LAST, last4: CARD, reference: `for ${FIRST}`, first_name: FIRST },
    { [FIRST]: LAST, [EMAIL]: BORN, reference: `${IBAN_SPACED}, ${SORT_CODE}` },
  ];
  for (const [index, body] of wrong.entries()) {
    const answer = await client.post('/v1/payout-recipients', body, `wrong-${index}`);
    expect(answer.status).toBe(400);
  }
  for (const [path, status] of [
    [`/v1/payments/${CARD}`, 404],
    [`/v1/payments/${encodeURIComponent(EMAIL)}?reference=${FIRST}`, 404],
    [`/v1/payments?method=${LAST}`, 400],
    [`/v1/payments?${FIRST}=${IBAN}`, 400],
  ] as const) {
    expect((await client.get(path)).status).toBe(status);
  }
  await wrongBodies();
}

/** No JSON, of another type, and cut off while it is sent. */
async function wrongBodies(): Promise<void> {
  const { stack, opened } = merchant;
  const url = `${stack.url}/v1/payout-recipients`;
  const headers = { Authorization: `Bearer ${opened.sandbox_key}`, 'Idempotency-Key': 'no-json' };
  const text = JSON.stringify(RECIPIENTS.card);
  const json = { ...headers, 'Content-Type': 'application/json' };
  for (const sent of [
    { body: text.slice(0, -9), headers: json },
    { body: `[${text}]`, headers: json },
    { body: text, headers },
  ]) {
    expect([400, 415]).toContain((await fetch(url, { method: 'POST', ...sent })).status);
  }
  const cut = request(url, { method: 'POST', headers: { ...json, 'Content-Length': 9_999 } });
  const closed = new Promise((resolve) => cut.on('error', resolve));
  cut.write(text, () => setImmediate(() => cut.destroy(new Error('cut off'))));
  await closed;
}

async function payouts({ card, sepa, uk }: Awaited<ReturnType<typeof recipients>>) {
  const { client } = merchant;
  const transfer = { recipient_id: sepa, method: 'sepa_instant', currency: 'EUR' };
  const ukTransfer = { recipient_id: uk, method: 'faster_payments', currency: 'GBP' };
  const wanted = [
    { recipient_id: card, method: 'card_payout', currency: 'USD', amount: 1_050 },
    { ...transfer, method: 'sepa_credit_transfer', amount: 1_051 },
    { ...transfer, amount: 1_052 },
    { ...ukTransfer, amount: 1_053 },
    // Rejected, its answer lost, lost after it left, and one that is returned.
    ...[66_621, 66_625].map((amount) => ({ ...transfer, amount })),
    { ...ukTransfer, amount: 66_626 },
    { ...transfer, amount: 66_627 },
  ];
  const made = await Promise.all(
    wanted.map(async (body, index) => {
      const sent = { ...body, reference: CONTROL };
      return (await client.post('/v1/payouts', sent, `p-${index}`)).body.id;
    }),
  );
  const goals = [...Array(4).fill('completed'), 'failed', 'completed', 'completed', 'returned'];
  const haveEnded = async () => {
    const read = await Promise.all(made.map((id) => client.get(`/v1/payouts/${id}`)));
    return read.every(({ body }, index) => body.status === goals[index]);
  };
  await eventually('every payout to end', haveEnded, 180_000);
}

/** A place that was searched, and what it holds as one text. */
interface Place {
  name: string;
  text: string;
}

/** Every document of every database of the stack, the bank's own included. */
async function mongoPlaces({ mongodb }: StackState): Promise<Place[]> {
  const mongo = await connectMongo(mongodb.uri, 'leak-scan');
  const { databases } = await mongo.db('admin').admin().listDatabases();
  const places: Place[] = [];
  for (const { name } of databases.filter((each) => each.name !== 'config')) {
    for (const { name: collection, type } of await mongo.db(name).listCollections().toArray()) {
      if (type !== 'collection') continue;
      const documents = await mongo.db(name).collection(collection).find().toArray();
      places.push({ name: `${name}.${collection}`, text: JSON.stringify(documents) });
    }
  }
  await mongo.close();
  return places;
}

/** Every history, with its payloads as they were before their encoding. */
async function historyPlaces({ temporal }: StackState): Promise<Place[]> {
  const { workflow, connection } = connectTemporal(temporal);
  const places: Place[] = [];
  for await (const { workflowId, runId } of workflow.list()) {
    const history = await workflow.getHandle(workflowId, runId).fetchHistory();
    places.push({ name: workflowId, text: decoded(historyToJSON(history)) });
  }
  await connection.close();
  return places;
}

/** The text with what each base64 string in it says behind it. */
function decoded(json: string): string {
  const encoded = json.match(/"[A-Za-z0-9+/]{8,}={0,2}"/g) ?? [];
  return [json, ...encoded.map((text) => Buffer.from(text.slice(1, -1), 'base64'))].join('\n');
}

/** Every file under a folder, byte for byte. */
function filePlaces(folder: string): Place[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ name: path.slice(folder.length + 1), text: readFileSync(path, 'latin1') }));
}

/** Says where each of the values stands. */
function findings(places: readonly Place[], values: readonly (string | RegExp)[]): string[] {
  return places.flatMap(({ name, text }) => {
    const stands = (value: string | RegExp) =>
      typeof value === 'string' ? text.includes(value) : value.test(text);
    return values.filter(stands).map((value) => `${value} in ${name}`);
  });
}
