import { createWindows } from '../../../src/service/account-windows';

function setup(most: number) {
  let at = 0;
  const windows = createWindows(most, () => at);
  const size = (account: string) => {
    let open = 0;
    while (open < most && windows.isOpen(account, open)) open += 1;
    return open;
  };
  const wait = (ms: number) => {
    at += ms;
  };
  return { ...windows, size, wait };
}

test('creates that fail together halve a window once, down to four', () => {
  const { shrink, size, wait } = setup(100);
  for (let failed = 0; failed < 40; failed += 1) shrink('a', 40 - failed);
  expect(size('a')).toBe(20);
  wait(1_000);
  shrink('a', 20);
  expect(size('a')).toBe(10);
  for (let outage = 0; outage < 5; outage += 1) {
    wait(1_000);
    shrink('a', 1);
  }
  expect(size('a')).toBe(4);
  expect(size('b')).toBe(100);
});

test('each answer widens it by one, up to the most', () => {
  const { shrink, grow, size } = setup(10);
  grow('a');
  expect(size('a')).toBe(10);
  shrink('a', 8);
  expect(size('a')).toBe(4);
  grow('a');
  grow('a');
  expect(size('a')).toBe(6);
  for (let answered = 0; answered < 9; answered += 1) grow('a');
  expect(size('a')).toBe(10);
});
