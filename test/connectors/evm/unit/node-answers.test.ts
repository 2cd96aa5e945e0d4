import { HttpRequestError, RpcRequestError } from 'viem';
import { toRefusal } from '../../../../connectors/evm/node-answers';

const said = (message: string) =>
  new RpcRequestError({ body: {}, url: 'http://node.example', error: { code: -32000, message } });

it.each(['already known', 'AlreadyKnown', 'transaction already imported', 'Known transaction'])(
  'bytes of which a node says “%s” are held by it',
  (message) => {
    expect(toRefusal(said(message))).toEqual({ outcome: 'held' });
  },
);

it('is a refusal when a node says anything else', () => {
  const reason = 'nonce too low';
  expect(toRefusal(said(reason))).toEqual({ outcome: 'refused', reason });
});

it('is none when a node was not reached', () => {
  expect(toRefusal(new HttpRequestError({ url: 'http://node.example' }))).toBeUndefined();
  expect(toRefusal(new Error('socket hang up'))).toBeUndefined();
});
