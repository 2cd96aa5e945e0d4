import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import Koa from 'koa';
import { createFailureLimit } from '../../../src/api/rate-limit';
import { Refusal } from '../../../src/domain/errors';
import { inOneWindow } from '../window';

/** A call from an address. */
function from(address: string) {
  const request = new IncomingMessage(new Socket());
  const ctx = new Koa().createContext(request, new ServerResponse(request));
  ctx.state['address'] = address;
  return ctx;
}

const wrong = async () => {
  throw new Refusal('api_key_invalid', 'No such key.');
};

const right = async () => 'a valid key';

test(
  'an address that tries a thousand wrong keys is told when it may go on',
  inOneWindow(async () => {
    const guarded = createFailureLimit();
    await guarded(from('192.0.2.1'), 'merchant', right);
    for (let tried = 0; tried < 1_000; tried += 1) {
      await expect(guarded(from('192.0.2.1'), 'unknown', wrong)).rejects.toMatchObject({
        code: 'api_key_invalid',
      });
    }
    const look = jest.fn(right);
    const ctx = from('192.0.2.1');
    await expect(guarded(ctx, 'unknown', look)).rejects.toMatchObject({ code: 'rate_limited' });
    expect(ctx.response.headers).toMatchObject({
      'ratelimit-limit': '1000',
      'ratelimit-remaining': '0',
      'ratelimit-reset': expect.stringMatching(/^([1-9]|10)$/),
    });
    expect(ctx.response.get('Retry-After')).toBe(ctx.response.get('RateLimit-Reset'));
    expect(look).not.toHaveBeenCalled();
    expect(await guarded(from('192.0.2.1'), 'merchant', right)).toBe('a valid key');
    await expect(guarded(from('192.0.2.2'), 'unknown', wrong)).rejects.toMatchObject({
      code: 'api_key_invalid',
    });
  }),
);
