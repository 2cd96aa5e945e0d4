import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { latestCutOff } from '../../src/domain/payout/target2';
import { shortenId } from '../../src/service/sepa/book';
import { startStack } from '../chaos/running-stack';
import { CreatedAccount } from '../cli/cli';
import { useFixture } from '../support/fixture';
import { call, eventually } from '../support/http';
import { describeWithBank, startMockBank } from '../support/mock-bank';

const IBAN = 'NL41MOCK0000000001';
/** Files under kills of both sides: `FILES=400` runs as many. */
const FILES = Number(process.env['FILES'] ?? 6);
/** Time for all that waits for the bank, at the end. */
const END_MS = 90_000 + FILES * 2_000;
const WAVE = 4;
/** Payouts that are read at once. */
const AT_ONCE = 50;
/** Times at which a process is killed after a file was requested. */
const KILL_AFTER_MS = [0, 60, 150, 300, 500, 900];
/** Amounts repeat, so that the test funds are enough for any number of files. */
const AMOUNTS = 10;
/** Morning of the latest business day: the bank books today what a file asks for. */
const MORNING = `${new Date(latestCutOff(Date.now(), 0)).toISOString().slice(0, 10)}T09:30`;

const Files = z.object({ data: z.array(z.object({ id: z.string(), payouts: z.number() })) });

jest.setTimeout(180_000 + FILES * 20_000);

describeWithBank('npm start with SEPA files', () => {
  const bank = useFixture(
    () => startMockBank(MORNING),
    (opened) => opened.stop(),
  );
  const stack = useFixture(
    () =>
      startStack({
        env: {
          ...{ SANDBOX_CONNECTORS: 'sepa=sepa_credit_transfer', SEPA_IBAN: IBAN },
          ...{ SEPA_OUT_DIR: bank.drop, SEPA_IN_DIR: bank.pickup, SEPA_BIC: 'MOCKNL2A' },
          ...{ SEPA_NAME: 'ACME Corporation', SEPA_POLL_SECONDS: '0.2' },
        },
      }),
    (opened) => opened.destroy(),
  );

  const killConnector = () => {
    const pid = stack.state()?.sepa?.pid;
    if (pid != null) process.kill(pid, 'SIGKILL');
  };

  test('through kills of the connector and the bank no payout is paid twice, and none is lost', async () => {
    expect(stack.state()?.sepa).toEqual({ pid: expect.any(Number) });
    const created = await stack.cli('account', 'create', '--name', 'Payer');
    const { sandbox_key: key } = CreatedAccount.parse(created);
    const post = async (path: string, body: object) => {
      const answer = await call(stack.url, 'POST', path, { key, body });
      if (answer.status !== 201) throw new Error(answer.text);
      return answer.body;
    };
    const recipient = await post('/v1/payout-recipients', {
      ...{ type: 'bank_account', first_name: 'Zoë', last_name: 'Weiß', country: 'DE' },
      ...{ iban: 'DE89370400440532013000', address_line1: 'Street 1', city: 'Berlin' },
      postal_code: '10115',
    });
    const money = { method: 'sepa_credit_transfer', currency: 'EUR', recipient_id: recipient.id };
    const payouts: { id: string; amount: number }[] = [];
    for (let round = 0; round < FILES; round += 1) {
      const base = 100 * (round % AMOUNTS) + 1;
      const amounts = Array.from({ length: WAVE }, (_, index) => base + index);
      payouts.push(
        ...(await Promise.all(amounts.map((amount) => post('/v1/payouts', { ...money, amount })))),
      );
      const cut = stack.cli('sepa', 'cut').catch(() => undefined);
      await sleep(KILL_AFTER_MS[round % KILL_AFTER_MS.length] ?? 0);
      killConnector();
      const read = bank.scan().catch(() => undefined);
      if (round % 2 === 1) await bank.restart(MORNING);
      await Promise.all([cut, read]);
    }
    const status = async ({ id }: { id: string }) =>
      (await call(stack.url, 'GET', `/v1/payouts/${id}`, { key })).body.status;
    // What is left of an interrupted cut goes into the next file.
    await eventually(
      'every payout in a file',
      async () => {
        await stack.cli('sepa', 'cut').catch(() => undefined);
        const { data } = Files.parse(await stack.cli('sepa', 'file', 'list', '--limit', '1000'));
        return data.reduce((sum, file) => sum + file.payouts, 0) === payouts.length;
      },
      END_MS,
    );
    await bank.scan();
    await bank.advance(4);
    let waiting = payouts;
    await eventually(
      'every payout to be completed',
      async () => {
        await bank.scan();
        const statuses = await Promise.all(waiting.slice(0, AT_ONCE).map(status));
        waiting = waiting.filter((_, index) => statuses[index] !== 'completed');
        return waiting.length === 0;
      },
      END_MS,
    );
    for (const { id } of payouts) expect(await bank.payments(shortenId(id))).toHaveLength(1);
    const sum = payouts.reduce((total, { amount }) => total + amount, 0);
    expect((await bank.account('ACME')).balance).toBe(12_500_000 - sum);
    await eventually(
      'the books to agree with the bank',
      async () => {
        const of = ['--connector', 'sepa', '--env', 'sandbox'];
        const shown = z
          .object({ closing: z.number().nullable(), closed: z.boolean() })
          .loose()
          .parse(await stack.cli('reconciliation', 'show', ...of));
        return shown.closed && shown.closing === 12_500_000 - sum;
      },
      END_MS,
    );
    await stack.cli('ledger', 'verify');
    const log = readFileSync(join(stack.dataDir, 'logs', 'sepa.log'), 'utf8');
    expect(log).not.toContain('not authorized on');
  });
});
