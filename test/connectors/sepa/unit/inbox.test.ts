import { makeReference } from '../../../../connectors/sepa/definition';
import { buildPaymentReports, buildReports } from '../../../../connectors/sepa/lines';
import { readBankMessages } from '../../../../connectors/sepa/messages';
import { addCredits, changeLine } from '../../../../connectors/sepa/movements';
import { readCallback } from '../../../../src/domain/banks/callback';
import { isCreditorReference } from '../../../../src/domain/payment/creditor-reference';
import {
  type LineMovement,
  type SepaLine,
  shortenId,
} from '../../../../src/service/banks/sepa/book';
import { type CamtEntry, camt, TEST_DAY, TEST_IBAN, txDtls } from '../../../support/camt';
import { DAY, writeNameCheck, writeReturn, writeStatus as writeStatusOf } from '../bank-files';

const PAYOUT = '7b1e2c90-6a41-4c65-9a0b-2f64d50cf0aa';
const OTHER = '00000000-6a41-4c65-9a0b-2f64d50cf0aa';
const FILE = '0b7d6d524a3f4a5d9b530f0f6d1a3c11';
const MONEY = { amount: 1_000, currency: 'EUR', value_date: TEST_DAY };

async function readBankMessage(file: Buffer) {
  const [message, ...more] = await readBankMessages(file);
  if (message === undefined || more.length > 0) throw new Error('not one message');
  return message;
}

describe('a file of the bank', () => {
  const read = (text: string | Buffer) => readBankMessage(Buffer.from(text));
  const writeStatus = (group: string, batch = '', version = '10') =>
    writeStatusOf(FILE, group, { batch, version });
  const writeReason = (code: string) =>
    `<StsRsnInf><Rsn><Cd>${code}</Cd></Rsn><AddtlInf>Ada Lovelace</AddtlInf></StsRsnInf>`;

  const writePayout = (id: string, more: string) =>
    `<TxInfAndSts><OrgnlEndToEndId>${shortenId(id)}</OrgnlEndToEndId>${more}</TxInfAndSts>`;

  test.each(['03', '10', '12', '15'])(
    'in pain.002.001.%s has the status and code of each payout of ours, and no name',
    async (version) => {
      const instruction = `<OrgnlInstrId>${shortenId(OTHER)}</OrgnlInstrId>`;
      const transactions = [
        writePayout(PAYOUT, `<TxSts>RJCT</TxSts>${writeReason('AC04')}`),
        writePayout('X', '<TxSts>ACCP</TxSts>').replace('<Orgnl', `${instruction}<Orgnl`),
        writePayout('FOREIGN', '<TxSts>RJCT</TxSts>'),
      ];
      const text = writeStatus('<GrpSts>PART</GrpSts>', transactions.join(''), version);
      const HEAD = { file_id: FILE, message_id: 'S-1', created_at: `${DAY}T10:00:00.000Z` };
      const payouts = [
        { payout_id: PAYOUT, status: 'RJCT', code: 'AC04' },
        { payout_id: OTHER, status: 'ACCP', code: null },
      ];
      expect(await read(text)).toEqual({
        kind: 'status',
        message: `pain.002.001.${version}`,
        reports: [{ ...HEAD, status: 'PART', code: null, payouts, verification: null }],
      });
    },
  );

  const batch = (status: string, ...codes: string[]) =>
    `<PmtInfSts>${status}</PmtInfSts>${codes.map(writeReason).join('')}`;
  const group = (status: string, ...codes: string[]) =>
    `<GrpSts>${status}</GrpSts>${codes.map(writeReason).join('')}`;
  const twice = `<TxSts>RJCT</TxSts>${writeReason('AC04')}${writeReason('AM05')}`;
  const own = '<StsRsnInf><Rsn><Prtry>Call Ada</Prtry></Rsn></StsRsnInf>';
  const rejected = [{ payout_id: PAYOUT, status: 'RJCT', code: 'AM05' }];

  test.each<[string, group: string, batch: string, status: string, string | null, object[]]>([
    ['the status of a batch that names no payout', '', batch('RJCT', 'AM10'), 'RJCT', 'AM10', []],
    ['that of its batch, not the group', group('RJCT'), batch('ACCP'), 'ACCP', null, []],
    [
      'of several reasons the one by which the bank had it before',
      group('PART', 'DU01'),
      batch('RJCT', 'FF01') + writePayout(PAYOUT, twice),
      ...(['RJCT', 'DU01', rejected] as const),
    ],
    [
      'the rejection of its batch, also for a payout without a status',
      group('PART', 'FF01'),
      batch('RJCT', 'AM05') + writePayout(PAYOUT, ''),
      ...(['RJCT', 'AM05', rejected] as const),
    ],
    ['no code for a reason in words of the bank', group('RJCT') + own, '', 'RJCT', null, []],
  ])('has %s', async (_what, ofGroup, ofBatch, status, code, payouts) => {
    const text = writeStatus(ofGroup, ofBatch);
    expect(await read(text)).toMatchObject({ reports: [{ status, code, payouts }] });
  });

  const NAMES = { [PAYOUT]: 'RVNM', [OTHER]: 'RVMC' };
  const BOTH = { [PAYOUT]: 'no_match', [OTHER]: 'close_match' };
  test.each<[string, Parameters<typeof writeNameCheck>[1], object, object | null]>([
    ['of payouts', NAMES, {}, { isAlone: true, results: BOTH, others: null }],
    ['of a batch', NAMES, { payments: 'RCVM' }, { isAlone: true, others: 'match' }],
    ['of a batch, not the group', {}, { payments: 'RVNC', group: 'RCVC' }, { others: null }],
    ['of a group', { [OTHER]: 'RVNA' }, { group: 'RCVM' }, { others: 'match' }],
    ['of all', {}, { group: 'RCVC' }, { isAlone: true, others: 'match' }],
    ['of all that match none', {}, { group: 'RVNM' }, { others: 'no_match' }],
    ['of some of which it lists none', {}, { group: 'RCVM' }, { others: null }],
    ['of those that it lists', { [PAYOUT]: 'RVNM' }, { group: 'RVNM' }, { others: null }],
    ['without a status of its own', { [PAYOUT]: '' }, { payments: 'RVNA', group: '' }, {}],
    ['that is not over', { [PAYOUT]: 'RVNC' }, {}, { isAlone: true, results: {}, others: null }],
    ['with an acceptance', NAMES, { group: 'ACSP' }, { isAlone: false, results: BOTH }],
    ['that never was', { [PAYOUT]: 'ACCP' }, {}, null],
  ])('has the results of a name check: %s', async (_what, statuses, more, expected) => {
    const message = await read(writeNameCheck(FILE, statuses, { version: '15', ...more }));
    const [report] = message.kind === 'status' ? message.reports : [];
    const { verification } = report ?? {};
    const results = verification && Object.fromEntries(verification.results);
    const isEqual = verification === null ? null : { ...verification, results };
    if (expected === null) expect(isEqual).toBeNull();
    else expect(isEqual).toMatchObject({ listed: Object.keys(statuses), ...expected });
    expect(JSON.stringify(message)).not.toContain('Lindqvist');
  });

  test('in pacs.004 has a return, with the amount before its charges', async () => {
    const about = { source: 'interbank', bank_reference: 'RTR-20', code: 'AC04' };
    const returned = { payout_id: PAYOUT, kind: 'returned', ...MONEY, value_date: DAY };
    expect(await read(writeReturn(PAYOUT, 950, 50))).toEqual({
      ...{ kind: 'returns', message: 'pacs.004.001.09', movements: [{ ...returned, ...about }] },
    });
  });

  test('in camt.053 has the bookings and returns of our payouts, and nothing of others', async () => {
    const refs = `<Refs><EndToEndId>${shortenId(PAYOUT)}</EndToEndId></Refs>`;
    const details = `<TxDtls>${refs}<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf></TxDtls>`;
    const entries = [
      { amount: -1_000, reference: shortenId(PAYOUT), bank_reference: 'B-1' },
      { amount: 1_000, bank_reference: 'B-2', details },
      { amount: -77, reference: 'RENT' },
      { amount: -5, code: 'PMNT.MDOP.CHRG' },
      { amount: -300, reference: shortenId(OTHER), status: 'PDNG' },
    ];
    const movement = { payout_id: PAYOUT, source: 'statement', ...MONEY };
    expect(await read(camt([{ opening: 5_000, closing: 4_918, entries }]))).toMatchObject({
      statements: [{ iban: TEST_IBAN }],
      movements: [
        { ...movement, kind: 'booked', bank_reference: 'B-1', code: null },
        { ...movement, kind: 'returned', bank_reference: 'B-2', code: 'AC04' },
      ],
    });
  });

  const details = '<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>';
  test.each<[string, number, Partial<CamtEntry>, string]>([
    ['a debit that it reverses', 1_000, { reversal: true }, 'debit_reversed'],
    ['a return that it calls a reversal', 1_000, { reversal: true, details }, 'returned'],
    ['a return by its code', 1_000, { reversal: true, code: 'PMNT.ICDT.RRTN' }, 'returned'],
    ['a return that it reverses', -1_000, { reversal: true, details }, 'return_reversed'],
    ['a debit', -1_000, {}, 'booked'],
  ])('has what the bank corrects: %s', async (_what, amount, more, kind) => {
    const refs = `<Refs><EndToEndId>${shortenId(PAYOUT)}</EndToEndId></Refs>`;
    const booking = `<TxDtls>${refs}${more.details ?? ''}</TxDtls>`;
    const entries = [{ amount, ...more, bank_reference: 'B-1', details: booking }];
    const movements = [{ payout_id: PAYOUT, kind, amount: 1_000, currency: 'EUR' }];
    expect(await read(camt([{ entries }]))).toMatchObject({ movements });
  });

  test('has reversals of the opposite sign where only so it adds up, with a notice', async () => {
    const reference = shortenId(PAYOUT);
    const entries = [
      { amount: -1_000, reference, reversal: true },
      {
        amount: -30,
        details: txDtls('EUR', -10, 'X') + txDtls('EUR', -20, reference),
        reversal: true,
      },
      { amount: -7, reference: 'RENT' },
    ];
    const statement = { opening: 10_000, closing: 11_023, entries };
    const found = await read(camt([statement]));
    expect(found).toMatchObject({
      statements: [{ notice: expect.stringMatching(/S-1 .* opposite sign/) }],
      movements: [
        { kind: 'debit_reversed', amount: 1_000 },
        { kind: 'debit_reversed', amount: 20 },
      ],
    });
    const asIs = Object(await read(camt([{ ...statement, closing: undefined }]))).statements[0];
    const neither = Object(await read(camt([{ ...statement, closing: 1 }]))).statements[0];
    for (const each of [asIs, neither]) expect(each).not.toHaveProperty('notice');
  });

  const renameMessage = (name: string) => writeStatus('').replaceAll('pain.002.001.10', name);

  test.each([
    ['a bomb of entities', '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', 'document type'],
    ['an unknown version', renameMessage('pain.002.001.99'), 'pain.002.001.99'],
    ['our own file', renameMessage('pain.001.001.09'), 'pain.001.001.09'],
    ['a status that is none', writeStatus('<GrpSts>maybe</GrpSts>'), 'GrpSts in line 1'],
    ['no message', writeStatus('').replaceAll('CstmrPmtStsRpt', 'Foo'), 'lacks CstmrPmtStsRpt'],
    ['half a file', writeStatus('').slice(0, 200), 'not complete'],
  ])('is refused in words if it is or has %s', async (_what, text, words) => {
    await expect(read(text)).rejects.toThrow(words);
  });
});

describe('a transfer to us', () => {
  const REFERENCE = makeReference(PAYOUT, 0);
  const writeText = (...lines: string[]) => lines.map((line) => `<Ustrd>${line}</Ustrd>`).join('');
  const structured = `<Strd><CdtrRefInf><Ref>${REFERENCE}</Ref></CdtrRefInf></Strd>`;
  const writeTransfer = (remittance: string, more = '') => ({
    details:
      '<TxDtls><Refs><EndToEndId>NOTPROVIDED</EndToEndId></Refs><RltdPties><Dbtr><Pty>' +
      `<Nm>Ada Lovelace</Nm></Pty></Dbtr></RltdPties><RmtInf>${remittance}</RmtInf>${more}</TxDtls>`,
  });
  const note = `Thank you for the flowers ${REFERENCE} Ada`;
  const named = writeTransfer(writeText(REFERENCE));
  const returned = '<RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf>';

  async function readCredits(entry: Partial<CamtEntry>, message: string) {
    const entries = [{ amount: 1_000, bank_reference: 'B-1', ...entry }];
    const found = await readBankMessage(camt([{ entries }], { message }));
    if (found.kind !== 'statements') throw new Error(found.kind);
    expect(JSON.stringify(found)).not.toMatch(/Ada|Lovelace|flowers/);
    return found.credits;
  }

  test('has a reference of its own for each payment, which is always the same', () => {
    expect(isCreditorReference(REFERENCE)).toBe(true);
    expect(makeReference(PAYOUT, 0)).toBe(REFERENCE);
    expect(makeReference(PAYOUT, 1)).not.toBe(REFERENCE);
    expect(makeReference(OTHER, 0)).not.toBe(REFERENCE);
  });

  test.each<[string, Partial<CamtEntry>, string?]>([
    ['in the text', writeTransfer(writeText(note))],
    ['in a text that is cut at 35', writeTransfer(writeText(note.slice(0, 35), note.slice(35)))],
    ['in the field for it', writeTransfer(structured)],
    ['in text and field', writeTransfer(writeText(note) + structured)],
    ['as the EndToEndId of a statement', { reference: REFERENCE }, 'statement'],
  ])('is a credit by its reference %s', async (_where, entry, source = 'notification') => {
    const message = source === 'statement' ? 'camt.053.001.08' : 'camt.054.001.08';
    const credit = { reference: REFERENCE, bank_reference: 'B-1', ...MONEY };
    expect(await readCredits(entry, message)).toEqual([{ ...credit, source }]);
  });

  test.each([
    ['equal parts', 500, 500],
    ['parts of other amounts', 400, 600],
  ])(
    'booked with another as one entry counts by its place in it: %s',
    async (_what, ...amounts) => {
      const details = amounts.map((amount) => txDtls('EUR', amount, REFERENCE)).join('');
      const announced = await readCredits({ details }, 'camt.054.001.08');
      expect(announced).toMatchObject([
        { bank_reference: 'B-1#1.1', amount: amounts[0] },
        { bank_reference: 'B-1#1.2', amount: amounts[1] },
      ]);
      const held = addCredits([], announced, 'then') ?? [];
      expect(held).toHaveLength(2);
      const stated = await readCredits({ details }, 'camt.053.001.08');
      expect(addCredits(held, stated, 'later')).toMatchObject([
        { amount: amounts[0] },
        { amount: amounts[1] },
      ]);
    },
  );

  test('that the bank reverses is reported with its amount', async () => {
    const reversed = { ...named, amount: -1_000, reversal: true, bank_reference: 'B-2' };
    const [credit, reversal] = [
      ...(await readCredits(named, 'camt.054.001.08')),
      // Another kind of message, which might name a credit that it has not named yet.
      ...(await readCredits(reversed, 'camt.053.001.08')),
    ];
    if (credit === undefined || reversal === undefined) throw new Error('not read');
    const credits = addCredits([], [credit, reversal], 'then') ?? [];
    expect(addCredits(credits, [reversal, credit], 'later')).toBeUndefined();
    const reports = buildPaymentReports({ _id: PAYOUT, credits });
    expect(
      reports.map(({ name, callback }) => [name, callback.callback_id, callback.amount]),
    ).toEqual([
      ['settled', `sepa:credited:${PAYOUT}:B-1:1000EUR`, 1_000],
      ['clawed_back', `sepa:clawed_back:${PAYOUT}:B-2:1000EUR`, 1_000],
    ]);
  });

  test.each<[string, Partial<CamtEntry>]>([
    ['has no reference', writeTransfer(writeText('flowers'))],
    ['has two references', writeTransfer(writeText(REFERENCE, makeReference('other', 0)))],
    ['leaves', { ...named, amount: -1_000 }],
    ['comes back', writeTransfer(writeText(REFERENCE), returned)],
    ['is a reversal of a debit', { ...named, reversal: true }],
    ['is not booked', { ...named, status: 'PDNG' }],
  ])('that %s is not a credit', async (_what, entry) => {
    expect(await readCredits(entry, 'camt.054.001.08')).toEqual([]);
  });
});

describe('a movement', () => {
  const createReporter =
    (source: 'interbank' | 'notification' | 'statement') =>
    (bank_reference: string | null, amount = 1_000) => ({
      ...{ ...MONEY, source, bank_reference, amount },
    });
  const bank = createReporter('interbank');
  const note = createReporter('notification');
  const stmt = createReporter('statement');
  type Messages = readonly (readonly ReturnType<typeof bank>[])[];

  /** Applies messages one after the other, each of them again as after a kill. */
  function applyAll<F>(
    messages: Messages,
    empty: F,
    apply: (facts: F, message: Messages[number], at: string) => F | undefined,
  ): F {
    return messages.reduce((facts, message) => {
      const changed = apply(facts, message, 'then') ?? facts;
      expect(apply(changed, message, 'later')).toBeUndefined();
      return changed;
    }, empty);
  }

  const applyCredits = (messages: Messages) =>
    applyAll<LineMovement[]>(messages, [], (facts, message, at) => {
      const credits = message.map((movement) => ({ ...movement, reference: 'RF18' }));
      return addCredits(facts, credits, at);
    });

  type Facts = Pick<SepaLine, 'state' | 'booked' | 'returned' | 'others'>;
  const EMPTY: Facts = { state: 'in_file', booked: null, returned: null, others: [] };

  const applyMovements = (kind: 'booked' | 'returned', messages: Messages) =>
    applyAll(messages, EMPTY, (facts, message, at) => {
      const movements = message.map((each) => ({ ...each, payout_id: PAYOUT, kind, code: null }));
      const change = changeLine(facts, movements, at);
      return change && { ...facts, ...change };
    });

  test.each<[string, Messages, string[]]>([
    ['one in two messages', [[note('A')], [stmt('A')]], ['A 1000']],
    ['an interbank return', [[bank('R')], [note('A')], [stmt('A')]], ['R 1000']],
    ['one whose references differ', [[note('A')], [stmt('X')]], ['A 1000']],
    ['one without a reference', [[note(null)], [stmt('X')]], ['null 1000']],
    ['one that loses its reference', [[stmt('X')], [note(null)]], ['X 1000']],
    ['one that is repeated without its reference', [[note('A')], [note(null)]], ['A 1000']],
    ['a second in the same kind of message', [[note('A')], [note('B')]], ['A 1000', 'B 1000']],
    ['two at once', [[stmt('A'), stmt('B')]], ['A 1000', 'B 1000']],
    [
      'two in both',
      [
        [note('A'), note('B')],
        [stmt('B'), stmt('A')],
      ],
      ['A 1000', 'B 1000'],
    ],
    ['the new one first', [[note('A')], [stmt('B'), stmt('A')]], ['A 1000', 'B 1000']],
    ['new names', [[note('A')], [note('B')], [stmt('X'), stmt('Y')]], ['A 1000', 'B 1000']],
    ['another amount, the same reference', [[note('A')], [stmt('A', 900)]], ['A 1000', 'A 900']],
    ['a part, and the rest', [[note('A', 400)], [note('B', 600)]], ['A 400', 'B 600']],
  ])('counts once, whichever messages report it: %s', (_what, messages, expected) => {
    const describeFacts = (facts: readonly (LineMovement | null)[]) =>
      facts.map((fact) => `${fact?.bank_reference} ${fact?.amount}`);
    expect(describeFacts(applyCredits(messages))).toEqual(expected);
    for (const kind of ['booked', 'returned'] as const) {
      const { [kind]: first, others, state } = applyMovements(kind, messages);
      expect(describeFacts([first, ...others])).toEqual(expected);
      expect(new Set([state, ...others.map((other) => other.kind)])).toEqual(new Set([kind]));
    }
  });

  test.each<[string, Messages, string[]]>([
    ['before charges, then after', [[bank('R')], [note('A', 995)], [stmt('A', 995)]], ['R 1000']],
    ['after charges, then before', [[note('A', 995)], [bank('R')]], ['A 995']],
    [
      'twice after its charges',
      [[bank('R')], [stmt('A', 995)], [stmt('B', 995)]],
      ['R 1000', 'B 995'],
    ],
  ])('counts a return once that is reported %s', (_what, messages, expected) => {
    const { returned, others } = applyMovements('returned', messages);
    const facts = [returned, ...others].map((fact) => `${fact?.bank_reference} ${fact?.amount}`);
    expect(facts).toEqual(expected);
  });

  test('of a payment is reported with its amount, under one id', () => {
    const credits = applyCredits([[note('A', 400)], [note(null, 600)]]);
    const facts = { ...MONEY, occurred_at: 'then' };
    const named = { callback_id: `sepa:credited:${PAYOUT}:A:400EUR`, amount: 400 };
    const nameless = { callback_id: `sepa:credited:${PAYOUT}::600EUR`, amount: 600 };
    expect(buildPaymentReports({ _id: PAYOUT, credits })).toEqual(
      [
        { ...facts, ...named, bank_reference: 'A' },
        { ...facts, ...nameless },
      ].map((callback) => ({
        ...{ resource: 'payment', resource_id: PAYOUT, name: 'settled', callback },
      })),
    );
  });
});

describe('a report about a payout', () => {
  const money = { amount: 1_000, currency: 'EUR' };
  const none = { failure: null, duplicate: null, booked: null, returned: null };
  const LINE = { _id: PAYOUT, file_id: FILE, ...money, ...none, others: [] };
  const at = '2026-10-05T10:00:00.000Z';

  const fact = { ...MONEY, at, references: [], code: null, value_date: null };
  const booked = { ...fact, bank_reference: 'B-1', value_date: TEST_DAY };
  const returned = { ...fact, bank_reference: 'B-1', amount: 990, code: 'AC04' };
  const reason = 'The recipient’s bank sent the transfer back.';
  const REJECTED = 'The bank rejected the transfer.';
  const verification = { result: 'no_match', checked_at: at } as const;

  test.each<[string, Partial<Parameters<typeof buildReports>[0]>, [string, string, object][]]>([
    [
      'a booking and a return',
      { booked, returned },
      [
        ['completed', 'booked', { bank_reference: 'B-1', value_date: TEST_DAY }],
        [
          'returned',
          'returned',
          { ...money, amount: 990, code: 'AC04', reason, bank_reference: 'B-1' },
        ],
      ],
    ],
    ['a name check', { verification }, [['payee_verified', 'payee', { result: 'no_match' }]]],
    [
      'a call of a duplicate',
      { duplicate: { code: 'AM05', at } },
      [['called_duplicate', 'duplicate', { code: 'AM05', reason: expect.any(String) }]],
    ],
    [
      'a rejection without a code',
      { failure: { code: null, message: REJECTED, at } },
      [['failed', 'failed', { reason: REJECTED }]],
    ],
  ])('has one id for each fact, in the order of the facts: %s', (_what, facts, expected) => {
    const more: Record<string, string> = { payee: `:no_match:${at}`, duplicate: `:${FILE}` };
    expect(buildReports({ ...LINE, ...facts })).toEqual(
      expected.map(([name, kind, about]) => ({
        ...{ resource: 'payout', resource_id: PAYOUT, name },
        callback: {
          callback_id: `sepa:${kind}:${PAYOUT}${more[kind] ?? ''}`,
          ...{ occurred_at: at, ...about },
        },
      })),
    );
  });

  test('names each movement that contradicts another by its reference and amount, and states an amount that differs', () => {
    const others = (['return_reversed', 'returned', 'debit_reversed', 'booked'] as const).map(
      (kind) => ({ ...fact, kind, bank_reference: `B-${kind}` }),
    );
    const moved = { booked: { ...booked, amount: 950 }, returned: { ...returned, amount: 1_000 } };
    const reports = buildReports({ ...LINE, ...moved, others });
    const rows = reports.map(({ name, callback }) => [name, callback.callback_id, callback.amount]);
    expect(rows).toEqual([
      ['completed', `sepa:booked:${PAYOUT}`, 950],
      ['debit_reversed', `sepa:debit_reversed:${PAYOUT}:B-debit_reversed:1000EUR`, 1_000],
      ['completed', `sepa:booked:${PAYOUT}:B-booked:1000EUR`, 1_000],
      ['returned', `sepa:returned:${PAYOUT}`, undefined],
      ['return_reversed', `sepa:return_reversed:${PAYOUT}:B-return_reversed:1000EUR`, 1_000],
      ['returned', `sepa:returned:${PAYOUT}:B-returned:1000EUR`, 1_000],
    ]);
  });

  test('has an identifier that names the place in a reference, as no reference can', () => {
    const names = ['A%231.2', 'A#1.2', `${'%CE%A9'.repeat(16)}#12345.12345`];
    const others = names.map((name) => ({
      ...{ ...fact, kind: 'return_reversed' as const, bank_reference: name },
    }));
    const callbacks = buildReports({ ...LINE, others }).map(({ callback }) => callback);
    expect(new Set(callbacks.map(({ callback_id }) => callback_id)).size).toBe(names.length);
    for (const callback of callbacks) expect(readCallback(callback)).toEqual(callback);
  });
});
