import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { shortenId } from '../../../src/service/sepa/book';
import { describeWithBank } from '../../support/mock-bank';
import { useService } from '../../support/service';
import { IBAN, makePrefix, ROUTES, usePayer, useSepa } from './world';

describeWithBank('payouts by SEPA files', () => {
  const prefix = makePrefix();
  const service = useService({ live: { connectors: '', prefix }, tests: ROUTES });
  const payer = usePayer(service);
  const world = useSepa(service, prefix);

  const atBank = (id: string) => world.bank.payments(shortenId(id));

  test('a file pays its payouts: submitted, then completed with the value date', async () => {
    const [available] = await payer.balance();
    const first = await payer.submit({ amount: 1_234, reference: 'Lön 11/2026' });
    const second = await payer.submit({ amount: 2_001 });
    expect((await payer.balance())[1]).toBe(3_235);
    const before = (await world.bank.account('ACME')).balance;
    const id = await world.send();
    for (const payout of [first, second]) {
      expect(await payer.becomes(payout, 'completed')).toMatchObject({ status: 'completed' });
      const [callback] = await service.stores.callbacks.forResource(payout);
      expect(callback).toMatchObject({
        name: 'completed',
        body: { value_date: '2026-10-05', bank_reference: expect.stringMatching(/^MB-PMT/) },
      });
    }
    await world.drained();
    expect(await world.fileState(id)).toBe('booked');
    expect(await payer.balance()).toEqual([available - 3_235, 0]);
    expect((await world.bank.account('ACME')).balance).toBe(before - 3_235);
    expect(readdirSync(join(world.bank.drop, 'processed'))).toContain(`pain.001.001.09-${id}.xml`);
  });

  test('statements of the bank reconcile with the ledger to the cent', async () => {
    await payer.becomes(await payer.submit({ amount: 500 }), 'submitted');
    await world.send();
    await world.advance(1);
    await world.drained();
    const imports = await world.importAll();
    expect(imports.map(({ refusal }) => refusal)).toEqual(imports.map(() => null));
    const statements = imports.flatMap((each) => each.statements);
    const days = statements.filter(({ kind }) => kind === 'statement');
    expect(days).toEqual([
      expect.objectContaining({ account: IBAN, day: '2026-10-05', lines: 3, matched: 3, open: 0 }),
    ]);
    expect(await world.importAll()).toEqual([]);
  });

  test('a rejected payout fails with the code of the bank, and the others go on', async () => {
    const { body: closed } = await payer.createRecipient({ iban: 'NL84MOCK0000000003' });
    const rejected = await payer.submit({ recipient_id: closed.id, amount: 700 });
    const good = await payer.submit({ amount: 800 });
    const [available] = await payer.balance();
    await world.bank.patch('INITECH', { behaviour: 'closed-account' });
    const id = await world.send();
    expect(await payer.becomes(rejected, 'failed')).toMatchObject({
      failure: { code: 'AC04', message: 'The bank rejected the transfer.' },
    });
    await payer.becomes(good, 'completed');
    await world.drained();
    expect(await payer.balance()).toEqual([available + 700, 0]);
    expect(await world.fileState(id)).toBe('booked');
  });

  test('a refused file fails no payout: its lines go into the next one, with a new id', async () => {
    await world.bank.patch('ACME', { behaviour: 'reject-file' });
    const payout = await payer.submit({ amount: 900 });
    const refused = await world.send();
    await world.drained();
    expect(await world.fileState(refused)).toBe('refused');
    expect((await payer.read(payout)).status).toBe('submitted');
    expect(await world.activities().lookUpPayout({ payout_id: payout })).toMatchObject({
      outcome: 'submitted',
    });
    expect(await world.cut()).toEqual([]);
    await world.bank.patch('ACME', { behaviour: 'accept' });
    expect(await world.resend(refused)).toBe(1);
    expect(await world.resend(refused)).toBe(0);
    const next = await world.send();
    expect(next).not.toBe(refused);
    await payer.becomes(payout, 'completed');
    expect(await world.line(payout)).toMatchObject({ file_id: next, former_files: [refused] });
    const [paid, ...others] = await atBank(payout);
    expect([paid?.status ?? paid?.outcome, others.length]).toEqual([expect.any(String), 0]);
    await expect(world.resend(next)).rejects.toThrow('only the payouts of a refused file');
  });

  test('a silent bank completes by its notification alone', async () => {
    await world.bank.patch('ACME', { behaviour: 'silent' });
    const payout = await payer.submit();
    const id = await world.send();
    await payer.becomes(payout, 'completed');
    await world.bank.patch('ACME', { behaviour: 'accept' });
    expect((await world.show(id)).file).toMatchObject({ state: 'booked', bank_status: null });
  });

  test('a return in three messages counts once, with the code of the bank', async () => {
    const payout = await payer.submit({ amount: 1_500 });
    const end_to_end_id = shortenId(payout);
    const parameters = { days: 2, reason: 'MD07', end_to_end_id };
    await world.bank.patch('ACME', { behaviour: 'return-later', parameters });
    await world.send();
    await payer.becomes(payout, 'completed');
    const [available] = await payer.balance();
    await world.advance(3);
    expect(await payer.becomes(payout, 'returned')).toMatchObject({
      returned: { code: 'MD07', reason: 'The recipient’s bank sent the transfer back.' },
    });
    await world.drained();
    await world.bank.patch('ACME', { behaviour: 'accept', parameters: {} });
    expect(await payer.balance()).toEqual([available + 1_500, 0]);
    expect(await world.line(payout)).toMatchObject({ state: 'returned', others: [] });
    expect(world.listIn('processed').some((name) => name.startsWith('pacs.004'))).toBe(true);
    await world.importAll();
  });

  test('a payout is cancelled while it waits, and too late once a file carries it', async () => {
    const waits = await payer.submit();
    const left = await payer.submit();
    const { cancelPayout, lookUpPayout, sendPayout } = world.activities();
    expect(await cancelPayout({ payout_id: waits })).toEqual({ outcome: 'cancelled' });
    const id = await world.send();
    expect(await cancelPayout({ payout_id: left })).toEqual({ outcome: 'too_late' });
    expect((await world.show(id)).rows.map(({ payout_id }) => payout_id)).toEqual([left]);
    expect(await lookUpPayout({ payout_id: waits })).toMatchObject({
      outcome: 'refused',
      code: 'cancelled',
    });
    const again = {
      ...{ payout_id: waits, version: 1, amount: 1_000, currency: 'EUR', livemode: false },
      method: 'sepa_credit_transfer',
    };
    expect(await sendPayout(again)).toMatchObject({ outcome: 'refused', code: 'cancelled' });
  });

  test('what no file can carry is refused at creation, by its field', async () => {
    const { body: cyrillic } = await payer.createRecipient({ last_name: 'Иванова' });
    const { body: long } = await payer.createRecipient({ last_name: 'L'.repeat(70) });
    const refusal = async (changes: object) => {
      const { status, body } = await payer.pay(changes);
      const { code, details } = body.error;
      return [
        status,
        code,
        details.map((each: { field: string; code: string }) => [each.field, each.code]),
      ];
    };
    const code = 'rail_requirements_not_met';
    expect(await refusal({ recipient_id: cyrillic.id })).toEqual([
      422,
      code,
      [['last_name', 'characters_not_supported']],
    ]);
    expect(await refusal({ recipient_id: long.id, reference: 'x'.repeat(141) })).toEqual([
      422,
      code,
      [
        ['last_name', 'too_long'],
        ['reference', 'too_long'],
      ],
    ]);
    expect(await refusal({ reference: 'a\u0001b<&>' })).toEqual([
      422,
      code,
      [['reference', 'characters_not_supported']],
    ]);
  });

  test('the names of recipients are in the bank’s files and nowhere in the book or the log', async () => {
    const { body } = await payer.createRecipient({ last_name: 'Ünverwechselbar' });
    const payout = await payer.submit({ recipient_id: body.id, reference: 'Secret 4711' });
    const id = await world.send();
    await payer.becomes(payout, 'completed');
    await world.drained();
    const xml = readFileSync(
      join(world.bank.drop, 'processed', `pain.001.001.09-${id}.xml`),
      'utf8',
    );
    expect(xml).toContain('Unverwechselbar');
    const { lines, files, inbound } = world.book;
    const stored = await Promise.all([lines, files, inbound].map((each) => each.find().toArray()));
    for (const text of [JSON.stringify(stored), world.logged.join('')]) {
      expect(text).not.toContain('nverwechselbar');
      expect(text).not.toContain('Secret 4711');
      expect(text).not.toContain('DE8937');
    }
  });
});
