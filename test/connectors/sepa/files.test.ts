import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeWhole } from '../../../connectors/sepa/files';
import { shortenId } from '../../../src/service/sepa/book';
import { eventually } from '../../support/http';
import { describeWithBank } from '../../support/mock-bank';
import { useService } from '../../support/service';
import { writeNotification, writeStatus } from './bank-files';
import { makePrefix, ROUTES, usePayer, useSepa } from './world';

describeWithBank('files that are interrupted, repeated and refused', () => {
  const prefix = makePrefix();
  const service = useService({ live: { connectors: '', prefix }, tests: ROUTES });
  const payer = usePayer(service);
  const world = useSepa(service, prefix);

  const dropped = () => readdirSync(world.bank.drop).filter((name) => name.startsWith('pain.001'));
  const paidTimes = async (id: string) => (await world.bank.payments(shortenId(id))).length;
  const refusedFile = (name: string) =>
    eventually(`the refusal of ${name}`, async () => {
      const names = world.listIn('refused');
      return names.includes(`${name}.txt`) && world.readIn('refused', `${name}.txt`);
    });

  const killed = () => Promise.reject(new Error('killed'));

  test.each([
    ['while its payouts are checked', { mayStillSend: killed }],
    ['while they are decrypted', { readPayee: killed }],
    ['before the bytes are stored', { validate: killed }],
    ['before the upload', { upload: killed }],
  ])('a kill %s pays nothing and loses nothing', async (_when, changes) => {
    await world.restart(changes);
    const payout = await payer.submit();
    await expect(Promise.race([world.cut(), once(world.logged, 'killed')])).resolves.toBeDefined();
    expect(dropped()).toEqual([]);
    expect(await world.activities().lookUpPayout({ payout_id: payout })).toMatchObject({
      outcome: 'submitted',
    });
    await world.restart();
    await eventually('the cut', async () => {
      const line = await world.line(payout);
      if (line?.state === 'open') await world.cut();
      return dropped().length === 1;
    });
    await world.bank.scan();
    await payer.becomes(payout, 'completed');
    expect(await paidTimes(payout)).toBe(1);
  });

  test('after a kill behind the upload the same bytes come under the same name: DUPL means arrived', async () => {
    const written: Buffer[] = [];
    let name = '';
    await world.restart({
      upload: async (file, bytes) => {
        name = file;
        written.push(Buffer.from(bytes));
        await writeWhole(world.bank.drop, file, bytes);
        if (written.length === 1) await world.bank.scan();
        await killed();
      },
    });
    const payout = await payer.submit();
    world.cut().catch(() => undefined);
    await payer.becomes(payout, 'completed');
    expect(new Set(written.map(String)).size).toBe(1);
    await world.book.files.updateOne({ name }, { $set: { state: 'cut' } });
    await world.restart();
    await eventually('the second upload', async () => dropped().includes(name));
    expect(readFileSync(join(world.bank.drop, name))).toEqual(written[0]);
    await world.bank.scan();
    await world.drained();
    expect(await paidTimes(payout)).toBe(1);
    expect(await world.book.files.findOne({ name })).toMatchObject({
      state: 'booked',
      bank_status: 'DUPL',
    });
    expect((await payer.read(payout)).status).toBe('completed');
  });

  test('a frozen account’s payout waits for a later file; the others go', async () => {
    const held = await payer.submit();
    const good = await payer.submit();
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

  test('a recipient who was deleted fails the payout when its file is cut', async () => {
    const { body } = await payer.createRecipient({});
    const payout = await payer.submit({ recipient_id: body.id });
    await payer.remove(`/v1/payout-recipients/${body.id}`);
    expect(await world.cut()).toEqual([]);
    expect(await payer.becomes(payout, 'failed')).toMatchObject({
      failure: { code: 'recipient_deleted' },
    });
  });

  test('what is no message for this account is refused in words, or put aside', async () => {
    const payout = await payer.submit();
    const whole = writeNotification({ id: payout });
    const entity = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>';
    const files: [name: string, content: string, reason: RegExp][] = [
      ['cut-off.xml', whole.slice(0, -40), /^file_invalid: .*not complete/],
      ['entity.xml', whole.replace('?>', `?>${entity}`), /^file_invalid: .*document type/],
      ['wrong.xml', whole.replace('DBIT', 'BOTH'), /^file_invalid: .*CdtDbtInd/],
      [
        'intraday.xml',
        whole.replaceAll('camt.054.001.08', 'camt.052.001.08'),
        /^format_not_supported/,
      ],
      ['note.txt', 'Dear customer', /^file_invalid/],
      ['foreign.xml', writeStatus('0'.repeat(32), 'ACCP', 'G000'), /^file_foreign: /],
    ];
    for (const [name, content] of files) world.deliver(name, content);
    for (const [name, , reason] of files) expect(await refusedFile(name)).toMatch(reason);
    world.deliver('other.xml', writeNotification({ id: payout, iban: 'NL14MOCK0000000002' }));
    await eventually('the folder of others', async () =>
      world.listIn('other').includes('other.xml'),
    );
    world.deliver('.half.xml.part', whole);
    await world.drained();
    expect((await payer.read(payout)).status).toBe('submitted');
    await world.activities().cancelPayout({ payout_id: payout });
  });

  test('a refused file may come again once it is correct, and a taken one only once', async () => {
    const payout = await payer.submit();
    await world.send();
    await payer.becomes(payout, 'completed');
    await world.drained();
    const taken = world.listIn('processed').find((name) => name.startsWith('camt.054')) ?? '';
    world.deliver('again.xml', world.readIn('processed', taken));
    expect(await refusedFile('again.xml')).toMatch(/^file_repeated: .*processed\/camt\.054/);
    expect(await world.line(payout)).toMatchObject({ others: [] });
  });

  test('a payout that comes into no other file is not failed by the answer to a refused one', async () => {
    const payout = await payer.submit();
    const [first = ''] = await world.cut();
    world.deliver('refusal.xml', writeStatus(first, 'RJCT', 'AM10', 'S-2'));
    await eventually('the refusal', async () => (await world.fileState(first)) === 'refused');
    const waiting = await world.lineBecomes(payout, 'waiting');
    expect(waiting.file_id).toBe(first);
    expect(await world.activities().cancelPayout({ payout_id: payout })).toEqual({
      outcome: 'cancelled',
    });
    expect(await world.resend(first)).toBe(0);
    rmSync(join(world.bank.drop, `pain.001.001.09-${first}.xml`));
  });

  test('DUPL fails no payout, whatever it lists; another refusal fails those, and the rest waits', async () => {
    const failing = await payer.submit();
    const waiting = await payer.submit();
    const [file = ''] = await world.cut();
    world.deliver('duplicate.xml', writeStatus(file, 'RJCT', 'DUPL', 'S-3', [failing, waiting]));
    await world.drained();
    expect(await world.fileState(file)).toBe('acknowledged');
    expect(await world.lineBecomes(failing, 'in_file')).toMatchObject({ failure: null });
    world.deliver('refused.xml', writeStatus(file, 'RJCT', 'FF01', 'S-4', [failing]));
    await world.lineBecomes(failing, 'failed');
    await world.lineBecomes(waiting, 'waiting');
    await eventually('the refusal', async () => (await world.fileState(file)) === 'refused');
    await payer.becomes(failing, 'failed');
    await world.activities().cancelPayout({ payout_id: waiting });
    rmSync(join(world.bank.drop, `pain.001.001.09-${file}.xml`));
  });

  test('a file that had left its folder as the process ended is done at the next look', async () => {
    world.deliver('note.txt', 'Dear customer, again');
    await refusedFile('note.txt');
    await world.drained();
    const taken = await world.book.inbound.findOne({ 'refusal.code': 'file_invalid' });
    const _id = taken?._id ?? '';
    await world.book.inbound.updateOne({ _id }, { $set: { state: 'taken' } });
    await eventually('the end', async () => {
      return (await world.book.inbound.findOne({ _id }))?.state === 'done';
    });
  });

  test('at the cut-off the batch becomes a file by itself, also after an interrupted cut', async () => {
    const payout = await payer.submit();
    const morning = world.clock.now;
    const later = (days: number, minutes = 0) =>
      new Date(Date.now() + days * 86_400_000 + minutes * 60_000);
    await world.restart({ validate: killed });
    // At least one business day has its cut-off in a week.
    world.clock.now = later(7);
    await world.lineBecomes(payout, 'assigned');
    await world.restart();
    world.clock.now = later(7, 3);
    await eventually('the file', async () => dropped().length === 1);
    const line = await world.lineBecomes(payout, 'in_file');
    const file = await world.book.files.findOne({ _id: line.file_id ?? '' });
    expect(String(file?.execution_day) >= later(6).toISOString().slice(0, 10)).toBe(true);
    rmSync(join(world.bank.drop, String(file?.name)));
    world.clock.now = morning;
  });

  test('a statement that is missing is an alarm, with the days', async () => {
    const passDay = async () => {
      const payout = await payer.submit();
      await world.send();
      await payer.becomes(payout, 'completed');
      await world.advance(1);
      await world.drained();
    };
    await passDay();
    const first = await world.importAll();
    expect(first.map(({ refusal }) => refusal)).toEqual(first.map(() => null));
    await passDay();
    // The bank's file is lost.
    const lost = { 'statement.imported_at': { $type: 'null' as const }, message: /^camt[.]053/ };
    expect((await world.book.inbound.deleteMany(lost)).deletedCount).toBe(1);
    await passDay();
    const codes = (await world.importAll()).flatMap(({ refusal }) => refusal?.code ?? []);
    expect(codes).toEqual(['statement_gap']);
    const [name = ''] = world.listIn('refused').filter((each) => /^camt[.]053.*txt$/.test(each));
    expect(world.readIn('refused', name)).toMatch(/^statement_gap: .*2026-10-/);
  });
});

/** Waits until a line of the log has a text. */
async function once(lines: readonly string[], text: string): Promise<string> {
  const from = lines.length;
  return await eventually(`a log line with ${text}`, async () =>
    lines.slice(from).find((line) => line.includes(text) || line.includes('left for a later file')),
  );
}
