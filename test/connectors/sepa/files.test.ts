import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeWhole } from '../../../connectors/sepa/files';
import { shortenId } from '../../../src/service/sepa/book';
import { expectRefusal } from '../../api/refusal';
import { eventually } from '../../support/http';
import { describeWithBank } from '../../support/mock-bank';
import { IBAN, writeNotification, writeRefusal } from './bank-files';
import { useSepa } from './world';

const SUBMITTED = { outcome: 'submitted' };
const CONFIRMED = { bank_confirmed_not_executed: true };

// The bank keeps its days and its balance, so the order of the stories matters.
describeWithBank('the connector of SEPA files', () => {
  const { service, world, payer } = useSepa();

  const listMovements = (id: string) => service.stores.movements.forResource(id);
  const countPaid = async (id: string) => (await world.bank.payments(shortenId(id))).length;
  const listCompletions = async (id: string) =>
    (await service.stores.callbacks.forResource(id)).filter(({ name }) => name === 'completed');
  const lookUp = (payout_id: string) => world.activities().lookUpPayout({ payout_id });
  const cancel = (payout_id: string) => world.activities().cancelPayout({ payout_id });
  const cutOne = async () => {
    const [id = ''] = await world.cut();
    return id;
  };
  const fileBecomes = (id: string, state: string) =>
    eventually(`the file to be ${state}`, async () => (await world.fileState(id)) === state);
  const untilRefused = (name: string) =>
    eventually(`the refusal of ${name}`, async () => {
      const isRefused = world.listIn('refused').includes(`${name}.txt`);
      return isRefused && world.readIn('refused', `${name}.txt`);
    });
  const kill = () => Promise.reject(new Error('killed'));

  describe('on ordinary days', () => {
    test('completes the payouts of a file with the value date of the bank', async () => {
      const [available] = await payer.balance();
      const payouts = await Promise.all([
        payer.submit({ amount: 1_234, reference: 'Lön 11/2026' }),
        payer.submit({ amount: 2_001 }),
      ]);
      expect((await payer.balance())[1]).toBe(3_235);
      const before = (await world.bank.account('ACME')).balance;
      const id = await world.send();
      for (const payout of payouts) {
        await payer.becomes(payout, 'completed');
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
      expect(readdirSync(join(world.bank.drop, 'processed'))).toContain(
        `pain.001.001.09-${id}.xml`,
      );
    });

    test('gives statements that match the ledger to the cent', async () => {
      await payer.submit({ amount: 500 });
      await world.send();
      await world.advance(1);
      const imports = await world.importAll();
      expect(imports.map(({ refusal }) => refusal)).toEqual(imports.map(() => null));
      const statements = imports.flatMap((each) => each.statements);
      const day = { account: IBAN, day: '2026-10-05', lines: 3, matched: 3, open: 0 };
      expect(statements.filter(({ kind }) => kind === 'statement')).toEqual([
        expect.objectContaining(day),
      ]);
      expect(await world.importAll()).toEqual([]);
    });

    test('reports a payout that the bank executes twice once, for an operator', async () => {
      const payout = await payer.submit();
      const file = await world.send();
      await payer.becomes(payout, 'completed');
      await world.drained();
      const before = (await world.bank.account('ACME')).balance;
      // The bank takes the same transfers under another id for a new file.
      const again = world.readSent(file).replaceAll(file, `X${file}`);
      writeFileSync(join(world.bank.drop, `again-${file}.xml`), again);
      await world.bank.scan();
      await payer.needsAttention(payout, 'second_completion');
      expect(await countPaid(payout)).toBe(2);
      expect((await world.bank.account('ACME')).balance).toBe(before - 1_000);
      const movement = { direction: 'out', amount: 1_000, currency: 'EUR' };
      const both = [
        { ...movement, state: 'applied' },
        { ...movement, state: 'suspense', reason: 'second_completion' },
      ];
      expect(await listMovements(payout)).toMatchObject(both);
      await world.restart();
      // The statement of the day reports both movements again.
      await world.advance(1);
      expect(await world.importRefusals()).toEqual([]);
      const ids = (await listCompletions(payout)).map(({ body }) => body.callback_id);
      expect(ids).toEqual([
        `sepa:booked:${payout}`,
        expect.stringMatching(`^sepa:booked:${payout}:MB-PMT-[0-9]+:1000EUR$`),
      ]);
      expect(await listMovements(payout)).toMatchObject(both);
      expect(await world.line(payout)).toMatchObject({ others: [{ kind: 'booked' }] });
    });

    test('refuses a statement behind a missing one, and names the days, until that comes', async () => {
      await payer.completeOnDay();
      expect(await world.importRefusals()).toEqual([]);
      await payer.completeOnDay();
      // The bank's file is lost.
      const lost = { 'statement.imported_at': { $type: 'null' as const }, message: /^camt[.]053/ };
      const missing = (await world.book.inbound.findOne(lost))?.name ?? '';
      expect((await world.book.inbound.deleteMany(lost)).deletedCount).toBe(1);
      await payer.completeOnDay();
      expect(await world.importRefusals()).toEqual(['statement_gap']);
      const name = world.listIn('refused').find((each) => /^camt[.]053.*txt$/.test(each)) ?? '';
      expect(world.readIn('refused', name)).toMatch(/^statement_gap: .*2026-10-/);
      expect(await world.importAll()).toEqual([]);
      world.deliver(missing, world.readIn('processed', missing));
      await world.drained();
      const [late, behind, ...more] = await world.importAll();
      expect([late, behind]).toMatchObject([{ refusal: null }, { refusal: null }]);
      expect(more).toEqual([]);
      expect(world.listIn('processed')).toContain(name.replace('.txt', ''));
      expect(world.listIn('refused')).not.toContain(name);
      // The next Monday: no bank works on the days between.
      await world.advance(2);
    });

    test('fails a payout that the bank rejects with the code of the bank, and sends the others', async () => {
      const recipient_id = await payer.createRecipient({ iban: 'NL84MOCK0000000003' });
      const [rejected, good] = await Promise.all([
        payer.submit({ recipient_id, amount: 700 }),
        payer.submit({ amount: 800 }),
      ]);
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

    test('fails no payout of a refused file, and sends it in a new file when an operator resends', async () => {
      await world.bank.patch('ACME', { behaviour: 'reject-file' });
      const payout = await payer.submit({ amount: 900 });
      const refused = await world.send();
      await world.drained();
      expect(await world.fileState(refused)).toBe('refused');
      expect((await payer.read(payout)).status).toBe('submitted');
      expect(await lookUp(payout)).toMatchObject(SUBMITTED);
      expect(await world.cut()).toEqual([]);
      await world.bank.patch('ACME', { behaviour: 'accept' });
      expect(await world.resend(refused)).toBe(1);
      expect(await world.resend(refused)).toBe(0);
      const next = await world.send();
      expect(next).not.toBe(refused);
      await payer.becomes(payout, 'completed');
      expect(await world.line(payout)).toMatchObject({ file_id: next, former_files: [refused] });
      expect(await countPaid(payout)).toBe(1);
      await expect(world.resend(next)).rejects.toThrow('only the payouts of a refused file');
    });

    test('completes a payout by the notification alone where the bank answers no file', async () => {
      await world.bank.patch('ACME', { behaviour: 'silent' });
      const payout = await payer.submit();
      const id = await world.send();
      await payer.becomes(payout, 'completed');
      await world.bank.patch('ACME', { behaviour: 'accept' });
      expect((await world.show(id)).file).toMatchObject({ state: 'booked', bank_status: null });
    });

    test('counts a return that three messages report once, with the code of the bank', async () => {
      const payout = await payer.submit({ amount: 1_500 });
      const parameters = { days: 2, reason: 'MD07', end_to_end_id: shortenId(payout) };
      await world.bank.patch('ACME', { behaviour: 'return-later', parameters });
      await world.send();
      await payer.becomes(payout, 'completed');
      const [available] = await payer.balance();
      await world.advance(3);
      expect(await payer.becomes(payout, 'returned')).toMatchObject({
        returned: { code: 'MD07', reason: 'The recipient’s bank sent the transfer back.' },
      });
      await world.bank.patch('ACME', { behaviour: 'accept', parameters: {} });
      expect(await payer.balance()).toEqual([available + 1_500, 0]);
      expect(await world.line(payout)).toMatchObject({ state: 'returned', others: [] });
      expect(world.listIn('processed').some((name) => name.startsWith('pacs.004'))).toBe(true);
    });

    test('holds a second return under another reference', async () => {
      const payout = await payer.complete();
      const sendBack = (reference: string) => {
        const returned = { id: payout, reference, message: reference, returned: 'MD07' };
        world.deliver(`${reference}.xml`, writeNotification(returned));
      };
      sendBack('BACK-1');
      await payer.becomes(payout, 'returned');
      const [available] = await payer.balance();
      sendBack('BACK-2');
      await payer.needsAttention(payout, 'second_return');
      expect((await listMovements(payout)).at(-1)).toMatchObject({
        ...{ direction: 'in', bank_reference: 'BACK-2', amount: 1_000, state: 'suspense' },
      });
      expect(await payer.balance()).toEqual([available, 0]);
    });

    test('does not return a payout whose debit the bank reverses and books again', async () => {
      const payout = await payer.complete();
      const [available] = await payer.balance();
      const book = (reference: string, reversal: boolean) => {
        const notification = { id: payout, reference, message: reference, reversal };
        world.deliver(`${reference}.xml`, writeNotification(notification));
      };
      book('TAKEN', true);
      expect(await payer.needsAttention(payout, 'debit_reversed')).toMatchObject({
        status: 'completed',
      });
      book('AGAIN', false);
      const states = async () => (await listMovements(payout)).map(({ state }) => state);
      await eventually('both to cancel out', async () => {
        const stored = await service.stores.payouts.get(payout);
        return stored?.attention === null && (await states()).length === 3;
      });
      expect(await states()).toEqual(['applied', 'resolved', 'applied']);
      expect(await payer.read(payout)).toMatchObject({ status: 'completed', returned: null });
      expect(await payer.balance()).toEqual([available, 0]);
      // The bank corrects nothing in its statement of the day.
      expect((await service.stores.callbacks.forResource(payout)).map(({ name }) => name)).toEqual([
        'completed',
        'debit_reversed',
        'completed',
      ]);
    });

    test.each([
      ['amount', { amount: 950 }, { amount: 950, currency: 'EUR' }],
      ['currency', { currency: 'USD' }, { amount: 1_000, currency: 'USD' }],
    ])(
      'holds a booking in another %s until the bank books what it was instructed',
      async (key, wrong, held) => {
        const payout = await payer.submit();
        const file = await cutOne();
        const book = (message: string, change: object = {}) => {
          const booking = { id: payout, reference: message, message, ...change };
          world.deliver(`${message}.xml`, writeNotification(booking));
        };
        book(`D-${key}`, wrong);
        const { status } = await payer.needsAttention(payout, 'amount_differs');
        expect(status).toBe('submitted');
        expect(await listMovements(payout)).toMatchObject([held]);
        expect(await lookUp(payout)).toMatchObject(SUBMITTED);
        book(`D-${key}-2`);
        await payer.becomes(payout, 'completed');
        expect(await listCompletions(payout)).toHaveLength(2);
        world.drop(file);
      },
    );

    test('cancels a payout while it waits, and not once a file carries it', async () => {
      const [waiting, left] = await Promise.all([payer.submit(), payer.submit()]);
      expect(await cancel(waiting)).toEqual({ outcome: 'cancelled' });
      const id = await world.send();
      expect(await cancel(left)).toEqual({ outcome: 'too_late' });
      expect((await world.show(id)).rows.map(({ payout_id }) => payout_id)).toEqual([left]);
      const refused = { outcome: 'refused', code: 'cancelled' };
      expect(await lookUp(waiting)).toMatchObject(refused);
      const instruction = {
        ...{ payout_id: waiting, version: 1, amount: 1_000, currency: 'EUR', livemode: false },
        method: 'sepa_credit_transfer',
      };
      expect(await world.activities().sendPayout(instruction)).toMatchObject(refused);
    });

    test('lets the API refuse what no file can carry, by its field', async () => {
      const cyrillic = await payer.createRecipient({ last_name: 'Иванова' });
      const long = await payer.createRecipient({ last_name: 'L'.repeat(70) });
      const refused = async (changes: object) => {
        const answer = await payer.pay(changes);
        expectRefusal(answer, 'rail_requirements_not_met');
        const { details }: { details: { field: string; code: string }[] } = answer.body.error;
        return details.map(({ field, code }) => `${field} ${code}`);
      };
      expect(await refused({ recipient_id: cyrillic })).toEqual([
        'last_name characters_not_supported',
      ]);
      expect(await refused({ recipient_id: long, reference: 'x'.repeat(141) })).toEqual([
        'last_name too_long',
        'reference too_long',
      ]);
      expect(await refused({ reference: 'a\u0001b<&>' })).toEqual([
        'reference characters_not_supported',
      ]);
    });
  });

  describe('when it is interrupted', () => {
    test.each([
      ['while its payouts are checked', { mayStillSend: kill }],
      ['while they are decrypted', { readPayee: kill }],
      ['before the bytes are stored', { validate: kill }],
      ['before the upload', { upload: kill }],
    ])('%s, pays the payouts of the file once, later', async (_when, changes) => {
      await world.restart(changes);
      const payout = await payer.submit();
      const from = world.logged.length;
      const logged = eventually('a log line about the kill', async () =>
        world.logged.slice(from).some((line) => /killed|left for a later file/.test(line)),
      );
      await expect(Promise.race([world.cut(), logged])).resolves.toBeDefined();
      expect(world.listDropped()).toEqual([]);
      expect(await lookUp(payout)).toMatchObject(SUBMITTED);
      await world.restart();
      await eventually('the cut', async () => {
        const line = await world.line(payout);
        if (line?.state === 'open') await world.cut();
        return world.listDropped().length === 1;
      });
      await world.bank.scan();
      await payer.becomes(payout, 'completed');
      expect(await countPaid(payout)).toBe(1);
    });

    test('after the upload, uploads the same bytes under the same name, which the bank knows', async () => {
      const written: Buffer[] = [];
      let name = '';
      await world.restart({
        upload: async (file, bytes) => {
          name = file;
          written.push(Buffer.from(bytes));
          await writeWhole(world.bank.drop, file, bytes);
          if (written.length === 1) await world.bank.scan();
          await kill();
        },
      });
      const payout = await payer.submit();
      world.cut().catch(() => undefined);
      await payer.becomes(payout, 'completed');
      expect(new Set(written.map(String)).size).toBe(1);
      await world.book.files.updateOne({ name }, { $set: { state: 'cut' } });
      await world.restart();
      await eventually('the second upload', async () => world.listDropped().includes(name));
      expect(readFileSync(join(world.bank.drop, name))).toEqual(written[0]);
      await world.bank.scan();
      await world.drained();
      expect(await countPaid(payout)).toBe(1);
      expect(await world.book.files.findOne({ name })).toMatchObject({
        state: 'booked',
        bank_status: 'DUPL',
      });
      expect((await payer.read(payout)).status).toBe('completed');
    });

    test('between the facts and the folder, reports a second booking once', async () => {
      const payout = await payer.complete();
      const second = writeNotification({ id: payout, reference: 'TWICE-1', message: 'T-1' });
      world.deliver('twice.xml', second);
      await payer.needsAttention(payout, 'second_completion');
      await world.drained();
      // As before the record of the file: its facts are stored, and it is in the folder.
      await world.book.inbound.deleteOne({ name: 'twice.xml' });
      await world.book.lines.updateOne({ _id: payout }, { $set: { unreported: true } });
      await world.restart();
      world.deliver('twice.xml', second);
      await world.drained();
      await eventually('the report', async () => (await world.line(payout))?.unreported === false);
      expect(await listCompletions(payout)).toHaveLength(2);
      expect(await listMovements(payout)).toHaveLength(2);
    });

    test('before it notes that a file has left its folder, notes it at the next look', async () => {
      world.deliver('letter.txt', 'Dear customer, again');
      await untilRefused('letter.txt');
      await world.drained();
      const { inbound } = world.book;
      const { _id = '' } = (await inbound.findOne({ 'refusal.code': 'file_invalid' })) ?? {};
      await inbound.updateOne({ _id }, { $set: { state: 'taken' } });
      await eventually('the end', async () => (await inbound.findOne({ _id }))?.state === 'done');
    });

    test('at the cut-off, cuts the file of the batch by itself later', async () => {
      const payout = await payer.submit();
      const morning = world.clock.now;
      const later = (days: number, minutes = 0) =>
        new Date(Date.now() + days * 86_400_000 + minutes * 60_000);
      await world.restart({ validate: kill });
      // At least one business day has its cut-off in a week.
      world.clock.now = later(7);
      await world.lineBecomes(payout, 'assigned');
      await world.restart();
      world.clock.now = later(7, 3);
      await eventually('the file', async () => world.listDropped().length === 1);
      const { file_id } = await world.lineBecomes(payout, 'in_file');
      const file = await world.book.files.findOne({ _id: file_id ?? '' });
      expect(String(file?.execution_day) >= later(6).toISOString().slice(0, 10)).toBe(true);
      world.drop(String(file_id));
      world.clock.now = morning;
    });
  });

  describe('when its files or those of the bank are refused', () => {
    test('keeps the payout of a frozen account for a later file, and sends the others', async () => {
      const [held, good] = await Promise.all([payer.submit(), payer.submit()]);
      await world.restart({
        mayStillSend: async ({ payout_id }) => {
          if (payout_id === held) throw new Error('The account is frozen: not instructed.');
          return true;
        },
      });
      const id = await world.send();
      await payer.becomes(good, 'completed');
      expect((await world.show(id)).rows.map((line) => line.payout_id)).toEqual([good]);
      expect(await world.line(held)).toMatchObject({ state: 'open', file_id: null });
      await world.restart();
      await world.send();
      await payer.becomes(held, 'completed');
    });

    test('fails the payout of a deleted recipient when its file is cut', async () => {
      const recipient_id = await payer.createRecipient();
      const payout = await payer.submit({ recipient_id });
      await payer.delete(`/v1/payout-recipients/${recipient_id}`);
      expect(await world.cut()).toEqual([]);
      expect(await payer.becomes(payout, 'failed')).toMatchObject({
        failure: { code: 'recipient_deleted' },
      });
    });

    test('refuses what is no message for this account in words, or puts it aside', async () => {
      const payout = await payer.submit();
      const whole = writeNotification({ id: payout });
      const entity = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>';
      const files: [name: string, content: string, reason: RegExp][] = [
        ['cut-off.xml', whole.slice(0, -40), /^file_invalid: .*not complete/],
        ['entity.xml', whole.replace('?>', `?>${entity}`), /^file_invalid: .*document type/],
        ['wrong.xml', whole.replace('DBIT', 'BOTH'), /^file_invalid: .*CdtDbtInd/],
        ['intraday.xml', whole.replaceAll('camt.054', 'camt.052'), /^format_not_supported/],
        ['note.txt', 'Dear customer', /^file_invalid/],
        ['foreign.xml', writeRefusal('0'.repeat(32), 'AM10', 'S-1'), /^file_foreign: /],
      ];
      for (const [name, content] of files) world.deliver(name, content);
      for (const [name, , reason] of files) expect(await untilRefused(name)).toMatch(reason);
      world.deliver('other.xml', writeNotification({ id: payout, iban: 'NL14MOCK0000000002' }));
      await eventually('the folder of others', async () =>
        world.listIn('other').includes('other.xml'),
      );
      world.deliver('.half.xml.part', whole);
      await world.drained();
      expect((await payer.read(payout)).status).toBe('submitted');
      await cancel(payout);
    });

    test('takes a file of the bank only once', async () => {
      const payout = await payer.complete();
      const taken = world.listIn('processed').find((name) => name.startsWith('camt.054')) ?? '';
      world.deliver('again.xml', world.readIn('processed', taken));
      expect(await untilRefused('again.xml')).toMatch(/^file_repeated: .*processed\/camt\.054/);
      expect(await world.line(payout)).toMatchObject({ others: [] });
    });

    test('keeps the payout of a refused file waiting, which may then be cancelled', async () => {
      const payout = await payer.submit();
      const file = await cutOne();
      world.deliver('refusal.xml', writeRefusal(file, 'AM10', 'S-2'));
      await fileBecomes(file, 'refused');
      expect((await world.lineBecomes(payout, 'waiting')).file_id).toBe(file);
      expect(await cancel(payout)).toEqual({ outcome: 'cancelled' });
      expect(await world.resend(file)).toBe(0);
      world.drop(file);
    });

    test('fails and frees no payout that the bank calls a duplicate, until the bank denies it', async () => {
      const [failing, waiting] = await Promise.all([payer.submit(), payer.submit()]);
      const file = await cutOne();
      const payouts = [failing, waiting];
      for (const code of ['DUPL', 'AM05', 'DU03']) {
        const whole = writeRefusal(file, code, `S-${code}`, payouts);
        world.deliver(`${code}.xml`, whole);
        const part = whole.replace(/<GrpSts>RJCT.*?<\/StsRsnInf>/, '<GrpSts>PART</GrpSts>');
        world.deliver(`part-${code}.xml`, part.replaceAll('AC04', code));
        // Without a reason of its own.
        const bare = whole.replace(/(<GrpSts>RJCT<\/GrpSts>)<StsRsnInf>.*?<\/StsRsnInf>/, '$1');
        world.deliver(`bare-${code}.xml`, bare.replaceAll('AC04', code));
      }
      await world.drained();
      expect(await world.fileState(file)).toBe('acknowledged');
      for (const payout of payouts) {
        expect(await world.lineBecomes(payout, 'in_file')).toMatchObject({ failure: null });
        await payer.needsAttention(payout, 'called_duplicate');
      }
      world.deliver('refused.xml', writeRefusal(file, 'FF01', 'S-4', [failing]));
      await world.lineBecomes(failing, 'failed');
      await world.lineBecomes(waiting, 'waiting');
      await fileBecomes(file, 'refused');
      expect(await payer.becomes(failing, 'failed')).toMatchObject({ failure: { code: 'AC04' } });
      expect(await cancel(waiting)).toEqual({ outcome: 'too_late' });
      await expect(world.resend(file)).rejects.toMatchObject({ code: 'held_by_bank' });
      expect(await world.resend(file, CONFIRMED)).toBe(1);
      world.drop(file);
      await world.send();
      await payer.becomes(waiting, 'completed');
      await payer.needsAttention(waiting, null);
    });

    test('sends a payout that the bank calls a duplicate again once it has executed none', async () => {
      const submit = () => payer.submit();
      const [payout, booked, other] = await Promise.all([submit(), submit(), submit()]);
      const first = await cutOne();
      world.drop(first);
      const rejected = writeRefusal(first, 'x', 'S-5', [payout, booked]).replaceAll('AC04', 'DU04');
      world.deliver('part.xml', rejected.replace(/<GrpSts>RJCT.*?x.*?<\/StsRsnInf>/, ''));
      for (const id of [payout, booked]) await payer.needsAttention(id, 'called_duplicate');
      await expect(world.resend(first)).rejects.toMatchObject({ code: 'held_by_bank' });
      world.deliver('booked.xml', writeNotification({ id: booked, message: 'D-1' }));
      await payer.becomes(booked, 'completed');
      await payer.needsAttention(booked, null);
      expect(await world.resend(first, CONFIRMED)).toBe(1);
      expect(await world.resend(first, CONFIRMED)).toBe(0);
      expect(await world.line(other)).toMatchObject({ state: 'in_file', file_id: first });
      const next = await world.send();
      await payer.becomes(payout, 'completed');
      expect(await world.line(payout)).toMatchObject({ file_id: next, duplicate: null });
      expect(await countPaid(payout)).toBe(1);
      world.deliver('other.xml', writeNotification({ id: other, message: 'D-2' }));
      await payer.becomes(other, 'completed');
    });

    test('takes the reason of a return as one, also where it is that of a duplicate', async () => {
      const payout = await payer.complete();
      const returned = { id: payout, reference: 'BACK-D', message: 'D-3', returned: 'AM05' };
      world.deliver('back.xml', writeNotification(returned));
      const { returned: shown } = await payer.becomes(payout, 'returned');
      expect(shown).toMatchObject({ code: 'AM05' });
    });
  });

  test('writes the names of recipients into its files, and nowhere in its book or log', async () => {
    const recipient_id = await payer.createRecipient({ last_name: 'Ünverwechselbar' });
    const payout = await payer.submit({ recipient_id, reference: 'Secret 4711' });
    const id = await world.send();
    await payer.becomes(payout, 'completed');
    await world.drained();
    expect(world.readSent(id)).toContain('Unverwechselbar');
    const { lines, files, inbound } = world.book;
    const stored = await Promise.all([lines, files, inbound].map((each) => each.find().toArray()));
    for (const text of [JSON.stringify(stored), world.logged.join('')]) {
      expect(text).not.toContain('nverwechselbar');
      expect(text).not.toContain('Secret 4711');
      expect(text).not.toContain('DE8937');
    }
  });
});
