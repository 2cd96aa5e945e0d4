import { useFixture } from '../support/fixture';
import { difference, type LedgerSetting, useLedgerSetting } from './ledger-setting';

const setting = useLedgerSetting();
const ids = useFixture(async () => setting.ids);
const paidOut = useFixture(async () => setting.paidOut);

describe('ledger verify, of payments and refunds', () => {
  test('tells a settled payment without its posting, and a posting of one that is not', async () => {
    await setting.documents('ledger_postings').deleteOne({ _id: `payment_settled:${ids.settled}` });
    await setting.change('payments', ids.authorized, { status: 'settled' });
    await setting.change('payments', ids.refunded, { status: 'failed' });
    const found = (await setting.differences()).filter(({ subject }) => subject !== setting.book);
    const misplaced = [ids.back, ids.failed, ids.processing].map((id) =>
      difference('refund_misplaced', id, 'status of the payment', 'settled', 'failed'),
    );
    expect(found).toHaveLength(3 + misplaced.length);
    expect(found).toEqual(
      expect.arrayContaining([
        difference(
          'posting_missing',
          ids.settled,
          'payment_settled',
          `balances.main.available 99999999999, clearing.bank -99999999999 in ${setting.book}`,
          null,
        ),
        expect.objectContaining({ check: 'posting_missing', subject: ids.authorized }),
        difference(
          'posting_extra',
          ids.refunded,
          `payment_settled:${ids.refunded}`,
          null,
          `balances.main.available 1000, clearing.bank -1000 in ${setting.book}`,
        ),
        ...misplaced,
      ]),
    );
  });

  test('tells a posting twice, and one of a resource that is not there', async () => {
    const legs = ['clearing.bank', 'balances.main.available'] as const;
    await setting.post('payment_settled:again', ...legs, 1_000);
    await setting.change('ledger_postings', 'payment_settled:again', { resource_id: ids.refunded });
    await setting.post('payment_settled:nobody', ...legs, 5);
    await setting.documents('refunds').deleteOne({ _id: ids.failed });
    const found = await setting.differences();
    expect(found.map(({ check, subject }) => [check, subject]).sort()).toEqual(
      [
        ['claim_without_resource', ids.failed],
        ['posting_extra', ids.refunded],
        ['posting_misnamed', 'payment_settled:again'],
        ['resource_missing', 'nobody'],
        ['resource_missing', ids.failed],
        ['resource_missing', ids.failed],
      ].sort(),
    );
  });

  test('tells an amount, a bank and a currency that are not those of the posting', async () => {
    await setting.change('payments', ids.settled, { amount: 99_999_999_998 });
    await setting.change('refunds', ids.back, { connector: 'other' });
    await setting.change('refunds', ids.failed, { currency: 'USD' });
    const found = await setting.differences();
    const usd = `${setting.account_id}:sandbox:USD`;
    const legs = {
      refund_accepted: 'balances.main.available -200, transit.refunds 200',
      refund_failed: 'balances.main.available 200, transit.refunds -200',
    };
    const misplaced = (subject: string, part: string, expected: string, was: string) =>
      difference('refund_misplaced', subject, part, expected, was);
    expect(found).toHaveLength(6);
    expect(found).toEqual(
      expect.arrayContaining([
        misplaced(ids.back, 'connector', 'bank', 'other'),
        misplaced(ids.failed, 'currency', 'EUR', 'USD'),
        difference(
          'posting_differs',
          ids.settled,
          `payment_settled:${ids.settled}`,
          `balances.main.available 99999999998, clearing.bank -99999999998 in ${setting.book}`,
          `balances.main.available 99999999999, clearing.bank -99999999999 in ${setting.book}`,
        ),
        difference(
          'posting_differs',
          ids.back,
          `refund_settled:${ids.back}`,
          `clearing.other 300, transit.refunds -300 in ${setting.book}`,
          `clearing.bank 300, transit.refunds -300 in ${setting.book}`,
        ),
        ...Object.entries(legs).map(([kind, moved]) =>
          difference(
            'posting_differs',
            ids.failed,
            `${kind}:${ids.failed}`,
            `${moved} in ${usd}`,
            `${moved} in ${setting.book}`,
          ),
        ),
      ]),
    );
  });

  test('tells a refund whose state its postings do not bear out', async () => {
    await setting.change('refunds', ids.back, { status: 'failed' });
    await setting.change('payments', ids.refunded, { refunded: 500 + 200 });
    expect(
      (await setting.differences()).map(({ check, subject, part }) => [check, subject, part]),
    ).toEqual([
      ['posting_missing', ids.back, 'refund_failed'],
      ['posting_extra', ids.back, `refund_settled:${ids.back}`],
    ]);
  });

  test('tells a payment that counts other refunds than it has, or more than its amount', async () => {
    await setting.change('payments', ids.refunded, { refunded: 0 });
    await setting.change('payments', ids.settled, { refunded: 100_000_000_000 });
    const found = await setting.differences();
    expect(found).toHaveLength(3);
    expect(found).toEqual(
      expect.arrayContaining([
        difference('refunded_differs', ids.refunded, 'refunded', 1_000, 0),
        difference('refunded_differs', ids.settled, 'refunded', 0, 100_000_000_000),
        difference(
          'refunded_exceeds',
          ids.settled,
          'refunded',
          'at most 99999999999',
          100_000_000_000,
        ),
      ]),
    );
  });
});

describe('ledger verify, of payouts', () => {
  const parts = (found: Awaited<ReturnType<LedgerSetting['differences']>>) =>
    found.map(({ check, subject, part }) => [check, subject, part]).sort();
  const missing = (id: string, kind: string) => ['posting_missing', id, kind];
  const extra = (id: string, kind: string) => ['posting_extra', id, `${kind}:${id}`];

  test('tells a state that the postings do not bear out', async () => {
    await setting.change('payouts', paidOut.created, { status: 'sent' });
    await setting.change('payouts', paidOut.sent, { status: 'submitted' });
    await setting.change('payouts', paidOut.completed, { status: 'returned' });
    await setting.change('payouts', paidOut.returned, { status: 'failed' });
    expect(parts(await setting.differences())).toEqual(
      [
        missing(paidOut.created, 'payout_captured'),
        extra(paidOut.sent, 'payout_captured'),
        missing(paidOut.completed, 'payout_returned'),
        missing(paidOut.returned, 'payout_reversed'),
        extra(paidOut.returned, 'payout_returned'),
      ].sort(),
    );
  });

  test('tells what was released from what was given back, by whether it was sent', async () => {
    await setting.change('payouts', paidOut.failed, { sent_at: '2026-03-01T12:00:00.000Z' });
    await setting.change('payouts', paidOut.failedAfterSent, { sent_at: null });
    expect(parts(await setting.differences())).toEqual(
      [
        missing(paidOut.failed, 'payout_captured'),
        missing(paidOut.failed, 'payout_reversed'),
        extra(paidOut.failed, 'payout_released'),
        missing(paidOut.failedAfterSent, 'payout_released'),
        extra(paidOut.failedAfterSent, 'payout_captured'),
        extra(paidOut.failedAfterSent, 'payout_reversed'),
      ].sort(),
    );
  });

  test('tells an amount, a fee, a balance and a bank that are not those of the posting', async () => {
    await setting.change('payouts', paidOut.created, { fee: 49 });
    await setting.change('payouts', paidOut.submitted, { balance_account: 'main' });
    await setting.change('payouts', paidOut.sent, { connector: 'other' });
    await setting.change('payouts', paidOut.returned, { amount: 999, fee: 51 });
    const found = await setting.differences();
    expect(found).toHaveLength(5);
    const differs = (id: string, kind: string, expected: string, was: string) =>
      difference(
        'posting_differs',
        id,
        `${kind}:${id}`,
        `${expected} in ${setting.payoutsBook}`,
        `${was} in ${setting.payoutsBook}`,
      );
    const reserved = 'balances.ads.available -1050, balances.ads.reserved 1050';
    expect(found).toEqual(
      expect.arrayContaining([
        differs(
          ...([paidOut.created, 'payout_reserved'] as const),
          ...(['balances.ads.available -1049, balances.ads.reserved 1049', reserved] as const),
        ),
        differs(
          ...([paidOut.submitted, 'payout_reserved'] as const),
          ...(['balances.main.available -1050, balances.main.reserved 1050', reserved] as const),
        ),
        differs(
          ...([paidOut.sent, 'payout_captured'] as const),
          'balances.ads.reserved -1050, clearing.other 1000, income.fees 50',
          'balances.ads.reserved -1050, clearing.bank 1000, income.fees 50',
        ),
        differs(
          ...([paidOut.returned, 'payout_captured'] as const),
          'balances.ads.reserved -1050, clearing.bank 999, income.fees 51',
          'balances.ads.reserved -1050, clearing.bank 1000, income.fees 50',
        ),
        differs(
          ...([paidOut.returned, 'payout_returned'] as const),
          'balances.ads.available 999, clearing.bank -999',
          'balances.ads.available 1000, clearing.bank -1000',
        ),
      ]),
    );
  });

  test('tells postings of a payout that is not there', async () => {
    await setting.documents('payouts').deleteOne({ _id: paidOut.sent });
    expect(parts(await setting.differences())).toEqual([
      ['claim_without_resource', paidOut.sent, 'createPayout'],
      ['resource_missing', paidOut.sent, `payout_captured:${paidOut.sent}`],
      ['resource_missing', paidOut.sent, `payout_reserved:${paidOut.sent}`],
    ]);
  });
});
