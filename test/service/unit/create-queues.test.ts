import { createQueues, type Leave } from '../../../src/service/create-queues';

const LIMITS = {
  alone: 10,
  nextToOthers: 2,
  burst: 1,
  waitingMax: 3,
  waitMsMax: 8_000,
  expectedMs: 1_000,
};

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

function setUp(limits = LIMITS) {
  const queues = createQueues({ create: limits, simulation: limits }, () => Date.now());
  const answers: string[] = [];
  const leaves = new Map<string, Leave>();
  const wait = async (ms: number) => {
    await jest.advanceTimersByTimeAsync(ms);
    return answers.splice(0);
  };
  /** Calls of an account, each of which notes whether it began. */
  const enter = async (
    account: string,
    names: string,
    kind: 'create' | 'simulation' = 'create',
  ) => {
    for (const name of names) {
      void queues.enter(account, kind).then((leave) => {
        answers.push(leave === null ? `${name} refused` : name);
        if (leave !== null) leaves.set(name, leave);
      });
    }
    return await wait(0);
  };
  const leave = async (name: string, counts = true) => {
    leaves.get(name)?.(counts);
    return await wait(0);
  };
  return { enter, leave, wait };
}

test('an account that is alone has ten calls at once, and the others wait', async () => {
  const { enter, leave } = setUp();
  expect(await enter('a', 'abcdefghijkl')).toEqual([...'abcdefghij']);
  expect(await leave('c')).toEqual(['k']);
});

test('calls next to another account begin in order, two at once, spread over their expected time', async () => {
  const { enter, leave, wait } = setUp();
  expect(await enter('other', 'o')).toEqual(['o']);
  expect(await enter('a', 'abcde')).toEqual(['a', 'e refused']);
  expect(await wait(499)).toEqual([]);
  expect(await wait(1)).toEqual(['b']);
  expect(await wait(3_000)).toEqual([]);
  expect(await leave('a')).toEqual(['c']);
  expect(await enter('other', 'p')).toEqual(['p']);
});

test('slow calls of an account delay its next ones, and fast calls speed them up', async () => {
  const { enter, leave, wait } = setUp();
  await enter('other', 'o');
  await enter('a', 'a');
  await wait(5_000);
  await enter('other', 'p');
  await leave('a');
  expect(await enter('a', 'bc')).toEqual(['b']);
  // 2 s of average, of which two at once take half each.
  expect(await wait(999)).toEqual([]);
  expect(await wait(1)).toEqual(['c']);
  await leave('b');
  await enter('a', 'd');
  expect(await wait(1_000)).toEqual(['d']);
  await leave('c');
  await enter('a', 'e');
  expect(await wait(874)).toEqual([]);
  expect(await wait(1)).toEqual(['e']);
});

test('a burst of calls begins together after a pause', async () => {
  const { enter, wait } = setUp({ ...LIMITS, nextToOthers: 4, burst: 2 });
  await enter('other', 'o');
  expect(await enter('a', 'abcd')).toEqual(['a', 'b']);
  expect([await wait(250), await wait(250)]).toEqual([['c'], ['d']]);
});

test('a refused call does not change the expected time', async () => {
  const { enter, leave, wait } = setUp();
  await enter('other', 'o');
  await enter('a', 'a');
  await leave('a', false);
  expect(await enter('a', 'b')).toEqual([]);
  expect(await wait(500)).toEqual(['b']);
});

test('a burst that began alone ends before more calls begin', async () => {
  const { enter, leave } = setUp();
  await enter('a', 'abcd');
  await enter('other', 'o');
  expect(await enter('a', 'e')).toEqual([]);
  expect([await leave('a'), await leave('b'), await leave('c')]).toEqual([[], [], ['e']]);
});

test('a call that waits too long is refused, and those behind it go on', async () => {
  const { enter, leave, wait } = setUp();
  await enter('other', 'o');
  expect(await enter('a', 'abc')).toEqual(['a']);
  expect(await wait(4_000)).toEqual(['b']);
  await enter('a', 'd');
  expect(await wait(4_000)).toEqual(['c refused']);
  await enter('other', 'p');
  expect(await leave('a')).toEqual(['d']);
});

test('each kind of call has its own queue, and an account is no neighbor after ten quiet seconds', async () => {
  const { enter, wait } = setUp();
  await enter('other', 'o', 'simulation');
  expect(await enter('a', 'abc')).toEqual(['a']);
  expect(await enter('a', 'd', 'simulation')).toEqual(['d']);
  await wait(9_999);
  expect(await enter('b', 'xyz')).toEqual(['x']);
  await wait(10_000);
  expect(await enter('b', 'uvw')).toEqual(['u', 'v', 'w']);
});
