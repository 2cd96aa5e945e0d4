import { Refusal, unavailable } from '../../../src/domain/errors';
import { createWindows } from '../../../src/service/account-windows';
import { createSlots } from '../../../src/service/create-slots';
import { gate } from '../../support/gate';

const REFUSED = {
  code: 'temporarily_unavailable',
  message: expect.stringContaining('Nothing was done'),
};
const holder = (account_id: string, connector?: string, livemode = false) => ({
  ...{ account_id, livemode, connector },
});

/** Takes as many slots as there are, up to `wanted`. @returns how many */
async function take(
  slots: ReturnType<typeof createSlots>,
  who: ReturnType<typeof holder>,
  { wanted, opened }: { wanted: number; opened: Promise<unknown> },
) {
  let taken = 0;
  const begin = () => {
    taken += 1;
    return opened;
  };
  for (let i = 0; i < wanted; i += 1) slots(who, begin).catch(() => undefined);
  await new Promise(setImmediate);
  return taken;
}

test('a create over the limit is refused until another ends, and live has its own limit', async () => {
  const slots = createSlots(2);
  const { opened, release } = gate();
  const first = [slots(holder('a'), () => opened), slots(holder('b'), () => opened)];
  const never = jest.fn();
  await expect(slots(holder('c'), never)).rejects.toMatchObject(REFUSED);
  expect(never).not.toHaveBeenCalled();
  expect(await slots(holder('a', undefined, true), async () => 'live')).toBe('live');
  release();
  await Promise.all(first);
  expect(await slots(holder('c'), async () => 'later')).toBe('later');
});

test('a create that fails frees its slot', async () => {
  const slots = createSlots(1);
  const broken = slots(holder('a'), () => Promise.reject(new Error('broken')));
  await expect(broken).rejects.toThrow('broken');
  expect(await slots(holder('a'), async () => 'next')).toBe('next');
});

test('one account never takes the last slots, and each other account gets some of them', async () => {
  const slots = createSlots(100);
  const { opened } = gate();
  expect(await take(slots, holder('greedy'), { wanted: 200, opened })).toBe(80);
  expect(await take(slots, holder('second'), { wanted: 200, opened })).toBe(3);
  const other = createSlots(100);
  expect(await take(other, holder('greedy'), { wanted: 200, opened })).toBe(80);
  expect(await take(other, holder('second'), { wanted: 8, opened })).toBe(3);
  expect(await take(other, holder('third'), { wanted: 8, opened })).toBe(3);
  expect(await take(other, holder('greedy'), { wanted: 1, opened })).toBe(0);
});

test('simulations have fewer slots than creates, and take none from them', async () => {
  const slots = createSlots(100);
  const { opened, release } = gate();
  const simulating = { ...holder('a'), simulates: true } as const;
  expect(await take(slots, simulating, { wanted: 20, opened })).toBe(8);
  expect(await take(slots, holder('a'), { wanted: 1, opened })).toBe(1);
  expect(await take(slots, holder('b'), { wanted: 1, opened })).toBe(1);
  const other = { ...holder('b'), simulates: true } as const;
  expect(await take(slots, other, { wanted: 20, opened })).toBe(1);
  release();
});

test('a slow bank leaves slots for other banks, also when many accounts wait for it', async () => {
  const slots = createSlots(100);
  const { opened } = gate();
  let waiting = 0;
  for (let i = 0; i < 50; i += 1) {
    waiting += await take(slots, holder(`a${i}`, 'slow'), { wanted: 10, opened });
  }
  expect(waiting).toBe(80);
  expect(await take(slots, holder('b', 'fast'), { wanted: 2, opened })).toBe(2);
});

test('an account whose creates get no answer has half as many slots, and one more with each answer', async () => {
  const slots = createSlots(100);
  const { opened, release } = gate();
  const outage = opened.then(() => {
    throw unavailable('The payment engine did not answer in time.', undefined);
  });
  outage.catch(() => undefined);
  await take(slots, holder('greedy'), { wanted: 60, opened: outage });
  release();
  await new Promise(setImmediate);
  expect(await takeAndRelease(slots, 'greedy')).toBe(30);
  expect(await takeAndRelease(slots, 'greedy')).toBe(60);
  expect(await takeAndRelease(slots, 'other')).toBe(3);
});

test('refusals for other reasons remove no slot', async () => {
  const slots = createSlots(100);
  const refuse = () => Promise.reject(new Refusal('invalid_request', 'No.'));
  await expect(slots(holder('a'), refuse)).rejects.toMatchObject({ code: 'invalid_request' });
  expect(await takeAndRelease(slots, 'a')).toBe(80);
});

/** Takes the slots that an account gets at once, and answers each create. @returns how many */
async function takeAndRelease(slots: ReturnType<typeof createSlots>, account: string) {
  const { opened, release } = gate();
  const taken = await take(slots, holder(account), { wanted: 100, opened });
  release();
  await new Promise(setImmediate);
  return taken;
}

function openWindows(most: number) {
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

test('creates that fail together halve the window of an account once, down to four', () => {
  const { shrink, size, wait } = openWindows(100);
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

test('each answer widens a window by one, up to its maximum', () => {
  const { shrink, grow, size } = openWindows(10);
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
