import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { addBusinessDays, latestCutOff } from '../../../src/domain/payout/rails';
import { shortenId } from '../../../src/service/banks/sepa/book';
import { createMetricStore } from '../../../src/store/metrics';
import { runApproved } from '../../cli/cli';
import { eventually } from '../../support/eventually';
import { describeWithBank } from '../../support/mock-bank';
import { DAY, writeNameCheck, writeNotification, writeRefusal, writeResults } from './bank-files';
import { useSepa } from './world';

// What each answer of a bank changes is in inbox.test.ts.
describeWithBank('payouts in SEPA files', () => {
  const { service, world, payer, commands } = useSepa();
  const ACT = ['--operator', 'ada', '--reason', 'Ticket 1'];
  const act = (id: string, what: string) => commands.json('payout', 'act', id, what, ...ACT);
  const sepaFile = (...args: string[]) => commands.json('sepa', 'file', ...args);
  /** Waits until a file is that many attention reasons. */
  const called = (file: string, count: number) =>
    eventually(`${count} attention reasons`, async () => {
      const { data } = Object(await commands.json('attention', 'list'));
      const rows = data.filter((row: { resource_id: string }) => row.resource_id === file);
      return rows.length === count && rows;
    });
  const submit = (changes: object = {}) => payer.submit({ method: 'sepa_instant', ...changes });
  /** Submits payouts of one file, however slow the machine is: it is cut when all are there. */
  const submitTogether = async (...changes: object[]): Promise<string[]> => {
    await world.restart({ settings: { SEPA_INSTANT_SECONDS: 3_600 } });
    const ids = await Promise.all(changes.map(submit));
    await world.restart();
    return ids;
  };
  /** Waits for the file that is cut by itself. */
  const sent = async (payout: string): Promise<string> => {
    const line = await world.lineBecomes(payout, 'in_file');
    await world.fileBecomes(line.file_id ?? '', 'sent');
    return line.file_id ?? '';
  };
  const readDropped = (folder: string, id: string) =>
    readFileSync(join(world.bank.drop, folder, `pain.001.001.09-${id}.xml`), 'utf8');
  const listMovements = (id: string) => service.stores.movements.forResource(id);

  test('of SEPA Instant have files of their own, seconds after the first, for today also where TARGET2 is closed', async () => {
    const morning = world.clock.now;
    // A Sunday in Frankfurt, where it is the next day already.
    world.clock.now = new Date('2026-10-03T22:30:00Z');
    const transfer = await payer.submit();
    const [first = '', second = ''] = await submitTogether({}, {});
    const id = await sent(first);
    expect((await world.line(second))?.file_id).toBe(id);
    expect(await world.line(transfer)).toMatchObject({ state: 'open' });
    const text = readDropped('.', id);
    expect(text).toContain('<SvcLvl><Cd>SEPA</Cd></SvcLvl><LclInstrm><Cd>INST</Cd></LclInstrm>');
    expect(text).toContain('<ReqdExctnDt><Dt>2026-10-04</Dt></ReqdExctnDt>');
    expect(text).not.toContain(shortenId(transfer));
    expect((await world.show(id)).file).toMatchObject({ instant: true, payouts: 2 });
    const [ordinary = ''] = await world.cut();
    expect(readDropped('.', ordinary)).not.toContain('INST');
    world.clock.now = morning;
    for (const file of [id, ordinary]) world.drop(file);
  });

  test('of SEPA Instant complete and fail by their own status, and the booking posts nothing more', async () => {
    const [done = '', failed = '', waits = ''] = await submitTogether({}, {}, {});
    const file = await sent(done);
    const [available] = await payer.balance();
    const code = 'AB06';
    world.deliver('end.xml', writeResults(file, { [done]: ['ACCC'], [failed]: ['RJCT', code] }));
    await payer.becomes(done, 'completed');
    expect((await payer.becomes(failed, 'failed')).failure).toMatchObject({ code });
    expect((await payer.read(waits)).status).toBe('submitted');
    const balance = await payer.balance();
    expect(balance[0]).toBe(available + 1_000);
    world.deliver('booked.xml', writeNotification({ id: done, reference: 'INST-1' }));
    await eventually('the name', async () => {
      const [movement, ...more] = await listMovements(done);
      expect(more).toEqual([]);
      return movement?.bank_reference === 'INST-1' && movement;
    });
    expect(await listMovements(done)).toMatchObject([{ state: 'applied', amount: 1_000 }]);
    expect(await payer.balance()).toEqual(balance);
    expect((await service.stores.payouts.get(done))?.attention).toBeNull();
    world.deliver('last.xml', writeResults(file, { [waits]: ['ACSC'] }));
    await payer.becomes(waits, 'completed');
    expect(await world.fileState(file)).toBe('booked');
    world.drop(file);
  });

  test('of SEPA Instant without their results in time are one reason for an operator, until the last has one', async () => {
    const morning = world.clock.now;
    const [first = '', second = ''] = await submitTogether({}, { amount: 700 });
    const file = await sent(first);
    world.clock.now = new Date(morning.getTime() + 59_000);
    world.deliver('wait.xml', writeResults(file, { [first]: ['ACSP'] }));
    await world.drained();
    await called(file, 0);
    world.clock.now = new Date(morning.getTime() + 61_000);
    const [row] = await called(file, 1);
    expect(row).toMatchObject({ reason: 'file_overdue', amount: 1_700 });
    for (const id of [first, second]) {
      expect((await service.stores.payouts.get(id))?.attention).toBeNull();
    }
    world.deliver('first.xml', writeResults(file, { [first]: ['ACCC'] }));
    await payer.becomes(first, 'completed');
    expect(await called(file, 1)).toMatchObject([{ id: row.id }]);
    await act(second, 'mark_completed');
    await called(file, 0);
    world.clock.now = morning;
    world.drop(file);
  });

  describe('whose names the bank has checked', () => {
    const at = (minute: number) => `${DAY}T10:0${minute}:00+02:00`;
    /** Submits three, and cuts their file. */
    const cut = async () => {
      const ids = await Promise.all([payer.submit(), payer.submit(), payer.submit()]);
      const [file = ''] = await world.cut();
      return [file, ...ids] as const;
    };

    test('show each result, and call somebody until their file is released and booked', async () => {
      const [id, first, second, third] = await cut();
      const statuses = { [first]: 'RVNM', [second]: 'RVMC', [third]: 'RVNC' };
      world.deliver('check.xml', writeNameCheck(id, statuses, { at: at(0) }));
      const checked_at = new Date(at(0)).toISOString();
      const verification = { result: 'no_match', checked_at };
      for (const each of [first, second]) await payer.needsAttention(each, 'payee_not_verified');
      const payout = { status: 'submitted', verification };
      expect(await commands.json('payout', 'show', first)).toMatchObject({ payout });
      const results = { match: 0, close_match: 1, no_match: 1, not_possible: 0 };
      const reason = { resource: 'sepa_file', reason: 'awaiting_release', amount: 3_000, results };
      expect(await called(id, 1)).toMatchObject([reason]);
      const { stuck } = await createMetricStore(service.db).read(new Date());
      const metric = { resource: 'sepa_file', reason: 'awaiting_release', livemode: 'false' };
      expect(stuck).toContainEqual({ ...metric, count: 1 });
      const shown = Object(await sepaFile('show', id));
      expect(shown).toMatchObject({
        ...{ state: 'sent', bank_status: 'PDNG', may_be_executed: false, results },
        statuses: [{ created_at: checked_at, message_id: 'S-1', status: 'PDNG', code: null }],
      });
      const row = (payout_id: string) =>
        shown.data.find((each: { payout_id: string }) => each.payout_id === payout_id);
      expect([row(first), row(third)]).toMatchObject([{ verification }, { verification: null }]);
      for (const changed of [true, false]) {
        expect(await sepaFile('released', id, ...ACT)).toEqual({ file_id: id, changed });
      }
      await called(id, 0);
      await world.bank.scan();
      await payer.becomes(first, 'completed');
      await payer.needsAttention(first, null);
      expect((await payer.read(first)).verification).toEqual(verification);
      await world.drained();
      const { lines, files, inbound } = world.book;
      const stored = await Promise.all([
        ...[lines, files, inbound].map((each) => each.find().toArray()),
        service.stores.callbacks.forResource(second),
      ]);
      expect(JSON.stringify(stored) + world.logged.join('')).not.toContain('Lindqvist');
    });

    test('stay out of the next file without a match, where their account holds them', async () => {
      const hold = ['account', 'update', payer.account_id, '--hold-unverified'];
      expect(await commands.json(...hold, 'on')).toMatchObject({ hold_unverified: true });
      const [file, released, failed, good] = await cut();
      world.drop(file);
      // The answers come in the wrong order.
      const withdrawn = writeRefusal(file, 'DS02', 'W-5');
      world.deliver('withdrawn.xml', withdrawn.replace(/<CreDtTm>[^<]*/, `<CreDtTm>${at(5)}`));
      await world.fileBecomes(file, 'refused');
      const statuses = { [released]: 'RVNM', [failed]: 'RVNA' };
      world.deliver('late.xml', writeNameCheck(file, statuses, { group: 'RCVM', at: at(0) }));
      for (const id of [released, failed]) await payer.needsAttention(id, 'payee_not_verified');
      await called(file, 0);
      for (const payouts of [1, 0]) {
        expect(await sepaFile('resend', file)).toMatchObject({ payouts });
      }
      await world.send();
      await payer.becomes(good, 'completed');
      expect(await world.line(released)).toMatchObject({ state: 'unverified', file_id: null });
      expect(await act(failed, 'mark_failed')).toMatchObject({ status: 'failed' });
      expect(await act(released, 'release_unverified')).toMatchObject({ attention: null });
      await world.lineBecomes(released, 'open');
      await world.send();
      await payer.becomes(released, 'completed');
      expect((await world.line(failed))?.state).toBe('cancelled');
      await runApproved(commands, ...hold, 'off');
      const after = await commands.json('account', 'show', payer.account_id);
      expect(after).toMatchObject({ hold_unverified: false });
    });
  });

  describe('a small file', () => {
    const CUT_OFF = 15 * 60;
    const HOUR_MS = 3_600_000;
    const listVerified = () =>
      readdirSync(join(world.bank.drop, 'verified')).filter((name) => name.startsWith('pain'));
    /** Starts with a minimum of two payouts, and one of them. */
    const begin = async () => {
      await world.restart({ settings: { SEPA_FILE_MIN: 2 } });
      const payout = await payer.submit();
      const added = (await world.line(payout))?.added_at.getTime() ?? 0;
      let cutOff = added;
      while (latestCutOff(cutOff, CUT_OFF) < added) cutOff += HOUR_MS;
      return { payout, added, cutOff: new Date(cutOff) };
    };
    const untilSent = (id: string | null | undefined) => world.fileBecomes(`${id}`, 'sent');
    let morning: Date;
    beforeAll(() => {
      morning = world.clock.now;
    });
    afterEach(() => {
      world.clock.now = morning;
    });

    test('waits at the cut-off for two business days at most, and then leaves for the check', async () => {
      const { payout, added, cutOff } = await begin();
      world.clock.now = new Date(Math.max(cutOff.getTime(), addBusinessDays(added, 2) - 1_000));
      // The file of another rail shows that the connector has looked.
      const { file_id: instant } = await world.lineBecomes(await submit(), 'in_file');
      await untilSent(instant);
      expect(listVerified().join()).toContain(String(instant));
      expect(await world.line(payout)).toMatchObject({ state: 'open', file_id: null });
      world.clock.now = new Date(addBusinessDays(added, 2));
      const { file_id } = await world.lineBecomes(payout, 'in_file');
      await untilSent(file_id);
      expect(listVerified().join()).toContain(String(file_id));
      expect(world.listDropped()).toEqual([]);
      expect((await world.show(`${file_id}`)).file).toMatchObject({ verified: true, payouts: 1 });
    });

    test('leaves as others do with a second payout, and by a command at once', async () => {
      const { payout, cutOff } = await begin();
      const second = await payer.submit();
      const later = (await world.line(second))?.added_at.getTime() ?? 0;
      world.clock.now = new Date(Math.max(cutOff.getTime(), later + 1_000));
      let due = world.clock.now.getTime();
      while (latestCutOff(due, CUT_OFF) <= later) due += HOUR_MS;
      world.clock.now = new Date(due);
      const { file_id } = await world.lineBecomes(payout, 'in_file');
      await untilSent(file_id);
      expect(await world.line(second)).toMatchObject({ file_id });
      expect((await world.show(`${file_id}`)).file).toMatchObject({ verified: false, payouts: 2 });
      expect(world.listDropped().join()).toContain(String(file_id));
      world.drop(String(file_id));
      await payer.submit();
      const [small = ''] = await world.cut();
      expect(listVerified().join()).toContain(small);
    });

    test('goes where it was cut for, also after a kill and with other settings', async () => {
      const kill = () => Promise.reject(new Error('killed'));
      await world.restart({ settings: { SEPA_FILE_MIN: 2 }, upload: kill });
      const payout = await payer.submit();
      world.cut().catch(() => undefined);
      const { file_id } = await world.lineBecomes(payout, 'in_file');
      await world.restart({ settings: { SEPA_VERIFIED_DIR: '' } });
      await eventually('a refusal', async () =>
        world.logged.join('').includes('SEPA_VERIFIED_DIR, which is not set'),
      );
      expect(world.listDropped()).toEqual([]);
      await world.restart();
      await untilSent(file_id);
      expect(listVerified().join()).toContain(String(file_id));
    });
  });
});
