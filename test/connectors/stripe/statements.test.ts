import { randomUUID } from 'node:crypto';
import { addBankAccount } from '../../../src/service/banks/bank-accounts';
import { importMade } from '../../../src/service/banks/statements/import';
import { reconcileAccounts } from '../../../src/service/banks/statements/reconciliation';
import { openMadeStatements } from '../../../src/store/made-statements';
import { operatorsAudit } from '../../support/audit';
import { readBalances } from '../../support/book';
import { buildPayment } from '../../support/factories';
import { useFixture } from '../../support/fixture';
import { eventually } from '../../support/http';
import { useAccount, useService } from '../../support/service';
import { ACCOUNT, type Thing } from './fake';
import { startStripeWorld } from './product';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const prefix = `stripe-${randomUUID().slice(0, 8)}`;
const ROUTES = 'stripe=visa|ideal';
// A product of its own: its payments go to Stripe, and its days are those of the fake's clock.
const service = useService({ live: { connectors: '', prefix }, tests: ROUTES });
const account = useAccount(service);
const own = { connector: 'stripe', livemode: false };

const buildDeps = () => {
  const { mongo, stores } = service;
  const now = () => new Date(world.bank.now() * 1_000);
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
  bank.setAccount('acct_other');
  await expect(world.makeStatements()).rejects.toThrow('The key is of acct_other');
  bank.setAccount(ACCOUNT);
  expect(await listMade()).toHaveLength(days);
});
