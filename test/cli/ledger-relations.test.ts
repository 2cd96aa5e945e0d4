import { randomUUID } from 'node:crypto';
import { eventId } from '../../src/base/ids';
import { useFixture } from '../support/fixture';
import { difference, useLedgerSetting } from './ledger-setting';

const setting = useLedgerSetting();
const ids = useFixture(async () => setting.ids);
const paidOut = useFixture(async () => setting.paidOut);

describe('ledger verify, of what belongs to resources', () => {
  test('tells nothing of what the product wrote, when it reads everything', async () => {
    expect(await setting.differences('--full')).toEqual([]);
  });

  test('tells a version without its event', async () => {
    const event = eventId('payment', ids.settled, 3);
    await setting.documents('events').deleteOne({ _id: event });
    await setting.documents('payouts').updateOne({ _id: paidOut.failed }, { $inc: { version: 1 } });
    expect(await setting.differences()).toEqual([
      difference('event_missing', ids.settled, 'version 3', event, null),
      difference(
        'event_missing',
        paidOut.failed,
        'version 3',
        eventId('payout', paidOut.failed, 3),
        null,
      ),
    ]);
  });

  test('misses no event that the retention may have deleted', async () => {
    const event = eventId('payment', ids.settled, 3);
    await setting.documents('events').deleteOne({ _id: event });
    const old = new Date(Date.now() - 400 * 86_400_000).toISOString();
    await setting.change('payments', ids.settled, { created_at: old });
    const runs = setting.documents('schedule_runs');
    await runs.insertOne({ _id: 'retention', events_before: old });
    expect(await setting.differences('--full')).toEqual([
      difference('event_missing', ids.settled, 'version 3', event, null),
    ]);
    const events_before = new Date(Date.parse(old) + 1).toISOString();
    await runs.updateOne({ _id: 'retention' }, { $set: { events_before } });
    expect(await setting.differences('--full')).toEqual([]);
  });

  test('tells an event whose resource is gone', async () => {
    const event = { _id: `evt_${randomUUID()}`, type: 'refund.settled', resource_id: 'nothing' };
    const place = { account_id: setting.account_id, livemode: false, position: 'none' };
    await setting.documents('events').insertOne({ ...event, ...place });
    expect(await setting.differences()).toEqual([]);
    expect(await setting.differences('--full')).toEqual([
      difference('event_without_resource', event._id, 'resource_id', 'nothing', null),
    ]);
  });

  test('tells a state that does not exist', async () => {
    await setting.change('payments', ids.authorized, { status: 'clawed_back' });
    expect(await setting.differences()).toEqual([
      difference('status_unknown', ids.authorized, 'status', null, 'clawed_back'),
    ]);
  });

  test('tells a refund of a payment elsewhere, or of none', async () => {
    await setting.change('payments', ids.refunded, { livemode: true });
    await setting.change('refunds', ids.failed, { payment_id: 'nothing' });
    const found = await setting.differences();
    const misplaced = found.filter(({ check }) => check === 'refund_misplaced');
    expect(misplaced).toHaveLength(3);
    for (const id of [ids.back, ids.processing]) {
      expect(misplaced).toContainEqual(
        difference('refund_misplaced', id, 'livemode', 'true', 'false'),
      );
    }
    expect(misplaced).toContainEqual(
      difference('refund_misplaced', ids.failed, 'payment_id', 'nothing', null),
    );
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
        difference('claim_left_open', ids.settled, 'createPayment', null, 'open'),
        difference('claim_without_resource', 'nothing', 'createPayment', 'nothing', null),
      ]),
    );
  });

  test('tells money of the sandbox bank in a live book', async () => {
    const _id = `funded:${randomUUID()}`;
    await setting.post(_id, 'clearing.sandbox', 'balances.main.available', 5);
    expect(await setting.differences()).toEqual([]);
    const live = `${setting.account_id}:live:EUR`;
    await setting.change('ledger_postings', _id, { book: live });
    expect(await setting.differences()).toContainEqual(
      difference('sandbox_in_live', _id, 'clearing.sandbox', null, live),
    );
  });
});
