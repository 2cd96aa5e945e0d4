import { randomInt } from 'node:crypto';
import { commandsIn, useCommands } from '../../cli/cli';
import { eventually, idealPayment } from '../../support/http';
import { describeWithBank } from '../../support/mock-bank';
import { runProgram } from '../../support/programs';
import { createRewriter } from './rewriter';
import { ROUTES, useSepa } from './world';

/** `REWRITER_SEEDS=20` runs as many, `REWRITER_SEED=7` repeats one. */
const SEEDS = Array.from({ length: Number(process.env['REWRITER_SEEDS'] ?? 1) }, () =>
  Number(process.env['REWRITER_SEED'] ?? randomInt(2 ** 31)),
);
const TIMES = 20;
const DAYS_MAX = 60;
const IMPORT_EVERY = 4;

jest.setTimeout(240_000);

const zip = (paths: readonly string[], to: string) =>
  runProgram('python3', ['-m', 'zipfile', '-c', to, ...paths]);

describe.each(SEEDS)('with seed %i', (seed) => {
  describeWithBank('a bank that writes otherwise what it may write otherwise', () => {
    const rewriter = createRewriter(seed, zip);
    const { prefix, service, world, payer } = useSepa((from, to) =>
      rewriter.relay(from, to, world.bank.drop),
    );
    const commands = useCommands(service);
    const run = async (...args: string[]) => {
      const env = { ...commands.env, SANDBOX_CONNECTORS: ROUTES, TASK_QUEUE_PREFIX: prefix };
      const { stdout, stderr } = await commandsIn(env).cli(...args, '--json');
      return JSON.parse(stdout || stderr);
    };
    const payouts: string[] = [];
    const payments: string[] = [];

    const receive = async (amount: number): Promise<void> => {
      const customer = { email: 'payer@example.com' };
      const body = idealPayment({ method: 'multibanco', country: 'PT', amount, customer });
      const { id } = (await payer.post('/v1/payments', body)).body;
      const stored = await service.stores.payments.get(id);
      await world.bank.credit({ amount, reference: stored?.instructions?.reference ?? '' });
      payments.push(id);
    };
    const send = async (amounts: readonly number[]): Promise<void> => {
      const submitted = amounts.map((amount) => payer.submit({ amount }));
      payouts.push(...(await Promise.all(submitted)));
      await world.cut();
      await world.bank.scan();
    };
    const workOneDay = async (day: number): Promise<void> => {
      const received = [1, 2, 3].map((at) => receive(1_000 + 10 * day + at));
      for (const file of [1, 2]) await send([1, 2].map((at) => 100 * file + 5 * day + at));
      await Promise.all(received);
      // On other days, all comes at once.
      if (day % 2 === 0) await world.drained();
      await world.advance(world.clock.now.getUTCDay() === 5 ? 3 : 1);
      if (day % IMPORT_EVERY === 0) await world.importAll();
    };
    const becomes = (name: 'payouts' | 'payments', ids: string[], status: string) =>
      eventually(`${name} that are ${status}`, async () => {
        const filter = { _id: { $in: ids }, status: { $ne: status } };
        return (await service.collection<{ _id: string }>(name).countDocuments(filter)) === 0;
      });

    test(`counts each movement once, and has the bank’s balance (REWRITER_SEED=${seed})`, async () => {
      const listRare = () => rewriter.counts().filter(([, count]) => count < TIMES);
      for (let day = 0; day < DAYS_MAX && listRare().length > 0; day += 1) await workOneDay(day);
      expect(listRare()).toEqual([]);
      await rewriter.release(world.inDir);
      await world.drained();
      await world.importAll();
      await becomes('payouts', payouts, 'completed');
      await becomes('payments', payments, 'settled');
      const balance = (await world.bank.account('ACME')).balance - rewriter.charged();
      const day = await run('reconciliation', 'show', '--connector', 'sepa', '--env', 'sandbox');
      const matched = { ours_only: [], theirs_only: [], different: [] };
      expect(day).toMatchObject({ closed: true, closing: balance, ...matched });
      expect((await run('attention', 'list')).data).toEqual([]);
      expect((await run('movement', 'list', '--open')).data).toEqual([]);
      expect((await run('sepa', 'inbound', 'list', '--refused')).data).toEqual([]);
    });
  });
});
