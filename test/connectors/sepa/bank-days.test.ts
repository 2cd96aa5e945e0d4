import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { payoutWorkflowId } from '../../../src/domain/payout/payout';
import { shortenId } from '../../../src/service/sepa/book';
import { eventually } from '../../support/http';
import { describeWithBank } from '../../support/mock-bank';
import { useService } from '../../support/service';
import { writeNotification } from './bank-files';
import { makePrefix, ROUTES, usePayer, useSepa } from './world';

const DAY_MS = 86_400_000;
const IBANS = { closed: 'NL84MOCK0000000003', unknownBank: 'NL57MOCK0000000004' };

describeWithBank('days and answers of the bank', () => {
  const prefix = makePrefix();
  const service = useService({ live: { connectors: '', prefix }, tests: ROUTES });
  const payer = usePayer(service);
  const world = useSepa(service, prefix);

  const valueDate = async (id: string) => {
    const [callback] = await service.stores.callbacks.forResource(id);
    return z.object({ value_date: z.string() }).loose().parse(callback?.body).value_date;
  };
  const codes = async () => {
    const imports = await world.importAll();
    return imports.flatMap(({ refusal }) => (refusal === null ? [] : [refusal.code]));
  };
  const passDay = async (days = 1) => {
    const payout = await payer.submit();
    await world.send();
    await payer.becomes(payout, 'completed');
    await world.advance(days);
    await world.drained();
    return payout;
  };

  test('four payouts of one file fail with the codes of the bank, the others go on, and money is back once', async () => {
    const [before] = await payer.balance();
    const to = async (iban: string) => (await payer.createRecipient({ iban })).body.id;
    const submit = async (iban: string, amount: number) =>
      await payer.submit({ recipient_id: await to(iban), amount });
    const own = 'DE89370400440532013000';
    const good = await payer.submit({ amount: 400 });
    const failing = {
      AC04: await submit(IBANS.closed, 500),
      RC01: await submit(IBANS.unknownBank, 600),
      AC01: await submit(own, 700),
      AM04: await submit(own, 9_000),
    };
    // Enough for all but the last.
    await world.bank.patch('ACME', { behaviour: 'insufficient-funds', balance: 2_000 });
    const [id = ''] = await world.cut();
    const path = join(world.bank.drop, `pain.001.001.09-${id}.xml`);
    // A digit is lost on the way: no payout with wrong check digits is created.
    const wrong = readFileSync(path, 'utf8').replace(
      new RegExp(`(${shortenId(failing.AC01)}</EndToEndId>.*?<IBAN>DE)89`),
      '$198',
    );
    writeFileSync(path, wrong);
    await world.bank.scan();
    for (const [code, payout] of Object.entries(failing)) {
      expect(await payer.becomes(payout, 'failed')).toMatchObject({ failure: { code } });
    }
    await payer.becomes(good, 'completed');
    await world.drained();
    expect(await payer.balance()).toEqual([before - 400, 0]);
    expect(await world.fileState(id)).toBe('booked');
    await world.bank.patch('ACME', { behaviour: 'accept' });
    await world.advance(1);
    await world.drained();
    await world.importAll();
  });

  test('a statement that comes twice counts once, also in other bytes', async () => {
    const payout = await passDay();
    expect(await codes()).toEqual([]);
    const [name = ''] = world
      .listIn('processed')
      .filter((each) => /^camt[.]053/.test(each))
      .slice(-1);
    const xml = world.readIn('processed', name);
    world.deliver('again.xml', xml);
    world.deliver('other-bytes.xml', `${xml}\n`);
    await world.drained();
    expect(world.readIn('refused', 'again.xml.txt')).toMatch(/^file_repeated: /);
    const refused = await eventually('the statement in other bytes', async () => {
      const imported = await codes();
      return imported.length > 0 && imported;
    });
    expect(refused).toEqual(['statement_conflict']);
    expect(await world.line(payout)).toMatchObject({ state: 'booked', others: [] });
  });

  test('after the cut-off of a Friday a file asks for Monday, and a holiday of the bank is waited for', async () => {
    await world.bank.call('POST', '/_mock/advance?to=2026-10-09');
    await world.bank.call('PUT', '/_mock/holidays', ['2026-10-12']);
    world.clock.now = new Date('2026-10-09T14:00:00Z');
    const payout = await payer.submit();
    const id = await world.send();
    expect((await world.show(id)).file.execution_day).toBe('2026-10-12');
    await world.advance(3);
    await world.drained();
    expect((await payer.read(payout)).status).toBe('submitted');
    await world.advance(1);
    await payer.becomes(payout, 'completed');
    expect(await valueDate(payout)).toBe('2026-10-13');
    await world.drained();
    expect(await codes()).toEqual([]);
  });

  test('after a restart that sets the clock of the bank back no payout is paid twice', async () => {
    const before = await payer.submit();
    await world.cut();
    await world.bank.restart('2026-10-08T09:30');
    await world.bank.scan();
    const after = await payer.submit();
    await world.send();
    await world.advance(7);
    world.clock.now = new Date('2026-10-15T09:30:00Z');
    for (const payout of [before, after]) {
      await payer.becomes(payout, 'completed');
      expect(await world.bank.payments(shortenId(payout))).toHaveLength(1);
      expect(await world.line(payout)).toMatchObject({ state: 'booked', others: [] });
    }
    await world.drained();
    const [, reserved] = await payer.balance();
    expect(reserved).toBe(0);
    expect(await codes()).toEqual([]);
  });

  test('our copy of a file is erased 90 days after its end; what it paid stays', async () => {
    const payout = await payer.submit();
    const id = await world.send();
    await payer.becomes(payout, 'completed');
    await world.drained();
    const file = await world.book.files.findOne({ _id: id });
    const ended = Number(file?.ended_at);
    const round = async () => {
      // The second answer comes after a whole round.
      await world.cut();
      await world.cut();
      return await world.book.files.findOne({ _id: id });
    };
    world.clock.now = new Date(ended + 90 * DAY_MS - 1_000);
    expect((await round())?.bytes).not.toBeNull();
    world.clock.now = new Date(ended + 90 * DAY_MS + 1_000);
    expect(await round()).toMatchObject({ bytes: null, state: 'booked', sha256: file?.sha256 });
    expect(await world.line(payout)).toMatchObject({ state: 'booked', amount: 1_000 });
    world.clock.now = new Date(ended);
  });

  test('a jump of the balance is an alarm with its amount', async () => {
    const { balance } = await world.bank.account('ACME');
    await world.bank.patch('ACME', { balance: balance + 12_345 });
    await passDay();
    const [refusal] = (await world.importAll()).flatMap((each) => each.refusal ?? []);
    expect(refusal).toMatchObject({
      code: 'statement_gap',
      message: expect.stringContaining('€123.45 differ'),
    });
  });

  test('a return after more than 60 days is held, and not lost', async () => {
    const payout = await payer.submit({ amount: 1_500 });
    await world.send();
    await payer.becomes(payout, 'completed');
    const [available] = await payer.balance();
    await service.temporal.workflow.getHandle(payoutWorkflowId(payout)).result();
    world.clock.now = new Date();
    const completed_at = new Date(world.clock.now.getTime() - 61 * DAY_MS).toISOString();
    const payouts = service.mongo.db(service.database).collection<{ _id: string }>('payouts');
    await payouts.updateOne({ _id: payout }, { $set: { completed_at } });
    const returned = { id: payout, amount: '15.00', reference: 'LATE-1', returned: 'MD07' };
    world.deliver('late.xml', writeNotification({ ...returned, message: 'L-1' }));
    const held = await eventually('a return that is too late', async () => {
      const stored = await service.stores.payouts.get(payout);
      return stored?.attention === 'return_too_late' && stored;
    });
    expect([held.status, held.returns_held]).toEqual([
      'completed',
      [expect.objectContaining({ id: 'LATE-1', amount: 1_500, is_return: true })],
    ]);
    expect(await payer.balance()).toEqual([available, 0]);
  });
});
