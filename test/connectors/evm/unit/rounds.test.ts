import { NodeFailure } from '../../../../connectors/evm/node-answers';
import { beginWithRetry, type RoundsDeps, runRounds } from '../../../../connectors/evm/rounds';
import { createLogger } from '../../../../src/base/log';

const log = createLogger('test-rounds', 'silent');

/** A connector whose begins and rounds go as listed; the last of them stops it. */
function scripted(turns: (Error | boolean)[]) {
  const stopping = new AbortController();
  const left = [...turns];
  const turn = async () => {
    const next = left.shift();
    if (left.length === 0) stopping.abort();
    if (next instanceof Error) throw next;
    return next === true;
  };
  const evm = { round: turn, begin: async () => void (await turn()) };
  const deps: RoundsDeps = { evm, pollMs: 60_000, signal: stopping.signal, log };
  return { deps, left };
}

test('a start waits for a node that does not answer, and ends for any other reason', async () => {
  const patient = scripted([new NodeFailure('away'), false]);
  await beginWithRetry(patient.deps);
  expect(patient.left).toEqual([]);
  const wrong = scripted([new Error('The node is on chain 5.'), false]);
  await expect(beginWithRetry(wrong.deps)).rejects.toThrow('on chain 5');
});

test('rounds follow at once while there is more, go on after a failure, and end when told', async () => {
  const busy = scripted([true, true, new NodeFailure('away'), false]);
  await runRounds(busy.deps);
  expect(busy.left).toEqual([]);
});

test.each(['begin', 'round'] as const)(
  'a stop waits for no %s that a silent node holds up',
  async (held) => {
    const stopping = new AbortController();
    const silent = () => {
      stopping.abort();
      return new Promise<never>(() => {});
    };
    const deps = { pollMs: 1, signal: stopping.signal, log, graceMs: 1 };
    const evm = { begin: async () => {}, round: async () => false, [held]: silent };
    await beginWithRetry({ ...deps, evm });
    await runRounds({ ...deps, evm });
    expect(stopping.signal.aborted).toBe(true);
  },
);
