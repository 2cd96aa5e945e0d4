import { passOn, startProxy } from '../../../connectors/conformance/proxy';
import { createSandboxBank } from '../../../connectors/sandbox/bank';
import type { CheckReport } from '../../../src/service/banks/connector-check';
import { useFixture } from '../../support/fixture';
import { connectConnector } from '../process';
import { fullExample, quickExample } from './full-example';
import { checkOnKit, listBroken, openBench, PATIENT_WAIT_MS, SECRET } from './setting';

describe('a check of a connector that keeps every promise', () => {
  const settings = { EXAMPLE_KEY_FILE: SECRET };
  const PATIENT = { waitMs: PATIENT_WAIT_MS };
  const read = ({ promises }: CheckReport, ...ids: string[]) =>
    ids.map((id) => promises.find((promise) => promise.id === id)?.seen);
  const whole = useFixture(() => checkOnKit(fullExample, settings, { ...PATIENT, isWhole: true }));

  test('passes for one that has payments, refunds, payouts and disputes, to which all applies', () => {
    expect(whole.promises.filter(({ result }) => result !== 'passed')).toEqual([]);
    expect(read(whole, 'callbacks.once', 'poll.repeated')).toEqual([
      '2 callbacks of 2 webhooks, each three times and the list of changes',
      'sent once, of a page that was read twice',
    ]);
  });

  test('passes for one that has payouts alone, at a bank without `sent`, and says what is not there', async () => {
    // Both send payouts alike.
    const isOther = (id: string) => !/^payout\.(?!repeat|callbacks|any_order)/.test(id);
    const report = await checkOnKit(quickExample(), settings, {
      ...{ ...PATIENT, only: whole.promises.map(({ id }) => id).filter(isOther) },
      desk: (url) =>
        startProxy(0, async (request) =>
          request.body.includes('"sent"')
            ? { status: 404, headers: {}, body: Buffer.from('{}') }
            : await passOn(url, request),
        ),
    });
    expect(listBroken(report)).toEqual([]);
    const missing = report.promises.filter(({ result }) => result === 'not_applicable');
    expect(new Set(missing.map(({ id }) => id.split('.')[0]))).toEqual(
      new Set(['refund', 'session', 'reversal', 'payment', 'evidence', 'acceptance', 'dispute']),
    );
    const events = ['payout.callbacks', 'payout.any_order', 'webhooks.lost', 'poll.repeated'];
    expect(read(report, ...events)).toEqual([
      'completed; the bank has no event sent',
      expect.stringMatching(/; the bank has no event sent$/),
      'completed arrived, 1 webhooks were lost',
      'completed once, of a page that was read twice',
    ]);
  });
});

describe('the command `connector check`', () => {
  const bench = useFixture(
    () => openBench('sandbox'),
    (opened) => opened.stop(),
  );
  const check = ['connector', 'check', 'sandbox'];

  useFixture(
    async () => {
      const { config, own } = await connectConnector('sandbox', { ...bench, settings: {} });
      const opened = await createSandboxBank(own, {
        ...config,
        ...{ SANDBOX_BANK_PORT: 0, SANDBOX_BANK_URL: undefined, SANDBOX_AUTOPLAY: 'on' },
      });
      return {
        stop: async () => {
          await opened.stop();
          await own.close();
        },
      };
    },
    (opened) => opened.stop(),
  );

  test('prints a table of the promises, all of which the sandbox bank keeps', async () => {
    const { exit, stdout, stderr } = await bench.commands().cli(...check);
    expect({ exit, stderr: stderr.match(/^failed.*$/gm) }).toEqual({ exit: 0, stderr: null });
    expect(stdout).toMatch(/^RESULT +NAME +PROMISE +SEEN\n/);
    expect(stdout).toMatch(/^passed +payout\.repeat .* three times sent, once at the bank$/m);
    expect(stdout).toMatch(/^n\/a +payout\.outage .* It needs the proxy in front of the bank\.$/m);
    expect(stdout).toMatch(/\n\n\d+ passed, 0 failed, \d+ not applicable\.\n$/);
  });

  test('checks the promises that are named alone', async () => {
    const only = ['--only', 'payout.repeat, payout.deleted'];
    const { stdout } = await bench.commands().cli(...check, ...only);
    expect(stdout.match(/^passed +\S+/gm)).toHaveLength(2);
    expect(stdout).toMatch(/\n\n2 passed, 0 failed, 0 not applicable\.\n$/);
  });

  test.each([
    ['a connector that nobody runs', ['acme'], 'connector_not_running'],
    ['a connector that nothing is routed to', ['nobody'], 'connector_unknown'],
    ['a connector that is live', ['big'], 'connector_unknown'],
    ['what is no name', ['a b'], 'connector_name_invalid'],
    ['a proxy without a port', ['sandbox', '--bank', 'http://a.example'], 'invalid_usage'],
    ['a name that no promise has', ['sandbox', '--only', 'payout.pays'], 'invalid_usage'],
  ])('refuses %s', async (_what, args, code) => {
    const routes = { SANDBOX_CONNECTORS: 'acme=ideal', LIVE_CONNECTORS: 'big=visa' };
    const commands = bench.commands({ ...routes, TASK_QUEUE_PREFIX: `${bench.prefix}-other` });
    expect((await commands.refusal('connector', 'check', ...args)).code).toBe(code);
  });

  test('refuses a database of the service', async () => {
    const database = bench.mongo.db(bench.database);
    const accounts = database.collection<{ _id: string; name: string }>('accounts');
    await accounts.insertOne({ _id: 'acct_of_a_merchant', name: 'A shop' });
    expect(await bench.commands().refusal(...check)).toEqual({
      code: 'check_database_used',
      message: expect.stringContaining('MONGODB_DB'),
    });
  });
});
