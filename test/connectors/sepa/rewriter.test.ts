import { randomInt } from 'node:crypto';
import { eventually } from '../../support/eventually';
import { describeWithBank } from '../../support/mock-bank';
import { createRewriter } from './rewriter';
import { useSepa } from './world';

/** `REWRITER_SEEDS=20` runs as many, `REWRITER_SEED=7` repeats one. */
const SEEDS = Array.from({ length: Number(process.env['REWRITER_SEEDS'] ?? 1) }, () =>
  Number(process.env['REWRITER_SEED'] ?? randomInt(2 ** 31)),
);
const DAYS_MAX = 60;
const IMPORT_EVERY = 4;
/** Hundreds of workflows may end at once, on the last day. */
const END_MS = 120_000;

jest.setTimeout(600_000);

describe.each(SEEDS)('with seed %i', (seed) => {
  describeWithBank('a bank that writes otherwise what it may write otherwise', () => {
    const rewriter = createRewriter(seed);
    const { service, world, payer, commands } = useSepa((from, to) =>
      rewriter.relay(from, to, world.bank.drop),
    );
    const run = async (...args: string[]) => {
      const { stdout, stderr } = await commands.cli(...args, '--json');
      return JSON.parse(stdout || stderr);
    };
    const payouts: string[] = [];
    const payments: string[] = [];

    const receive = async (amount: number): Promise<void> => {
      const { id, reference } = await payer.openTransfer(amount);
      await world.bank.credit({ amount, reference });
      payments.push(id);
    };
    const send = async (amounts: readonly number[]): Promise<void> => {
      const submitted = amounts.map((amount) => payer.submit({ amount }));
      payouts.push(...(await Promise.all(submitted)));
      await world.cut();
      await world.bank.scan();
    };
    const sendInstant = async (amount: number): Promise<void> => {
      const id = await payer.submit({ amount, method: 'sepa_instant' });
      const { file_id } = await world.lineBecomes(id, 'in_file');
      await world.fileBecomes(`${file_id}`, 'sent');
      payouts.push(id);
    };
    const workOneDay = async (day: number): Promise<void> => {
      const received = [1, 2, 3].map((at) => receive(1_000 + 10 * day + at));
      const instant = sendInstant(300 + 5 * day);
      for (const file of [1, 2]) await send([1, 2].map((at) => 100 * file + 5 * day + at));
      await Promise.all([...received, instant]);
      await world.bank.scan();
      // On other days, all comes at once.
      if (day % 2 === 0) await world.drained();
      await world.advance(world.clock.now.getUTCDay() === 5 ? 3 : 1);
      if (day % IMPORT_EVERY === 0) await world.importAll();
    };
    const becomes = (name: 'payouts' | 'payments', ids: string[], status: string) => {
      const others = { _id: { $in: ids }, status: { $ne: status } };
      return eventually(
        `${name} that are ${status}`,
        async () => (await service.collection<{ _id: string }>(name).countDocuments(others)) === 0,
        END_MS,
      );
    };

    test(`counts each movement once, and has the bank’s balance (REWRITER_SEED=${seed})`, async () => {
      for (let day = 0; day < DAYS_MAX && rewriter.listRare().length > 0; day += 1) {
        await workOneDay(day);
      }
      expect(rewriter.listRare()).toEqual([]);
      await rewriter.release(world.inDir);
      await world.drained();
      await world.importAll();
      await becomes('payouts', payouts, 'completed');
      await becomes('payments', payments, 'settled');
      const balance = (await world.bank.account('ACME')).balance - rewriter.charged();
      // Corrections of a completed payout are applied later.
      let day: { closed?: boolean } = {};
      const readDay = async () => {
        day = await run('reconciliation', 'show', '--connector', 'sepa', '--env', 'sandbox');
        return day.closed;
      };
      await eventually('a closed day', readDay).catch(() => undefined);
      const matched = { ours_only: [], theirs_only: [], different: [] };
      expect(day).toMatchObject({ closed: true, closing: balance, ...matched });
      expect((await run('attention', 'list')).data).toEqual([]);
      expect((await run('movement', 'list', '--open')).data).toEqual([]);
      expect((await run('sepa', 'inbound', 'list', '--refused')).data).toEqual([]);
    });
  });
});
