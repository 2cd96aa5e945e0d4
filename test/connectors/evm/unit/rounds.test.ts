import { HttpRequestError, RpcRequestError } from 'viem';
import { NodeFailure, toRefusal } from '../../../../connectors/evm/node-answers';
import { beginWithRetry, runRounds } from '../../../../connectors/evm/rounds';
import { createLogger } from '../../../../src/base/log';

const log = createLogger('test-rounds', 'silent');

/** Creates a connector whose beginnings and rounds have these results; the last one stops it. */
function createScripted(results: (Error | boolean)[]) {
  const stopping = new AbortController();
  const left = [...results];
  const round = async () => {
    const next = left.shift();
    if (left.length === 0) stopping.abort();
    if (next instanceof Error) throw next;
    return next === true;
  };
  const evm = { round, begin: async () => void (await round()) };
  return { deps: { evm, pollMs: 60_000, signal: stopping.signal, log }, left };
}

test('a start waits for a node that does not answer, and fails for any other reason', async () => {
  const patient = createScripted([new NodeFailure('away'), false]);
  await beginWithRetry(patient.deps);
  expect(patient.left).toEqual([]);
  const wrong = createScripted([new Error('The node is on chain 5.'), false]);
  await expect(beginWithRetry(wrong.deps)).rejects.toThrow('on chain 5');
});

test('rounds follow at once while there is more, continue after a failure, and stop', async () => {
  const busy = createScripted([true, true, new NodeFailure('away'), false]);
  await runRounds(busy.deps);
  expect(busy.left).toEqual([]);
});

test.each(['begin', 'round'] as const)(
  'a connector stops although a silent node holds up its %s',
  async (held) => {
    const stopping = new AbortController();
    const hang = () => {
      stopping.abort();
      return new Promise<never>(() => {});
    };
    const evm = { begin: async () => {}, round: async () => false, [held]: hang };
    const deps = { evm, pollMs: 1, signal: stopping.signal, log, graceMs: 1 };
    await beginWithRetry(deps);
    await runRounds(deps);
    expect(stopping.signal.aborted).toBe(true);
  },
);

const url = 'http://node.example';
const buildAnswer = (message: string) =>
  new RpcRequestError({ body: {}, url, error: { code: -32000, message } });

test.each<[string, Error, ReturnType<typeof toRefusal>]>([
  ['already known', buildAnswer('already known'), { outcome: 'held' }],
  ['AlreadyKnown', buildAnswer('AlreadyKnown'), { outcome: 'held' }],
  ['imported', buildAnswer('transaction already imported'), { outcome: 'held' }],
  ['Known', buildAnswer('Known transaction'), { outcome: 'held' }],
  ['low', buildAnswer('nonce too low'), { outcome: 'refused', reason: 'nonce too low' }],
  ['no answer', new HttpRequestError({ url }), undefined],
  ['no connection', new Error('socket hang up'), undefined],
])('a node holds or refuses a transaction by its answer: %s', (_, error, refusal) => {
  expect(toRefusal(error)).toEqual(refusal);
});
