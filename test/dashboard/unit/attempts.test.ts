import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import Koa from 'koa';
import { addressOf } from '../../../src/dashboard/attempts';

function contextWith(forwarded: string | undefined) {
  const request = new IncomingMessage(new Socket());
  if (forwarded !== undefined) request.headers['x-forwarded-for'] = forwarded;
  return new Koa().createContext(request, new ServerResponse(request));
}

test.each([
  ['https://pay.example', '6.6.6.6, 9.9.9.9', '9.9.9.9'],
  ['https://pay.example', '9.9.9.9', '9.9.9.9'],
  ['http://localhost:8080', '9.9.9.9', ''],
  ['https://pay.example', undefined, ''],
])('at %s, forwarded for %s, attempts are counted for "%s"', (publicUrl, forwarded, address) => {
  expect(addressOf(contextWith(forwarded), publicUrl)).toBe(address);
});
