import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { addBusinessDays, latestCutOff } from '../../../src/domain/payout/target2';
import { shortenId } from '../../../src/service/banks/sepa/book';
import { listAttention } from '../../../src/service/operators/attention';
import { eventually } from '../../support/http';
import { describeWithBank } from '../../support/mock-bank';
import { writeNotification, writeRefusal, writeResults, writeStatus } from './bank-files';
import { useSepa } from './world';

describeWithBank('instant payouts in SEPA files', () => {
  const { service, world, payer, commands } = useSepa();
  const submit = (changes: object = {}) => payer.submit({ method: 'sepa_instant', ...changes });
  /** Waits for the file that is cut by itself. */
  const sent = async (payout: string): Promise<string> => {
    const line = await world.lineBecomes(payout, 'in_file');
    await world.fileBecomes(line.file_id ?? '', 'sent');
    return line.file_id ?? '';
  };
  const readDropped = (folder: string, id: string) =>
    readFileSync(join(world.bank.drop, folder, `pain.001.001.09-${id}.xml`), 'utf8');
  const listMovements = (id: string) => service.stores.movements.forResource(id);

  test('have files of their own, seconds after the first, for today also where TARGET2 is closed', async () => {
    const morning = world.clock.now;
    // A Sunday in Frankfurt, where it is the next day already.
    world.clock.now = new Date('2026-10-03T22:30:00Z');
    const [transfer, first, second] = await Promise.all([payer.submit(), submit(), submit()]);
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

  test('complete and fail by their own status, and the booking posts nothing more', async () => {
    const [done, failed, waits] = await Promise.all([submit(), submit(), submit()]);
    const file = await sent(done);
    const [available] = await payer.balance();
    const code = 'AB06';
    for (const [at, status] of ['ACTC', 'ACCP', 'ACSP', 'PDNG'].entries()) {
      world.deliver(`wait-${at}.xml`, writeResults(file, { [done]: [status], [waits]: [status] }));
    }
    world.deliver('group.xml', writeStatus(file, '<GrpSts>ACSC</GrpSts>'));
    await world.drained();
    expect((await payer.read(done)).status).toBe('submitted');
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

  test('are neither lost nor paid twice where the bank contradicts itself', async () => {
    const [completed, failed, freed] = await Promise.all([submit(), submit(), submit()]);
    const file = await sent(completed);
    world.deliver(
      '1.xml',
      writeResults(file, { [completed]: ['ACSC'], [failed]: ['RJCT', 'TM01'] }),
    );
    await payer.becomes(completed, 'completed');
    await payer.becomes(failed, 'failed');
    world.deliver(
      '2.xml',
      writeResults(file, { [completed]: ['RJCT', 'AB05'], [failed]: ['ACCC'] }),
    );
    await payer.needsAttention(completed, 'failed_after_completed');
    await payer.needsAttention(failed, 'moved_after_failed');
    // The whole file, of which a payout was executed.
    world.deliver('3.xml', writeRefusal(file, 'AM10', 'S-9'));
    await world.drained();
    expect(await world.line(freed)).toMatchObject({ state: 'in_file' });
    world.deliver('4.xml', writeResults(file, { [freed]: ['RJCT', 'AM05'] }));
    await payer.needsAttention(freed, 'called_duplicate');
    world.deliver('5.xml', writeResults(file, { [freed]: ['ACCC'] }));
    await payer.becomes(freed, 'completed');
    await payer.needsAttention(freed, null);
    world.drop(file);
  });

  test('of a file that the bank refused wait, and are not sent again once the bank has executed them', async () => {
    const payout = await submit();
    const file = await sent(payout);
    world.deliver('refused.xml', writeRefusal(file, 'AM10', 'S-10'));
    await world.lineBecomes(payout, 'waiting');
    world.deliver('executed.xml', writeResults(file, { [payout]: ['ACCC'] }));
    await payer.becomes(payout, 'completed');
    expect(await world.resend(file, { bank_confirmed_not_executed: true })).toBe(0);
    world.drop(file);
  });

  test('complete by their booking where the bank has no final status', async () => {
    await world.restart({ settings: { SEPA_INSTANT_FINAL: 'booking' } });
    const payout = await submit();
    const file = await sent(payout);
    world.deliver('status.xml', writeResults(file, { [payout]: ['ACSC'] }));
    await world.drained();
    expect(await world.line(payout)).toMatchObject({ state: 'in_file' });
    world.deliver(
      'book.xml',
      writeNotification({ id: payout, reference: 'INST-2', message: 'N-2' }),
    );
    await payer.becomes(payout, 'completed');
    await world.restart();
    world.drop(file);
  });

  test('of a file without their results in time are one reason for an operator, until the last has one', async () => {
    const morning = world.clock.now;
    const [first, second] = await Promise.all([submit(), submit({ amount: 700 })]);
    const file = await sent(first);
    const listRows = async () => {
      const rows = await listAttention(service.stores, { all: false, limit: 100, now: new Date() });
      return rows.rows.filter(({ resource_id }) => resource_id === file);
    };
    const rowsBecome = (count: number) =>
      eventually(`${count} rows`, async () => {
        const rows = await listRows();
        return rows.length === count && rows;
      });
    world.clock.now = new Date(morning.getTime() + 59_000);
    world.deliver('wait.xml', writeResults(file, { [first]: ['ACSP'] }));
    await world.drained();
    expect(await listRows()).toEqual([]);
    world.clock.now = new Date(morning.getTime() + 61_000);
    const [row] = await rowsBecome(1);
    expect(row).toMatchObject({ resource_id: file, reason: 'file_overdue', amount: 1_700 });
    for (const id of [first, second]) {
      expect((await service.stores.payouts.get(id))?.attention).toBeNull();
    }
    world.deliver('first.xml', writeResults(file, { [first]: ['ACCC'] }));
    await payer.becomes(first, 'completed');
    expect(await rowsBecome(1)).toMatchObject([{ id: row?.id }]);
    const why = ['--operator', 'ada', '--reason', 'Ticket 1'];
    const acted = await commands.cli('payout', 'act', second, 'mark_completed', ...why);
    expect(acted).toMatchObject({ exit: 0 });
    await rowsBecome(0);
    world.clock.now = morning;
    world.drop(file);
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
