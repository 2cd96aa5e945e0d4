import { randomUUID } from 'node:crypto';
import { eventId } from '../../src/base/ids';
import { type LedgerSetting, useLedgerSetting } from './ledger-setting';

const setting = useLedgerSetting();
let account_id: string;
let ids: LedgerSetting['ids'];
let paidOut: LedgerSetting['paidOut'];

beforeAll(async () => {
  ({ account_id, ids, paidOut } = setting);
});

describe('ledger verify, of what belongs to resources', () => {
  test('tells nothing of what the product wrote, when it reads everything', async () => {
    expect(await setting.differences('--full')).toEqual([]);
  });

  test('tells a version without its event', async () => {
    const event = eventId('payment', ids.settled, 3);
    await setting.documents('events').deleteOne({ _id: event });
    await setting.documents('payouts').updateOne({ _id: paidOut.failed }, { $inc: { version: 1 } });
    expect(await setting.differences()).toEqual([
      {
        check: 'event_missing',
        subject: ids.settled,
        part: 'version 3',
        expected: event,
        found: null,
      },
      {
        check: 'event_missing',
        subject: paidOut.failed,
        part: 'version 3',
        expected: eventId('payout', paidOut.failed, 3),
        found: null,
      },
    ]);
  });

  test('tells an event whose resource is gone', async () => {
    const event = { _id: `evt_${randomUUID()}`, type: 'refund.settled', resource_id: 'nothing' };
    const place = { account_id, livemode: false, position: 'none' };
    await setting.documents('events').insertOne({ ...event, ...place });
    expect(await setting.differences()).toEqual([]);
    expect(await setting.differences('--full')).toEqual([
      {
        check: 'event_without_resource',
        subject: event._id,
        part: 'resource_id',
        expected: 'nothing',
        found: null,
      },
    ]);
  });

  test('tells a state that does not exist', async () => {
    await setting.change('payments', ids.authorized, { status: 'clawed_back' });
    expect(await setting.differences()).toEqual([
      {
        check: 'status_unknown',
        subject: ids.authorized,
        part: 'status',
        expected: null,
        found: 'clawed_back',
      },
    ]);
  });

  test('tells a refund of a payment elsewhere, or of none', async () => {
    await setting.change('payments', ids.refunded, { livemode: true });
    await setting.change('refunds', ids.failed, { payment_id: 'nothing' });
    const found = await setting.differences();
    const misplaced = found.filter(({ check }) => check === 'refund_misplaced');
    expect(misplaced).toHaveLength(3);
    for (const id of [ids.back, ids.processing]) {
      expect(misplaced).toContainEqual({
        check: 'refund_misplaced',
        subject: id,
        part: 'livemode',
        expected: 'true',
        found: 'false',
      });
    }
    expect(misplaced).toContainEqual({
      check: 'refund_misplaced',
      subject: ids.failed,
      part: 'payment_id',
      expected: 'nothing',
      found: null,
    });
  });

  test('tells a key that is done without its resource, and one that is open beside it', async () => {
    const claims = setting.documents('idempotency');
    const request = { stored: {} };
    await claims.updateOne({ resource_id: ids.settled }, { $set: { request } });
    await claims.updateOne({ resource_id: ids.authorized }, { $set: { resource_id: 'nothing' } });
    // A recipient is written before its claim is emptied.
    await setting.documents('recipients').insertOne({ _id: 'recipient', kid: 'k1' });
    await claims.insertOne({
      _id: 'recipient-claim',
      resource_id: 'recipient',
      operation: 'createRecipient',
      request: {},
    });
    const found = await setting.differences();
    expect(found).toHaveLength(2);
    expect(found).toEqual(
      expect.arrayContaining([
        {
          check: 'claim_left_open',
          subject: ids.settled,
          part: 'createPayment',
          expected: null,
          found: 'open',
        },
        {
          check: 'claim_without_resource',
          subject: 'nothing',
          part: 'createPayment',
          expected: 'nothing',
          found: null,
        },
      ]),
    );
  });

  test('tells money of the sandbox bank in a live book', async () => {
    const _id = `funded:${randomUUID()}`;
    await setting.post(_id, 'clearing.sandbox', 'balances.main.available', 5);
    expect(await setting.differences()).toEqual([]);
    const live = `${account_id}:live:EUR`;
    await setting.change('ledger_postings', _id, { book: live });
    expect(await setting.differences()).toContainEqual({
      check: 'sandbox_in_live',
      subject: _id,
      part: 'clearing.sandbox',
      expected: null,
      found: live,
    });
  });
});
