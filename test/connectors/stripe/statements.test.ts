import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { readTrialBalance } from '../../../src/ledger-check/trial-balance';
import { addBankAccount } from '../../../src/service/banks/bank-accounts';
import { importMade, importStatements } from '../../../src/service/banks/statements/import';
import { reconcileAccounts } from '../../../src/service/banks/statements/reconciliation';
import { acknowledgeRefusal } from '../../../src/service/banks/statements/refusals';
import { reverseOperation } from '../../../src/service/money/balances/act';
import { postPlatform } from '../../../src/service/money/balances/adjust';
import { openMadeStatements } from '../../../src/store/statements';
import { useCommands } from '../../cli/cli';
import { operatorsAudit } from '../../support/audit';
import { readBalances } from '../../support/book';
import { type CamtEntry, camt } from '../../support/camt';
import { eventually } from '../../support/eventually';
import { buildAccount, buildPayment } from '../../support/factories';
import { useFixture } from '../../support/fixture';
import { useService } from '../../support/service';
import { ACCOUNT, type Thing } from './fake';
import { startStripeWorld } from './product';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const prefix = `stripe-${randomUUID().slice(0, 8)}`;
const ROUTES = 'stripe=visa|ideal';
// A product of its own: its payments go to Stripe, and its days are those of the fake's clock.
const service = useService({ live: { connectors: '', prefix }, tests: ROUTES });
// A refund of what is not available yet needs funds.
const account = useFixture(() => buildAccount(service, { funds: 100_000 }));
const own = { connector: 'stripe', livemode: false };
const commands = useCommands(service);
const SANDBOX = ['--connector', 'stripe', '--env', 'sandbox'];
const Listed = z.object({ data: z.array(z.object({ id: z.string() })) });
const Line = z.object({ bank_reference: z.string(), contains: z.array(z.string()).optional() });
const Shown = z.object({ data: z.array(Line) });

const buildDeps = () => {
  const { mongo, stores } = service;
  // An operator names a refusal by its time, to which Stripe's seconds are not enough.
  const now = () => new Date(world.bank.now() * 1_000 + (Date.now() % 1_000));
  return { mongo, stores, now, audit: operatorsAudit(stores) };
};

const world = useFixture(
  async () => {
    const opened = await startStripeWorld({ service, prefix });
    const deps = { ...service, audit: operatorsAudit(service.stores), now: () => new Date() };
    const routes = { liveConnectors: '', sandboxConnectors: ROUTES };
    const registered = { ...own, account_id: ACCOUNT, currency: 'EUR' };
    const { _id } = await addBankAccount({ ...deps, ...routes }, registered);
    return { ...opened, book: `${_id}:sandbox:EUR` };
  },
  ({ stop }) => stop(),
);

/** Lets the clock reach an hour of the next day, by which its statement is made. */
function endDay(hour = 3) {
  const { bank } = world;
  const at = bank.now() * 1_000;
  bank.advance(DAY_MS - (at % DAY_MS) + hour * HOUR_MS);
}

async function settle(amount: number, method = 'visa'): Promise<{ id: string; charge: Thing }> {
  const { id } = await buildPayment(account, { amount, method });
  const charge = await world.bank.pay(id);
  await service.becomes('payments', id, { status: 'settled' });
  return { id, charge };
}

const importAll = async () => (await importMade(buildDeps(), own)).statements;
const reconcile = async () => (await reconcileAccounts(buildDeps(), own))[0];
const readBook = (path: string) => readBalances(service.stores, world.book).then((at) => at(path));
const listMade = () =>
  openMadeStatements(service.mongo.db(`${service.database}_stripe`))
    .find()
    .toArray();

test('the day of the balance closes, with the fee of each charge as an expense of the service', async () => {
  const { bank } = world;
  const paid = await settle(10_000);
  await settle(2_000, 'ideal');
  const { body: refund } = await account.post('/v1/refunds', { payment_id: paid.id, amount: 400 });
  const made = await eventually('a refund at Stripe', async () => bank.listRefunds(refund.id)[0]);
  await bank.settleRefund(made as Thing);
  await service.becomes('refunds', refund.id, { status: 'settled' });
  // Before two o’clock, more of the day may show.
  endDay(1);
  await world.makeStatements();
  expect(await importAll()).toEqual([]);
  bank.advance(HOUR_MS);
  await world.makeStatements();
  const [statement, ...more] = await importAll();
  expect(more).toEqual([]);
  expect(statement).toMatchObject({ account: ACCOUNT, lines: 3, matched: 3, open: 0 });
  expect(await reconcile()).toMatchObject({
    closed: true,
    opening: 0,
    closing: 11_370,
    findings: [],
  });
  // 1.5 % and 0.25 of each charge.
  expect(await readBook('expense.bank_fees')).toBe(-(175 + 55));
  expect(await readBook('cash')).toBe(-bank.balance('eur'));
  // Again, nothing changes.
  await world.makeStatements();
  expect(await importAll()).toEqual([]);
});

test('what shows late is a line of the next day, once', async () => {
  const { bank } = world;
  const { charge } = await settle(5_000);
  const booked = bank.things.get(charge['balance_transaction']) as Thing;
  bank.things.delete(booked.id);
  endDay();
  await world.makeStatements();
  bank.things.set(booked.id, booked);
  endDay();
  await world.makeStatements();
  const [empty, late] = await importAll();
  expect([empty?.lines, late?.lines]).toEqual([0, 1]);
  expect(late).toMatchObject({ matched: 1 });
  expect((await reconcile())?.closed).toBe(true);
  expect(await readBook('cash')).toBe(-bank.balance('eur'));
});

test('a day whose lines do not lead to the balance waits, then needs an operator, and is made again', async () => {
  const { bank } = world;
  const hidden = bank.addUnseen(-700);
  endDay();
  const before = await listMade();
  await expect(world.makeStatements()).rejects.toThrow('does not lead to its balance');
  expect(await listMade()).toEqual(before);
  bank.advance(10 * HOUR_MS);
  await world.makeStatements();
  await expect(importAll()).rejects.toMatchObject({ code: 'sum_mismatch' });
  hidden.show();
  await world.makeStatements();
  expect(await importAll()).toMatchObject([{ lines: 1, open: 1 }]);
  expect(await readBook('suspense.unmatched')).toBe(-700);
});

test('a day that is never explained goes on once it is acknowledged, with an open line', async () => {
  const { bank } = world;
  const { statements } = service.stores;
  const findMismatch = async () =>
    (await statements.listRefusals(false, 0, 10)).find(({ code }) => code === 'sum_mismatch');
  const acknowledge = async () => {
    const { bank_account_id, since, amount } = (await findMismatch()) ?? {};
    const row = { bank_account_id: bank_account_id ?? '', since: since ?? 0 };
    await acknowledgeRefusal(buildDeps(), row, { operator: 'mia', reason: 'No answer' });
    return amount;
  };
  const unmatched = (await readBook('suspense.unmatched')) ?? 0;
  const hidden = [bank.addUnseen(-300)];
  endDay(13);
  await world.makeStatements();
  await expect(importAll()).rejects.toMatchObject({ code: 'sum_mismatch' });
  expect(await acknowledge()).toBe(-300);
  // It lasts, and nothing else is accepted.
  expect([await importAll(), await findMismatch()]).toEqual([[], undefined]);
  hidden.push(bank.addUnseen(-50));
  await world.makeStatements();
  await expect(importAll()).rejects.toMatchObject({ code: 'sum_mismatch' });
  expect(await acknowledge()).toBe(-350);
  await world.makeStatements();
  expect(await importAll()).toMatchObject([{ lines: 1, open: 1 }]);
  expect(await readBook('suspense.unmatched')).toBe(unmatched - 350);
  endDay();
  await world.makeStatements();
  expect(await importAll()).toMatchObject([{ lines: 0 }]);
  // What comes late after all is of its own day, of which the opposite is missing.
  for (const { show } of hidden) show();
  endDay(13);
  await world.makeStatements();
  await expect(importAll()).rejects.toMatchObject({ code: 'sum_mismatch' });
  expect(await acknowledge()).toBe(350);
  await world.makeStatements();
  expect(await importAll()).toMatchObject([{ lines: 3, open: 3 }]);
  expect(await readBook('cash')).toBe(-bank.balance('eur'));
});

test('two processes that make a day at once store it once', async () => {
  await settle(1_000);
  endDay();
  const days = (await listMade()).length;
  await Promise.all([world.makeStatements(), world.makeStatements(), world.makeStatements()]);
  expect(await listMade()).toHaveLength(days + 1);
  const imports = await Promise.allSettled([importAll(), importAll()]);
  expect(imports.some(({ status }) => status === 'fulfilled')).toBe(true);
  await importAll();
  expect(await readBook('cash')).toBe(-world.bank.balance('eur'));
});

test('a key of another account makes no statement', async () => {
  const { bank } = world;
  endDay();
  const days = (await listMade()).length;
  bank.state.account = 'acct_other';
  await expect(world.makeStatements()).rejects.toThrow('The key is of acct_other');
  bank.state.account = ACCOUNT;
  expect(await listMade()).toHaveLength(days);
});

describe('a payout of Stripe', () => {
  const bank = { connector: 'giro', livemode: false };
  const IBAN = 'DE89370400440532013000';
  const openGiro = async () => {
    const routes = {
      liveConnectors: '',
      sandboxConnectors: `${ROUTES},giro=sepa_credit_transfer`,
    };
    const registered = { ...bank, iban: IBAN, currency: 'EUR' };
    return await addBankAccount({ ...buildDeps(), ...routes }, registered);
  };
  let closing = 0;
  /** Imports a statement of the other bank, of the day of the clock. */
  const importGiro = async (amount: number, entry: Partial<CamtEntry> = {}) => {
    const day = buildDeps().now().toISOString().slice(0, 10);
    const opening = closing;
    closing += amount;
    const entries = [{ amount, day, ...entry }];
    const file = camt([{ iban: IBAN, id: randomUUID().slice(0, 30), day, opening, entries }]);
    return (await importStatements(buildDeps(), file, bank)).statements[0];
  };
  const listOpen = () =>
    service.stores.ledger.listOpenTransfers({ livemode: false, currency: 'EUR' });
  const listFindings = async () => {
    const { findings } = await readTrialBalance(service.mongo, service.database, buildDeps());
    return findings.filter(({ code }) => code === 'transfer_open');
  };
  const makeDay = async () => {
    endDay();
    await world.makeStatements();
    return await importAll();
  };
  const platform = async () =>
    (await readBalances(service.stores, 'platform:sandbox:EUR'))('platform.in_transit') ?? 0;

  test('meets the credit that another bank has, and what it contains is read', async () => {
    await openGiro();
    const { charge } = await settle(20_000);
    await makeDay();
    await makeDay();
    const payout = await world.bank.payOut();
    await settle(1_500);
    await makeDay();
    expect(await listOpen()).toMatchObject([{ connector: 'stripe', amount: -payout['amount'] }]);
    expect(await platform()).toBe(-payout['amount']);
    const credit = await importGiro(payout['amount'], { info: 'STRIPE T8X4' });
    expect(credit).toMatchObject({ matched: 1, open: 0 });
    expect([await listOpen(), await platform()]).toEqual([[], 0]);
    world.bank.arrive(payout, 'TRACE-1');
    await world.makeStatements();
    const { data } = Listed.parse(await commands.json('statement', 'list', ...SANDBOX));
    const show = async (id: string) => Shown.parse(await commands.json('statement', 'show', id));
    const shown = await Promise.all(data.map(({ id }) => show(id)));
    const lines = shown.flatMap((each) => each.data);
    const [line, ...others] = lines.filter(({ contains }) => contains);
    expect([line?.bank_reference, others]).toEqual([payout['balance_transaction'], []]);
    expect(line?.contains).toContain(charge['balance_transaction']);
    const booked = lines.map(({ bank_reference }) => bank_reference);
    expect(booked).toEqual(expect.arrayContaining(line?.contains ?? []));
    expect(await readBook('cash')).toBe(-world.bank.balance('eur'));
  });

  test('is known among others of the same amount by its trace ID, whichever statement comes first', async () => {
    const [one, two] = [
      await world.bank.payOut({ amount: 300 }),
      await world.bank.payOut({ amount: 300 }),
    ];
    // The bank is faster than the statement of the balance.
    const credit = await importGiro(300, { reference: 'TRACE-2' });
    expect(credit).toMatchObject({ open: 1 });
    world.bank.arrive(two, 'TRACE-2');
    await makeDay();
    const [open, ...more] = await listOpen();
    expect([open?.bank_reference, more]).toEqual([one['balance_transaction'], []]);
    // Neither another amount nor another text is it.
    expect(await importGiro(300, { info: 'Rent' })).toMatchObject({ open: 1 });
    expect(await importGiro(301, { info: 'STRIPE' })).toMatchObject({ open: 1 });
    expect(await importGiro(300, { info: 'Stripe' })).toMatchObject({ matched: 1 });
    expect(await listOpen()).toEqual([]);
  });

  test('that fails comes back, and nothing is in transit', async () => {
    const payout = await world.bank.payOut({ amount: 400 });
    world.bank.failPayout(payout);
    await makeDay();
    expect([await listOpen(), await platform()]).toEqual([[], 0]);
  });

  test('whose other end is missing five days after its arrival is found, until an operator posts it', async () => {
    const payout = await world.bank.payOut({ amount: 500 });
    await makeDay();
    const note = { operator: 'mia', reason: 'Ticket 42' };
    const post = (connector: string, amount: number) => {
      const money = { livemode: false, connector, currency: 'EUR', amount, bank_reference: 'H-1' };
      return postPlatform(buildDeps(), { ...money, kind: 'acquirer_payout' }, note, randomUUID());
    };
    world.bank.advance(6 * DAY_MS);
    expect(await listFindings()).toEqual([]);
    world.bank.advance(DAY_MS);
    const [end] = await listOpen();
    expect(await listFindings()).toMatchObject([{ amount: -500n, ids: [end?.entry_id] }]);
    expect(end?.bank_reference).toBe(payout['balance_transaction']);
    await eventually('the report of the connector', () =>
      service.stores.capabilities.get('stripe'),
    );
    await expect(post('stripe', -500)).rejects.toMatchObject({ code: 'transfer_by_statement' });
    const { operation_id } = await post('giro', 500);
    expect([await listOpen(), await listFindings()]).toEqual([[], []]);
    // What was posted in error is missing again.
    await reverseOperation(buildDeps(), operation_id, note);
    expect(await listFindings()).toMatchObject([{ ids: [end?.entry_id] }]);
  });

  test('is found by a trace ID that Stripe learns later, and by nothing after five days', async () => {
    const [one, two] = [
      await world.bank.payOut({ amount: 350 }),
      await world.bank.payOut({ amount: 350 }),
    ];
    await makeDay();
    world.bank.arrive(two, 'TRACE-9');
    await world.makeStatements();
    await importAll();
    const both = { info: 'STRIPE', reference: 'TRACE-9' };
    expect(await importGiro(350, both)).toMatchObject({ matched: 1 });
    const open = await listOpen();
    expect(open.filter(({ amount }) => amount === -350)).toMatchObject([
      { bank_reference: one['balance_transaction'] },
    ]);
    world.bank.advance(8 * DAY_MS);
    expect(await importGiro(350, { info: 'STRIPE' })).toMatchObject({ open: 1 });
  });

  test('is no top-up, which meets a debit of the five days before it', async () => {
    const { bank: stripe } = world;
    const topUp = () => {
      stripe.addUnseen(650).show();
      const booked = [...stripe.things.values()].findLast(({ amount }) => amount === 650);
      return Object.assign(booked ?? {}, { type: 'topup', source: `tu_${randomUUID()}` });
    };
    const info = 'STRIPE TOP-UP';
    expect(await importGiro(-650, { info })).toMatchObject({ open: 1 });
    stripe.advance(2 * DAY_MS);
    const booked = topUp();
    await makeDay();
    const listOwn = async () => (await listOpen()).filter(({ amount }) => amount === 650);
    expect(booked).toMatchObject({ net: 650 });
    expect(await listOwn()).toEqual([]);
    expect(await importGiro(-650, { info })).toMatchObject({ open: 1 });
    stripe.advance(7 * DAY_MS);
    topUp();
    await makeDay();
    expect(await listOwn()).toHaveLength(1);
  });
});
