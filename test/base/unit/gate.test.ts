import { createGate } from '../../../src/base/gate';

/** Work that ends when it is told to. */
function held() {
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { ended, end };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('so many are let through as are allowed, the others in their order, also after one that fails', async () => {
  const gate = createGate(2);
  const works = ['a', 'b', 'c', 'd'].map((name) => ({ name, ...held() }));
  const begun: string[] = [];
  const running = works.map(({ name, ended }) =>
    gate(async () => {
      begun.push(name);
      await ended;
      if (name === 'b') throw new Error('b failed');
      return name;
    }).catch((error: unknown) => String(error)),
  );
  await settled();
  expect(begun).toEqual(['a', 'b']);
  works[1]?.end();
  await settled();
  expect(begun).toEqual(['a', 'b', 'c']);
  for (const { end } of works) end();
  expect(await Promise.all(running)).toEqual(['a', 'Error: b failed', 'c', 'd']);
  expect(await gate(async () => 'free')).toBe('free');
});
