import { Refusal, unavailable } from '../../../src/domain/errors';
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

test('what is over the limit is refused at once, until something ends; live is counted apart', async () => {
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

test('a create that fails makes room', async () => {
  const slots = createSlots(1);
  const broken = slots(holder('a'), () => Promise.reject(new Error('broken')));
  await expect(broken).rejects.toThrow('broken');
  expect(await slots(holder('a'), async () => 'next')).toBe('next');
});

test('one account never takes the last slots, of which others get some each', async () => {
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

test('simulations are fewer, and wait for longer than creates', async () => {
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

test('a slow bank leaves room for the others, also where many accounts wait for it', async () => {
  const slots = createSlots(100);
  const { opened } = gate();
  let waiting = 0;
  for (let i = 0; i < 50; i += 1) {
    waiting += await take(slots, holder(`a${i}`, 'slow'), { wanted: 10, opened });
  }
  expect(waiting).toBe(80);
  expect(await take(slots, holder('b', 'fast'), { wanted: 2, opened })).toBe(2);
});

test('an account whose creates are not answered gets half as many, then one more with each answer', async () => {
  const slots = createSlots(100);
  const { opened, release } = gate();
  const outage = opened.then(() => {
    throw unavailable('The payment engine did not answer in time.', undefined);
  });
  outage.catch(() => undefined);
  await take(slots, holder('greedy'), { wanted: 60, opened: outage });
  release();
  await new Promise(setImmediate);
  expect(await takenAndReleased(slots, 'greedy')).toBe(30);
  expect(await takenAndReleased(slots, 'greedy')).toBe(60);
  expect(await takenAndReleased(slots, 'other')).toBe(3);
});

test('refusals for other reasons take no slot away', async () => {
  const slots = createSlots(100);
  const refuse = () => Promise.reject(new Refusal('invalid_request', 'No.'));
  await expect(slots(holder('a'), refuse)).rejects.toMatchObject({ code: 'invalid_request' });
  expect(await takenAndReleased(slots, 'a')).toBe(80);
});

/** @returns how many slots an account gets at once, each of which is then answered */
async function takenAndReleased(slots: ReturnType<typeof createSlots>, account: string) {
  const { opened, release } = gate();
  const taken = await take(slots, holder(account), { wanted: 100, opened });
  release();
  await new Promise(setImmediate);
  return taken;
}
