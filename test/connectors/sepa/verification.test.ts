import { PAYEE_RESULTS, type PayeeResult } from '../../../src/domain/banks/callback';
import { createMetricStore } from '../../../src/store/metrics';
import { runApproved } from '../../cli/cli';
import { eventually } from '../../support/http';
import { describeWithBank } from '../../support/mock-bank';
import { createRandom } from '../../support/random';
import { DAY, writeNameCheck, writeNotification, writeRefusal, writeStatus } from './bank-files';
import { useSepa } from './world';

const CODES = { match: 'RCVC', close_match: 'RVMC', no_match: 'RVNM', not_possible: 'RVNA' };
const REASON = ['--reason', 'Ticket 42'];

describeWithBank('verification of payee', () => {
  const { service, world, payer, commands } = useSepa();

  const at = (minute: number) => `${DAY}T10:${String(minute).padStart(2, '0')}:00+02:00`;
  const sepaFile = (...args: string[]) => commands.json('sepa', 'file', ...args);
  const deliver = async (text: string): Promise<void> => {
    files += 1;
    world.deliver(`answer-${files}.xml`, text);
    await world.drained();
  };
  let files = 0;
  const withdraw = (file: string, minute: number, code = 'DS02') =>
    writeRefusal(file, code, `W-${minute}`).replace(/<CreDtTm>[^<]*/, `<CreDtTm>${at(minute)}`);
  const submit = (count: number) =>
    Promise.all(Array.from({ length: count }, () => payer.submit()));
  /** Cuts a file, which the bank never reads. */
  const cut = async (): Promise<string> => {
    const [id = ''] = await world.cut();
    world.drop(id);
    return id;
  };
  const listAwaited = async (file: string): Promise<object[]> => {
    const { data } = Object(await commands.json('attention', 'list'));
    return data.filter((row: { resource_id: string }) => row.resource_id === file);
  };
  const isAwaited = (file: string, expected: boolean) =>
    eventually(`a file that ${expected ? 'waits' : 'does not wait'}`, async () => {
      const rows = await listAwaited(file);
      return rows.length === Number(expected) && rows;
    });
  const isVerified = (id: string, result: PayeeResult | null) =>
    eventually(`a payout with ${result}`, async () => {
      const payout = await payer.read(id);
      return (payout.verification?.result ?? null) === result && payout;
    });

  test('shows each result, and calls somebody until the file is released and booked', async () => {
    const [first = '', second = '', third = ''] = await submit(3);
    const [id = ''] = await world.cut();
    const statuses = { [first]: 'RVNM', [second]: 'RVMC', [third]: 'RVNC' };
    await deliver(writeNameCheck(id, statuses, { at: at(0) }));
    const checked_at = new Date(at(0)).toISOString();
    const verification = { result: 'no_match', checked_at };
    const payout = { status: 'submitted', verification };
    expect(await isVerified(first, 'no_match')).toMatchObject(payout);
    for (const each of [first, second]) await payer.needsAttention(each, 'payee_not_verified');
    expect(await commands.json('payout', 'show', first)).toMatchObject({ payout });
    const results = { match: 0, close_match: 1, no_match: 1, not_possible: 0 };
    const reason = { resource: 'sepa_file', reason: 'awaiting_release', amount: 3_000, results };
    expect(await isAwaited(id, true)).toMatchObject([reason]);
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
    expect(await sepaFile('released', id, ...REASON)).toEqual({ file_id: id, changed: true });
    expect(await sepaFile('released', id, ...REASON)).toEqual({ file_id: id, changed: false });
    expect(await listAwaited(id)).toEqual([]);
    await world.bank.scan();
    await payer.becomes(first, 'completed');
    await payer.needsAttention(first, null);
    expect((await payer.read(first)).verification).toEqual(verification);
    await world.drained();
    const stored = await Promise.all([
      ...Object.values(world.book).flatMap((each) =>
        'find' in each ? [each.find().toArray()] : [],
      ),
      service.stores.callbacks.forResource(second),
    ]);
    expect(JSON.stringify(stored) + world.logged.join('')).not.toContain('Lindqvist');
  });

  test.each<[string, (file: string, ids: readonly string[]) => string]>([
    ['of the group', (file) => withdraw(file, 5)],
    ['of the batch', (file) => writeStatus(file, '', { at: at(5), batch: WITHDRAWN('DS24') })],
    [
      'of each payout, with a rejection that has no code',
      (file, ids) =>
        writeNameCheck(file, Object.fromEntries(ids.map((id) => [id, 'RJCT'])), { at: at(5) })
          .replaceAll('<AddtlInf>', '<Rsn><Cd>DS02</Cd></Rsn><AddtlInf>')
          .replace('PDNG', 'RJCT'),
    ],
    [
      'of each payout',
      (file, ids) =>
        writeNameCheck(file, Object.fromEntries(ids.map((id) => [id, 'RJCT'])), { at: at(5) })
          .replaceAll('<AddtlInf>', '<Rsn><Cd>DS25</Cd></Rsn><AddtlInf>')
          .replace('<GrpSts>PDNG</GrpSts>', ''),
    ],
  ])('frees the payouts of a withdrawn file by the status %s', async (_level, write) => {
    const ids = await submit(2);
    const file = await cut();
    await deliver(writeNameCheck(file, { [String(ids[0])]: 'RVNM' }, { at: at(0) }));
    await isAwaited(file, true);
    await deliver(write(file, ids));
    await world.fileBecomes(file, 'refused');
    await isAwaited(file, false);
    expect(await sepaFile('resend', file)).toMatchObject({ payouts: 2 });
    await world.send();
    for (const id of ids) await payer.becomes(id, 'completed');
  });

  test('keeps payouts without a match out of the next file, where their account holds them', async () => {
    const hold = (state: string) =>
      commands.json('account', 'update', payer.account_id, '--hold-unverified', state);
    expect(await hold('on')).toMatchObject({ hold_unverified: true });
    const [released = '', failed = '', good = ''] = await submit(3);
    const file = await cut();
    // The answers come in the wrong order.
    await deliver(withdraw(file, 5));
    await world.fileBecomes(file, 'refused');
    const statuses = { [released]: 'RVNM', [failed]: 'RVNA' };
    await deliver(writeNameCheck(file, statuses, { group: 'RCVM', at: at(0) }));
    for (const id of [released, failed]) await payer.needsAttention(id, 'payee_not_verified');
    expect(await listAwaited(file)).toEqual([]);
    expect(await sepaFile('resend', file)).toMatchObject({ payouts: 1 });
    expect(await sepaFile('resend', file)).toMatchObject({ payouts: 0 });
    await world.send();
    await payer.becomes(good, 'completed');
    expect(await world.line(released)).toMatchObject({ state: 'unverified', file_id: null });
    const act = (id: string, what: string) =>
      commands.json('payout', 'act', id, what, '--operator', 'ada', ...REASON);
    expect(await act(failed, 'mark_failed')).toMatchObject({ status: 'failed' });
    expect(await act(released, 'release_unverified')).toMatchObject({ attention: null });
    await world.lineBecomes(released, 'open');
    await world.send();
    await payer.becomes(released, 'completed');
    expect((await world.line(failed))?.state).toBe('cancelled');
    await runApproved(commands, 'account', 'update', payer.account_id, '--hold-unverified', 'off');
    const after = await commands.json('account', 'show', payer.account_id);
    expect(after).toMatchObject({ hold_unverified: false });
  });

  test('frees what the bank withdraws alone, and needs its word for what it has accepted', async () => {
    const [withdrawn = '', other = ''] = await submit(2);
    const file = await cut();
    const one = writeNameCheck(file, { [withdrawn]: 'RJCT' }, { group: 'PART', at: at(1) });
    await deliver(one.replace('<AddtlInf>', '<Rsn><Cd>DS02</Cd></Rsn><AddtlInf>'));
    await world.lineBecomes(withdrawn, 'waiting');
    expect(await sepaFile('resend', file)).toMatchObject({ payouts: 1 });
    expect(await world.line(other)).toMatchObject({ state: 'in_file', file_id: file });
    await deliver(withdraw(file, 2));
    await world.fileBecomes(file, 'refused');
    const { code } = await commands.refusal('sepa', 'file', 'resend', file);
    expect(code).toBe('held_by_bank');
    await deliver(writeNotification({ id: other, message: 'V-1', reference: 'V-1' }));
    await payer.becomes(other, 'completed');
    await world.send();
    await payer.becomes(withdrawn, 'completed');
  });

  const seed = Number(process.env['NAME_CHECK_SEED'] ?? Date.now() % 1_000_000);
  test(`has the newest result of each payout, whatever comes first (seed ${seed})`, async () => {
    const random = createRandom(seed);
    for (let round = 0; round < 6; round += 1) {
      const ids = await submit(random.integer(1, 3));
      const file = await cut();
      const newest = new Map<string, PayeeResult>();
      let waits = false;
      const answers: string[] = [];
      for (let minute = 1; minute <= random.integer(1, 4); minute += 1) {
        const listed = ids.filter(() => random.chance(0.7));
        const results = listed.map((id) => [id, random.pick([...PAYEE_RESULTS, null])] as const);
        const level = random.pick(['group', 'payments', 'none'] as const);
        const isOfAll = level !== 'none' && listed.length > 0;
        const known = results.filter(([, result]) => result !== null);
        for (const [id, result] of known) if (result !== null) newest.set(id, result);
        const others = isOfAll ? ids.filter((id) => !listed.includes(id)) : [];
        for (const id of others) newest.set(id, 'match');
        waits ||= known.length > 0 || isOfAll;
        const statuses = results.map(([id, result]) => [id, result ? CODES[result] : 'RVNC']);
        const status = isOfAll ? { [level]: 'RCVM' } : {};
        answers.push(
          writeNameCheck(file, Object.fromEntries(statuses), {
            ...{ version: random.pick(['03', '10', '12', '15']), at: at(minute), ...status },
            message: `R-${round}-${minute}`,
          }),
        );
      }
      const shuffled = answers.toSorted(() => random.integer(0, 2) - 1);
      for (const text of [...shuffled, random.pick(answers).replace('R-', 'AGAIN-')]) {
        await deliver(text);
        if (random.chance(0.2)) await world.restart();
      }
      for (const id of ids) {
        const result = newest.get(id) ?? null;
        await isVerified(id, result);
        const isFlagged = result !== null && result !== 'match';
        await payer.needsAttention(id, isFlagged ? 'payee_not_verified' : null);
      }
      await isAwaited(file, waits);
      await deliver(withdraw(file, 50));
      await world.fileBecomes(file, 'refused');
      expect(await world.resend(file)).toBe(ids.length);
      const next = await world.send();
      for (const id of ids) await payer.becomes(id, 'completed');
      await isAwaited(next, false);
    }
  });
});

const WITHDRAWN = (code: string) =>
  `<PmtInfSts>RJCT</PmtInfSts><StsRsnInf><Rsn><Cd>${code}</Cd></Rsn></StsRsnInf>`;
