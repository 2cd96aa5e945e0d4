import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { DAY_MS } from '../../api/clock-setting';
import { dumpDatabase, restoreDatabase } from '../../support/dump';
import { eventually } from '../../support/eventually';
import { useHook } from '../../support/hook';
import { describeWithBank } from '../../support/mock-bank';
import { IBAN } from './bank-files';
import { useSepa } from './world';

const AMOUNT = 4_950;
/** Time that a cancellation gives the bank. */
const BANK_MS = 3_000;

// The days of the bank only go on, so the order of the stories matters.
describeWithBank('with the connector of SEPA files', () => {
  const { service, world, payer, commands } = useSepa();
  const hook = useHook(service);

  describe('a payment by transfer', () => {
    const read = async (id: string) => (await payer.get(`/v1/payments/${id}`)).body;
    const callbacks = async (id: string) =>
      (await service.stores.callbacks.forResource(id)).map(({ name, body }) => [
        name,
        body.bank_reference,
      ]);

    test('settles with the whole amount, and a webhook says so', async () => {
      await hook.register(payer);
      const [before] = await payer.balance();
      const { id, instructions, reference } = await payer.openTransfer(AMOUNT);
      expect(instructions).toEqual({
        ...{ iban: IBAN, account_holder: 'ACME Corporation', bic: 'MOCKNL2A', amount: AMOUNT },
        reference: expect.stringMatching(/^RF[0-9]{18}$/),
      });
      const { id: number } = await world.bank.credit({ amount: AMOUNT, reference });
      await payer.settled(id);
      expect((await payer.balance())[0]).toBe(before + AMOUNT);
      expect(await callbacks(id)).toEqual([['settled', `MB-RCV-${number}`]]);
      const types = () => hook.events(id).map(({ type }) => type);
      await eventually('the webhook', async () => types().includes('payment.settled'));
      const stored = JSON.stringify(await service.stores.payments.get(id));
      expect(stored + world.logged.join('')).not.toContain('Zephyrine');
      // The statement of the day reports it again.
      await world.advance(1);
      expect(await world.importRefusals()).toEqual([]);
      expect(await callbacks(id)).toHaveLength(1);
    });

    test('is paid where the customer has transferred before the merchant cancels', async () => {
      let isHeld = true;
      await world.restart({}, (deliver) => async (...report) => {
        if (isHeld) throw new Error('killed');
        return await deliver(...report);
      });
      // Where the bank is not heard within three seconds, the payment is cancelled.
      const { id, refusal } = await eventually('a timely answer of the bank', async () => {
        const { id, reference } = await payer.openTransfer(AMOUNT);
        await world.bank.credit({ amount: AMOUNT, reference });
        await world.drained();
        const began = performance.now();
        const { status, body } = await payer.post(`/v1/payments/${id}/cancel`);
        if (status === 200) expect(performance.now() - began).toBeGreaterThan(BANK_MS);
        return status !== 200 && { id, refusal: [status, body.error?.code] };
      });
      expect(refusal).toEqual([422, 'cannot_cancel']);
      expect((await read(id)).status).toBe('authorized');
      isHeld = false;
      await payer.settled(id);
      await world.restart();
    });
  });

  describe('a payout', () => {
    test('stays in the book where our copy of its file is erased, 90 days after the end', async () => {
      const payout = await payer.complete();
      const { file_id } = (await world.line(payout)) ?? {};
      const readFile = () => world.book.files.findOne({ _id: String(file_id) });
      const { ended_at, sha256 } = (await readFile()) ?? {};
      const ended = Number(ended_at);
      const afterRound = async () => {
        // The second answer comes after a whole round.
        await world.cut();
        await world.cut();
        return await readFile();
      };
      world.clock.now = new Date(ended + 90 * DAY_MS - 1_000);
      expect((await afterRound())?.bytes).not.toBeNull();
      world.clock.now = new Date(ended + 90 * DAY_MS + 1_000);
      expect(await afterRound()).toMatchObject({ bytes: null, state: 'booked', sha256 });
      expect(await world.line(payout)).toMatchObject({ state: 'booked', amount: 1_000 });
      world.clock.now = new Date(ended);
    });
  });

  // Last: the databases are put back.
  describe('after a restore of MongoDB, the connector', () => {
    const release = ['connector', 'release', 'sepa', '--env', 'sandbox', '--after-restore'];
    const WHY = ['--reason', 'Ticket 1: compared'];
    const readStop = async () => (await service.stores.capabilities.get('sepa'))?.stopped;
    const untilStopped = () => eventually('a stop', readStop);
    const untilReleased = () => eventually('the report', async () => (await readStop()) === null);
    /** Asks for a file without waiting for it. */
    const ask = () =>
      world.book.requests.insertOne({ _id: randomUUID(), at: new Date(), files: null });
    /** Lets the connector go through its whole work once, which takes the bank’s files also then. */
    const work = async () => {
      world.deliver(`${randomUUID()}.txt`, `Dear customer ${randomUUID()}`);
      await world.drained();
    };
    const countFiles = (id: string) => world.listFiles(id).length;

    test.each([
      ['that was stopped meanwhile', true],
      ['that ran meanwhile', false],
    ])('%s sends no file until an operator releases it', async (_which, isStopped) => {
      const sent = await payer.submit();
      const dbs = [service.db, world.ownDb];
      const dumps = await Promise.all(dbs.map(dumpDatabase));
      const [file = ''] = await world.cut();
      if (isStopped) await world.stop();
      for (const [at, db] of dbs.entries()) await restoreDatabase(db, dumps[at] ?? new Map());
      await ask();
      if (isStopped) await world.start();
      const stop = await untilStopped();
      expect(stop.reason).toContain(file);
      const later = await payer.begin();
      await work();
      expect([countFiles(sent), countFiles(later)]).toEqual([1, 0]);
      const { stdout } = await commands.cli('connector', 'health', 'sepa', '--json');
      expect(JSON.parse(stdout)).toMatchObject({ healthy: false, stopped: { id: stop.id } });
      expect(world.logged.join('')).toContain('"code":"connector_stopped"');
      // What the bank has executed is ended before the release.
      await commands.json('payout', 'act', sent, 'mark_completed', '--operator', 'ada', ...WHY);
      const released = { connector: 'sepa', changed: true };
      expect(await commands.json(...release, ...WHY)).toMatchObject(released);
      await payer.becomes(later, 'submitted');
      await eventually('a file', async () => {
        await world.cut();
        return countFiles(later) === 1;
      });
      expect(countFiles(sent)).toBe(1);
      await untilReleased();
      expect((await commands.refusal(...release, ...WHY)).code).toBe('connector_not_stopped');
      // The acknowledged file stops nothing anymore.
      await world.restart();
      const last = await payer.submit();
      await world.cut();
      expect(countFiles(last)).toBe(1);
    });

    test('sends a file once that was noted and not uploaded before its end', async () => {
      const payout = await payer.submit();
      await world.restart({
        upload: async (_name, _bytes, _verified, mayLeave) => {
          await mayLeave();
          throw new Error('killed');
        },
      });
      await ask();
      await eventually('the note', async () => world.readState().at(-1)?.note === 'leaving');
      await world.restart();
      await eventually('the file', async () => countFiles(payout) === 1);
      await world.cut();
      expect(countFiles(payout)).toBe(1);
      await untilReleased();
    });

    test('does not upload again what left before a restore to its cut', async () => {
      const payout = await payer.submit();
      const [id = ''] = await world.cut();
      await world.stop();
      await world.book.files.updateOne({ _id: id }, { $set: { state: 'cut', sent_at: null } });
      world.drop(id);
      await world.start();
      await untilStopped();
      await commands.json(...release, ...WHY);
      await eventually('the state', async () => (await world.fileState(id)) === 'sent');
      expect(countFiles(payout)).toBe(0);
    });

    test('is stopped where its state file is missing, and starts with an empty book', async () => {
      await world.stop();
      rmSync(world.statePath);
      await world.start();
      expect((await untilStopped()).reason).toContain('its state file is missing');
      await world.stop();
      rmSync(world.statePath);
      await world.ownDb.dropDatabase();
      await world.start();
      const payout = await payer.submit();
      await world.cut();
      expect(countFiles(payout)).toBe(1);
    });
  });
});
