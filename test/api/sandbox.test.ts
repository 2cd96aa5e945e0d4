import { idealPayment } from '../support/http';
import { useService } from '../support/service';
import { CREATES, type Creator } from './create-setting';
import { expectRefusal } from './refusal';

const service = useService();

const FOREIGN = { payment: 'returned', refund: 'authorized', payout: 'settled' };

describe.each(CREATES)('about a $resource', ({ resource, path, open }) => {
  let creator: Creator;
  /** Read before and after each refusal, so that one serves them all. */
  let id: string;
  beforeAll(async () => {
    creator = await open(service);
    ({ id } = await creator.make());
  });

  test.each([
    ['an event that is none', { event: 'paid' }, ['event']],
    ['an event of another resource', { event: FOREIGN[resource] }, ['event']],
    ['no event', {}, ['event']],
    ['no body', undefined, ['event']],
    ['a code of 101 characters', { event: 'failed', code: 'x'.repeat(101) }, ['code']],
    ['a reason of 501 characters', { event: 'failed', reason: 'x'.repeat(501) }, ['reason']],
    ['wrong types', { event: 1, code: 1.5, reason: [] }, ['event', 'code', 'reason']],
    ['an unknown field', { event: 'failed', status: 'failed' }, ['status']],
  ])('%s is refused and moves nothing', async (_, body, fields) => {
    const before = await creator.get(`${path}/${id}`);
    expectRefusal(await creator.simulate(id, body), 'invalid_request', fields);
    expect((await creator.get(`${path}/${id}`)).text).toBe(before.text);
  });

  test('what nobody has, or another account has, cannot be simulated', async () => {
    const code = `${resource}_not_found` as const;
    const event = { event: 'failed' };
    const { id: payment_id } = await creator.settledPayment();
    const refund = await creator.post('/v1/refunds', { payment_id });
    for (const other of ['some-id', resource === 'payment' ? refund.body.id : payment_id]) {
      expectRefusal(await creator.simulate(other, event), code);
    }
    const simulate = `/v1/sandbox${path.slice(3)}/${id}/simulate`;
    const foreign = await service.account();
    expectRefusal(await foreign.post(simulate, event), code);
    for (const account of [foreign, creator]) {
      const live = await service.withKey(account, true);
      expectRefusal(await live.post(simulate, event), 'api_key_scope_insufficient');
    }
  });
});

test('the redirect URL opens the hosted page, and every read returns the same one', async () => {
  const shop = await service.account();
  const { id, redirect_url } = (await shop.post('/v1/payments', idealPayment())).body;
  const page = await fetch(redirect_url);
  expect(page.status).toBe(200);
  expect(page.headers.get('Content-Type')).toContain('text/html');
  const read = await shop.get(`/v1/payments/${id}`);
  expect(read.body.redirect_url).toBe(redirect_url);
  const token = redirect_url.split('/').at(-1);
  const rows = await service.collection('payments').find().toArray();
  expect(JSON.stringify(rows)).not.toContain(token);
});
