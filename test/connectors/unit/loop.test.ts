import { startLoop } from '../../../connectors/kit/loop';

const log = { error: () => {} };
const deps = { pollMs: 60_000, failureText: 'failed', log };

/** Round that ends when the test says so. */
function heldRound() {
  let end: (more: boolean) => void = () => {};
  const held = new Promise<boolean>((resolve) => {
    end = resolve;
  });
  const counts = { begun: 0, ended: 0 };
  const round = async () => {
    counts.begun += 1;
    const more = await held;
    counts.ended += 1;
    return more;
  };
  return { round, counts, end };
}

test('a loop that is stopped ends its round', async () => {
  const { round, counts, end } = heldRound();
  const loop = startLoop({ ...deps, round });
  const stopped = loop.stop();
  end(true);
  await stopped;
  expect(counts).toEqual({ begun: 1, ended: 1 });
});

test('a round that hangs does not hold back the stop, and none follows it', async () => {
  const { round, counts, end } = heldRound();
  const loop = startLoop({ ...deps, round, graceMs: 1 });
  await loop.stop();
  expect(counts).toEqual({ begun: 1, ended: 0 });
  end(true);
  await loop.stop();
  expect(counts.begun).toBe(1);
});
