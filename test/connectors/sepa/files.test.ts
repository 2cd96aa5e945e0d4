import { readdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { writeWhole } from '../../../connectors/sepa/files';
import { shortenId } from '../../../src/service/banks/sepa/book';
import { eventually } from '../../support/eventually';
import { describeWithBank } from '../../support/mock-bank';
import { DAY, IBAN, writeNotification, writeRefusal } from './bank-files';
import { useSepa } from './world';

const SUBMITTED = { outcome: 'submitted' };

// The bank keeps its days and its balance, so the order of the stories matters.
describeWithBank('the connector of SEPA files', () => {
  const { service, world, payer, commands } = useSepa();

  const countPaid = async (id: string) => (await world.bank.payments(shortenId(id))).length;
  const lookUp = (payout_id: string) => world.activities().lookUpPayout({ payout_id });
  const cutOne = async () => {
    const [id = ''] = await world.cut();
    return id;
  };
  const run = async (...args: string[]) => {
    const { stdout, stderr } = await commands.cli(...args, '--json');
    return JSON.parse(stdout || stderr);
  };
  /** Lists names of refused files that call an operator. */
  const listCalling = async () => {
    const rows: { reason: string; name: string }[] = (await run('attention', 'list')).data;
    return rows.flatMap(({ reason, name }) => (reason === 'bank_file_refused' ? [name] : []));
  };
  const kill = () => Promise.reject(new Error('killed'));

  describe('on ordinary days', () => {
    test('completes the payouts of a file on its day, with a statement that matches the ledger', async () => {
      const [available] = await payer.balance();
      const recipient_id = await payer.createRecipient({ last_name: 'Ünverwechselbar' });
      const payouts = await Promise.all([
        payer.submit({ amount: 1_234, recipient_id, reference: 'Secret 4711' }),
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
          body: { value_date: DAY, bank_reference: expect.stringMatching(/^MB-PMT/) },
        });
      }
      await world.drained();
      expect((await world.show(id)).file).toMatchObject({ state: 'booked', execution_day: DAY });
      expect(await payer.balance()).toEqual([available - 3_235, 0]);
      expect((await world.bank.account('ACME')).balance).toBe(before - 3_235);
      await world.advance(1);
      const imports = await world.importAll();
      expect(imports.map(({ refusal }) => refusal)).toEqual(imports.map(() => null));
      const day = { account: IBAN, day: DAY, lines: 2, matched: 2, open: 0 };
      const statements = imports.flatMap((each) => each.statements);
      expect(statements.filter(({ kind }) => kind === 'statement')).toMatchObject([day]);
      expect(await world.importAll()).toEqual([]);
      expect(world.readSent(id)).toContain('Unverwechselbar');
      const { lines, files, inbound } = world.book;
      const stored = await Promise.all([lines, files, inbound].map((of) => of.find().toArray()));
      const known = JSON.stringify(stored) + world.logged.join('');
      expect(known).not.toMatch(/nverwechselbar|Secret 4711|DE8937/);
    });

    test('refuses a statement behind a missing one, and names the days, until that comes', async () => {
      await payer.completeOnDay();
      expect(await world.importRefusals()).toEqual([]);
      await payer.completeOnDay();
      // The bank's file is lost.
      const waits = { 'statement.imported_at': { $type: 'null' as const } };
      const lost = { ...waits, message: /^camt[.]053/, folder: 'processed' as const };
      const missing = (await world.book.inbound.findOne(lost))?.name ?? '';
      expect((await world.book.inbound.deleteMany(lost)).deletedCount).toBe(1);
      await payer.completeOnDay();
      expect(await world.importRefusals()).toEqual(['statement_gap']);
      const name = world.listIn('refused').find((each) => /^camt[.]053.*txt$/.test(each)) ?? '';
      expect(world.readIn('refused', name)).toMatch(/^statement_gap: .*2026-10-/);
      expect(await listCalling()).toEqual([name.replace('.txt', '')]);
      expect(await world.importAll()).toEqual([]);
      world.deliver(missing, world.readIn('processed', missing));
      await world.drained();
      const [late, behind, ...more] = await world.importAll();
      expect([late, behind]).toMatchObject([{ refusal: null }, { refusal: null }]);
      expect(more).toEqual([]);
      expect(await listCalling()).toEqual([]);
      expect(world.listIn('processed')).toContain(name.replace('.txt', ''));
      expect(world.listIn('refused')).not.toContain(name);
      // The next Monday: no bank works on the days before.
      await world.advance(3);
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
  });

  describe('when it is interrupted', () => {
    const [ordinary, instant] = ['sepa_credit_transfer', 'sepa_instant'];
    test.each([
      ['while its payouts are checked', ordinary, { mayStillSend: kill }],
      ['while they are decrypted', ordinary, { readPayee: kill }],
      ['before the bytes are stored', ordinary, { validate: kill }],
      ['before the bytes are stored', instant, { validate: kill }],
      ['before the upload', ordinary, { upload: kill }],
      ['before the upload', instant, { upload: kill }],
    ])(
      'a cut ends %s (%s), and the payouts of the file are paid once, later',
      async (_when, method, changes) => {
        await world.restart(changes);
        const payout = await payer.submit({ method });
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
      },
    );

    test('after the upload, uploads the same bytes under the same name, which the bank knows', async () => {
      const written: Buffer[] = [];
      let name = '';
      await world.restart({
        upload: async (file, bytes, _verified, mayLeave) => {
          name = file;
          written.push(Buffer.from(bytes));
          await writeWhole(world.bank.drop, file, bytes, mayLeave);
          if (written.length === 1) await world.bank.scan();
          return await kill();
        },
      });
      const payout = await payer.submit();
      world.cut().catch(() => undefined);
      await payer.becomes(payout, 'completed');
      expect(new Set(written.map(String)).size).toBe(1);
      await world.book.files.updateOne({ name }, { $set: { state: 'cut' } });
      await world.restart();
      // By the new process: the old one may have written it once more.
      await eventually('the second upload', async () =>
        Boolean(await world.book.files.findOne({ name, state: 'sent' })),
      );
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

    test('before it notes that a file has left its folder, notes it at the next look', async () => {
      const half = '.half.xml.part';
      for (const name of [half, 'letter.txt']) world.deliver(name, 'Dear customer');
      await eventually('a refusal', async () => world.listIn('refused').includes('letter.txt'));
      await world.drained();
      const { inbound } = world.book;
      const { _id = '' } = (await inbound.findOne({ 'refusal.code': 'file_invalid' })) ?? {};
      await inbound.updateOne({ _id }, { $set: { state: 'taken' } });
      await eventually('the end', async () => (await inbound.findOne({ _id }))?.state === 'done');
      expect(readdirSync(world.bank.pickup)).toContain(half);
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

  describe('when a payout ends between the cut of its file and its upload', () => {
    const act = (id: string, ...more: string[]) =>
      run('payout', 'act', id, 'mark_failed', '--operator', 'ada', '--reason', 'Ticket 1', ...more);
    const CONFIRMED = '--bank-confirmed-not-executed';
    /** Cuts the file of payouts, which cannot leave. */
    const cutInVain = async (payouts: readonly string[]) => {
      await world.cut();
      const lines = await Promise.all(payouts.map((id) => world.lineBecomes(id, 'in_file')));
      const files = [...new Set(lines.map(({ file_id }) => String(file_id)))];
      expect(files).toHaveLength(1);
      return String(files[0]);
    };
    const expectPaidOnce = async (payouts: readonly string[]) => {
      for (const payout of payouts) {
        await payer.becomes(payout, 'completed');
        expect(await countPaid(payout)).toBe(1);
        expect(world.listFiles(payout)).toHaveLength(1);
      }
    };

    let frozen: string | undefined;
    test.each([
      [
        'an operator ended',
        async (id: string) => expect(await act(id, CONFIRMED)).toMatchObject({ status: 'failed' }),
        'dropped',
      ],
      [
        'whose account was frozen',
        async (id: string) => {
          frozen = id;
        },
        'open',
      ],
      [
        'whose recipient was deleted',
        async (_id: string, recipient: string) => {
          await payer.delete(`/v1/payout-recipients/${recipient}`);
        },
        'failed',
      ],
    ])('leaves out a payout %s while its folder was away', async (_which, end, state) => {
      const mayStillSend = async ({ payout_id }: { payout_id: string }) => {
        if (payout_id !== frozen) return true;
        throw new Error('The account is frozen: not instructed.');
      };
      await world.restart(state === 'open' ? { mayStillSend } : {});
      const recipient_id = await payer.createRecipient();
      const ended = await payer.submit({ recipient_id });
      const others = [await payer.submit(), await payer.submit()];
      const away = `${world.bank.drop}-away`;
      renameSync(world.bank.drop, away);
      const file = await cutInVain([ended, ...others]);
      await end(ended, recipient_id);
      renameSync(away, world.bank.drop);
      await world.fileBecomes(file, 'refused');
      expect(await world.send()).not.toBe(file);
      await expectPaidOnce(others);
      expect(world.listFiles(ended)).toEqual([]);
      expect((await world.line(ended))?.state).toBe(state);
      expect((await world.show(file)).file).toMatchObject({ sent_at: null, payouts: 3 });
      if (frozen === undefined) return;
      frozen = undefined;
      await world.send();
      await expectPaidOnce([ended]);
    });

    test('takes it out without a flag, since nothing has left, and pays the others later', async () => {
      await world.restart({ upload: kill });
      const [ended, other] = [await payer.submit(), await payer.submit()];
      const file = await cutInVain([ended, other]);
      expect(await act(ended)).toMatchObject({ status: 'failed' });
      expect(await world.fileState(file)).toBe('refused');
      await world.restart();
      await world.send();
      await expectPaidOnce([other]);
      expect(world.listFiles(ended)).toEqual([]);
    });

    test('sends the file as it was cut once its bytes may be at the bank', async () => {
      await world.restart({
        upload: async (_name, _bytes, _verified, mayLeave) => {
          await mayLeave();
          return await kill();
        },
      });
      const [held, other] = [await payer.submit(), await payer.submit()];
      const file = await cutInVain([held, other]);
      await eventually('the note', async () => world.readState().some(({ id }) => id === file));
      expect(await act(held)).toMatchObject({ error: { code: 'held_by_bank' } });
      await world.restart();
      await world.fileBecomes(file, 'sent');
      await world.bank.scan();
      await expectPaidOnce([held, other]);
    });

    test('cancels it, or sends its file, where both happen at once', async () => {
      const answers: unknown[] = [];
      await world.restart({
        mayStillSend: async ({ payout_id }) => {
          const line = await world.line(payout_id);
          // Its file was checked, and is about to leave.
          if (line?.state === 'in_file') {
            answers.push(await world.activities().cancelPayout({ payout_id }));
          }
          return true;
        },
      });
      const payout = await payer.submit();
      const [file = ''] = await world.cut();
      expect(answers).toEqual([{ outcome: 'cancelled' }]);
      expect(await world.fileState(file)).toBe('refused');
      expect(world.listFiles(payout)).toEqual([]);
      expect(await act(payout)).toMatchObject({ status: 'failed' });
      await world.restart();
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

    // Which payouts of which files a resend frees is in inbox.test.ts.
    test('pays the payout of a refused file once, after a resend', async () => {
      const payout = await payer.submit();
      const file = await cutOne();
      world.drop(file);
      world.deliver('refusal.xml', writeRefusal(file, 'AM10', 'S-2'));
      await world.fileBecomes(file, 'refused');
      await world.lineBecomes(payout, 'waiting');
      expect(await world.resend(file)).toBe(1);
      await world.send();
      await payer.becomes(payout, 'completed');
      expect(await countPaid(payout)).toBe(1);
    });
  });

  describe('calls an operator for a refused file of the bank', () => {
    /** Delivers a file that is taken, or refused. */
    const deliver = async (name: string, text: string) => {
      world.clock.now = new Date(world.clock.now.getTime() + 1_000);
      world.deliver(name, text);
      await world.drained();
      await world.importAll();
    };
    const wrong = (text: string) => `Dear customer, ${text}`;
    const right = (message: string) => writeNotification({ id: SUBMITTED.outcome, message });
    beforeAll(async () => {
      // Those of the stories before.
      await world.book.inbound.updateMany({}, { $unset: { attention: true } });
    });

    test('until another of its name is taken, where the bank gives names once', async () => {
      await deliver('once.xml', wrong('once'));
      expect(await listCalling()).toEqual(['once.xml']);
      await deliver('once.xml', right('O-1'));
      expect(await listCalling()).toEqual([]);
    });

    test('until an operator dismisses it, where the bank uses names again', async () => {
      for (const text of [right('D-2'), wrong('daily'), right('D-3')]) {
        await deliver('d\u202eäily.xml', text);
      }
      const name = 'd%E2%80%AE%C3%A4ily.xml';
      expect(await listCalling()).toEqual([name]);
      const row = { resource: 'bank_account', code: 'file_invalid', name };
      expect((await run('attention', 'list')).data).toContainEqual(expect.objectContaining(row));
      expect(await world.readMetrics()).toContain(
        'payments_sepa_files_refused{connector="sepa"} 1',
      );
      const health = await run('connector', 'health', 'sepa');
      expect(health).toMatchObject({ healthy: false, files_refused: 1 });
      const refused = (await run('sepa', 'inbound', 'list', '--refused')).data;
      const { id, ...file } = refused[0];
      expect(file).toEqual({
        ...{ name, folder: 'refused', kind: null, code: 'file_invalid', dismissed: null },
        ...{ message: expect.stringContaining('XML'), taken_at: expect.any(String) },
      });
      const dismiss = ['sepa', 'inbound', 'dismiss', id, '--operator', 'mia', '--reason', 'Letter'];
      const dismissed = { operator: 'mia', reason: 'Letter', at: expect.any(String) };
      for (const _ of ['first', 'repeat'])
        expect(await run(...dismiss)).toMatchObject({ dismissed });
      const audited = { act: 'sepa_file.dismissed' as const, limit: 9 };
      expect(await service.stores.auditLog.list(audited)).toHaveLength(1);
      expect((await run('connector', 'health', 'sepa')).files_refused).toBe(0);
      expect(await listCalling()).toEqual([]);
      await deliver('again.xml', wrong('daily'));
      expect(await listCalling()).toEqual(['again.xml']);
    });

    test('and takes one whose name is as long as a name may be', async () => {
      await deliver(`${'n'.repeat(251)}.xml`, wrong('long'));
      expect((await run('sepa', 'inbound', 'list')).data[0]).toMatchObject({ folder: 'refused' });
    });
  });
});
